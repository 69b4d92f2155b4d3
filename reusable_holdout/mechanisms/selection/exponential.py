"""The exponential mechanism: a better score makes a choice likelier; all rounds are run as one race."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.bounded_range import bounded_range_epsilon_each
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.race import first_rings

__all__ = [
    "candidates_on_grid",
    "check_rounds",
    "exponential_mechanism",
    "exponential_top",
    "rate_of_rounds",
    "selection_rate",
]


def candidates_on_grid(
    scores: npt.ArrayLike, *, epsilon: float, sensitivity: float
) -> tuple[Grid, npt.NDArray[np.int64]]:
    """Check the input of a selection and round its scores to the grid of their sensitivity.

    Neighbouring scores are at most ``grid.sensitivity`` steps apart, and scores that all rise, or all fall, still do:
    rounding is monotone.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Scores in real units; n at least 1.
    epsilon : float
        Finite, > 0.
    sensitivity : float
        Largest change of one score between neighbouring data sets, in the scores' unit.

    Raises
    ------
    InputError
        If an argument is out of range; the message tells no score.
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    grid = Grid.of(sensitivity)
    steps = grid.steps_many(scores)
    if not len(steps):
        raise InputError("a selection needs at least one candidate; got none")
    return grid, steps


def selection_rate(*, epsilon: float, sensitivity: int, monotonic: bool) -> Fraction:
    """Return the weight of a step of score in the exponent, ``e/(2D)``, or ``e/D`` for monotonic scores.

    The difference of two scores changes by at most ``2D``, and by at most ``D`` if all scores move the same way.

    Parameters
    ----------
    epsilon : float
        Finite, > 0.
    sensitivity : int
        Grid units.
    monotonic : bool
        True if between neighbours either no score falls or no score rises.
    """
    return Fraction(epsilon) / (sensitivity if monotonic else 2 * sensitivity)


def exponential_mechanism(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> int:
    """Choose a candidate with probability proportional to the exponential of its score.

    The choice is (epsilon, 0)-differentially private.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Scores of the candidates on the private data; larger is better.
    epsilon : float
        Privacy parameter; finite, > 0.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall, as for counts when a row is added
        or removed. It doubles the exponent; if it is broken, the choice is (2 epsilon, 0)-differentially private.
    seed : int, optional
        Seed for reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    int
        Index of the chosen candidate.

    Raises
    ------
    InputError
        If a parameter is out of range, or a score is NaN or beyond 2**60 grid steps; the message tells no score.

    Notes
    -----
    Probability proportional to ``exp(e q / (2D))``, or ``exp(e q / D)`` for monotonic scores. Scores are rounded to a
    grid of ``D / 2**16`` or finer, and ``D`` is rounded up to it.

    References
    ----------
    .. [1] McSherry and Talwar (2007), "Mechanism design via differential privacy", Theorem 6.
    .. [2] Dwork and Roth (2014), Theorem 3.10.

    Examples
    --------
    >>> exponential_mechanism([1.0, 90.0, 3.0], epsilon=1.0, seed=0)
    1
    """
    chosen = exponential_top(
        scores, 1, epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic, seed=seed
    )
    return int(chosen[0])


def exponential_top(
    scores: npt.ArrayLike,
    count: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> npt.NDArray[np.int64]:
    """Choose several candidates by rounds of the exponential mechanism without replacement.

    All choices together, and their order, are (epsilon, delta)-differentially private.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Scores of the candidates on the private data; larger is better.
    count : int
        Rounds ``c``; at least 1, at most n.
    epsilon, delta : float
        Privacy parameters of all rounds together; epsilon finite and above 0, delta in [0, 1). A
        delta of 1e-6 halves the noise of 15 rounds at epsilon 1, and leaves a fifth of that of 100 rounds at 0.1.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall.
    seed : int, optional
        Seed for reproducible noise, which protects nobody. By default the noise is unpredictable.

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
    Each round has range ``e0``: probability proportional to ``exp(e0 q / (2D))``, or ``exp(e0 q / D)`` for monotonic
    scores, among the candidates that are left. With delta 0 ``e0`` is ``e/c``; otherwise it is the result of
    `bounded_range_epsilon_each`, the largest range of rounds that see the rounds before them. The rounds are run as one
    race of exponential clocks, which has the same law as Gumbel noise on all scores and sorting.

    All of the best ``c`` are chosen with probability at least ``1 - b`` if each of them is ahead of every other
    candidate by more than ``ln(c (n - c) / b)`` over the exponent's factor of ``q``.

    References
    ----------
    .. [1] Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential privacy", section 5.
    .. [2] Durfee and Rogers (2019), "Practical differentially private top-k selection with pay-what-you-get
       composition", on Gumbel noise and peeling.
    .. [3] Dong, Durfee and Rogers (2020), "Optimal differential privacy composition for exponential mechanisms".

    Examples
    --------
    >>> exponential_top([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0).tolist()
    [1, 3]
    >>> exponential_top([1.0, 90.0, 3.0, 60.0, 0.0, 80.0], 3, epsilon=1.0, delta=1e-6, seed=0).tolist()
    [1, 5, 3]
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    check_rounds(count, len(steps))
    rate = rate_of_rounds(
        count, epsilon=epsilon, delta=delta, sensitivity=grid.sensitivity, monotonic=monotonic
    )
    return first_rings(steps.max() - steps, rate, count, RandomWords(seed))


def check_rounds(count: int, candidates: int) -> None:
    """Refuse more rounds than there are candidates, or none."""
    if not 1 <= count <= candidates:
        raise InputError(f"count lies between 1 and the number of candidates, {candidates}; got {count}")


def rate_of_rounds(
    count: int, *, epsilon: float, delta: float, sensitivity: int, monotonic: bool
) -> Fraction:
    """Return the factor of the scores, in grid steps, in the exponent of each round of the exponential mechanism."""
    if delta == 0:
        return selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic) / count
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    return selection_rate(epsilon=each, sensitivity=sensitivity, monotonic=monotonic)
