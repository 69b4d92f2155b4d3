"""The input of a guard: rows and labels, read once, and a metric bound to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reusable_holdout import metrics
from reusable_holdout.errors import HandleError, InputError, ModelError
from reusable_holdout.guard import trial
from reusable_holdout.guard.boundary import attempt, quiet
from reusable_holdout.guard.chunks import dask_rows, predicting
from reusable_holdout.guard.digests import Owned, copy_of, is_chunked, own
from reusable_holdout.guard.models import Needed, length_of
from reusable_holdout.guard.row_sets import RowSet, column_names, ordered_rows
from reusable_holdout.guard.time_order import checked_beginning
from reusable_holdout.guard.walk_forward import WalkForward, try_on_history, walked
from reusable_holdout.metrics import BoundMetric, Metric
from reusable_holdout.metrics.containers import (
    check_same_order,
    compact,
    from_arrow,
    index_of,
    is_dask,
    no_array,
)
from reusable_holdout.metrics.predictions import PRIVATE, is_public
from reusable_holdout.registry import Sketch


class PrivateData:
    """The holdout, bound to a metric; it shows nothing of itself and cannot be pickled.

    It holds copies, except of data that are :class:`Owned`: later changes to the user's data change no answer, and the
    ledger's digest names the data that are asked about. X are features, in chunks or not, or None. y are labels, or ids
    for judged scores. The other parameters are as for :meth:`Metric.bind`. If `classes` is None and the labels' own are
    too many to be public, the classes that `declared` returns are used. `bound` is the metric on the rows.

    If the metric is not defined on the labels, this is released only when a question is asked, at a price. If `opened`,
    the parts are a guard's own, and are not read and copied again. InputError if the parts do not fit one another.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        metric: Metric,
        *,
        classes: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        order: str | None = None,
        declared: Callable[[], list[Any] | str | None] = lambda: None,
        opened: bool = False,
    ) -> None:
        X, y = _read(X, y) if not opened else (X, y)
        groups, sample_weight = groups if opened else own(groups), own(sample_weight)
        if metric.response == "judged" and X is not None:
            raise InputError(
                f"X must be None for metric {metric.name!r}, whose rows are judged elsewhere and have ids; got "
                f"{type(X).__name__}; ask with scores; nothing was made"
            )
        indexes = _checked_order(X, y=y, sample_weight=sample_weight, groups=groups)
        self.X, self.y, self.classes, self.sample_weight, self.groups = X, y, classes, sample_weight, groups
        bind = partial(_bound, metric, y, sample_weight=sample_weight, groups=groups)
        self.bound = bind(classes=classes)
        found = self.bound.classes if classes is None else None
        if found is not None and not is_public(
            len(found), self.bound.rows, "text" if found.dtype.kind == "U" else "numbers"
        ):
            self.classes = declared() or PRIVATE
            self.bound = bind(classes=self.classes)
        self.sketches: dict[type, Sketch] = {}
        self.bound.know_order(indexes)
        self.begins = checked_beginning(self.bound, indexes, sample_weight) if order else None
        self._trial: trial.Trial | None = None
        if X is None:
            return
        if isinstance(X, type) or not hasattr(X, "shape"):
            _check_list(X)
        count, labels = length_of(X), self.bound.rows
        if count != labels:
            advice = "; transpose X" if getattr(X, "shape", ())[1:] == (labels,) else ""
            raise InputError(
                f"X and y must have the same number of rows; got {count:,} and {labels:,}{advice}; nothing was made"
            )

    @cached_property
    def row_set(self) -> RowSet:
        """The features of the holdout as a set of rows; the holdout must have features."""
        return ordered_rows(self.X, column_names(self.X))

    @property
    def _needed(self) -> Needed:
        return Needed(self.bound.metric.response, self.bound.classes, self.bound.form)

    def try_out(self, models: Sequence[Any], X_train: Any = None) -> None:
        """Refuse models that fail on synthetic rows of public form, before any model reads the holdout."""
        if self.X is None or is_chunked(self.X):
            return
        self._trial = self._trial or trial.Trial(self.X, self._needed)
        for model in models:
            if isinstance(model, WalkForward):
                try_on_history(model, self.X, self._needed)
            else:
                self._trial.check(model, X_train)

    def predicted(self, model: Any) -> NDArray[Any] | None:
        """Return a model's predictions for the rows, in canonical form; None if it fails."""
        needed = self._needed
        if is_chunked(self.X):
            return predicting.predicted_by_chunks(model, self.X, needed)
        if isinstance(model, WalkForward):
            return attempt(lambda: walked(model, self, needed))
        self.try_out([model])
        # predictions are in the order of the given rows, for any index; the model gets a copy, so that it cannot change
        # the holdout
        form = needed.form.of_rows(needed.form.rows)
        return attempt(lambda: form.prepare(needed.predicted(model, copy_of(self.X))))

    def predicted_by(self, models: Sequence[Any]) -> NDArray[Any] | None:
        """Return several models' predictions, shape (models, ...); None if one fails, after all were tried."""
        every = [self.predicted(model) for model in models]
        found = [one[None] for one in every if one is not None]
        if len(found) < len(every):
            return None
        return found[0] if len(found) == 1 else np.concatenate(found)

    def __repr__(self) -> str:
        return "<private data>"

    def __reduce__(self) -> str:
        raise HandleError("the holdout cannot be pickled; pickle the guard, which becomes a handle")


