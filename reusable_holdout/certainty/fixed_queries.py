"""The widths that two other methods would give with the same rows; a plan prints them for comparison."""

from __future__ import annotations

import math

from reusable_holdout.certainty.bound import ConfidenceBound

__all__ = ["fixed_queries_half_width", "sample_splitting_half_width"]


def fixed_queries_half_width(bound: ConfidenceBound, *, queries: int, beta: float, estimate: float) -> float:
    """Return the half-width if all questions were fixed before anyone saw the holdout (union bound).

    It is valid for fixed questions only. It guarantees nothing to an analyst who adapts to the answers.

    Parameters
    ----------
    bound : ConfidenceBound
        Bound of the normalised statistic.
    queries : int
        Number of questions, >= 1.
    beta : float
        Failure probability of all together, in (0, 1).
    estimate : float
        Observed value in [0, 1].

    Examples
    --------
    >>> from reusable_holdout.certainty import ConfidenceBound
    >>> bound = ConfidenceBound("binomial", rows=10_000, sum_of_squares=1e-4)
    >>> round(fixed_queries_half_width(bound, queries=1_000, beta=0.05, estimate=0.9), 4)
    0.0122
    """
    level = math.log(beta / (2.0 * queries))
    return float(bound.upper(estimate, log_level=level) - bound.lower(estimate, log_level=level)) / 2.0


def sample_splitting_half_width(
    bound: ConfidenceBound, *, queries: int, beta: float, estimate: float
) -> float:
    """Return the half-width if every question used fresh rows of its own; it is valid for adaptive questions.

    Parameters are those of :func:`fixed_queries_half_width`; infinite when there are fewer rows than questions. Exact
    binomial bounds are narrower than Hoeffding's, which is what the literature prints: 0.38 instead of 0.73 below.

    Examples
    --------
    >>> from reusable_holdout.certainty import ConfidenceBound
    >>> bound = ConfidenceBound("binomial", rows=10_000, sum_of_squares=1e-4)
    >>> sample_splitting_half_width(bound, queries=1_000, beta=0.05, estimate=0.9) > 0.3
    True
    """
    rows = bound.rows // queries
    if rows < 1:
        return math.inf
    return fixed_queries_half_width(bound.of_rows(rows), queries=queries, beta=beta, estimate=estimate)
