"""Holdouts too large for memory: Parquet files and Dask collections, read and predicted chunk by chunk."""

from reusable_holdout.guard.chunks.intake import rows_and_labels
from reusable_holdout.guard.chunks.parquet import ParquetRows
from reusable_holdout.guard.chunks.predicting import predicted_by_chunks
from reusable_holdout.guard.chunks.rows import ChunkedRows

__all__ = ["ChunkedRows", "ParquetRows", "predicted_by_chunks", "rows_and_labels"]
