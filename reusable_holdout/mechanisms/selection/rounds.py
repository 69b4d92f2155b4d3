"""Rounds of permute-and-flip: several candidates, each the best of those that are left with a probability near one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms.accounting.composition import optimal_epsilon_each
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.exponential import candidates_on_grid, check_rounds, selection_rate
from reusable_holdout.mechanisms.selection.noisy_max import flip_in_order

__all__ = ["permute_and_flip_top"]


def permute_and_flip_top(
    scores: npt.ArrayLike,
    count: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> npt.NDArray[np.int64]:
    """Choose several candidates by rounds of permute-and-flip without replacement.

    All choices together, and their order, are (epsilon, delta)-differentially private. With delta 0 a round's expected
    score is never below that of `exponential_top`; with a delta `exponential_top` has less noise from some rounds on:
    `compare_selections` says which is better.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of the candidates, on the private data; larger is better.
    count : int
        Rounds ``c``; at least 1, at most n. Time grows with it.
    epsilon, delta : float
        Privacy parameters of all rounds together; epsilon finite and above 0, delta in [0, 1).
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    ndarray of int64, shape (count,)
        Indices of the chosen candidates, in the order of the rounds.

    Raises
    ------
    InputError
        If a parameter is out of range, or a score is NaN or beyond 2**60 grid steps; the message tells no score.

    Notes
    -----
    Each round is `permute_and_flip` among those that are left, ``e0``-private, with ``e0`` of `optimal_epsilon_each`,
    which is ``e/c`` with delta 0. Its privacy loss has no bounded range: at the rate of `exponential_top` with a delta
    it would lose more than it promises.

    References
    ----------
    .. [1] McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection",
       Theorem 2 on the expected error.
    .. [2] Kairouz, Oh and Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> permute_and_flip_top([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0).tolist()
    [1, 3]
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    check_rounds(count, len(steps))
    each = optimal_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    rate = selection_rate(epsilon=each, sensitivity=grid.sensitivity, monotonic=monotonic)
    words, left = RandomWords(seed), np.arange(len(steps))
    chosen = np.empty(count, dtype=np.int64)
    for round_ in range(count):
        place = flip_in_order(steps[left], rate, words)
        chosen[round_] = left[place]
        left = np.delete(left, place)
    return chosen
