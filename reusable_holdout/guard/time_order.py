"""Rows in time order: what is refused, and the data that must end before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import BoundMetric
from reusable_holdout.metrics.containers import index_of


def checked_beginning(bound: BoundMetric, indexes: Sequence[Any], sample_weight: Any) -> Any:
    """Return the time of the first row, or None if the rows have no index of times.

    An InputError says that intervals cannot hold for this metric, its weights or groups in time order, or that the
    times are in another order.
    """
    problem, groups = None, bound.groups
    if not bound.by_rows or (bound.statistic.chosen is not None and sample_weight is None):
        problem = f"metric {bound.metric.name!r} is no mean of losses over all rows; take accuracy, brier, mae or mse"
    elif bound.relative_weights is not None:
        problem = "sample_weight has several numbers; pass 0 and 1, which make a slice"
    elif groups is not None and (np.diff(groups.codes) < 0).any():
        problem = "groups must be steps in time, each in one piece; sort the rows, or name contiguous steps"
    times = [index for index in indexes if index.dtype.kind == "M"]
    if not all(index.is_monotonic_increasing for index in times):
        problem = "the index of times is in another order; sort the rows by time"
    if problem is not None:
        raise InputError(f"rows in time order: {problem}; nothing was made")
    return times[0][0] if times else None


def check_follows(before: Any, fresh: Any, *, nothing: str) -> None:
    """Refuse new rows unless they come after the rows before, where both have times."""
    last = max((index.max() for index in times_of(before)), default=None)
    follows = last is fresh.begins is None or _in_order(last, fresh.begins)
    if not follows:
        raise InputError(
            "rows in time order: new rows must come after the rows before, with times of the same zone if those have "
            f"some; {nothing}"
        )


def _in_order(first: Any, second: Any) -> bool:
    """Return True if two times are in order; False if one of them is missing, or only one has a time zone."""
    try:
        return bool(first <= second)
    except TypeError:
        return False


def times_of(data: Any) -> list[Any]:
    """Return the indexes of times of features and labels."""
    indexes = [index_of(part) for part in (data.X, data.y)]
    return [index for index in indexes if index is not None and index.dtype.kind == "M"]


def check_embargo(begins: Any, rows: Any, *, nothing: str) -> None:
    """Refuse rows that the analyst uses unless they end before the first row of the holdout, where both have times."""
    index = index_of(rows)
    if begins is None or index is None or index.dtype.kind != "M" or not len(index):
        return
    is_before = index.max() != begins and _in_order(index.max(), begins)
    if not is_before:
        raise InputError(
            "rows in time order: training rows must end before the first row of the holdout; got rows of the same time "
            f"or later, or times in no common zone; leave them out; {nothing}"
        )
