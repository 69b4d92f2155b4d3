"""Exact privacy audit of sparse vector mechanisms: transcript probabilities as finite sums, no sampling.

A query's value, less its threshold, is one of a few *bases* (far below, on, far above), and on the neighbouring data
set it is *shifted* by -D, 0 or +D. Given the threshold noise the queries are independent, so the probability of a
transcript is one sum over the threshold noise of a product. Where a charge renews that noise a transcript is a product
of such sums, one for each *segment* "some below, then one above", and the worst log-ratio is a sum of worst log-ratios.

Two searches: over every transcript of a few queries, and over transcripts in which one query is asked up to 100,000
times and found below, which is where the guarantee becomes tight.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms import DiscreteExponential
from reusable_holdout.noise import DiscreteLaplace

Array = npt.NDArray[np.float64]
Distribution = DiscreteLaplace | DiscreteExponential

# How the neighbour may shift queries answered "below", and queries answered "above", in units of D.
PATTERNS = {
    "all rise": ([1], [1]),
    "all fall": ([-1], [-1]),
    "below rise, above fall": ([1], [-1]),
    "below fall, above rise": ([-1], [1]),
    "rise or stay": ([0, 1], [0, 1]),
    "fall or stay": ([-1, 0], [-1, 0]),
    "mixed": ([-1, 0, 1], [-1, 0, 1]),
}
MONOTONIC = ("rise or stay", "fall or stay")
REPEATS = (0, 1, 10, 1_000, 100_000)
_SHIFTS = (-1, 0, 1)
_REACH = 40  # noise scales; what lies beyond weighs less than exp(-40)


@dataclass(frozen=True)
class Law:
    """Answers of a mechanism to one query, given the threshold noise; logs of probabilities.

    Attributes
    ----------
    weights : shape (R,), of each value of the threshold noise
    below : shape (V, R), of "below" for each query value
    above : shape (A, V, R), of each output "above" (with one of A numbers, or A = 1)
    """

    weights: Array
    below: Array
    above: Array


@dataclass(frozen=True)
class Queries:
    """Query values less the threshold: every base with every shift, `values[3 * base + shift + 1]`."""

    bases: tuple[int, ...]
    sensitivity: int

    @property
    def values(self):
        return [base + shift * self.sensitivity for base in self.bases for shift in _SHIFTS]

    @property
    def outputs(self):
        """Log-ratios of Laplace densities peak at their centres or outside them all."""
        return sorted({*self.values, min(self.values) - 1, max(self.values) + 1})


def threshold_noise(law, queries, query_scale):
    """Return values and log weights; a query found below 100,000 times pushes the noise up by 12 query scales."""
    if not law.scale:
        return np.zeros(1), np.zeros(1)
    reach = max(map(abs, queries.values)) + math.ceil(_REACH * law.scale + 15 * query_scale)
    values = np.arange(-reach, reach + 1)
    return values.astype(float), np.array([law.log_pmf(int(value)) for value in values])


def log_tail(law, least):
    """Return the logs of ``P(noise >= least)`` and of ``P(noise < least)``."""
    lowest, highest = int(least.min()), int(least.max())
    upper = np.array([law.log_tail(m) for m in range(lowest, highest + 1)])
    if isinstance(law, DiscreteLaplace):  # symmetric, so exact where the complement would cancel
        lower = np.array([law.log_tail(1 - m) for m in range(lowest, highest + 1)])
    else:
        with np.errstate(divide="ignore"):
            lower = np.log(-np.expm1(upper))
    return upper[least - lowest], lower[least - lowest]


def sparse_vector_law(scales, queries, *, comparison="laplace", gap=False):
    """Return the law of Sparse, NumericSparse (with noise on answers) or StandardSVT, as `SparseVector` runs it."""
    noise_type = DiscreteLaplace if comparison == "laplace" else DiscreteExponential
    threshold, query = noise_type(scales.threshold), noise_type(scales.query)
    correction = 0
    if isinstance(threshold, DiscreteExponential) and isinstance(query, DiscreteExponential):
        correction = round(query.mean - threshold.mean)
    noise, weights = threshold_noise(threshold, queries, scales.query)
    needed = noise.astype(np.int64)[None, :] + correction - np.array(queries.values)[:, None]
    upper, lower = log_tail(query, needed)
    above = upper[None]
    if gap:  # released instead of "above": the noisy query less the noisy threshold
        gaps = (0, 1, 3 * queries.sensitivity, math.ceil(4 * scales.query))
        above = np.array([[[query.log_pmf(int(n) + g) for n in row] for row in needed] for g in gaps])
    if scales.answer:
        above = above[:, None] + densities(DiscreteLaplace(scales.answer), queries)[None, :, :, None]
        above = above.reshape(-1, *above.shape[2:])
    return Law(weights, lower, above)


def densities(law, queries):
    """Return the log probability of each output around each value, shape (A, V)."""
    return np.array([[law.log_pmf(out - value) for value in queries.values] for out in queries.outputs])


def log_sum(logs):
    """Return the log of the sum of exponentials along the last axis; minus infinity where nothing is possible."""
    peak = logs.max(axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - peak).sum(axis=-1)) + peak[..., 0])


def _answers(law, pattern, *, above):
    """Return every answer to one query, honest and on the neighbour: two arrays of shape (answers, R)."""
    table = law.above if above else law.below[None]
    outputs, values, size = table.shape
    table = table.reshape(outputs, values // 3, 3, size)
    shifts = [shift + 1 for shift in pattern[above]]
    neighbour = table[:, :, shifts]
    honest = np.broadcast_to(table[:, :, [1]], neighbour.shape)
    return honest.reshape(-1, size), neighbour.reshape(-1, size)


def _losses(honest, neighbour):
    """Return the largest log-ratio in each direction; an answer that neither data set allows does not count."""
    possible = np.isfinite(honest) | np.isfinite(neighbour)
    if not possible.any():
        return np.zeros(2)
    with np.errstate(invalid="ignore"):
        loss = np.where(possible, honest - neighbour, 0.0)
    return np.array([loss.max(), (-loss).max()])


def transcript_losses(law, *, below, above, pattern):
    """Return the largest log-ratio, in both directions, of any transcript under one threshold noise.

    Parameters
    ----------
    below, above : int
        Numbers of queries that are answered so; given the noise their order does not matter.
    """
    honest, neighbour = law.weights[None, :], law.weights[None, :]
    for kind, count in ((False, below), (True, above)):
        one, other = _answers(law, pattern, above=kind)
        chosen = np.array(list(itertools.combinations_with_replacement(range(len(one)), count)), dtype=int)
        chosen = chosen.reshape(len(chosen), count)
        honest = (honest[:, None, :] + one[chosen].sum(axis=1)[None]).reshape(-1, honest.shape[1])
        neighbour = (neighbour[:, None, :] + other[chosen].sum(axis=1)[None]).reshape(-1, honest.shape[1])
    return _losses(log_sum(honest), log_sum(neighbour))


def segment_losses(law, length, pattern, *, charged):
    """Return the largest log-ratio, in both directions, of `length` queries; only the last may be above."""
    return transcript_losses(law, below=length - charged, above=int(charged), pattern=pattern)


def worst_loss(law, *, length, charges, pattern):
    """Return the largest privacy loss of any transcript of at most `length` answers, each charge renewing the noise."""
    closed = {k: segment_losses(law, k, pattern, charged=True) for k in range(1, length + 1)}
    opened = {k: segment_losses(law, k, pattern, charged=False) for k in range(1, length + 1)}
    worst = 0.0
    for count in range(charges + 1):
        for lengths in itertools.product(closed, repeat=count):
            rest = length - sum(lengths)
            if rest < 0:
                continue
            total = sum((closed[k] for k in lengths), np.zeros(2))
            tails = [np.zeros(2)] + ([opened[k] for k in range(1, rest + 1)] if count < charges else [])
            worst = max(worst, *(float(value) for end in tails for value in total + end))
    return worst


def worst_held_loss(law, *, length, charges, pattern):
    """Return the largest privacy loss of any transcript of at most `length` answers under one threshold noise."""
    losses = [
        transcript_losses(law, below=below, above=above, pattern=pattern).max()
        for above in range(charges + 1)
        for below in range(length - above + 1)
    ]
    return float(max(losses))


def long_losses(law, *, charges, pattern):
    """Return the largest log-ratio, in both directions, of transcripts of up to 100,000 answers under one noise.

    One query is found below again and again; another is found above `charges` times.
    """
    worst = np.zeros(2)
    (below, below_), (above, above_) = (_answers(law, pattern, above=kind) for kind in (False, True))
    for repeats in REPEATS:
        honest = law.weights + _power(below, repeats)[:, None] + _power(above, charges)[None]
        neighbour = law.weights + _power(below_, repeats)[:, None] + _power(above_, charges)[None]
        worst = np.maximum(worst, _losses(log_sum(honest), log_sum(neighbour)))
    return worst


def _power(logs, times):
    """Return the log probability of the same answer `times` times; certain if it is never asked for."""
    return times * logs if times else np.zeros_like(logs)


def long_loss(law, *, charges, pattern, renewed):
    """Return the largest privacy loss of long transcripts with `charges` charges."""
    if renewed:
        return float((charges * long_losses(law, charges=1, pattern=pattern)).max())
    return float(long_losses(law, charges=charges, pattern=pattern).max())
