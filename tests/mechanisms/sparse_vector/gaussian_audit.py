"""Exact law of sparse vector streams with normal noise, by quadrature over the threshold's noise; no sampling.

A stream is a list of queries: each one's value less its threshold on one data set, and how far the neighbour moves it.
Given the threshold's noise the queries are independent, so that a transcript's probability is one integral of a product
of values of the normal distribution function.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import special

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = npt.NDArray[np.float64]
_NODES = 240
_REACH = 12.0  # deviations of the threshold's noise


def transcript_laws(
    values: Sequence[float], moves: Sequence[float], *, threshold: float, query: float, charges: int
) -> tuple[Array, Array]:
    """Probability of every transcript on the two data sets, the same order in both."""
    noise, weights = _threshold_noise(threshold)
    own, others = np.asarray(values, dtype=float), np.asarray(values, dtype=float) + np.asarray(moves)
    return tuple(_law(each, noise, weights, query, charges) for each in (own, others))  # type: ignore[return-value]


def _threshold_noise(deviation: float) -> tuple[Array, Array]:
    """Nodes and weights of the threshold's noise."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    density = np.exp(-((_REACH * nodes) ** 2) / 2) / math.sqrt(2 * math.pi)
    return _REACH * deviation * nodes, weights * _REACH * density


def _law(values: Array, noise: Array, weights: Array, query: float, charges: int) -> Array:
    """Halted transcripts in the order in which they end, then those that lasted."""
    going: list[tuple[int, Array]] = [(0, weights)]
    ended: list[float] = []
    for value in values:
        above = special.ndtr((value - noise) / query)
        below = special.ndtr((noise - value) / query)
        following = []
        for count, chance in going:
            if count + 1 == charges:
                ended.append(float((chance * above).sum()))
            else:
                following.append((count + 1, chance * above))
            following.append((count, chance * below))
        going = following
    return np.array(ended + [float(chance.sum()) for _, chance in going])


def renyi(first: Array, second: Array, order: float) -> float:
    """Renyi divergence of two laws."""
    possible = first > 0
    logs = order * np.log(first[possible]) + (1 - order) * np.log(second[possible])
    return float(special.logsumexp(logs)) / (order - 1)


def excess(first: Array, second: Array, epsilon: float) -> float:
    """Delta that belongs to an epsilon, in the worse direction."""
    return max(
        float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in ((first, second), (second, first))
    )
