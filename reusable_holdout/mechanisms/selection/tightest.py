"""The tightest way to select, chosen and run; and to measure what was selected."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.composition import optimal_epsilon_each
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.comparison import Selection, tightest_selection
from reusable_holdout.mechanisms.selection.exponential import candidates_on_grid, exponential_top
from reusable_holdout.mechanisms.selection.joint import joint_exponential_top
from reusable_holdout.mechanisms.selection.noisy_max import draw_noise
from reusable_holdout.mechanisms.selection.rounds import permute_and_flip_top
from reusable_holdout.mechanisms.selection.top_k import TopK, noisy_top_k_gaps, one_shot_top_k
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

__all__ = ["select_then_measure", "select_top"]

Mechanism: TypeAlias = Literal[Selection, "tightest"]


def select_top(
    scores: npt.ArrayLike,
    count: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    mechanism: Mechanism = "tightest",
    seed: int | None = None,
) -> npt.NDArray[np.int64]:
    """Choose the best few of many candidates by the way that has the least noise.

    All choices together, and their order, are (epsilon, delta)-differentially private.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of the candidates, on the private data; larger is better.
    count : int
        Candidates to select; at least 1, at most n.
    epsilon, delta : float
        Privacy parameters of the whole selection; epsilon finite and above 0, delta in [0, 1).
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall.
    mechanism : str
        A selection of `compare_selections`, or "tightest" for the first of them: that depends on the parameters and on
        n, not on scores.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    ndarray of int64, shape (count,)
        Indices of the chosen candidates, best first.

    Raises
    ------
    InputError
        If a parameter is out of range, or a score is NaN or beyond 2**60 grid steps; the message tells no score.

    Examples
    --------
    >>> select_top([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0).tolist()
    [1, 3]
    """
    names = (*get_args(Selection), "tightest")
    if mechanism not in names:
        raise InputError(f"mechanism is one of {', '.join(names)}; got {mechanism!r}")
    if mechanism == "tightest":
        _, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
        mechanism = tightest_selection(
            epsilon=epsilon, delta=delta, count=count, candidates=len(steps), monotonic=monotonic
        )
    if mechanism == "one_shot_top_k":
        best = one_shot_top_k(scores, count, epsilon=epsilon, delta=delta, sensitivity=sensitivity, seed=seed)
        return best.indices
    if mechanism == "noisy_top_k_gaps":
        return noisy_top_k_gaps(
            scores, count, epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic, seed=seed
        ).indices
    if mechanism == "joint_exponential_top":
        return joint_exponential_top(
            scores, count, epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic, seed=seed
        )
    choose = exponential_top if mechanism == "exponential_top" else permute_and_flip_top
    return choose(
        scores,
        count,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        monotonic=monotonic,
        seed=seed,
    )


def select_then_measure(
    scores: npt.ArrayLike,
    count: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    mechanism: Mechanism = "tightest",
    seed: int | None = None,
) -> TopK:
    """Select the best candidates and tell their noisy scores, by the tightest way at a budget.

    All choices and scores together are (epsilon, delta)-differentially private.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of the candidates, on the private data; larger is better.
    count : int
        Candidates to select; at least 1, at most n.
    epsilon, delta : float
        Privacy parameters of the whole; epsilon finite and above 0, delta in [0, 1).
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall.
    mechanism : str
        A selection of `compare_selections` with answers, or "tightest" for the first of them: that depends on the
        parameters and on n, not on scores.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    TopK
        Indices, in the order in which they were chosen, and their noisy scores.

    Raises
    ------
    InputError
        If a parameter is out of range, or a score is NaN or beyond 2**60 grid steps; the message tells no score.

    Notes
    -----
    Half of epsilon and delta choose; the other half pays for Laplace noise of scale ``D/e0`` on the score of each that
    was chosen, ``e0`` of `optimal_epsilon_each`. `one_shot_top_k` has no halves: it tells the scores it compared.

    References
    ----------
    .. [1] Ding et al. (2023), "Free gap estimates from the exponential mechanism, sparse vector, noisy max and related
       algorithms", on selecting first and measuring then.

    Examples
    --------
    >>> best = select_then_measure([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0)
    >>> best.indices.tolist(), bool((abs(best.scores - [900, 600]) < 50).all())
    ([1, 3], True)
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    if mechanism == "tightest":
        mechanism = tightest_selection(
            epsilon=epsilon,
            delta=delta,
            count=count,
            candidates=len(steps),
            answers=True,
            monotonic=monotonic,
        )
    if mechanism == "one_shot_top_k":
        return one_shot_top_k(scores, count, epsilon=epsilon, delta=delta, sensitivity=sensitivity, seed=seed)
    words = RandomWords(seed)
    chosen = select_top(
        scores,
        count,
        epsilon=epsilon / 2,
        delta=delta / 2,
        sensitivity=sensitivity,
        monotonic=monotonic,
        mechanism=mechanism,
        seed=None if seed is None else words.below(2**62),
    )
    each = optimal_epsilon_each(epsilon=epsilon / 2, count=count, delta=delta / 2)
    noisy = steps[chosen] + draw_noise(DiscreteLaplace(grid.sensitivity / Fraction(each)), count, words)
    return TopK(chosen, np.asarray(noisy * grid.step, dtype=np.float64))
