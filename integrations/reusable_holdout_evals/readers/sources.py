"""What a reader is given to read: one source, or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reusable_holdout.errors import InputError

__all__ = ["named", "sources_of"]


def sources_of(given: object) -> list[Path]:
    """Paths of one or several files.

    Raises
    ------
    InputError
        If there is none, or something else.
    """
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else [given]
    paths = [Path(one) for one in listed if isinstance(one, str | Path)]
    if not listed or len(paths) < len(listed):
        raise InputError(f"what is read must be a path, or a list of paths; got {type(given).__name__}")
    if len({one.absolute() for one in paths}) < len(paths):
        raise InputError(
            "several files are repeats of one another, so each must be named once; one came twice"
        )
    return paths


def named(paths: Sequence[Path]) -> str:
    """Paths for a message."""
    return (
        " and ".join(map(str, paths)) if len(paths) < 3 else f"{paths[0]} and {len(paths) - 1:,} more files"
    )
