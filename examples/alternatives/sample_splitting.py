"""The width of answers that each use fresh rows of their own."""

from __future__ import annotations

import math

from reusable_holdout.certainty import ConfidenceBound, fixed_queries_half_width

__all__ = ["sample_splitting_half_width"]


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
