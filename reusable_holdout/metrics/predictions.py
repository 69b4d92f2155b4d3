"""Checks of predictions, and their conversion to one canonical form: labels as small integer codes, numbers as floats.

The canonical bytes identify a question, so equal predictions must give equal bytes in every container and dtype. This
module uses nothing about the holdout's labels but their number and the set of classes, so messages may quote
predictions.
"""

from __future__ import annotations

import hashlib
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import containers
from reusable_holdout.metrics.containers import BLOCK, Kind, in_blocks, pieces_of, typed_array

_WHAT = "predictions"
_SLACK = 1e-6  # accepted error of a probability, or of a row's sum; float32 models make such errors
_HASH_BYTES = 8
PRIVATE: Final = "private"
"""The value of ``classes=`` for a private set of labels.

A set of labels is public if its owner declares it, or if it is small compared with the number of rows. For other
labels, such as the right answers to questions, a list of them would reveal every answer. So a prediction is compared
only with the label of its own row.
"""

ROWS_OF_A_CLASS = 50  # the average class of a public set has at least this many rows


def is_public(labels: int, rows: int, kind: Kind) -> bool:
    """Return True if a set of `labels` distinct labels counts as public without being declared.

    It does if each label has at least 50 rows on average. A set of one or two numbers always does, because it only
    encodes yes and no.

    >>> is_public(10, 500, "text"), is_public(11, 500, "text"), is_public(2, 20, "numbers")
    (True, False, True)
    """
    return labels * ROWS_OF_A_CLASS <= rows or (kind == "numbers" and labels <= 2)


# ---- labels as codes


