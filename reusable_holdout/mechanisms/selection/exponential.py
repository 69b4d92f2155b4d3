"""The exponential mechanism, in one round or in several, which are run together as a race of exponential clocks."""

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


def candidates_on_grid(
    scores: npt.ArrayLike, *, epsilon: float, sensitivity: float
) -> tuple[Grid, npt.NDArray[np.int64]]:
    """Check the input of a selection and round its scores to the grid of their sensitivity.

    The scores of neighbouring data sets are then at most ``grid.sensitivity`` steps apart. If all scores rise, or all
    fall, so do the rounded scores, because rounding is monotone.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Scores in real units; n at least 1.
    epsilon : float
        Privacy parameter; finite, > 0.
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
    """Return the number by which the exponential mechanism multiplies a score, in grid steps, in the exponent.

    It is ``e/(2D)``, or ``e/D`` for monotonic scores, with ``e`` epsilon and ``D`` the sensitivity. The difference of
    two scores changes by at most ``2D``, and by at most ``D`` if all scores move in the same direction.

    Parameters
    ----------
    epsilon : float
        Privacy parameter; finite, > 0.
    sensitivity : int
        Sensitivity of a score in grid units.
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
    """Choose a candidate by the exponential mechanism, which makes candidates with larger scores more likely.

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
    Let ``D`` be the sensitivity and ``e`` epsilon. A candidate with score ``q`` has a probability proportional to
    ``exp(e q / (2D))``, or to ``exp(e q / D)`` for monotonic scores. Scores are rounded to a grid of step ``D / 2**16``
    or finer, and ``D`` is rounded up to a whole number of steps.

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
    scores, sensitivity, monotonic, seed
        As for `exponential_mechanism`, with the same errors.
    count : int
        Number ``c`` of rounds, each of which chooses one candidate; at least 1, at most n.
    epsilon, delta : float
        Privacy parameters of all rounds together; epsilon finite and above 0, delta in [0, 1). Compared with delta 0, a
        delta of 1e-6 halves the noise of 15 rounds at epsilon 1, and divides that of 100 rounds at epsilon 0.1 by five.

    Returns
    -------
    ndarray of int64, shape (count,)
        Indices of the chosen candidates, in the order of the rounds.

    Notes
    -----
    In each round a remaining candidate with score ``q`` has a probability proportional to ``exp(e0 q / (2D))``, or to
    ``exp(e0 q / D)`` for monotonic scores, with ``D`` the sensitivity. With delta 0 ``e0`` is ``epsilon/c``. Otherwise
    it is the result of `bounded_range_epsilon_each`, for rounds that depend on earlier rounds. The rounds are run as
    one race of exponential clocks. This has the same law as adding Gumbel noise to all scores once and sorting.

    Let ``r`` be the factor of ``q`` in the exponent. All of the best ``c`` candidates are chosen with probability at
    least ``1 - b`` if each of them leads every other candidate by more than ``ln(c (n - c) / b) / r``.

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
    """Refuse a number of rounds below 1 or above the number of candidates."""
    if not 1 <= count <= candidates:
        raise InputError(f"count lies between 1 and the number of candidates, {candidates}; got {count}")


def rate_of_rounds(
    count: int, *, epsilon: float, delta: float, sensitivity: int, monotonic: bool
) -> Fraction:
    """Return the number by which each round of the exponential mechanism multiplies scores in the exponent."""
    if delta == 0:
        return selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic) / count
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    return selection_rate(epsilon=each, sensitivity=sensitivity, monotonic=monotonic)
