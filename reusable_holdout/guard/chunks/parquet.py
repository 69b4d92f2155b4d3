"""Rows in Parquet files."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from reusable_holdout.deferred import parquet as pq
from reusable_holdout.deferred import pyarrow as pa
from reusable_holdout.deferred import types
from reusable_holdout.errors import InputError, of_extra
from reusable_holdout.guard.chunks import ChunkedRows

_CHUNK_ROWS = 1 << 18


class ParquetRows(ChunkedRows):
    """Rows of Parquet files, in the order of the files: a holdout, its labels, or predictions.

    They are read at most `chunk_rows` at a time, as pandas frames, and never kept. The object holds no data, only the
    paths of the files.

    Parameters
    ----------
    paths : str, Path or sequence of these
        Files, folders or patterns such as ``"holdout/*.parquet"``. A folder or pattern stands for its files sorted by
        name. Workers on other machines must find them under the same paths.
    columns : sequence of str, optional
        Columns to read; by default all except an index that pandas wrote.
    chunk_rows : int
        Most rows that a worker has in memory.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    names : tuple of str
        Columns.

    Raises
    ------
    InputError
        If there are no such files, columns or rows; if the files' columns differ; if a column holds something other
        than numbers, booleans, dates and text; if pyarrow is not installed.

    Notes
    -----
    Columns have the types that ``pandas.read_parquet`` gives them: integers of which some are missing are floats in
    every chunk. The digest of the holdout is that of the equal pandas frame.

    Examples
    --------
    >>> guard = ReusableHoldout(
    ...     ParquetRows("holdout/*.parquet"), "label", queries=1_000, tolerance=0.01
    ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        columns: Sequence[str] | None = None,
        *,
        chunk_rows: int = _CHUNK_ROWS,
    ) -> None:
        if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int) or chunk_rows < 1:
            raise InputError(f"chunk_rows must be a whole number of rows, 1 or more; got {chunk_rows!r}")
        if isinstance(columns, str) or (columns is not None and not columns):
            raise InputError(f"columns must be a list of names; got {columns!r}; leave it out for all")
        self._files, self._chunk_rows = [_File(path) for path in _found(paths)], chunk_rows
        self.names = tuple(_columns(self._files[0].schema) if columns is None else columns)
        self._schema = _common_schema(self._files, self.names)
        self.shape = (sum(sum(file.groups) for file in self._files), len(self.names))
        if not self.shape[0]:
            raise InputError("Parquet files must hold rows; these hold none; name others")

    def __reduce__(self) -> tuple[Any, ...]:
        paths = [str(file.path) for file in self._files]
        return partial(type(self), chunk_rows=self._chunk_rows), (paths, self.names)

    def select(self, names: Sequence[str]) -> Self:
        """Return the rows with these columns only; nothing is read."""
        chosen = object.__new__(type(self))
        chosen._files, chosen._chunk_rows = self._files, self._chunk_rows
        chosen.names, chosen.shape = tuple(names), (self.shape[0], len(names))
        chosen._schema = pa.schema([self._schema.field(name) for name in names])
        return chosen

    def parts(self) -> list[ParquetPart]:
        """Return the row groups; small ones of a file are joined."""
        return [
            ParquetPart(file.path, file.stamp, numbers, self._schema, self._chunk_rows)
            for file in self._files
            for numbers in _together(file.groups, self._chunk_rows)
        ]


@dataclass(frozen=True)
class ParquetPart:
    """Some row groups of a file."""

    path: Path
    stamp: tuple[int, int]
    groups: list[int]
    schema: pa.Schema
    chunk_rows: int

    def check(self) -> None:
        """Refuse a file that is gone or was written again."""
        if _stamp(self.path) != self.stamp:
            raise InputError(
                f"{self.path} must stay as it was when the guard was made; it is missing or changed; restore it"
            )

    def chunks(self) -> Iterator[Any]:
        """Read the row groups as pandas frames."""
        self.check()
        names, unreadable = self.schema.names, (OSError, ValueError, pa.ArrowException)
        with suppress(*unreadable), pq.ParquetFile(self.path) as file:  # their words may quote a value
            for batch in file.iter_batches(
                self.chunk_rows, row_groups=self.groups, columns=names, use_threads=False
            ):
                table = pa.Table.from_batches([batch]).select(names).cast(self.schema)
                yield table.to_pandas(ignore_metadata=True)
            return
        raise InputError(f"{self.path} must be a Parquet file that can be read; it is damaged; restore it")