class ClassCoder:
    """A public set of classes, which encodes each label as its position among the sorted classes.

    Equal labels get equal codes, whatever their container. Codes have the smallest unsigned dtype that can hold the
    number of classes. The errors of the constructor quote no class.
    """

    def __init__(self, classes: NDArray[Any], kind: Kind) -> None:
        containers.check_class_labels(classes)
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

    def encode(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        """Return the codes of labels, or None if one of them is not a class.

        The labels have this coder's kind and native byte order.
        """
        if len(labels) > BLOCK:
            codes = np.empty(labels.shape, self.dtype)
            for rows in in_blocks(len(labels)):
                block = self.encode(labels[rows])
                if block is None:
                    return None
                codes[rows] = block
            return codes
        whole = labels if labels.dtype.kind in "biU" else containers.whole_numbers(labels)
        if whole is not None and self._span == len(self.classes) - 1:
            return self._shifted(whole)
        return None if whole is None else self._searched(whole)

    def predicted(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the codes of predicted labels; if one is not a class, raise an InputError that quotes it."""
        labels, kind = array, self.kind
        if array.dtype.kind not in "bi" or kind == "text" or not array.dtype.isnative:
            labels, kind = typed_array(array, what=_WHAT)
        if kind != self.kind:
            raise InputError(
                f"predicted labels must be {self.kind} like the classes; got {kind}; convert them"
            )
        codes = self.encode(labels)
        if codes is None:
            raise InputError(self._about_strangers(labels))
        return codes

    def _shifted(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        # As an unsigned number a label below the lowest class is a very large one, so one comparison checks both ends.
        # The labels' own dtype is enough if its sign bit lies beyond the range.
        if self._low or self._span >= 1 << (8 * labels.dtype.itemsize - 1):
            labels = labels.astype(np.int64) - np.int64(self._low)
        offsets = labels.view(f"u{labels.dtype.itemsize}")
        return None if offsets.max() > self._span else offsets.astype(self.dtype)

    def _searched(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        places = np.minimum(np.searchsorted(self._keys, labels), len(self._keys) - 1)
        return places.astype(self.dtype) if np.array_equal(self._keys[places], labels) else None

    def _about_strangers(self, labels: NDArray[Any]) -> str:
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            return "predicted labels must be finite; got NaN or infinity; predict a class for every row"
        stranger = labels[~np.isin(labels, self.classes)][0]
        shown = ", ".join(map(str, self.classes[:10])) + (", ..." if len(self.classes) > 10 else "")
        advice = "if it may occur, name it in classes= when the guard is made"
        if labels.dtype.kind == "f" and 0.0 < stranger < 1.0:
            advice = "pass labels, as predict gives them, not probabilities"
        return f"predicted labels must be among the classes {shown}; got {stranger}; {advice}"


def _distinct(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted distinct labels, found block by block, because sorting all rows at once would copy them."""
    found = labels[:0]
    for rows in in_blocks(len(labels)):
        found = np.unique(np.concatenate([found, np.unique(labels[rows])]))
    return found


class AnswerCoder:
    """An encoder for labels whose set is private: equal answers get equal codes, and no list of labels is kept."""

    classes = None

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def predicted(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the codes of predicted labels."""
        return compared(array, self.kind, what="predicted labels")


def compared(answers: NDArray[Any], kind: Kind, *, what: str) -> NDArray[Any]:
    """Convert answers to numbers, equal for equal answers: text to a 64-bit hash, whole numbers to themselves.

    Hashes that a client computed already (dtype V8) are taken as they are. Answers of a kind other than `kind`, and
    numbers that are not whole, are refused with an InputError that quotes none of them.
    """
    if kind == "text" and answers.dtype == np.dtype(f"V{_HASH_BYTES}"):
        return np.frombuffer(answers.tobytes(), np.int64).reshape(answers.shape)
    labels, found = typed_array(answers, what=what)
    if found != kind:
        raise InputError(f"{what} must be {kind} like the labels; got {found}; convert them")
    if kind == "numbers":
        whole = containers.whole_numbers(labels)
        if whole is None:
            raise InputError(
                f"{what} must be whole numbers of 64 bits like the labels; got others; pass labels, as predict gives "
                "them"
            )
        return whole.astype(np.int64)
    known: dict[str, int] = {}
    numbers = np.empty(labels.shape, np.int64)
    for rows in in_blocks(len(labels)):
        block = labels[rows].tolist()
        known |= {one: _hashed(one) for one in set(block) - known.keys()}
        numbers[rows] = [known[one] for one in block]
    return numbers


def _hashed(text: str) -> int:
    content = normal_form(text).encode("utf-8", "surrogatepass")
    hashed = hashlib.blake2b(content, digest_size=_HASH_BYTES, person=b"answer")
    return int.from_bytes(hashed.digest(), "little", signed=True)


def normal_form(text: str) -> str:
    """Return text in the form in which answers are compared: NFKC, case folded, with single spaces, stripped.

    >>> normal_form("  New  York ") == normal_form("new york")
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


# ---- forms


class Form(ABC):
    """A checker of predictions, which converts them to one canonical form."""

    rows: int
    indexes: tuple[Any, ...] = ()
    """Pandas indexes of the holdout's rows, in row order; they are public."""
    answers: Kind | None = None
    """Kind of the labels if their set is private, else None."""

    @abstractmethod
    def prepare(self, predictions: object) -> NDArray[Any]:
        """Return one query in canonical form; see :meth:`BoundMetric.prepare`."""

    def prepare_many(self, queries: Any) -> NDArray[Any]:
        """Return several queries in canonical form; see :meth:`BoundMetric.prepare_many`."""
        prepared = None
        for index, query in enumerate(queries):
            try:
                one = self.prepare(query)
            except InputError as error:
                raise InputError(f"predictions[{index}]: {error}{self._hint(queries)}") from None
            if prepared is None:  # stacking at the end would need the memory twice
                prepared = np.empty((len(queries), *one.shape), one.dtype)
            prepared[index] = one
        if prepared is None:
            raise InputError("predictions must hold at least one query; got none; pass one array per query")
        return prepared

    def _hint(self, queries: Sequence[Any] | NDArray[Any]) -> str:
        """Return advice for a list that seems to have one entry for each row instead of one for each model."""
        first = queries[0]
        size = len(first) if isinstance(first, list | tuple) else getattr(first, "size", self.rows)
        if len(queries) != self.rows or size == self.rows:
            return ""
        return (
            "; a list holds one entry for each model: transpose it, or pass an array if all are of one model"
        )


class Predictions(Form):
    """The form of predictions for a metric's response; it holds no labels.

    For labels of a private set pass their kind as `answers`, and no coder.
    """

    def __init__(
        self,
        response: str,
        *,
        rows: int,
        coder: ClassCoder | AnswerCoder | None,
        outputs: int = 1,
        answers: Kind | None = None,
    ) -> None:
        coder = coder if answers is None else AnswerCoder(answers)
        self.rows = rows
        self._response, self._coder, self._outputs = response, coder, outputs
        self._shapes: list[tuple[int, ...]] = [(rows,) if outputs == 1 else (rows, outputs)]
        self._convert: Callable[[NDArray[Any]], NDArray[Any]] = _finite
        if isinstance(coder, AnswerCoder):
            self.answers = coder.kind
        if response == "labels" and coder is not None:
            self._convert = coder.predicted
        elif response == "probabilities" and isinstance(coder, ClassCoder):
            classes = len(coder.classes)
            self._shapes = [(rows,), (rows, 2)] if classes == 2 else [(rows, classes)]
            self._convert = _probabilities

    def prepare(self, predictions: object) -> NDArray[Any]:
        """Return one query in canonical form; see :meth:`BoundMetric.prepare`."""
        array = predictions
        if type(array) is not np.ndarray:  # a plain array has no index, and is in memory
            if containers.in_pieces(predictions):
                found = pieces_of(predictions)
                return self.joined(self.of_rows(len(piece)).prepare(piece) for piece in found if len(piece))
            self._check_order(predictions)
            array = containers.as_array(predictions, what=_WHAT)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.shape not in self._shapes:
            raise InputError(
                f"predictions must have shape {self._shapes[0]}; got {array.shape}; {self._advice(array.shape)}"
            )
        return self._convert(array)

    def _check_order(self, predictions: object) -> None:
        if any(containers.is_reordered(predictions, index) for index in self.indexes):
            raise InputError(
                "predictions must be in the order of the holdout's rows; their index has the same entries as the "
                "holdout's, in another order; pass predictions.loc[X.index], or predictions.to_numpy() if they are in "
                "order already"
            )

    def _advice(self, shape: tuple[int, ...]) -> str:
        """Return advice on what to pass in place of an array with this shape."""
        if shape[1:] in self._shapes:
            return "pass its entries one by one, or all of them as a list to evaluate"
        if shape[::-1] in self._shapes:
            return "transpose it"
        if len(shape) > len(self._shapes[0]) and shape[0] == self.rows:
            entry = "label (predict, not predict_proba)" if self._response == "labels" else "number"
            return f"pass what the model predicts, one {entry} for each row, and not the rows themselves"
        return "predict every holdout row once, in order"

    def of_rows(self, rows: int) -> Self:
        """Return the same form for predictions of `rows` rows, such as one piece of the holdout."""
        return type(self)(self._response, rows=rows, coder=self._coder, outputs=self._outputs)

    def joined(self, parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """Join the canonical forms of consecutive pieces into one query, which must cover all rows of the holdout."""
        found = list(parts)
        rows = sum(map(len, found))
        if rows != self.rows:
            raise InputError(
                f"predictions must have {self.rows} rows; got {rows}; predict every holdout row once, in order"
            )
        return np.concatenate(found)


def _finite(array: NDArray[Any]) -> NDArray[Any]:
    numbers = containers.real_array(array, what=_WHAT)
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
    """Check probabilities, and keep only the last of two columns, so that matrix and vector give the same query."""
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
