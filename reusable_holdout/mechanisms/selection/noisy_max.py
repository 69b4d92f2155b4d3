"""Report noisy max: add noise to every score and release only the index of the largest."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

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

NoisyMaxNoise: TypeAlias = Literal["laplace", "exponential", "gumbel"]

_CHUNK = 1024  # draws made together: their bytes stay in the processor's cache


def report_noisy_max(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    noise: NoisyMaxNoise = "laplace",
    seed: int | None = None,
) -> int:
    """Add noise to every score and return the index of the largest.

    The index is (epsilon, 0)-differentially private, however many candidates there are.

    Parameters
    ----------
    scores, epsilon, sensitivity, monotonic, seed
        As for `exponential_mechanism`, with the same errors. A broken promise of `monotonic` doubles epsilon here, too.
    noise : {"laplace", "exponential", "gumbel"}
        Law of the noise. "exponential" has the smallest error: except for ties it is permute-and-flip. "gumbel" is the
        exponential mechanism.

    Returns
    -------
    int
        Index of the largest noisy score.

    Notes
    -----
    With ``D`` the sensitivity and ``e`` epsilon, each noise has the scale ``2D/e``, or ``D/e`` for monotonic scores.
    "laplace" and "exponential" noise is discrete, on a grid of step ``D / 2**16`` or finer. Equal noisy scores are
    ranked in a uniform random order that does not depend on the data.

    Discrete noisy scores can tie, but the guarantee holds. Proof: let ``q_j`` be the score and ``r_j`` the noise of
    candidate ``j``. Fix the order of ties, and the noise of all candidates but ``i``. Then ``i`` is reported exactly if
    its noise is at least ``t``, the largest ``q_j + r_j + [j is ranked before i] - q_i`` over the other candidates.
    Between neighbours ``t`` changes by at most ``2D``, or ``D`` if monotonic, because the bracket does not depend on
    the data. Both noises have ``P(X >= t + m) >= exp(-m/scale) P(X >= t)`` for every integer ``t`` and ``m >= 0``. So
    the probability changes by a factor of at most ``exp(e)``, also on average over the order and the other noise.

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
    return int(largest[words.below(len(largest))])  # the first of them in a uniform random order


def draw_noise(
    law: DiscreteLaplace | DiscreteExponential, count: int, words: RandomWords
) -> npt.NDArray[np.int64]:
    """Draw independent noise from a stream of words, each draw with exactly the given law.

    Parameters
    ----------
    law : DiscreteLaplace or DiscreteExponential
        Law of each draw, with a scale above 0.
    count : int
        Number of draws; at least 1.
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
    """The candidates in order of their noisy scores; ties are in a uniform random order that ignores the data.

    A ranking is not private by itself. The privacy of the selections that use it depends on this order and on `gaps`.

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
        Noisy scores, largest first.
    """

    def __init__(self, noisy: npt.NDArray[np.int64], words: RandomWords) -> None:
        shuffled = words.permutation(len(noisy))
        self._places = np.argsort(-noisy[shuffled], kind="stable")  # in the shuffled row, which decides ties
        self.order = shuffled[self._places]
        self.noisy = noisy[self.order]

    @property
    def gaps(self) -> npt.NDArray[np.int64]:
        """Number of steps by which each candidate but the last could fall and still be ahead of the next one.

        The array has shape (n - 1,). A gap is at least 0: it is the difference of the noisy scores, minus one if the
        next candidate would win a tie.
        """
        return -np.diff(self.noisy) - (self._places[1:] < self._places[:-1])
