"""Bundles of competition platforms: a folder with one table, and what a submission says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reusable_holdout_leaderboard.files.forms import SubmissionError

__all__ = ["ABOUT", "only_table", "read_about", "read_content"]

ABOUT = "about.json"
_TABLES = {".csv", ".parquet", ".pq"}
_MOST_ABOUT_BYTES = 65_536


def only_table(folder: Path) -> Path | None:
    """The one table in a folder and those within; links are none, for they could lead to the labels.

    Raises
    ------
    SubmissionError
        If there are several.
    """
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in _TABLES
        and "__MACOSX" not in path.parts
        and not path.name.startswith(".")
        and path.is_file()
        and path.resolve() == folder.resolve() / path.relative_to(folder)
    ]
    if len(found) > 1:
        names = ", ".join(repr(path.name) for path in found[:5])
        raise SubmissionError([f"one CSV or Parquet file is expected; {len(found):,} came: {names}"])
    return found[0] if found else None


def read_about(folder: Path) -> dict[str, Any]:
    """What a submission says of itself: perhaps `team`, which is a label, and the score it claims as `claimed`.

    Raises
    ------
    SubmissionError
        If it says something else.
    """
    path = folder / ABOUT
    if path.is_symlink() or not path.is_file():
        return {}
    problem = f'{ABOUT} must be like {{"team": "Blue", "claimed": 0.83}}, both optional; it is something else'
    try:
        given = json.loads(read_content(path, _MOST_ABOUT_BYTES))
    except (ValueError, RecursionError):
        raise SubmissionError([problem]) from None
    strange = not isinstance(given, dict) or set(given) - {"team", "claimed"}
    if strange or not isinstance(given.get("team", ""), str):
        raise SubmissionError([problem])
    return dict(given)


def read_content(path: Path, most: int) -> bytes:
    """Content of a file that is not too large.

    Raises
    ------
    SubmissionError
        If it is, or cannot be read.
    """
    try:
        size = path.stat().st_size
        if size <= most:
            return path.read_bytes()
    except OSError:
        raise SubmissionError([f"the file {path.name!r} cannot be read"]) from None
    raise SubmissionError([f"the file {path.name!r} must have at most {most:,} bytes; it has {size:,}"])
