"""Sparse vector variants that were published and are wrong: every privacy test must reject them.

Laws in the form of `mechanisms.sparse_vector.audit.Law`, on the integers, from Lyu, Su and Li (2017), Figure 1 and
section 3.4. Their threshold noise is held for good.
"""

import math
from fractions import Fraction

import numpy as np
from mechanisms.sparse_vector.audit import (
    Law,
    Queries,
    densities,
    log_tail,
    sparse_vector_law,
    threshold_noise,
)

from reusable_holdout.mechanisms import DiscreteExponential, standard_svt_scales
from reusable_holdout.noise import DiscreteLaplace, NoiseScales


def unnoised_threshold(*, epsilon, sensitivity, queries):
    """Return AboveThreshold without threshold noise: each "below" then costs epsilon/4, without end."""
    query = Fraction(4 * sensitivity) / Fraction(epsilon)
    return sparse_vector_law(NoiseScales(Fraction(0), query, Fraction(0)), queries)


def releases_the_noisy_query(*, epsilon, sensitivity, charges, queries):
    """Return Algorithm 3: it releases the very number that it compared, which betrays the threshold."""
    threshold = DiscreteLaplace(Fraction(2 * sensitivity) / Fraction(epsilon))
    query = DiscreteLaplace(Fraction(2 * charges * sensitivity) / Fraction(epsilon))
    return _compared_number_released(threshold, query, queries)


def charges_the_queries_too_little(*, epsilon, sensitivity, queries):
    """Return Algorithm 4: the noise for one query above serves many; it loses (1 + 6c)/4 times epsilon."""
    exact = Fraction(epsilon)
    return sparse_vector_law(
        NoiseScales(4 * sensitivity / exact, 4 * sensitivity / (3 * exact), Fraction(0)), queries
    )


def unnoised_queries(*, epsilon, sensitivity, queries):
    """Return Algorithm 5: no noise on the queries, and no end."""
    return sparse_vector_law(
        NoiseScales(2 * sensitivity / Fraction(epsilon), Fraction(0), Fraction(0)), queries
    )


def never_charges(*, epsilon, sensitivity, queries):
    """Return Algorithm 6: the queries' noise does not grow with the number above, which has no end."""
    scale = 2 * sensitivity / Fraction(epsilon)
    return sparse_vector_law(NoiseScales(scale, scale, Fraction(0)), queries)


def monotonic_scales(*, epsilon, sensitivity, charges, queries):
    """Use the scales for monotonic queries for others: each query above costs twice its share."""
    scales = standard_svt_scales(charges=charges, epsilon=epsilon, monotonic=True, sensitivity=sensitivity)
    return sparse_vector_law(scales, queries)


def threshold_of_the_data(*, epsilon, sensitivity, queries):
    """Take the queries' thresholds from the data: value and threshold then move apart by twice as much."""
    scales = standard_svt_scales(charges=1, epsilon=epsilon, sensitivity=sensitivity)
    return sparse_vector_law(scales, Queries(queries.bases, 2 * queries.sensitivity))


def noise_inside(*, scales, queries, comparison="laplace"):
    """Put the noise inside the absolute value: ``|query + noise| >= threshold + threshold noise``."""
    noise_type = DiscreteLaplace if comparison == "laplace" else DiscreteExponential
    threshold, query = noise_type(scales.threshold), noise_type(scales.query)
    noise, weights = threshold_noise(threshold, queries, scales.query)
    limit = noise.astype(np.int64)[None, :]
    values = np.array(queries.values)[:, None]
    # |v + n| >= m is n >= m - v or n <= -m - v; for m <= 0 it is certain.
    upper, _ = log_tail(query, np.maximum(limit, 0) - values)
    _, lower = log_tail(query, -np.maximum(limit, 1) - values + 1)
    certain = limit <= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(certain, 0.0, np.logaddexp(upper, lower))
        below = np.where(certain, -math.inf, np.log(-np.expm1(np.minimum(above, 0.0))))
    return Law(weights, below, above[None])


def noise_inside_and_released(*, scales, queries):
    """Put the noise inside the absolute value, as section 3.4 does, and answer with the number that was compared."""
    inside = noise_inside(scales=scales, queries=queries)
    noise, _ = threshold_noise(DiscreteLaplace(scales.threshold), queries, scales.query)
    density = densities(DiscreteLaplace(scales.query), queries)
    reaches = np.abs(np.array(queries.outputs))[:, None, None] >= noise
    return Law(inside.weights, inside.below, np.where(reaches, density[:, :, None], -math.inf))


def _compared_number_released(threshold, query, queries):
    noise, weights = threshold_noise(threshold, queries, query.scale)
    needed = noise.astype(np.int64)[None, :] - np.array(queries.values)[:, None]
    density = densities(query, queries)
    reaches = np.array(queries.outputs)[:, None, None] >= noise
    return Law(weights, log_tail(query, needed)[1], np.where(reaches, density[:, :, None], -math.inf))
