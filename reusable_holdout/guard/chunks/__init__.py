"""Holdouts too large for memory: Parquet files and Dask collections, read and predicted chunk by chunk."""
