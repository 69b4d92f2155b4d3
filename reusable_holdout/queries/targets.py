"""The private labels, in the form scoring needs, kept from prying eyes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.queries.containers import (
    CodedLabels,
    as_array,
    in_blocks,
    in_pieces,
    one_column,
    real_array,
    typed_array,
)
from reusable_holdout.queries.predictions import ClassCoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.queries import pieces
    from reusable_holdout.queries.containers import Kind
else:  # of rows that do not fit into memory
    (pieces,) = modules_on_first_use(__package__, "pieces")

__all__ = ["ClassTargets", "HoldsLabels", "RealTargets", "compact", "read_labels", "rows_of"]

_MOST_ROWS = 1 << 31  # 2**32 units per row must sum to less than 2**63


class HoldsLabels:
    """Something that holds labels, and shows only how many.

    Its repr does not depend on the labels' values, and it can be neither pickled nor copied.
    """

    rows: int

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.rows} rows>"

    def __reduce__(self) -> NoReturn:
        raise HandleError(
            f"{type(self).__name__} must stay in its process, for it holds the labels; nothing was written; "
            "pickle the metric and bind it again"
        )


class ClassTargets(HoldsLabels):
    """Class labels as codes of shape (rows,), or (rows, outputs) if each row has several zeros and ones.

    The set of classes and the number of rows of each, over all outputs, are treated as public, the assignment to rows
    is private: refusals quote no label.
    """

    def __init__(self, y: object, classes: object | None = None) -> None:
        labels, kind, places = read_labels(y, outputs=True)
        self.outputs = 1 if labels.ndim == 1 else labels.shape[1]
        if self.outputs > 1:
            _check_marks(labels, kind, classes)
            classes = [0, 1]
        if classes is None:
            self.coder = ClassCoder(labels, kind)
        else:
            named, named_kind = typed_array(as_array(classes, what="classes=").ravel(), what="classes=")
            if named_kind != kind:
                raise InputError(f"classes= must be {kind} like the labels; got {named_kind}; convert them")
            self.coder = ClassCoder(named, named_kind)
        codes = self.coder.encode(labels)
        if codes is None:
            raise InputError("classes= must name every class of the labels; got labels outside it; add them")
        self._hold(codes if places is None else codes[places])

    def _hold(self, codes: NDArray[Any]) -> None:
        codes.flags.writeable = False
        self.codes, self.rows = codes, len(codes)
        self.counts = np.zeros(len(self.coder.classes), np.int64)
        for rows in in_blocks(self.rows):  # NumPy counts in 8 bytes for each row
            self.counts += np.bincount(codes[rows].ravel(), minlength=len(self.counts))

    def part(self, chosen: NDArray[Any]) -> Self:
        """Labels of some rows; the classes stay all that may occur."""
        part = object.__new__(type(self))
        part.coder, part.outputs = self.coder, self.outputs
        part._hold(self.codes[chosen])
        return part

    def check_several(self, metric: str) -> None:
        """Refuse labels of one class alone, for a metric of this name."""
        if np.count_nonzero(self.counts) < 2:
            raise InputError(
                f"for {metric} the labels must hold at least two classes; got 1; use accuracy or a mean loss"
            )

    def check_two(self, metric: str) -> None:
        """Refuse all but two classes, both of them present."""
        if len(self.counts) != 2:
            raise InputError(
                f"for {metric} there must be exactly two classes; got {len(self.counts)}; "
                "choose the positive class, or a metric averaged over classes"
            )
        self.check_several(metric)

    def shown(self) -> NDArray[Any]:
        """Labels as a user's own metric sees them: read-only, in their own dtype."""
        labels: NDArray[Any] = self.coder.classes[self.codes]
        labels.flags.writeable = False
        return labels


class RealTargets(HoldsLabels):
    """Real-valued targets as float64: private, and never quoted; that they are finite is public, and nothing else."""

    def __init__(self, y: object) -> None:
        given = rows_of(compact(y, what="the targets"), what="the targets", outputs=True)
        values = real_array(given, what="the targets").astype(np.float64)
        if not np.isfinite(values).all():
            raise InputError("the targets must be finite; got NaN or infinity; drop or fill those rows")
        self._hold(values)

    def _hold(self, values: NDArray[np.float64]) -> None:
        values.flags.writeable = False
        self.values, self.rows = values, len(values)
        self.outputs = 1 if values.ndim == 1 else values.shape[1]

    def part(self, chosen: NDArray[Any]) -> Self:
        """Targets of some rows."""
        part = object.__new__(type(self))
        part._hold(self.values[chosen])
        return part

    def shown(self) -> NDArray[Any]:
        """Targets as a user's own metric sees them: read-only."""
        return self.values


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


def compact(y: object, *, what: str) -> Any:
    """Return labels in little memory: unchanged if they are in memory, else read once."""
    return pieces.compact(y, what=what) if in_pieces(y) else y


def read_labels(y: object, *, outputs: bool = False) -> tuple[NDArray[Any], Kind, NDArray[Any] | None]:
    """Return labels, their kind, and each row's place among them, or None if each row has its own."""
    read = compact(y, what="the labels")
    coded = read if isinstance(read, CodedLabels) else None
    labels = rows_of(read if coded is None else coded.values, outputs=outputs)
    return *typed_array(labels, what="the labels"), None if coded is None else coded.codes


def rows_of(y: object, *, what: str = "the labels", outputs: bool = False) -> NDArray[Any]:
    """One column as an array of shape (rows,), or several as one of shape (rows, outputs); of any dtype."""
    array = one_column(as_array(y, what=what))
    if array.ndim not in ({1, 2} if outputs else {1}) or array.shape[1:] == (0,):
        shape = "(rows,) or (rows, outputs)" if outputs else "(rows,)"
        raise InputError(
            f"{what} must have shape {shape}; got {array.shape}; pass one column; rows come first, labels second"
        )
    if not 0 < len(array) < _MOST_ROWS:
        raise InputError(f"{what} must be at least 1 and fewer than 2**31; got {len(array)}; pass others")
    return array