def _bound(metric: Metric, y: Any, **given: Any) -> BoundMetric:
    """Return a metric bound to labels.

    An error does not depend on the labels, and never quotes a user's own function.
    """
    with contextlib.nullcontext() if metric.kernel is not None else quiet():
        with contextlib.suppress(InputError, ModelError):  # most are defined on their labels
            return metric.bind(y, **given)
        return metrics.bound_or_undefined(metric, y, **given)


def _check_list(X: Any) -> None:
    if not isinstance(X, list | tuple):
        raise no_array(X, what="X")
    with contextlib.suppress(ValueError):
        np.asarray(X)
        return
    raise InputError("X must be rows of one length; got a list of rows of several lengths; nothing was made")


# ---- as it is given


def rows_and_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Return features and labels, read once; y may name a column of chunked rows.

    Data in memory are returned as they are, except pyarrow tables, which become pandas objects; a second call changes
    nothing. An InputError is raised if they are paths, or if y names no column.
    """
    for given, what in ((X, "X"), (y, "y")):
        first = given[0] if isinstance(given, list | tuple) and given else given
        if isinstance(first, Path) or (isinstance(given, str) and what == "X"):
            raise InputError(
                f"{what} must be data, not a path; for Parquet files pass ParquetRows(...), from "
                "reusable_holdout; read other files first; nothing was made"
            )
    X, y = from_arrow(X), from_arrow(y)
    if is_dask(X):
        X = dask_rows.DaskRows(X)
    if isinstance(y, str):
        if not is_chunked(X):
            raise InputError(
                "y may be the name of a column only where X is ParquetRows or a Dask DataFrame; got text; pass the "
                "labels themselves"
            )
        X, y = X.split(y)
    return X, compact(y, what="the labels")


def _read(X: Any, y: Any) -> tuple[Any, Any]:
    """Return features and labels as :func:`rows_and_labels` does, but owned by the guard: copied if need be.

    A pandas object made from pyarrow data lies in pyarrow's memory, which may be the user's array.
    """
    came = [one if isinstance(one, Owned) else from_arrow(one) for one in (X, y)]
    read = rows_and_labels(*(one.data if isinstance(one, Owned) else one for one in came))
    held = [own(now) if now is one else now for one, now in zip(came, read, strict=True)]
    return held[0], held[1]


def _checked_order(X: Any, **beside: Any) -> tuple[Any, ...]:
    """Return the indexes of the rows, if there are any; refuse data with the same index in another order."""
    given = {"X": X, **beside}
    for (first, rows), (second, other) in combinations(given.items(), 2):
        check_same_order(rows, other, names=(first, second), nothing="nothing was made")
    return tuple(index for index in map(index_of, (X, beside["y"])) if index is not None)
