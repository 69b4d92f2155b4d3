"""What the same rows would give without a guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reusable_holdout.validity import ConfidenceBound, sample_splitting_half_width
from reusable_holdout.validity.alternatives import gaussian_width

if TYPE_CHECKING:
    from reusable_holdout.validity.alternatives.gaussian_width import GaussianAnalysis

__all__ = ["FRESH_SHARE", "other_half_widths"]

FRESH_SHARE = "a fresh share per query"

_GAUSSIAN: dict[GaussianAnalysis, str] = {
    "best": "Gaussian noise, best",
    "transfer": "Gaussian noise, Jung et al.",
    "bassily": "Gaussian noise, Bassily et al.",
}


def other_half_widths(
    bound: ConfidenceBound, *, queries: int, beta: float, estimate: float, span: float
) -> dict[str, float]:
    """Half-widths that others give for as many adaptive queries on as many rows.

    Parameters
    ----------
    bound : ConfidenceBound
        Of the plan's statistic, normalised.
    queries : int
        Declared number.
    beta : float
        Failure probability of all together.
    estimate : float
        Normalised.
    span : float
        Range of the metric.
    """
    split = sample_splitting_half_width(bound, queries=queries, beta=beta, estimate=estimate)
    widths = {FRESH_SHARE: split * span}
    if _is_plain_mean(bound):
        for analysis, name in _GAUSSIAN.items():
            found = gaussian_width(rows=bound.rows, queries=queries, beta=beta, analysis=analysis)
            widths[name] = found.half_width * span
    return widths


def _is_plain_mean(bound: ConfidenceBound) -> bool:
    return bound.family != "bounded-difference" and abs(bound.sum_of_squares * bound.rows - 1.0) < 1e-9
