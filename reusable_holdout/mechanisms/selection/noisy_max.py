"""Report noisy max: add noise to every score and say only which is largest."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.discrete_exponential import DiscreteExponential
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.exponential import (
    candidates_on_grid,
    exponential_mechanism,
    selection_rate,
)
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

__all__ = [
    "NoisyMax",
    "NoisyMaxNoise",
    "Ranking",
    "draw_noise",
    "flip_in_order",
    "permute_and_flip",
    "report_noisy_max",
    "report_noisy_max_gap",
]

NoisyMaxNoise: TypeAlias = Literal["laplace", "exponential", "gumbel"]

_CHUNK = 1024  # draws made together: their bytes stay in the processor's cache


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """The candidate whose noisy score is largest, and how far it is ahead.

    Attributes
    ----------
    index : int
        Of the candidate.
    gap : float
        Noisy score less that of the runner-up, to a grid step, in the scores' unit; at least 0.
    """

    index: int
    gap: float


def report_noisy_max(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    noise: NoisyMaxNoise = "laplace",
    seed: int | None = None,
) -> int:
    """Add noise to every score and give the index of the largest.

    The index is (epsilon, 0)-differentially private, however many candidates there are.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of the candidates, on the private data; larger is better.
    epsilon : float
        Privacy parameter; finite, > 0.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall, as for counts when a row is added
        or removed. It halves the noise; if it is broken, the index is (2 epsilon, 0)-differentially private.
    noise : {"laplace", "exponential", "gumbel"}
        "exponential" errs least: it is permute-and-flip, but for ties. "gumbel" is the exponential mechanism.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    int
        Index of the largest noisy score.

    Raises
    ------
    InputError
        If a parameter is out of range, or a score is NaN or beyond 2**60 grid steps; the message tells no score.

    Notes
    -----
    Scale ``2D/e``, or ``D/e`` for monotonic scores, for each noise; "laplace" and "exponential" are discrete, on a
    grid of ``D / 2**16`` or finer. Equal noisy scores are ranked in an order drawn uniformly, without the data.

    Discrete noise ties, and epsilon holds all the same. Fix the order and the noise of all candidates but ``i``. Then
    ``i`` is reported exactly if its noise is at least ``t``, the largest ``q_j + r_j + [j is ranked before i] - q_i``.
    Between neighbours ``t`` moves by at most ``2D``, or ``D`` if monotonic, since the bracket does not depend on the
    data; and both noises have ``P(X >= t + m) >= exp(-m/scale) P(X >= t)`` for every integer ``t`` and ``m >= 0``.
    Averaging over the order and the other noise keeps the ratio.

    References
    ----------
    .. [1] Dwork and Roth (2014), Claim 3.9.
    .. [2] Ding, Kifer, Sayed, Steinke, Wang, Xiao, Zhang (2021), "The permute-and-flip mechanism is identical to
       report-noisy-max with exponential noise".

    Examples
    --------
    >>> report_noisy_max([1.0, 90.0, 3.0], epsilon=1.0, seed=0)
    1
    """
    if noise == "gumbel":
        return exponential_mechanism(
            scores, epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic, seed=seed
        )
    if noise not in get_args(NoisyMaxNoise):
        raise InputError(f"noise is 'laplace', 'exponential' or 'gumbel'; got {noise!r}")
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    scale = 1 / selection_rate(epsilon=epsilon, sensitivity=grid.sensitivity, monotonic=monotonic)
    law = DiscreteLaplace(scale) if noise == "laplace" else DiscreteExponential(scale)
    words = RandomWords(seed)
    noisy = steps + draw_noise(law, len(steps), words)
    largest = np.flatnonzero(noisy == noisy.max())
    return int(largest[words.below(len(largest))])  # as the first of a uniform order


def report_noisy_max_gap(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> NoisyMax:
    """Add Laplace noise to every score; give the index of the largest and how far it is ahead of the next.

    Both together are (epsilon, 0)-differentially private: the gap is free.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of the candidates, on the private data; larger is better; n at least 2.
    epsilon : float
        Privacy parameter; finite, > 0.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    NoisyMax
        The index and the gap.

    Raises
    ------
    InputError
        If a parameter is out of range, a score is NaN or beyond 2**60 grid steps, or there is only one; the message
        tells no score.

    Notes
    -----
    Scale ``2D/e``, or ``D/e`` for monotonic scores. The gap is ``r_i - t`` with the ``t`` of `report_noisy_max`: the
    number of grid steps by which the winner's noise could fall with the winner still winning. It is one step below the
    plain difference if the runner-up is ranked before the winner. Given the order and the other noise, the outcome
    ``(i, g)`` is the one noise ``t + g``, whose probability changes by at most ``exp(2D/scale)``. For the plain
    difference this fails at 0: whether the winner is ranked before all that tie with it depends on who they are. With
    ties broken by index, four scores 0, 8, -8, -8 of which the last two fall by ``D = 1`` and the others rise lose
    1.88 epsilon at epsilon = ln 4.

    References
    ----------
    .. [1] Ding, Wang, Zhang, Kifer (2019), "Free gap information from the differentially private sparse vector and
       noisy max mechanisms", Algorithm 1; its noise is continuous.
    .. [2] Ding et al. (2023), "A floating-point secure implementation of the report noisy max with gap mechanism".

    Examples
    --------
    >>> winner = report_noisy_max_gap([1.0, 90.0, 3.0], epsilon=1.0, seed=0)
    >>> winner.index, 60 < winner.gap < 110
    (1, True)
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    if len(steps) < 2:
        raise InputError("a gap needs at least two candidates; got one; use report_noisy_max")
    scale = 1 / selection_rate(epsilon=epsilon, sensitivity=grid.sensitivity, monotonic=monotonic)
    words = RandomWords(seed)
    ranking = Ranking(steps + draw_noise(DiscreteLaplace(scale), len(steps), words), words)
    return NoisyMax(int(ranking.order[0]), grid.real(int(ranking.gaps[0])))


