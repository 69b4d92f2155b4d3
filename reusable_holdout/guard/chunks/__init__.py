"""Rows that are never in memory together."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from reusable_holdout.guard.chunks.rows import ChunkedRows

__all__ = ["is_chunked"]


def is_chunked(X: object) -> TypeGuard[ChunkedRows]:
    """Whether rows are read chunk by chunk; a process that has none does not read what they are for that."""
    rows = sys.modules.get(f"{__package__}.rows")
    return rows is not None and isinstance(X, rows.ChunkedRows)
