"""Moved to `samplers.grid`."""

from reusable_holdout.mechanisms.samplers.grid import Grid

__all__ = ["Grid"]
