"""Columns of strangers' Parquet files, in which a few bytes can stand for gigabytes: read them with limited memory."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reusable_holdout_leaderboard.files.forms import Form, SubmissionError, shown

__all__ = ["read_parquet"]

_BATCH_ROWS = 1 << 14


def read_parquet(content: bytes, form: Form) -> list[Any]:
    """Return the expected columns of a Parquet file.

    Raises
    ------
    SubmissionError
        If it is damaged, has other columns, or states that it is too large.
    MemoryError
        If it is too large and states otherwise.
    """
    try:
        return _columns(content, form)
    except (SubmissionError, MemoryError) as error:
        problem: BaseException = error
    except Exception:  # a reader may raise anything on a damaged file
        problem = SubmissionError(["the Parquet file cannot be read; write it again, or send CSV"])
    raise problem


def _columns(content: bytes, form: Form) -> list[Any]:
    file = pq.ParquetFile(pa.BufferReader(content))
    _check_size(file.metadata, form)
    schema = file.schema_arrow
    places = form.places([name.strip() for name in schema.names])
    nested = [schema.names[place].strip() for place in places if pa.types.is_nested(schema.types[place])]
    if nested:
        raise SubmissionError([f"columns must hold text or numbers; {', '.join(map(shown, nested))} do not"])
    names, batches, rows = [schema.names[place] for place in places], [], 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=names, use_threads=False):
        batch.validate(full=True)  # damaged text would fail later
        batches.append(batch)
        rows += len(batch)
        if rows > form.most_rows:
            raise form.too_many()
    if not batches:
        return []
    return [pa.chunked_array([batch.column(name) for batch in batches]) for name in names]


def _check_size(metadata: Any, form: Form) -> None:
    """Refuse a small file that states it is a large one."""
    if metadata.num_rows > form.most_rows:
        raise form.too_many()
    unpacked = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if unpacked > form.max_bytes:
        raise SubmissionError(
            [
                f"a file may have {form.max_bytes:,} bytes unpacked; this one has {unpacked:,}; leave other columns out"
            ]
        )
