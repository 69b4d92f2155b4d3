"""Predictions checked and brought into one canonical form: class labels as small integer codes, numbers as floats.

The canonical bytes identify a question, so equal predictions must give equal bytes whatever container or
dtype they came in. Nothing here depends on the labels beyond their number and the set of classes, so messages
may quote predictions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import answers as of_answers
from reusable_holdout.metrics import pieces
from reusable_holdout.metrics.containers import (
    Kind,
    as_array,
    check_class_labels,
    in_blocks,
    in_pieces,
    is_dask,
    is_reordered,
    one_column,
    real_array,
    typed_array,
    whole_numbers,
)

__all__ = [
    "PRIVATE",
    "ClassCoder",
    "Form",
    "Predictions",
    "is_public",
]

_WHAT = "predictions"
_TABLE = 1 << 16  # widest range of integer classes that is looked up in a table
_SLACK = 1e-6  # how far a probability, or a row's sum, may stray; float32 models do
PRIVATE: Final = "private"
"""Stands for a private set of labels where classes would be named.

A set is public if its owner declares it, or it is small beside the rows. Other labels, such as gold answers, would be
told by a list of them: a prediction is compared with the label of its own row alone.
"""

ROWS_OF_A_CLASS = 50  # the average class of a public set has at least so many rows


class ClassCoder:
    """The set of classes, public, and each label's place in it.

    Equal labels get equal bytes whatever holds them: code k is the k-th class in sorted order, in the smallest
    unsigned dtype that also has room for one value more than there are classes. Refusals quote no class.
    """

    def __init__(self, classes: NDArray[Any], kind: Kind) -> None:
        check_class_labels(classes)
        self.classes = _distinct(classes)
        self.kind = kind
        if len(self.classes) < 2:
            raise InputError(
                f"the labels must hold at least two classes; got {len(self.classes)}; "
                "pass classes= to name those that may occur"
            )
        self.classes.flags.writeable = False
        self.dtype = np.min_scalar_type(len(self.classes))
        self._keys = self.classes if kind == "text" else self.classes.astype(np.int64)
        self._low = 0 if kind == "text" else int(self._keys[0])
        self._span = 0 if kind == "text" else int(self._keys[-1]) - self._low
        self._contiguous = self._span == len(self.classes) - 1
        self._table = self._lookup_table()

    def encode(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        """Codes of labels of this coder's kind, in native byte order; None if one is not among the classes."""
        codes = np.empty(labels.shape, self.dtype)
        for rows in in_blocks(len(labels)):
            block = self._encoded(labels[rows])
            if block is None:
                return None
            codes[rows] = block
        return codes

    def _encoded(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        if self.kind == "text":
            return self._searched(labels)
        whole = whole_numbers(labels)
        if whole is None:
            return None
        return self._shifted(whole) if self._contiguous or self._table is not None else self._searched(whole)

    def _lookup_table(self) -> NDArray[Any] | None:
        if self.kind == "text" or self._contiguous or self._span >= _TABLE:
            return None
        table = np.full(self._span + 1, len(self.classes), self.dtype)
        table[self._keys - self._low] = np.arange(len(self.classes))
        return table

    def _shifted(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        # As an unsigned number a label below the lowest class is a very large one, so that one comparison
        # checks both ends; the labels' own dtype will do if its sign bit lies beyond the range.
        if self._low or self._span >= 1 << (8 * labels.dtype.itemsize - 1):
            labels = labels.astype(np.int64) - np.int64(self._low)
        offsets = labels.view(f"u{labels.dtype.itemsize}")
        if offsets.max() > self._span:
            return None
        if self._table is None:
            return offsets.astype(self.dtype)
        codes = self._table[offsets]
        return None if np.any(codes == len(self.classes)) else codes

    def _searched(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        places = np.minimum(np.searchsorted(self._keys, labels), len(self._keys) - 1)
        return places.astype(self.dtype) if np.array_equal(self._keys[places], labels) else None


class Form(ABC):
    """How predictions are checked and brought into one canonical form."""

    rows: int
    indexes: tuple[Any, ...] = ()
    """Pandas indexes of the rows, in their order; public."""
    answers: Kind | None = None
    """Kind of labels whose set is private."""

    @abstractmethod
    def prepare(self, predictions: object) -> NDArray[Any]:
        """One query in canonical form; see :meth:`BoundMetric.prepare`."""

    @abstractmethod
    def _queries(self, predictions: object) -> Sequence[Any] | NDArray[Any]:
        """What is no list, to take the queries from one by one; what cannot be meant so is refused here."""

    def prepare_many(self, predictions: object) -> NDArray[Any]:
        """Several queries in canonical form; see :meth:`BoundMetric.prepare_many`."""
        queries = predictions if isinstance(predictions, list | tuple) else self._queries(predictions)
        prepared = None
        for index, query in enumerate(queries):
            try:
                one = self.prepare(query)
            except InputError as error:
                raise InputError(f"predictions[{index}]: {error}") from None
            if prepared is None:  # stacking in the end would need the memory twice
                prepared = np.empty((len(queries), *one.shape), one.dtype)
            prepared[index] = one
        if prepared is None:
            raise InputError("predictions must hold at least one query; got none; pass one array per query")
        return prepared


class Predictions(Form):
    """The form of the predictions that a metric of this response needs; it knows no label.

    Labels whose set is private have no coder.
    """

    def __init__(
        self,
        response: str,
        *,
        rows: int,
        coder: ClassCoder | None,
        outputs: int = 1,
        answers: Kind | None = None,
    ) -> None:
        self.rows = rows
        self._response, self._coder, self._outputs, self.answers = response, coder, outputs, answers
        self._shapes: list[tuple[int, ...]] = [(rows,) if outputs == 1 else (rows, outputs)]
        self._convert: Callable[[NDArray[Any]], NDArray[Any]] = _finite
        if answers is not None:
            self._convert = partial(of_answers.compared, kind=answers, what="predicted labels")
        elif response == "labels" and coder is not None:
            self._convert = partial(_codes, coder=coder)
        elif response == "probabilities" and coder is not None:
            classes = len(coder.classes)
            self._shapes = [(rows,), (rows, 2)] if classes == 2 else [(rows, classes)]
            self._convert = _probabilities

    def prepare(self, predictions: object) -> NDArray[Any]:
        """One query in canonical form; see :meth:`BoundMetric.prepare`."""
        if in_pieces(predictions):
            found = pieces.pieces_of(predictions)
            return self.joined(self.of_rows(len(piece)).prepare(piece) for piece in found if len(piece))
        self._check_order(predictions)
        array = one_column(as_array(predictions, what=_WHAT))
        if array.shape not in self._shapes:
            raise InputError(
                f"predictions must have shape {self._shapes[0]}; got {array.shape}; {self._advice(array.shape)}"
            )
        return self._convert(array)

    def _check_order(self, predictions: object) -> None:
        if any(is_reordered(predictions, index) for index in self.indexes):
            raise InputError(
                "predictions must be in the order of the holdout's rows; their index holds the labels of the "
                "holdout's in another order; pass predictions.loc[X.index], or predictions.to_numpy() if they are in "
                "order already"
            )

    def _advice(self, shape: tuple[int, ...]) -> str:
        """What to pass in place of an array of another shape."""
        if shape[1:] in self._shapes:
            return "pass its entries one by one, or all of them to evaluate_many"
        if shape[::-1] in self._shapes:
            return "transpose it"
        if len(shape) > len(self._shapes[0]) and shape[0] == self.rows:
            entry = "label (predict, not predict_proba)" if self._response == "labels" else "number"
            return f"pass what the model predicts, one {entry} for each row, and not the rows themselves"
        return "predict every holdout row once, in order"

    def of_rows(self, rows: int) -> Self:
        """Form of the predictions for some of the rows."""
        return type(self)(
            self._response, rows=rows, coder=self._coder, outputs=self._outputs, answers=self.answers
        )

    def joined(self, parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """One query in canonical form from that of consecutive rows, which must be all of the holdout's."""
        whole, start = None, 0
        for part in parts:
            if whole is None:
                whole = np.empty((self.rows, *part.shape[1:]), part.dtype)
            end = start + len(part)
            if end <= self.rows:
                whole[start:end] = part
            start = end
        if whole is None or start != self.rows:
            raise InputError(
                f"predictions must have {self.rows} rows; got {start}; predict every holdout row once, in order"
            )
        return whole

    def _queries(self, predictions: object) -> Sequence[Any] | NDArray[Any]:
        if is_dask(predictions) and getattr(predictions, "ndim", 0) > 1 and hasattr(predictions, "blocks"):
            return [predictions[query] for query in range(len(predictions))]  # type: ignore[arg-type,index]
        array = as_array(predictions, what=_WHAT)
        if array.ndim == 0 or (array.ndim == 1 and array.dtype.kind != "O"):
            hint = "add a leading axis for the queries"
        elif array.ndim == 2 and len(array) == self.rows != array.shape[1] and (self.rows,) in self._shapes:
            hint = "transpose it, so that each query is a row"
        else:
            return array
        expected = ", ".join(["queries", *map(str, self._shapes[0])])
        raise InputError(f"predictions must have shape ({expected}); got {array.shape}; {hint}")


def _distinct(labels: NDArray[Any]) -> NDArray[Any]:
    """Sorted classes; of many rows found block by block, for sorting them all takes their memory again."""
    found = labels[:0]
    for block in _blocks_of(labels):
        found = np.unique(np.concatenate([found, np.unique(block)]))
    return found


def _blocks_of(labels: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (labels[rows] for rows in in_blocks(len(labels)))


def _codes(array: NDArray[Any], *, coder: ClassCoder) -> NDArray[Any]:
    labels, kind = typed_array(array, what=_WHAT)
    if kind != coder.kind:
        raise InputError(f"predicted labels must be {coder.kind} like the classes; got {kind}; convert them")
    codes = coder.encode(labels)
    if codes is None:
        raise InputError(_about_strangers(labels, coder.classes))
    return codes


def _about_strangers(labels: NDArray[Any], classes: NDArray[Any]) -> str:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        return "predicted labels must be finite; got NaN or infinity; predict a class for every row"
    stranger = labels[~np.isin(labels, classes)][0]
    shown = ", ".join(str(one) for one in classes[:10]) + (", ..." if len(classes) > 10 else "")
    advice = "if it may occur, name it in classes= when the guard is made"
    if labels.dtype.kind == "f" and 0.0 < stranger < 1.0:
        advice = "pass labels, as predict gives them, no probabilities"
    return f"predicted labels must be among the classes {shown}; got {stranger}; {advice}"


def _finite(array: NDArray[Any]) -> NDArray[Any]:
    numbers = real_array(array, what=_WHAT)
    out = np.empty(numbers.shape, np.float64)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite and is refused
        for rows in in_blocks(len(numbers)):
            np.add(numbers[rows], 0.0, out=out[rows], casting="same_kind")  # turns -0.0 into 0.0
            if not np.isfinite(out[rows]).all():
                raise InputError(
                    "predictions must be finite; got NaN or infinity; predict a number for every row"
                )
    return out


def _probabilities(array: NDArray[Any]) -> NDArray[Any]:
    """Check probabilities; of a binary matrix keep the last column: matrix and vector are one question."""
    out = _finite(array)
    low, high = out.min(), out.max()
    if low < -_SLACK or high > 1 + _SLACK:
        raise InputError(
            f"probabilities must lie in [0, 1]; got {low if low < -_SLACK else high:.6g}; "
            "pass predict_proba's output, not decision scores"
        )
    if out.ndim == 2:
        sums = out.sum(axis=1)
        worst = sums[np.argmax(np.abs(sums - 1))]
        if abs(worst - 1) > _SLACK:
            raise InputError(
                f"a row's probabilities must sum to 1 within 1e-6; got {worst:.6g}; "
                "pass one column for each class, in sorted order"
            )
        out = np.ascontiguousarray(out[:, 1]) if out.shape[1] == 2 else out
    return out if low >= 0 and high <= 1 else np.clip(out, 0.0, 1.0) + 0.0


def is_public(labels: int, rows: int, kind: Kind) -> bool:
    """Return True if a set of so many distinct labels is public without being declared.

    Two numbers always are, for they encode yes and no.

    >>> is_public(10, 500, "text"), is_public(11, 500, "text"), is_public(2, 20, "numbers")
    (True, False, True)
    """
    return labels * ROWS_OF_A_CLASS <= rows or (kind == "numbers" and labels <= 2)
