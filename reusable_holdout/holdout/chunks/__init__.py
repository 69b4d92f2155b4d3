"""Holdouts too large for memory: Parquet files and Dask collections, read and predicted chunk by chunk."""

from reusable_holdout.holdout.chunks.intake import rows_and_labels
from reusable_holdout.holdout.chunks.parquet import ParquetRows
from reusable_holdout.holdout.chunks.predicting import predicted_by_chunks
from reusable_holdout.holdout.chunks.rows import ChunkedRows

__all__ = ["ChunkedRows", "ParquetRows", "predicted_by_chunks", "rows_and_labels"]
