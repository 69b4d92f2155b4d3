"""Sparse vector variants that were published and are wrong: what every privacy test must reject.

Laws in the form of `mechanisms.audit.Law`, from Lyu, Su and Li (2017), Figure 1, on the integers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from mechanisms.audit import Law, Queries, densities, sparse_vector_law, tail, threshold_noise

from reusable_holdout.mechanisms import DiscreteLaplace, NoiseScales


def unnoised_threshold(*, epsilon: float, sensitivity: int, queries: Queries) -> Law:
    """AboveThreshold without threshold noise: each "below" then costs epsilon/4, without end."""
    query = Fraction(4 * sensitivity) / Fraction(epsilon)
    return sparse_vector_law(NoiseScales(Fraction(0), query, Fraction(0)), queries)


def releases_the_noisy_query(*, epsilon: float, sensitivity: int, charges: int, queries: Queries) -> Law:
    """Lyu, Su and Li's Algorithm 3: releases the very number it compared, which betrays the threshold."""
    noise, weights = threshold_noise(DiscreteLaplace(Fraction(2 * sensitivity) / Fraction(epsilon)), queries)
    query = DiscreteLaplace(Fraction(2 * charges * sensitivity) / Fraction(epsilon))
    needed = noise.astype(np.int64)[None, :] - np.array(queries.values)[:, None]
    density = densities(query, queries)
    reaches = np.array(queries.outputs)[:, None, None] >= noise
    return Law(weights, tail(query, 1 - needed), density[:, :, None] * reaches)
