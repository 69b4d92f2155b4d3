"""Exam rows: those that are kept for the final, and that no question before it reads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reusable_holdout import queries
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.plan import checked_exam, exam_count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from reusable_holdout.queries import BoundMetric, Metric

__all__ = ["BoundRows", "bind_rows", "kept_rows"]


class BoundRows(NamedTuple):
    """A metric bound to the rows.

    Attributes
    ----------
    asked : BoundMetric
        On the rows that questions read.
    every : BoundMetric
        On all rows; what a final is about.
    exam : BoundMetric or None
        On the rows that are kept for the final; None if none are, or the metric is not defined on them.
    kept : numpy.ndarray of bool of shape (rows,) or None
        Which rows these are.
    exam_units : int
        How many rows, or groups, these are.
    """

    asked: BoundMetric
    every: BoundMetric
    exam: BoundMetric | None
    kept: NDArray[np.bool_] | None
    exam_units: int = 0

    @property
    def exam_share(self) -> float | None:
        """Share of all rows, or groups, that are kept; None if none are."""
        units = self.every.rows if self.every.groups is None else len(self.every.groups)
        return self.exam_units / units if self.exam_units else None

    def exam_of_the_same(self, *, by_sample: bool) -> BoundMetric | None:
        """The exam's, if it is about what all rows are about: an average over classes is not, if one has no row there.

        Parameters
        ----------
        by_sample : bool
            Whether samples decide: they know which classes have rows.
        """
        same = self.exam is None or by_sample or self.exam.by_rows or self.exam.present == self.every.present
        return self.exam if same else None


def bind_rows(
    metric: Metric,
    y: Any,
    *,
    classes: ArrayLike | None,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    largest_group: int | None = None,
    exam: float | NDArray[np.bool_] | None,
    opened: bool = False,
) -> BoundRows:
    """Bind a metric to private labels, of which some are kept for the final.

    Parameters
    ----------
    metric, y, classes, sample_weight, groups, largest_group
        As for :meth:`Metric.bind`.
    exam : float, int, numpy.ndarray of bool or None
        Share of the rows, their number, or which they are. With groups whole groups are kept, and counted.
    opened : bool
        Whether an analyst asks for it: that it is not defined on the labels is told when it is asked, and priced.

    Raises
    ------
    InputError
        If data and metric do not fit, or no row is left to be asked.
    """
    bind = partial(queries.bound_or_undefined, metric, y) if opened else partial(metric.bind, y)
    every = bind(classes=classes, sample_weight=sample_weight, groups=groups, largest_group=largest_group)
    if largest_group is not None and exam is not None:
        raise InputError(
            "an exam's interval is by a bound that is not known for means over the rows of groups; got exam= and "
            "largest_group=; nothing was made; leave one of them out"
        )
    kept = exam if isinstance(exam, np.ndarray) else _kept(exam, every)
    if kept is None:
        return BoundRows(every, every, None, None)
    units = len(np.unique(every.groups.codes[kept])) if every.groups is not None else int(kept.sum())
    weights = np.ones(every.rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    left, apart = np.where(kept, 0.0, weights), np.where(kept, weights, 0.0)
    if not left.any():
        raise InputError(
            "rows with a weight must be left beside the exam; all of them are kept for the final; nothing was made; "
            "take a larger slice"
        )
    asked = bind(classes=every.classes, sample_weight=left, groups=groups)
    try:
        own = metric.bind(y, classes=every.classes, sample_weight=apart, groups=groups)
    except (
        InputError,
        ModelError,
    ):  # no row of some class, say: then a final says nothing of these rows alone
        return BoundRows(asked, every, None, kept, units)
    return BoundRows(asked, every, own, kept, units)


def _kept(exam: float | None, every: BoundMetric) -> NDArray[np.bool_] | None:
    groups = every.groups
    what, units = ("rows", every.rows) if groups is None else ("groups", len(groups))
    count = exam_count(checked_exam(exam), units)
    if count >= units:
        raise InputError(f"an exam must leave {what} to ask; got {count:,} of {units:,} {what}; keep fewer")
    if not count:
        return None
    kept = kept_rows(units, count)
    return kept if groups is None else kept[groups.codes]


def kept_rows(rows: int, count: int) -> NDArray[np.bool_]:
    """Which of the rows are kept for the final; shape (rows,).

    They are spread over the rows by a fixed shuffle of their numbers, the same everywhere and always. It need not be
    secret: nothing is told of these rows before the final, whoever knows which they are.

    Examples
    --------
    >>> int(kept_rows(10_000, 1_000).sum()), int(kept_rows(10_000, 1_000)[:5_000].sum())
    (1000, 484)
    """
    order = np.argsort(np.random.PCG64([rows, count]).random_raw(rows), kind="stable")
    kept = np.zeros(rows, dtype=np.bool_)
    kept[order[:count]] = True
    return kept