def permute_and_flip(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> int:
    """Look at the candidates in random order and take each with a probability that falls with its distance to the best.

    The choice is (epsilon, 0)-differentially private, and its expected score is never below that of the exponential
    mechanism.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of the candidates, on the private data; larger is better.
    epsilon : float
        Privacy parameter; finite, > 0.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

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
    A candidate is taken with probability ``exp(e (q - max q) / (2D))``, or ``exp(e (q - max q) / D)`` for monotonic
    scores; the best is taken for certain. The coins are exact.

    References
    ----------
    .. [1] McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private selection".
    .. [2] Ding et al. (2021), "The permute-and-flip mechanism is identical to report-noisy-max with exponential noise".

    Examples
    --------
    >>> permute_and_flip([1.0, 90.0, 3.0], epsilon=1.0, seed=0)
    1
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    rate = selection_rate(epsilon=epsilon, sensitivity=grid.sensitivity, monotonic=monotonic)
    return flip_in_order(steps, rate, RandomWords(seed))


def flip_in_order(steps: npt.NDArray[np.int64], rate: Fraction, words: RandomWords) -> int:
    """Take the first candidate, in a random order, whose exact coin falls heads.

    Parameters
    ----------
    steps : ndarray of int64, shape (n,)
        Scores, grid units.
    rate : Fraction
        Exponent of a coin for each step behind the best.
    words : RandomWords
        Source of the order and the coins.
    """
    order = words.permutation(len(steps))
    behind = (steps.max() - steps)[order]
    with np.errstate(over="ignore"):  # an infinite exponent is a certain "no"
        exponents = behind.astype(np.float64) * float(rate)
    taken = words.first_decay(exponents, lambda position: rate * int(behind[position]))
    return int(order[cast("int", taken)])  # one is: the best candidate's coin falls heads for certain


def draw_noise(
    law: DiscreteLaplace | DiscreteExponential, count: int, words: RandomWords
) -> npt.NDArray[np.int64]:
    """Draw independent noises from a stream of words; each has exactly the given law.

    Parameters
    ----------
    law : DiscreteLaplace or DiscreteExponential
        Of a scale above 0.
    count : int
        How many; at least 1.
    words : RandomWords
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (count,)
        Grid units.
    """
    drawn = []
    for at in range(0, count, _CHUNK):
        size = min(_CHUNK, count - at) * law.stream_bytes
        stream = words.take(-(-size // 8)).astype("<u8").tobytes()[:size]
        drawn.append(law.decode_many(stream, lambda draw, position: words.sixteen_bits()))
    return np.concatenate(drawn)


class Ranking:
    """Candidates from the largest noisy score down, ties in an order that is drawn uniformly, without the data.

    Adds no privacy of its own: the theorems of its users ask for this order and these gaps.

    Parameters
    ----------
    noisy : ndarray of int64, shape (n,)
        Noisy scores, grid units.
    words : RandomWords
        Source of the order of ties.

    Attributes
    ----------
    order : ndarray of int64, shape (n,)
        Indices, best first.
    noisy : ndarray of int64, shape (n,)
        Noisy scores in that order.
    """

    def __init__(self, noisy: npt.NDArray[np.int64], words: RandomWords) -> None:
        shuffled = words.permutation(len(noisy))
        self._places = np.argsort(-noisy[shuffled], kind="stable")  # in the shuffled row, which decides ties
        self.order = shuffled[self._places]
        self.noisy = noisy[self.order]

    @property
    def gaps(self) -> npt.NDArray[np.int64]:
        """Steps by which each candidate but the last could fall without being overtaken by the next, shape (n - 1,).

        At least 0: the difference of noisy scores, less one if the next would win a tie. If the next would not, none
        of those that follow it would overtake either.
        """
        return -np.diff(self.noisy) - (self._places[1:] < self._places[:-1])
