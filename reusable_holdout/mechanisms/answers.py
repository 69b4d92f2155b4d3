"""The Laplace and the Gaussian mechanism, which release numbers with noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.gaussian import gaussian_deviation
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.samplers.normal import nearest_with_noise
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.noisy_max import draw_noise
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace


def laplace_mechanism(
    values: npt.ArrayLike, *, epsilon: float, sensitivity: float = 1.0, seed: int | None = None
) -> npt.NDArray[np.float64]:
    """Release numbers with Laplace noise.

    All released numbers together are (epsilon, 0)-differentially private.

    Parameters
    ----------
    values : array-like, shape (k,)
        The answers on the private data; k at least 1.
    epsilon : float
        Privacy parameter of all answers together; finite, > 0.
    sensitivity : float
        Largest change between neighbouring data sets, summed over the answers (l1), in the answers' unit.
    seed : int, optional
        Seed for reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    ndarray of float, shape (k,)

    Raises
    ------
    InputError
        If a parameter is out of range, or an answer is NaN or beyond 2**60 grid steps; the message quotes no answer.

    Notes
    -----
    The noise is independent discrete Laplace noise of scale ``D/e``, with ``D`` the sensitivity and ``e`` epsilon, on a
    grid of step ``D / (2**16 k)`` or finer. Rounding to the grid can move two values of each of the k answers further
    apart by less than one step. So ``D`` in steps is rounded up and increased by ``k - 1`` steps.

    References
    ----------
    .. [1] Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in private data analysis".
    .. [2] Dwork and Roth (2014), Theorem 3.6.

    Examples
    --------
    >>> released = laplace_mechanism([1000.0, 2000.0], epsilon=1.0, seed=0)
    >>> bool(np.abs(released - [1000.0, 2000.0]).max() < laplace_accuracy(answers=2, epsilon=1.0, beta=1e-6))
    True
    """
    try:
        answers = np.size(values)
    except ValueError:  # rows of different lengths, which the grid refuses
        answers = 1
    grid, law = laplace_law(answers=answers, epsilon=epsilon, sensitivity=sensitivity)
    steps = grid.steps_many(values)
    noisy = steps + draw_noise(law, len(steps), RandomWords(seed))
    return np.asarray(noisy * grid.step, dtype=np.float64)


def laplace_accuracy(*, epsilon: float, beta: float, answers: int = 1, sensitivity: float = 1.0) -> float:
    """Bound the error of every answer of the Laplace mechanism.

    With probability at least ``1 - beta`` every released number is within the result of its true answer.

    Parameters
    ----------
    epsilon, sensitivity
        As for `laplace_mechanism`.
    beta : float
        Failure probability, in (0, 1).
    answers : int
        Number ``k`` of answers released together; at least 1.

    Returns
    -------
    float
        Bound of the error, in the answers' unit.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    With ``D`` the sensitivity and ``e`` epsilon, the theorem's bound is ``ln(k / beta) D / e``. The result is computed
    from the tail of the discrete noise itself, for k independent draws, plus half a grid step for the rounding. It
    exceeds the theorem's bound by less than 1 part in 10,000.

    The accuracy of `NumericSparse` rests on this theorem. The lecture notes that derive it apply the theorem with
    ``e / (9c)`` and print ``alpha_2 = 9c ln(2c/beta)``, or ``9 ln(2c/beta) sqrt(8c ln(2/delta)) e`` with delta
    above 0. Both must be divided by epsilon, as their ``alpha_1`` is. As printed, the bound ``alpha_2`` fails with
    probability ``(beta/2c)**e``, which is too large for ``e < 1``, and their statement "alpha_1 >= alpha_2 for any
    delta" is false for large ``e``. Their Theorem 10 is correct.

    References
    ----------
    .. [1] Dwork and Roth (2014), Theorem 3.8.
    .. [2] Ziani, "Lectures 7-8: Sparse Vector", Theorem 8 and the proof of Theorem 10.

    Examples
    --------
    >>> round(laplace_accuracy(epsilon=0.5, beta=0.05, answers=10), 2)  # ln(10 / 0.05) / 0.5 = 10.60
    10.55
    """
    if not 0 < beta < 1:
        raise InputError(f"beta lies in (0, 1); got {beta}")
    grid, law = laplace_law(answers=answers, epsilon=epsilon, sensitivity=sensitivity)
    each = -math.expm1(math.log1p(-beta) / answers)  # k draws are independent
    reach = law.tail_quantile(math.log(each / 2)) - 1
    return (reach + 0.5) * grid.step


def gaussian_mechanism(
    values: npt.ArrayLike, *, epsilon: float, delta: float, sensitivity: float = 1.0, seed: int | None = None
) -> npt.NDArray[np.float64]:
    """Release numbers with normal noise.

    All released numbers together are (epsilon, delta)-differentially private. For many answers at once the noise is
    smaller than in the Laplace mechanism, because the Euclidean distance of k answers grows only with the square root
    of k.

    Parameters
    ----------
    values, seed
        As for `laplace_mechanism`.
    epsilon, delta : float
        Privacy parameters of all answers together; epsilon finite and above 0, delta in (0, 1).
    sensitivity : float
        Largest Euclidean (l2) distance of the answers of neighbouring data sets, in the answers' unit.

    Returns
    -------
    ndarray of float, shape (k,)

    Raises
    ------
    InputError
        If a parameter is out of range, or an answer is not finite; the message quotes no answer.

    Notes
    -----
    The noise is independent and normal, with the standard deviation `gaussian_deviation`, and is sampled exactly. The
    noisy values are rounded to a grid of step ``D / 2**16`` or finer, with ``D`` the sensitivity. This rounding is
    post-processing and costs no privacy.

    References
    ----------
    .. [1] Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy: analytical calibration and
       optimal denoising", Theorem 8.
    .. [2] Mironov (2012), "On significance of the least significant bits for differential privacy", for why the noise
       is not a floating-point number.

    Examples
    --------
    >>> released = gaussian_mechanism([1000.0, 2000.0], epsilon=1.0, delta=1e-6, seed=0)
    >>> bool(np.abs(released - [1000.0, 2000.0]).max() < 50)
    True
    """
    step = Fraction(Grid.of(sensitivity).step)  # refuses a bad sensitivity, by its own message
    deviation = Fraction(gaussian_deviation(epsilon=epsilon, delta=delta, sensitivity=sensitivity))
    row = _finite_row(values)
    words = RandomWords(seed)
    noisy = [nearest_with_noise(value, deviation=deviation, step=step, words=words) * step for value in row]
    return np.array([float(value) for value in noisy])


def _finite_row(values: npt.ArrayLike) -> list[Fraction]:
    """Return the answers as exact fractions, because a float may round an integer beyond 2**53 by too much."""
    try:
        given = np.asarray(values)
        known = given.ndim == 1 and given.dtype.kind in "biufO"
        known = known and bool(np.isfinite(given.astype(np.float64)).all())
        row = [Fraction(value) for value in given.tolist()] if known else []
    except (TypeError, ValueError, OverflowError):
        row = []
    if not row:
        raise InputError(
            "answers are a row of finite numbers, at least one; got something else; no answer was released"
        )
    return row


def laplace_law(*, answers: int, epsilon: float, sensitivity: float) -> tuple[Grid, DiscreteLaplace]:
    """Return the grid and the noise distribution of the Laplace mechanism."""
    if answers < 1:
        raise InputError(f"there is at least one answer; got {answers}")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    Grid.of(sensitivity)  # refuses a bad sensitivity, by its own message
    step = Grid.of(sensitivity / answers).step
    moved = math.ceil(Fraction(sensitivity) / Fraction(step)) + answers - 1
    return Grid(step, moved), DiscreteLaplace(moved / Fraction(epsilon))
