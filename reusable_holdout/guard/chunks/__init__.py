"""Holdouts too large for memory: Parquet files and Dask collections, read and predicted chunk by chunk."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout.guard.chunks.intake import rows_and_labels
    from reusable_holdout.guard.chunks.parquet import ParquetRows
    from reusable_holdout.guard.chunks.predicting import predicted_by_chunks
    from reusable_holdout.guard.chunks.rows import ChunkedRows
else:
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".intake": ["rows_and_labels"],
            ".parquet": ["ParquetRows"],
            ".predicting": ["predicted_by_chunks"],
            ".rows": ["ChunkedRows"],
        },
    )

__all__ = ["ChunkedRows", "ParquetRows", "predicted_by_chunks", "rows_and_labels"]
