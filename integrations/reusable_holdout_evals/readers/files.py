"""Functions that read text, JSON and tables from files of others, with bounds on their size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError, MissingExtraError

__all__ = [
    "JSON_ENDINGS",
    "MOST_BYTES",
    "PARQUET_ENDINGS",
    "dicts_in",
    "file_text",
    "inside",
    "json_lines",
    "named",
    "parsed",
    "read_frame",
    "sources_of",
    "text_of",
]

MOST_BYTES = 1 << 30
"""Greatest size in bytes of a file, or of a file in an archive after it is unpacked."""

JSON_ENDINGS = {".json", ".jsonl", ".ndjson"}
PARQUET_ENDINGS = {".parquet", ".pq"}
_AS_IT_IS: dict[str, Any] = {"compression": None}  # a small packed file could fill the memory
_TEXT: dict[str, Any] = {"dtype": str, "keep_default_na": False, **_AS_IT_IS}


# ---- paths


def sources_of(given: object) -> list[Path]:
    """Return a path, or a sequence of paths, as a list of paths.

    Raises
    ------
    InputError
        If there is no path, a path comes twice, or an entry is not a path.
    """
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else [given]
    paths = [Path(one) for one in listed if isinstance(one, str | Path)]
    if not listed or len(paths) < len(listed):
        raise InputError(f"the source must be a path, or a list of paths; got {type(given).__name__}")
    if len({one.absolute() for one in paths}) < len(paths):
        raise InputError("several files are repeats, so each must be named once; one came twice")
    return paths


def named(paths: Sequence[Path]) -> str:
    """Return paths as text for a message; of three or more, only the first, and how many others."""
    more = f"{paths[0]} and {len(paths) - 1:,} more files"
    return " and ".join(map(str, paths)) if len(paths) < 3 else more


# ---- JSON


def parsed(text: str, where: str) -> Any:
    """Return the value of a JSON text; raise InputError if the text is not JSON, or is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:  # also for a number with thousands of digits
        problem = f"it is broken at character {getattr(error, 'pos', 0):,}"
    raise InputError(f"{where} must be JSON; {problem}; check that the file is complete")


def inside(found: Any, *keys: str) -> Any:
    """Return the value under nested keys of a dict; None if one of the keys is not there.

    >>> inside({"eval": {"config": {"epochs": 2}}}, "eval", "config", "epochs"), inside([], "eval")
    (2, None)
    """
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def dicts_in(found: Any) -> list[dict[str, Any]]:
    """Return the dicts in a list, or among the values of a dict; an empty list for anything else."""
    listed = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return [one for one in listed if isinstance(one, dict)]


# ---- text and JSON


def file_text(path: Path, *, what: str) -> str:
    """Return the text of a file.

    Raises
    ------
    InputError
        If there is no such file, it is too large, or it is not UTF-8.
    """
    problem = ""
    try:
        if not path.is_file():  # reading a pipe might never end
            problem = "there is no such file"
        elif path.stat().st_size > MOST_BYTES:
            problem = f"it has more than {MOST_BYTES >> 30} GiB"
        else:
            return text_of(path.read_bytes(), where=str(path))
    except OSError as error:
        problem = f"it cannot be read ({type(error).__name__})"
    raise InputError(f"{what} must be a file that can be read; {path}: {problem}")


def text_of(content: bytes, *, where: str) -> str:
    """Decode bytes as UTF-8; raise InputError if they are not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    raise InputError(f"{where} must be text in UTF-8; it is not; save it again as UTF-8")


def json_lines(text: str, where: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line of a text; raise InputError if a line is not a JSON object."""
    for number, line in enumerate(text.split("\n"), 1):  # splitlines() would also split inside texts
        if line.strip():
            found = parsed(line, f"line {number:,} of {where}")
            if not isinstance(found, dict):
                raise InputError(f"line {number:,} of {where} must be a JSON object; it is something else")
            yield found


def _json_table(path: Path, *, what: str) -> list[dict[str, Any]]:
    """Return the rows of a JSON file as dicts.

    A file ``.json`` holds a list of objects or of plain values, other files one object in each line.
    """
    text = file_text(path, what=what)
    if path.suffix.lower() != ".json":
        return list(json_lines(text, str(path)))
    rows = parsed(text, str(path))
    kinds = {dict if isinstance(one, dict) else list if isinstance(one, list) else None for one in rows or ()}
    if not isinstance(rows, list) or kinds not in ({dict}, {None}):
        raise InputError(
            f"{what} as JSON must be a list of objects, one for each row, or of plain values; {path} is something else"
        )
    return rows if kinds == {dict} else [{"prediction": one} for one in rows]


# ---- tables


def read_frame(
    path: Path, *, what: str, text: bool = False, id_column: str | None = None, quoted: bool = True
) -> pd.DataFrame:
    """Read a table from a CSV, Parquet or JSON file.

    Parameters
    ----------
    path : Path
        CSV with a header, Parquet, or JSON. A file ``.json`` holds a list of objects or of plain values, a file
        ``.jsonl`` one object in each line.
    what : str
        Name of the content, for messages.
    text : bool
        True to read every value in a CSV file as text: then 007 is not 7, and NA is not a missing value.
    id_column : str, optional
        Column of a CSV file that is read as text in any case.
    quoted : bool
        True if a message may name the kind of error that occurred while reading.

    Raises
    ------
    InputError
        If the file cannot be read in one of these formats.
    MissingExtraError
        If the file is Parquet, and pyarrow is not installed.
    """
    if not path.is_file():
        raise InputError(f"there must be a file with {what} at {path}; there is none")
    problem, ending = "", path.suffix.lower()
    try:
        if ending in JSON_ENDINGS:
            rows = _json_table(path, what=what)
            return pd.DataFrame(rows, dtype=object) if text else pd.DataFrame(rows)
        if ending in PARQUET_ENDINGS:
            return pd.read_parquet(path)
        return _csv(path, id_column, text=text)
    except InputError:
        raise
    except ImportError:
        raise MissingExtraError(f"{path} as Parquet, and not CSV,", "pyarrow", "large") from None
    except Exception as error:  # errors of many kinds, whose messages may quote the file
        problem = f" ({type(error).__name__})" if quoted else ""
    raise InputError(
        f"{what} must be a CSV file with a header, Parquet or JSON; {path} cannot be read as one of them{problem}"
    )


def _csv(path: Path, id_column: str | None, *, text: bool) -> pd.DataFrame:
    frame: pd.DataFrame = pd.read_csv(path, **(_TEXT if text else _AS_IT_IS))
    if not text and id_column in frame.columns:
        frame[id_column] = pd.read_csv(path, usecols=[id_column], **_TEXT)[id_column]
    return frame
