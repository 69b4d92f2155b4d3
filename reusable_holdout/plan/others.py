"""Half-widths that others give for a plan's questions, in the metric's unit: to compare with."""

from __future__ import annotations

import math

from reusable_holdout.certainty import Certificate, fixed_queries_half_width

__all__ = ["fixed_half_width"]


def fixed_half_width(certificate: Certificate, *, queries: int, beta: float, estimate: float) -> float:
    """Return the half-width around `estimate` if all questions had been written down before the first answer."""
    if certificate.by_evidence:
        return certificate.likely_half_width(math.log(2.0 * queries / beta), estimate)
    span = certificate.upper - certificate.lower
    unit = (estimate - certificate.lower) / span
    return span * fixed_queries_half_width(certificate.bound, queries=queries, beta=beta, estimate=unit)
