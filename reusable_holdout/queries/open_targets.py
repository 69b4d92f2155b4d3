"""Real targets of rows that are no secret: there it may be said that some lie outside the bounds of a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reusable_holdout.errors import InputError
from reusable_holdout.queries.targets import RealTargets

if TYPE_CHECKING:
    from reusable_holdout.queries.definition import Definition

__all__ = ["check_open_targets"]


def check_open_targets(metric: Definition, y: object) -> None:
    """Refuse targets outside the bounds that a metric of the catalogue states; never call it with the holdout's."""
    if metric.kernel is None:
        return
    values, lower, upper = RealTargets(y).values, metric.parameters["lower"], metric.parameters["upper"]
    if values.min() < lower or values.max() > upper:
        raise InputError(
            f"the targets must lie in [{lower:g}, {upper:g}]; got targets outside; state bounds that hold for all, or "
            "clip the targets, as a guard clips those of its own rows"
        )
