"""What is public of a submission's form, and the error of one that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

__all__ = ["Form", "SubmissionError", "is_parquet", "shown"]

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


class Form(NamedTuple):
    """What a file is read by, in the little memory that a process of its own has for it.

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
        return [*([] if self.id_column is None else [self.id_column]), *self.columns]

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


def shown(value: object) -> str:
    """Value of a file in a message: short, and on one line."""
    text = repr(value if not isinstance(value, (str, bytes)) else value[: _LONGEST_SHOWN + 1])
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def is_parquet(content: bytes, filename: str) -> bool:
    """Whether a file is to be read as Parquet."""
    return content.startswith(b"PAR1") or filename.lower().endswith((".parquet", ".pq"))
