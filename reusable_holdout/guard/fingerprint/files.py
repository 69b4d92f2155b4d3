"""Files that a model names: what lies behind a path is part of it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LARGEST", "MOST", "digest_of_files", "file_named"]

LARGEST = 1 << 30
"""Bytes of all files behind one name; a model that names more is a new question each time."""
MOST = 10_000
"""Files behind one name, at most."""

_LONGEST = 4_096  # of a path, in characters
_BLOCK = 1 << 20


def file_named(text: str) -> Path | None:
    """File or folder that a text names, if there is one; text that is long, or dots and slashes alone, names none."""
    if not text or len(text) > _LONGEST or "\n" in text or "\0" in text or not text.strip("./\\"):
        return None
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if text.startswith("~") or "$" in text:
        text = os.path.expandvars(os.path.expanduser(text))  # noqa: PTH111 - most of it is no path
    try:
        os.stat(text)  # noqa: PTH116 - of many thousand words, perhaps
    except (OSError, ValueError):  # whoever predicts cannot read it either
        return None
    return Path(text)


def digest_of_files(path: Path) -> bytes:
    """Digest of a file's content, or of a folder's: names and contents of all files below it.

    Raises
    ------
    OSError
        If they cannot be read, are no plain files, are more than :data:`MOST` or larger than :data:`LARGEST` together.
    """
    whole, left = hashlib.sha256(), LARGEST
    for name, file in _below(path):
        whole.update(len(name).to_bytes(8, "big") + name)
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise OSError("the files are larger than is read")
                whole.update(block)
        whole.update(left.to_bytes(8, "big", signed=True))
    return whole.digest()


def _below(path: Path) -> list[tuple[bytes, Path]]:
    """Files below a path, by their names; that they are too large is seen before any is read."""
    found: list[tuple[bytes, Path]] = []
    size = 0
    for file in _each_below(path):
        status = file.stat()
        size += status.st_size
        if not stat.S_ISREG(status.st_mode) or size > LARGEST or len(found) >= MOST:
            raise OSError("the files are too large, too many, or no plain files")
        found.append((os.fsencode(file.relative_to(path)), file))
    return sorted(found)


def _each_below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for top, folders, files in os.walk(path, followlinks=True):
        folders[:] = [one for one in folders if one != "__pycache__"]
        yield from (Path(top, name) for name in files)
