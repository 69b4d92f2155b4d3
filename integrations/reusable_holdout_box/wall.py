"""What keeps other users out of the process that holds the labels, and out of its files.

The wall itself is the kernel's: another user. What is done here is what that wall needs: no file of ours that others
may read or change, no code that others may change, no memory that others may dump.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from reusable_holdout.errors import HoldoutError

__all__ = ["WallError", "check_code", "check_place", "check_private", "close_memory"]

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


class WallError(HoldoutError):
    """Others could read or change what must be the box's own; nothing was opened."""


def close_memory() -> None:
    """Let nobody but root read this process: no core dump, no trace, no ``/proc`` of ours; nor a new privilege.

    On systems other than Linux core dumps alone are forbidden.
    """
    import resource  # noqa: PLC0415 - not on Windows

    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for option, value in ((_PR_SET_DUMPABLE, 0), (_PR_SET_NO_NEW_PRIVS, 1)):
        if prctl(option, value, 0, 0, 0) != 0:
            raise WallError(
                f"the kernel must close this process's memory; prctl({option}) failed with {ctypes.get_errno()}; "
                "nothing was opened"
            )


def check_private(folder: Path) -> None:
    """Refuse a folder, or a file in it, that another user owns, may read or change, or that is a link.

    Raises
    ------
    WallError
        Naming it.
    """
    _check_own(folder)  # before it is listed, which another user cannot
    for path in sorted(folder.iterdir()):
        with contextlib.suppress(FileNotFoundError):  # a database's journal comes and goes
            _check_own(path)


def _check_own(path: Path) -> None:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise WallError(
            f"{path} must belong to the user that runs the box, and to nobody else, and be no link; it is of user "
            f"{status.st_uid} with mode {stat.filemode(status.st_mode)}; nothing was opened; chown it, and chmod it to "
            "600 (a folder to 700)"
        )
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise WallError(
            f"{path} must have one name; it has {status.st_nlink}; nothing was opened; remove the others"
        )


def check_place(path: Path, what: str) -> None:
    """Refuse a folder that another user could exchange: it and all above it are root's or ours, for others to read.

    A folder above it that all may write to, such as ``/tmp``, must be sticky: then what is ours in it stays.

    Raises
    ------
    WallError
        Naming the folder, and the one above it that is not safe.
    """
    named = Path(os.path.abspath(path))  # noqa: PTH100 - links are looked at one by one, and then where they lead
    for whole in dict.fromkeys([named, named.resolve()]):
        for one in [whole, *whole.parents]:
            problem = _weak(one, may_be_sticky=one != whole)
            if problem:
                raise WallError(
                    f"{what} must lie where no other user can exchange it; {one} {problem}; nothing was opened; move "
                    "it, or chown and chmod that"
                )


def _weak(path: Path, *, may_be_sticky: bool) -> str:
    """Why others could exchange what lies in a folder; empty if they cannot."""
    try:
        status = path.lstat()
    except OSError as error:
        return f"cannot be looked at ({error.strerror})"
    if status.st_uid not in {_ROOT, os.geteuid()}:
        return f"belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode):  # its owner alone can change it
        return ""
    sticky = bool(status.st_mode & stat.S_ISVTX) and may_be_sticky
    if status.st_mode & _OTHERS_WRITE and not sticky:
        return f"may be written to by others ({stat.filemode(status.st_mode)})"
    return ""


def check_code(places: Iterable[str] | None = None) -> None:
    """Refuse to run code that another user can change: all that is imported, and where from, is root's or ours.

    What has run already could have changed this check, too: it finds mistakes, and no attack that has succeeded.

    Parameters
    ----------
    places : iterable of str, optional
        Folders and files; by default those of this process.

    Raises
    ------
    WallError
        Naming the folder.
    """
    seen: set[Path] = set()
    for place in _code() if places is None else places:
        path = Path(place or ".").absolute()
        if path.is_file():
            if _weak(path.resolve(), may_be_sticky=False):
                raise WallError(
                    f"code that the box imports must be its own or root's; {path} is not; nothing was opened"
                )
            path = path.parent
        if path not in seen and path.exists():
            seen.add(path)
            check_place(path, "code that the box imports")


def _code() -> Iterable[str]:
    """Where this process imports from, what it has imported, and what of this package it may import later."""
    yield from sys.path
    if sys.pycache_prefix:
        yield sys.pycache_prefix
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file:
            yield file
    yield from map(str, Path(__file__).parents[1].rglob("*.py"))
