"""The form that a submission must have, the error if it does not, and predictions packed as bytes."""

from __future__ import annotations

import csv
import hashlib
import io
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Response
from reusable_holdout.metrics.predictions import ClassCoder, Predictions
from reusable_holdout_leaderboard.rules import Class

__all__ = [
    "MAX_BYTES",
    "Expected",
    "SubmissionError",
    "differing_rows",
    "packed_codes",
    "packed_fresh",
    "shown",
    "table_of_csv",
    "unpacked_fresh",
]

MAX_BYTES = 16 << 20
_SAMPLE_BYTES = 100_000
_LONGEST_SHOWN = 40
_FAST = 1


class SubmissionError(InputError):
    """The submission does not fit; nothing was asked and nothing was charged.

    Attributes
    ----------
    problems : list of str
        One sentence for each kind of problem, with a few examples.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"{'; '.join(problems)}; nothing was asked and nothing was charged")
        self.problems = list(problems)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The form that a competition's submissions must have. It is public.

    Attributes
    ----------
    ids : tuple of str or None
        Ids of the rows, in the order of the predictions. None if the rows have no ids.
    rows : int
        Number of rows.
    id_column : str or None
        Name of the column of ids. None if the rows have no ids.
    columns : tuple of str
        Names of the prediction columns: a single one, or for probabilities one for each class, in the order of
        `classes`.
    response : {"labels", "probabilities", "scores", "values"}
        Kind of predictions that the metric needs.
    classes : tuple of int or str, or None
        All classes, sorted. None if the labels are real values.
    max_bytes : int
        Largest size of a file.
    """

    ids: tuple[str, ...] | None
    rows: int
    id_column: str | None
    columns: tuple[str, ...]
    response: Response
    classes: tuple[Class, ...] | None = None
    max_bytes: int = MAX_BYTES

    @cached_property
    def ordered(self) -> Self:
        """Form for files without a column of ids, whose rows have the order of :attr:`ids`."""
        return replace(self, ids=None, id_column=None)

    @cached_property
    def id_texts(self) -> pa.StringArray:
        """Ids of the rows, as an Arrow array."""
        return pa.array(self.ids or (), pa.string())

    def canonical(self, predictions: Any) -> NDArray[Any]:
        """Return predictions in canonical form: indices of classes, or float64.

        Predictions that are equal for the guard have equal bytes in this form.

        Raises
        ------
        SubmissionError
            If the predictions do not fit.
        """
        try:
            return self._predictions.prepare(predictions)
        except InputError as error:
            raise SubmissionError([str(error)]) from None

    def decoded(self, canonical: NDArray[Any]) -> NDArray[Any]:
        """Return predictions in the form that a guard takes: the inverse of :meth:`canonical`."""
        if self.response != "labels":
            return canonical
        labels: NDArray[Any] = np.array(self.classes)[canonical]
        return labels

    def digest(self, canonical: NDArray[Any]) -> bytes:
        """Return the SHA-256 of predictions in canonical form, 32 bytes."""
        about = f"{canonical.dtype.str}{canonical.shape}".encode()
        return hashlib.sha256(about + np.ascontiguousarray(canonical).tobytes()).digest()

    def header(self) -> list[str]:
        """Return the names of the columns that a file must have."""
        return [*([] if self.id_column is None else [self.id_column]), *self.columns]

    def sample(self, *, after: int = 0) -> bytes:
        """Return one page of a sample file, a CSV file that has the right form and predicts the same for all rows.

        Parameters
        ----------
        after : int
            Number of rows before the page. A page has :attr:`sample_rows` rows.
        """
        rows = range(after, min(self.rows, after + self.sample_rows))
        ids = [[]] * len(rows) if self.ids is None else [[one] for one in self.ids[rows.start : rows.stop]]
        return table_of_csv([self.header(), *([*one, *self._same] for one in ids)])

    @cached_property
    def sample_rows(self) -> int:
        """Number of rows on one page of the sample file."""
        longest = max(self.ids, key=lambda one: len(one.encode())) if self.ids else ""
        row = table_of_csv([[longest, *self._same] if self.ids else self._same])
        return max(1, (_SAMPLE_BYTES - len(table_of_csv([self.header()]))) // (len(row) + 2))

    @property
    def _same(self) -> list[Any]:
        if self.response == "labels" and self.classes:
            return [self.classes[0]]
        if len(self.columns) > 1:
            return [1.0 / len(self.columns)] * len(self.columns)
        return [0.5] if self.response == "probabilities" else [0]

    @cached_property
    def _predictions(self) -> Predictions:
        coder = None
        if self.classes is not None:
            kind = "text" if isinstance(self.classes[0], str) else "numbers"
            coder = ClassCoder(np.array(self.classes), kind)  # type: ignore[arg-type]
        return Predictions(self.response, rows=self.rows, coder=coder)


def table_of_csv(rows: Iterable[Iterable[Any]]) -> bytes:
    """Return rows of cells as a CSV file in UTF-8."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def shown(value: object) -> str:
    """Return a value from a file as it is quoted in a message: shortened, and on one line."""
    text = repr(value if not isinstance(value, (str, bytes)) else value[: _LONGEST_SHOWN + 1])
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


# ---- predictions as bytes


def packed_fresh(canonical: NDArray[Any]) -> bytes:
    """Pack canonical predictions for the fresh rows as compressed bytes."""
    buffer = io.BytesIO()
    np.save(buffer, canonical, allow_pickle=False)
    return zlib.compress(buffer.getvalue(), _FAST)


def unpacked_fresh(content: bytes) -> NDArray[Any]:
    """Return the canonical predictions that :func:`packed_fresh` packed."""
    canonical: NDArray[Any] = np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False)
    return canonical


def packed_codes(codes: NDArray[Any], classes: int) -> bytes:
    """Pack predicted classes as bytes, so that :func:`differing_rows` can compare two submissions quickly.

    A row takes one bit if there are two classes, otherwise one to four bytes.

    Parameters
    ----------
    codes : numpy.ndarray of int64 and shape (rows,)
        Index of the predicted class of each row.
    classes : int
        Number of classes.
    """
    head = struct.pack("<II", classes, len(codes))
    if classes == 2:
        return head + np.packbits(codes.astype(bool)).tobytes()
    return head + codes.astype(_width(classes)).tobytes()


def differing_rows(first: bytes, second: bytes) -> int | None:
    """Return the number of rows on which two packed submissions differ.

    Return None if their numbers of rows or classes differ.
    """
    if first[:8] != second[:8] or len(first) != len(second):
        return None
    classes, _ = struct.unpack("<II", first[:8])
    width = np.uint8 if classes == 2 else _width(classes)
    one, other = (np.frombuffer(content, width, offset=8) for content in (first, second))
    if classes == 2:
        return int(np.bitwise_count(one ^ other).sum())
    return int(np.count_nonzero(one != other))


def _width(classes: int) -> Any:
    return np.uint8 if classes <= 1 << 8 else np.uint16 if classes <= 1 << 16 else np.uint32
