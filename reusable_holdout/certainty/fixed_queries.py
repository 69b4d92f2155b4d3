"""What others would have to say with the same rows: the yardsticks a plan is printed beside."""

from __future__ import annotations

import math

from reusable_holdout.certainty.bound import ConfidenceBound

__all__ = ["fixed_queries_half_width", "sample_splitting_half_width"]


def fixed_queries_half_width(bound: ConfidenceBound, *, queries: int, beta: float, estimate: float) -> float:
    """Half-width if all questions had been written down before anyone saw the holdout (union bound).

    Valid for fixed questions only: an oracle's figure. An analyst who adapts has no guarantee from it.

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
    """Half-width if every question got a fresh share of the rows; valid for adaptive questions.

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
