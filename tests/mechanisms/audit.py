"""Exact privacy audit of sparse vector mechanisms: transcript probabilities as finite sums, no sampling.

A query's value, less its threshold, is one of a few *bases* (far below, on, far above), and on the
neighbouring data set it is *shifted* by -D, 0 or +D. Given the threshold noise the queries are independent,
so the probability of "k-1 below, then one above" is one sum over the threshold noise of a product. A charge
renews the threshold noise, so a transcript is a product of such segments, and the worst log-ratio is a sum of
worst log-ratios.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms import DiscreteLaplace, NoiseScales

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = npt.NDArray[np.float64]

# How the neighbour may shift queries answered "below", and queries answered "above", in units of D.
PATTERNS: dict[str, tuple[Sequence[int], Sequence[int]]] = {
    "all rise": ([1], [1]),
    "all fall": ([-1], [-1]),
    "below rise, above fall": ([1], [-1]),
    "below fall, above rise": ([-1], [1]),
    "mixed": ([-1, 0, 1], [-1, 0, 1]),
}
_SHIFTS = (-1, 0, 1)


@dataclass(frozen=True)
class Law:
    """What a mechanism says about one query, given the threshold noise.

    Attributes
    ----------
    weights : shape (R,), probability of each value of the threshold noise
    below : shape (V, R), probability of "below" for each query value
    above : shape (A, V, R), probability of each output "above" (with one of A numbers, or A = 1)
    """

    weights: Array
    below: Array
    above: Array


@dataclass(frozen=True)
class Queries:
    """Query values less the threshold: every base with every shift, `values[3 * base + shift + 1]`."""

    bases: Sequence[int]
    sensitivity: int

    @property
    def values(self) -> list[int]:
        return [base + shift * self.sensitivity for base in self.bases for shift in _SHIFTS]

    @property
    def outputs(self) -> list[int]:
        """Log-ratios of Laplace densities peak at their centres or outside them all."""
        return sorted({*self.values, min(self.values) - 1, max(self.values) + 1})


def threshold_noise(scale: DiscreteLaplace, queries: Queries) -> tuple[Array, Array]:
    """Values and probabilities; what is left out is below exp(-40) of any transcript's probability."""
    if not scale.scale:
        return np.zeros(1), np.ones(1)
    reach = max(map(abs, queries.values)) + math.ceil(40 * scale.scale)
    values = np.arange(-reach, reach + 1)
    return values.astype(float), np.exp([scale.log_pmf(int(value)) for value in values])


def tail(law: DiscreteLaplace, least: npt.NDArray[np.int64]) -> Array:
    lowest = int(least.min())
    table = np.exp([law.log_tail(m) for m in range(lowest, int(least.max()) + 1)])
    return np.asarray(table[least - lowest])


def sparse_vector_law(scales: NoiseScales, queries: Queries) -> Law:
    """AboveThreshold, Sparse and (with answer noise) NumericSparse, as `SparseVector` runs them."""
    noise, weights = threshold_noise(DiscreteLaplace(scales.threshold), queries)
    query = DiscreteLaplace(scales.query)
    needed = noise.astype(np.int64)[None, :] - np.array(queries.values)[:, None]
    above = tail(query, needed)[None]
    if scales.answer:
        answer = DiscreteLaplace(scales.answer)
        above = above * densities(answer, queries)[:, :, None]
    return Law(weights, tail(query, 1 - needed), above)


def densities(law: DiscreteLaplace, queries: Queries) -> Array:
    """Probability of each output around each value, shape (A, V)."""
    return np.exp([[law.log_pmf(out - value) for value in queries.values] for out in queries.outputs])


def segment_losses(
    law: Law, length: int, pattern: tuple[Sequence[int], Sequence[int]], *, charged: bool
) -> Array:
    """Largest log-ratio, in both directions, of a segment of one pattern."""
    size = len(law.below)
    joint = law.weights[None, :]
    for _ in range(length - charged):
        joint = (joint[:, None, :] * law.below[None, :, :]).reshape(-1, joint.shape[1])
    last = law.above.reshape(-1, law.above.shape[2]) if charged else np.ones((1, law.weights.size))
    with np.errstate(divide="ignore"):
        table = np.log(joint @ last.T)
    shape = (size // 3, 3) * (length - charged) + ((len(law.above), size // 3, 3) if charged else ())
    table = table.reshape(shape)
    shift_axes = [2 * i + 1 for i in range(length - charged)] + ([2 * (length - 1) + 2] if charged else [])
    honest, neighbour = table, table
    for axis, position in zip(shift_axes, range(length), strict=True):
        allowed = pattern[1] if charged and position == length - 1 else pattern[0]
        honest = np.take(honest, [1], axis=axis)
        neighbour = np.take(neighbour, [shift + 1 for shift in allowed], axis=axis)
    possible = np.isfinite(honest) | np.isfinite(neighbour)
    with np.errstate(invalid="ignore"):
        loss = np.where(possible, honest - neighbour, 0.0)
    return np.array([loss.max(), (-loss).max()])


def worst_loss(law: Law, *, length: int, charges: int, pattern: tuple[Sequence[int], Sequence[int]]) -> float:
    """Largest privacy loss of any transcript of at most `length` answers with at most `charges` above."""
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
