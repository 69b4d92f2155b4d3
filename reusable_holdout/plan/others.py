"""Half-widths that others give for a plan's questions, in the metric's unit: to compare with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reusable_holdout import validity
from reusable_holdout.validity import alternatives

if TYPE_CHECKING:
    from reusable_holdout.validity.alternatives.gaussian_width import GaussianAnalysis

__all__ = ["fixed_half_width", "half_widths"]

_GAUSSIAN: dict[GaussianAnalysis, str] = {
    "best": "Gaussian noise, best",
    "transfer": "Gaussian noise, Jung et al.",
    "bassily": "Gaussian noise, Bassily et al.",
}


def half_widths(
    certificate: validity.Certificate, *, queries: int, beta: float, estimate: float
) -> dict[str, float]:
    """Return the half-widths of :attr:`Plan.other_half_widths`, by name."""
    bound, span = certificate.bound, certificate.upper - certificate.lower
    unit, share = (estimate - certificate.lower) / span, bound.rows // queries
    if certificate.by_evidence and share:
        split = certificate.of_rows(share).likely_half_width(_nats(queries, beta), estimate)
    else:
        split = span * validity.sample_splitting_half_width(bound, queries=queries, beta=beta, estimate=unit)
    widths = {"a fresh share per query": split}
    plain_mean = bound.family != "bounded-difference" and abs(bound.sum_of_squares * bound.rows - 1.0) < 1e-9
    for analysis, name in _GAUSSIAN.items() if plain_mean else ():
        noise = alternatives.gaussian_width(rows=bound.rows, queries=queries, beta=beta, analysis=analysis)
        widths[name] = noise.half_width * span
    return widths


def fixed_half_width(
    certificate: validity.Certificate, *, queries: int, beta: float, estimate: float
) -> float:
    """Return the half-width around `estimate` if all questions had been written down before the first answer."""
    if certificate.by_evidence:
        return certificate.likely_half_width(_nats(queries, beta), estimate)
    span = certificate.upper - certificate.lower
    unit = (estimate - certificate.lower) / span
    return span * validity.fixed_queries_half_width(
        certificate.bound, queries=queries, beta=beta, estimate=unit
    )


def _nats(queries: int, beta: float) -> float:
    return math.log(2.0 * queries / beta)
