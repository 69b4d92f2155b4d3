"""The private labels or targets, in the form that scoring needs; their repr shows only the number of rows."""

from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.metrics import containers
from reusable_holdout.metrics.containers import Kind, compact, typed_array
from reusable_holdout.metrics.predictions import PRIVATE, AnswerCoder, ClassCoder, compared

_MOST_ROWS = 1 << 31  # with at most 2**32 grid units per row, the sum stays below 2**63


class HoldsLabels:
    """An object that holds private labels and shows only their number.

    The repr does not depend on the labels' values, and the object can be neither pickled nor copied.
    """

    rows: int

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.rows} rows>"

    def __reduce__(self) -> NoReturn:
        raise HandleError(
            f"{type(self).__name__} must stay in its process, because it holds labels; nothing was written; "
            "pickle the metric and bind it again"
        )


class Targets(HoldsLabels):
    """Private labels or targets of shape (rows,), or (rows, outputs) if each row has several.

    Attributes
    ----------
    values : numpy.ndarray
        Class labels as codes, or real targets as float64.
    coder : ClassCoder, AnswerCoder or None
        The encoder of class labels, or of answers whose set is private; None for real targets.
    counts : numpy.ndarray or None
        Number of rows of each class, over all outputs; None if there are no classes.
    """

    def __init__(self, values: NDArray[Any], coder: ClassCoder | AnswerCoder | None = None) -> None:
        values.flags.writeable = False
        self.values, self.rows, self.coder = values, len(values), coder
        self.outputs = 1 if values.ndim == 1 else values.shape[1]
        self.counts: Any = None
        if isinstance(coder, ClassCoder):
            self.counts = np.zeros(len(coder.classes), np.int64)
            for rows in containers.in_blocks(self.rows):  # NumPy counts in 8 bytes for each row
                self.counts += np.bincount(values[rows].ravel(), minlength=len(self.counts))

    def part(self, chosen: NDArray[Any]) -> Self:
        """Return the labels of some rows; the set of classes stays the same."""
        return type(self)(self.values[chosen], self.coder)

    def present(self) -> dict[int, int]:
        """Return the number of rows of each class that has any, by the code of the class."""
        return {code: rows for code, rows in enumerate(self.counts.tolist()) if rows}

    def check_several(self, metric: str) -> None:
        """Refuse labels of a single class; the message names the metric."""
        if np.count_nonzero(self.counts) < 2:
            raise InputError(
                f"for {metric} the labels must hold at least two classes; got 1; use accuracy or a mean loss"
            )

    def check_two(self, metric: str) -> None:
        """Refuse labels unless there are exactly two classes, both of them present."""
        if len(self.counts) != 2:
            raise InputError(
                f"for {metric} there must be exactly two classes; got {len(self.counts)}; "
                "choose the positive class, or a metric averaged over classes"
            )
        self.check_several(metric)

    def shown(self) -> NDArray[Any]:
        """Return the labels as a user's own metric sees them: read-only, in their own dtype."""
        if self.coder is None or self.coder.classes is None:
            return self.values
        labels: NDArray[Any] = self.coder.classes[self.values]
        labels.flags.writeable = False
        return labels


def class_targets(y: object, classes: object | None = None) -> Targets:
    """Check class labels and convert them to codes; rows with several labels have zeros and ones, a column per label.

    The set of classes and the number of rows of each are treated as public, unless `classes` is "private". Which row
    has which label is private, so error messages quote no label.
    """
    private = isinstance(classes, str) and classes == PRIVATE
    labels, kind, places = _read_labels(y, outputs=not private)
    coder: AnswerCoder | ClassCoder
    if private:
        containers.check_class_labels(labels)
        coder, codes = AnswerCoder(kind), compared(labels, kind, what="the labels")
        return Targets(codes if places is None else codes[places], coder)
    if labels.ndim > 1:
        _check_marks(labels, kind, classes)
        classes = [0, 1]
    coder = ClassCoder(labels, kind) if classes is None else _coder_of(classes, kind)
    known = coder.encode(labels)
    if known is None:
        raise InputError("classes= must name every class of the labels; got labels outside it; add them")
    return Targets(known if places is None else known[places], coder)


def real_targets(y: object) -> Targets:
    """Check real-valued targets and convert them to float64; error messages quote none of them."""
    given = rows_of(compact(y, what="the targets"), what="the targets", outputs=True)
    values = containers.real_array(given, what="the targets").astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError("the targets must be finite; got NaN or infinity; drop or fill those rows")
    return Targets(values)


def _coder_of(classes: object, kind: Kind) -> ClassCoder:
    named, named_kind = typed_array(containers.as_array(classes, what="classes=").ravel(), what="classes=")
    if named_kind != kind:
        raise InputError(f"classes= must be {kind} like the labels; got {named_kind}; convert them")
    return ClassCoder(named, kind)


def _check_marks(labels: NDArray[Any], kind: Kind, classes: object | None) -> None:
    if classes is not None:
        raise InputError(
            "labels in several columns must be zeros and ones; got classes=; leave it out, or pass one column"
        )
    if kind == "text" or not np.isin(labels, (0, 1)).all():
        raise InputError(
            f"the labels must have shape (rows,), or be zeros and ones in a column for each of several labels; got "
            f"{labels.shape} of other values; pass one column; rows come first, labels second"
        )


def _read_labels(y: object, *, outputs: bool) -> tuple[NDArray[Any], Kind, NDArray[Any] | None]:
    """Return labels, their kind, and None; or, for coded text, the distinct labels, their kind, and each row's code."""
    read = compact(y, what="the labels")
    coded = read if isinstance(read, containers.CodedLabels) else None
    labels = rows_of(read if coded is None else coded.values, outputs=outputs)
    return *typed_array(labels, what="the labels"), None if coded is None else coded.codes


def rows_of(y: object, *, what: str = "the labels", outputs: bool = False) -> NDArray[Any]:
    """Return one column as an array of shape (rows,), or several columns as (rows, outputs), in their own dtype."""
    array = containers.one_column(containers.as_array(y, what=what))
    if array.ndim not in ({1, 2} if outputs else {1}) or array.shape[1:] == (0,):
        shape = "(rows,) or (rows, outputs)" if outputs else "(rows,)"
        raise InputError(
            f"{what} must have shape {shape}; got {array.shape}; pass one column; rows come first, labels second"
        )
    if not 0 < len(array) < _MOST_ROWS:
        raise InputError(f"{what} must have at least 1 row and under 2**31; got {len(array)}; pass others")
    return array
