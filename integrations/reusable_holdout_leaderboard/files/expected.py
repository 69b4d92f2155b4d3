"""What a submission must hold: all of it public."""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError, of_extra
from reusable_holdout.queries.classes import ClassCoder
from reusable_holdout.queries.predictions import Predictions
from reusable_holdout_leaderboard.files.forms import Form, SubmissionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from reusable_holdout.queries import Response
    from reusable_holdout_leaderboard.rules import Class

__all__ = ["MAX_BYTES", "Expected"]

MAX_BYTES = 16 << 20
_SAMPLE_BYTES = 100_000


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Form of a competition's submissions.

    Attributes
    ----------
    ids : tuple of str or None
        Of the rows, in the order of predictions; None if rows have no ids.
    rows : int
    id_column : str or None
    columns : tuple of str
        One, or for probabilities one for each class, in the order of `classes`.
    response : {"labels", "probabilities", "scores", "values"}
        What the metric needs.
    classes : tuple of int or str, or None
        Sorted; None for scores of real values.
    max_bytes : int
        Largest file, and largest size that a Parquet file may say it has unpacked.
    """

    ids: tuple[str, ...] | None
    rows: int
    id_column: str | None
    columns: tuple[str, ...]
    response: Response
    classes: tuple[Class, ...] | None = None
    max_bytes: int = MAX_BYTES

    @cached_property
    def form(self) -> Form:
        """The same, as files are read by it."""
        with of_extra("leaderboard", "a submitted file"):
            import pyarrow as pa  # noqa: PLC0415 - clients send arrays, and need it not

        return Form(
            ids=None if self.ids is None else pa.array(self.ids, pa.string()),
            rows=self.rows,
            id_column=self.id_column,
            columns=self.columns,
            labels=self.response == "labels",
            probabilities=self.response == "probabilities",
            classes=self.classes or (),
            max_bytes=self.max_bytes,
        )

    def canonical(self, predictions: Any) -> NDArray[Any]:
        """Predictions as the guard sees them: codes of classes, or float64; equal ones have equal bytes.

        Raises
        ------
        SubmissionError
            If they do not fit.
        """
        try:
            return self._predictions.prepare(predictions)
        except InputError as error:
            raise SubmissionError([str(error)]) from None

    def canonical_many(self, predictions: Any) -> NDArray[Any]:
        """Several predictions as the guard sees them, the first axis theirs.

        Raises
        ------
        SubmissionError
            If one of them does not fit.
        """
        try:
            return self._predictions.prepare_many(predictions)
        except InputError as error:
            raise SubmissionError([str(error)]) from None

    def decoded(self, canonical: NDArray[Any]) -> NDArray[Any]:
        """Predictions that the guard takes, from their canonical form."""
        if self.response != "labels":
            return canonical
        labels: NDArray[Any] = np.array(self.classes)[canonical]
        return labels

    def digest(self, canonical: NDArray[Any]) -> bytes:
        """SHA-256 of predictions in canonical form, 32 bytes."""
        about = f"{canonical.dtype.str}{canonical.shape}".encode()
        return hashlib.sha256(about + np.ascontiguousarray(canonical).tobytes()).digest()

    def header(self) -> list[str]:
        """Columns of a file."""
        return [*([] if self.id_column is None else [self.id_column]), *self.columns]

    def sample(self, *, after: int = 0) -> bytes:
        """A file that fits, as CSV: it predicts the same for all rows; of many rows, those of one page.

        Parameters
        ----------
        after : int
            Rows to leave out at the beginning; the next page is after :attr:`sample_rows` more.
        """
        rows = range(after, min(self.rows, after + self.sample_rows))
        ids = None if self.ids is None else self.ids[rows.start : rows.stop]
        return _csv(
            [
                self.header(),
                *([*self._same] if ids is None else [ids[k], *self._same] for k in range(len(rows))),
            ]
        )

    @cached_property
    def sample_rows(self) -> int:
        """Rows that a page of the sample has."""
        longest = max(self.ids, key=lambda one: len(one.encode())) if self.ids else ""
        row = _csv([[longest, *self._same] if self.ids else self._same])
        return max(1, (_SAMPLE_BYTES - len(_csv([self.header()]))) // (len(row) + 2))

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


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
