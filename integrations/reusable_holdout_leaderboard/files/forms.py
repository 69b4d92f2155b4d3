"""The public form of a submission, the error of one that does not fit, and predictions as bytes."""

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
        One sentence for each kind of problem, with the first examples.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"{'; '.join(problems)}; nothing was asked and nothing was charged")
        self.problems = list(problems)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Form of a competition's submissions.

    Attributes
    ----------
    ids : tuple of str or None
        Ids of the rows, in the order of predictions; None if rows have no ids.
    rows : int
    id_column : str or None
    columns : tuple of str
        One column, or for probabilities one for each class, in the order of `classes`.
    response : {"labels", "probabilities", "scores", "values"}
        Kind of predictions that the metric needs.
    classes : tuple of int or str, or None
        Sorted; None for real values.
    max_bytes : int
        Largest file.
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
        """Form without ids, for files whose rows have the order of :attr:`ids`."""
        return replace(self, ids=None, id_column=None)

    @cached_property
    def id_texts(self) -> pa.StringArray:
        """Ids as a column."""
        return pa.array(self.ids or (), pa.string())

    def canonical(self, predictions: Any) -> NDArray[Any]:
        """Return predictions as the guard compares them: codes of classes, or float64; equal ones have equal bytes.

        Raises
        ------
        SubmissionError
            If they do not fit.
        """
        try:
            return self._predictions.prepare(predictions)
        except InputError as error:
            raise SubmissionError([str(error)]) from None

    def decoded(self, canonical: NDArray[Any]) -> NDArray[Any]:
        """Return predictions as a guard takes them, from their canonical form."""
        if self.response != "labels":
            return canonical
        labels: NDArray[Any] = np.array(self.classes)[canonical]
        return labels

    def digest(self, canonical: NDArray[Any]) -> bytes:
        """Return the SHA-256 of predictions in canonical form, 32 bytes."""
        about = f"{canonical.dtype.str}{canonical.shape}".encode()
        return hashlib.sha256(about + np.ascontiguousarray(canonical).tobytes()).digest()

    def header(self) -> list[str]:
        """Return the columns of a file."""
        return [*([] if self.id_column is None else [self.id_column]), *self.columns]

    def sample(self, *, after: int = 0) -> bytes:
        """Return one page of a CSV file that fits; it predicts the same for all rows.

        Parameters
        ----------
        after : int
            Number of rows before the page; the next page begins :attr:`sample_rows` later.
        """
        rows = range(after, min(self.rows, after + self.sample_rows))
        ids = [[]] * len(rows) if self.ids is None else [[one] for one in self.ids[rows.start : rows.stop]]
        return table_of_csv([self.header(), *([*one, *self._same] for one in ids)])

    @cached_property
    def sample_rows(self) -> int:
        """Number of rows on a page of the sample."""
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
    """Return rows as CSV in UTF-8."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def shown(value: object) -> str:
    """Return a value of a file for a message: short, and on one line."""
    text = repr(value if not isinstance(value, (str, bytes)) else value[: _LONGEST_SHOWN + 1])
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


# ---- predictions as bytes


def packed_fresh(canonical: NDArray[Any]) -> bytes:
    """Pack predictions for the fresh rows."""
    buffer = io.BytesIO()
    np.save(buffer, canonical, allow_pickle=False)
    return zlib.compress(buffer.getvalue(), _FAST)


def unpacked_fresh(content: bytes) -> NDArray[Any]:
    """Unpack what :func:`packed_fresh` packed."""
    canonical: NDArray[Any] = np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False)
    return canonical


def packed_codes(codes: NDArray[Any], classes: int) -> bytes:
    """Pack codes of classes so that two files can be compared: one bit for each row, or one to four bytes.

    Parameters
    ----------
    codes : numpy.ndarray of int64 and shape (rows,)
    classes : int
    """
    head = struct.pack("<II", classes, len(codes))
    if classes == 2:
        return head + np.packbits(codes.astype(bool)).tobytes()
    return head + codes.astype(_width(classes)).tobytes()


def differing_rows(first: bytes, second: bytes) -> int | None:
    """Count the rows on which two packed files differ; None if they have other rows or classes."""
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
