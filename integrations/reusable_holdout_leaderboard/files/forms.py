"""What a submission must hold, all of it public, and the error of one that does not fit."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError, of_extra
from reusable_holdout.metrics import Response
from reusable_holdout.metrics.predictions import ClassCoder, Predictions
from reusable_holdout_leaderboard.rules import Class

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MAX_BYTES", "Expected", "Form", "SubmissionError", "is_parquet", "shown"]

MAX_BYTES = 16 << 20
_SAMPLE_BYTES = 100_000
_LONGEST_SHOWN = 40
_SPARE_ROWS = 1_000


class SubmissionError(InputError):
    """The submission does not fit; nothing was asked and nothing was charged.

    Attributes
    ----------
    problems : list of str
        One sentence for each kind, with the first offenders.
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
        """What files are read by: the same facts, as the decoder needs them."""
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
        return _header(self.id_column, self.columns)

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


class Form(NamedTuple):
    """What a file is read by: what :class:`Expected` says, as a process of its own has memory for it.

    Attributes
    ----------
    ids : pyarrow.StringArray or None
    rows : int
    id_column : str or None
    columns : tuple of str
    labels : bool
        Whether predictions are classes; else they are numbers.
    probabilities : bool
    classes : tuple of int or str
        Empty where there are none.
    max_bytes : int
    """

    ids: pa.StringArray | None
    rows: int
    id_column: str | None
    columns: tuple[str, ...]
    labels: bool
    probabilities: bool
    classes: tuple[int | str, ...]
    max_bytes: int

    def header(self) -> list[str]:
        """Columns of a file."""
        return _header(self.id_column, self.columns)

    @property
    def most_rows(self) -> int:
        """Rows that are read at most, so that too many can be told from the wrong ones."""
        return 2 * self.rows + _SPARE_ROWS

    def too_many(self) -> SubmissionError:
        """Error of a file with more."""
        return SubmissionError([f"{self.rows:,} rows are expected; there are more than {self.most_rows:,}"])

    def places(self, header: Sequence[str]) -> list[int]:
        """Where a file's header has the expected columns.

        Raises
        ------
        SubmissionError
            If it has not them and no others.
        """
        wanted, problems = self.header(), []
        missing = [name for name in wanted if name not in header]
        twice = sorted({name for name in header if header.count(name) > 1}) if len(header) < 1_000 else []
        unknown = [name for name in header if name not in wanted]
        for names, what in ((missing, "missing"), (unknown, "unknown"), (twice, "more than once")):
            if names:
                more = ", ..." if len(names) > 5 else ""
                problems.append(f"columns {what}: {', '.join(map(shown, names[:5]))}{more}")
        if problems:
            listed = f"{', '.join(map(shown, wanted[:20]))}{', ...' * (len(wanted) > 20)}"
            raise SubmissionError([*problems, f"the columns must be {listed}"])
        return [header.index(name) for name in wanted]


def _header(id_column: str | None, columns: Sequence[str]) -> list[str]:
    return [*([] if id_column is None else [id_column]), *columns]


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def shown(value: object) -> str:
    """Value of a file in a message: short, and on one line."""
    text = repr(value if not isinstance(value, (str, bytes)) else value[: _LONGEST_SHOWN + 1])
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def is_parquet(content: bytes, filename: str) -> bool:
    """Whether a file is to be read as Parquet."""
    return content.startswith(b"PAR1") or filename.lower().endswith((".parquet", ".pq"))