class _File:
    """The facts in a Parquet file's footer: the rows of each group, and the columns with their types."""

    def __init__(self, path: Path) -> None:
        with of_extra("large", "a Parquet file"):
            import pyarrow.parquet  # noqa: F401, PLC0415
        self.path, self.stamp = path, _stamp(path)
        try:
            about, self.schema = pq.read_metadata(path), pq.read_schema(path)
        except (OSError, ValueError, pa.ArrowException):
            raise InputError(
                f"{path} must be a Parquet file that can be read; it is not; name another"
            ) from None
        self.groups = [about.row_group(number).num_rows for number in range(about.num_row_groups)]


def _found(paths: object) -> list[Path]:
    """Return the files that paths, folders and patterns stand for."""
    files: list[Path] = []
    for one in paths if isinstance(paths, Iterable) and not isinstance(paths, str | bytes) else [paths]:
        if not isinstance(one, str | Path):
            raise InputError(f"paths must be text or Paths; got {type(one).__name__}; name the Parquet files")
        path = Path(one)
        named = path.glob("*.parquet") if path.is_dir() else map(Path, glob.glob(str(one)))  # noqa: PTH207 - may be absolute
        found = [path] if path.is_file() else sorted(named)
        if not found:
            raise InputError(f"there must be Parquet files at {one}; there are none; name others")
        files += [file.absolute() for file in found]
    if not files:
        raise InputError("there must be at least one Parquet file; none was named; name one")
    return files


def _together(groups: Sequence[int], chunk_rows: int) -> list[list[int]]:
    """Return runs of consecutive row groups: a run has about `chunk_rows` rows, or one row group."""
    ends = list(itertools.accumulate(groups))
    runs = itertools.groupby(range(len(groups)), key=lambda number: (ends[number] - 1) // chunk_rows)
    return [kept for _, run in runs if (kept := [number for number in run if groups[number]])]


def _columns(schema: pa.Schema) -> list[str]:
    """Return the names of the columns, without an index that pandas wrote."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index]


def _common_schema(files: Sequence[_File], names: Sequence[str]) -> pa.Schema:
    """Return the types of the columns; they must be supported, and the same in all files."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - optional, and here already

    data = ds.dataset([str(file.path) for file in files])
    fields = []
    for name in names:
        for file in files:
            count = file.schema.names.count(name)
            if count != 1:
                raise InputError(f"{file.path} must have one column {name!r}; it has {count}; fix it")
        kind, *others = {file.schema.field(name).type for file in files}
        if others:
            raise InputError(
                f"column {name!r} must have one type in all files; got {kind} and {others[0]}; write all with one type"
            )
        whole = types.is_integer(kind) or types.is_boolean(kind)
        missing = whole and data.count_rows(filter=ds.field(name).is_null()) > 0
        text = types.is_string(kind) or types.is_large_string(kind)
        taken = text or whole or types.is_floating(kind) or types.is_timestamp(kind)
        if not taken or (missing and types.is_boolean(kind)):
            raise InputError(
                f"column {name!r} must hold numbers, dates or text, or booleans with none missing; got {kind}; "
                "convert it to one of these; categories become text or numbers"
            )
        fields.append(pa.field(name, pa.float64() if missing else kind))
    return pa.schema(fields)


def _stamp(path: Path) -> tuple[int, int]:
    """Return the size and modification time of a file, which change when it does."""
    try:
        status = path.stat()
    except OSError:
        return (-1, -1)
    return status.st_size, status.st_mtime_ns
