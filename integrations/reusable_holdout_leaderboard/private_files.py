"""Files with secrets, which only their owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from reusable_holdout.errors import HoldoutError, InputError

__all__ = ["check_private", "write_private"]


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner can read.

    The file appears only when it is complete and on the disk.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_private(path: Path, error: type[HoldoutError] = InputError) -> Path:
    """Return the path of a file of secrets, but refuse the file if others can read or change it.

    Raises
    ------
    HoldoutError
        An exception of the class `error`, if others can read or change the file, or if it is missing.
    """
    try:
        status = path.stat()
    except OSError:
        raise error(f"there must be a file {path}; there is none") from None
    if status.st_mode & 0o077 or status.st_uid != os.getuid():
        raise error(f"only its owner may read {path}; got mode {status.st_mode & 0o777:o}; chmod 600 it")
    return path
