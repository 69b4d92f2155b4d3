"""The privacy parameter of each candidate in a one-shot top-k, which runs all candidates and publishes the best."""

from __future__ import annotations

import functools

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.composition import optimal_composition, optimal_epsilon_each
from reusable_holdout.mechanisms.accounting.target_charging import not_prior_epsilon_each


@functools.lru_cache(maxsize=256)
def one_shot_top_k_epsilon_each(*, k: int, candidates: int, epsilon: float, delta: float) -> float:
    """Compute the privacy parameter that each candidate of a one-shot top-k may have.

    Every candidate is run once, with the result as its privacy parameter. Publishing the k candidates with the best
    scores, and their outcomes, is then (epsilon, delta)-differentially private. The result is rounded down.

    Parameters
    ----------
    k : int
        Number of candidates published; at least 1, at most `candidates`.
    candidates : int
        Number of candidates run.
    epsilon, delta : float
        Privacy parameters of the whole selection; epsilon finite and above 0, delta in [0, 1).

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The result is the larger of two numbers. First, let each candidate be ``e0``-private. The selection is an
    interaction with target charging and ``k`` hits, whose calls are ``2 e0``-private algorithms with NotPrior targets:
    conditional releases, revised as a threshold falls. Second, the selection is post-processing of the outcomes of all
    candidates. This bound is better for few candidates, and the only one with delta 0.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive computations",
       Algorithm 3, Lemma 2.6, Theorem I.3.
    .. [2] Kairouz, Oh and Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> round(one_shot_top_k_epsilon_each(k=10, candidates=10_000, epsilon=1.0, delta=1e-6), 3)
    0.017
    >>> one_shot_top_k_epsilon_each(k=1, candidates=2, epsilon=1.0, delta=0.0)
    0.5
    """
    if not 1 <= k <= candidates:
        raise InputError(f"k lies between 1 and the number of candidates, {candidates}; got {k}")
    if delta == 0:
        return optimal_epsilon_each(epsilon=epsilon, count=candidates, delta=0.0)
    revised = not_prior_epsilon_each(epsilon=epsilon, delta=delta, charges=k)
    each = revised / 2  # a revised conditional release costs twice its algorithm
    if optimal_composition(epsilon=each, count=candidates, delta=delta) > epsilon:
        return each
    return max(each, optimal_epsilon_each(epsilon=epsilon, count=candidates, delta=delta))
