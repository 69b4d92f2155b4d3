"""Checks that no other user can get at the labels through the box's process or its files.

The kernel keeps users apart. This protects the labels only if no other user can read or change the box's files, change
its code, or read its memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from reusable_holdout.errors import HoldoutError, InputError, LedgerError

__all__ = [
    "WallError",
    "check_code",
    "check_place",
    "check_private",
    "close_memory",
    "only_one",
    "opened_door",
    "user_of",
]

_BACKLOG = 64
_LONGEST = 100  # bytes of a socket's path; the kernel has room for 107

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


class WallError(HoldoutError):
    """An error: another user could read or change something that only the box may use; nothing was opened."""


def close_memory() -> None:
    """Forbid other users except root to read the memory of this process, and forbid the process to gain privileges.

    There will be no core dump, no tracing, and no access through ``/proc``. On systems other than Linux only core dumps
    are forbidden.
    """
    import resource  # noqa: PLC0415 - not on Windows

    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for option, value in ((_PR_SET_DUMPABLE, 0), (_PR_SET_NO_NEW_PRIVS, 1)):
        if prctl(option, value, 0, 0, 0) != 0:
            raise WallError(f"the kernel must close this process's memory to others; prctl({option}) failed")


def check_private(folder: Path) -> None:
    """Refuse a folder if it, or a file in it, is a link, belongs to another user, or can be used by other users.

    Raises
    ------
    WallError
        If there is such a folder or file; the message names it.
    """
    _check_own(folder)  # first the folder, because another user's cannot be listed
    for path in sorted(folder.iterdir()):
        with contextlib.suppress(FileNotFoundError):  # a database's journal may vanish meanwhile
            _check_own(path)


def _check_own(path: Path) -> None:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise WallError(
            f"{path} must belong to the user that runs the box, and to nobody else, and be no link; its user is "
            f"{status.st_uid} with mode {stat.filemode(status.st_mode)}; nothing was opened; chown it, and chmod it to "
            "600 (a folder to 700)"
        )
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise WallError(f"{path} must have one hard link; it has {status.st_nlink}; remove the others")


def check_place(path: Path, what: str) -> None:
    """Refuse a folder that another user could replace with another one.

    The folder and all folders above it must belong to root or to this user, and other users must not be able to write
    there. A folder above it to which everyone can write, such as ``/tmp``, must have the sticky bit, so that others
    cannot move our files.

    Raises
    ------
    WallError
        If the folder is not safe; the message names the folder that causes it.
    """
    named = Path(os.path.abspath(path))  # noqa: PTH100 - links are checked first, then the folders they lead to
    for whole in dict.fromkeys([named, named.resolve()]):
        for one in [whole, *whole.parents]:
            problem = _weak(one, may_be_sticky=one != whole)
            if problem:
                raise WallError(
                    f"{what} must lie where no other user can replace it; {one} {problem}; nothing was opened; move "
                    "it, or chown and chmod that folder"
                )


def _weak(path: Path, *, may_be_sticky: bool) -> str:
    """Return the reason why others could replace a file in a folder; return an empty string if they cannot."""
    try:
        status = path.lstat()
    except OSError as error:
        return f"cannot be examined ({error.strerror})"
    if status.st_uid not in {_ROOT, os.geteuid()}:
        return f"belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode):  # only its owner can change it
        return ""
    sticky = bool(status.st_mode & stat.S_ISVTX) and may_be_sticky
    if status.st_mode & _OTHERS_WRITE and not sticky:
        return f"may be written to by others ({stat.filemode(status.st_mode)})"
    return ""


def check_code(places: Iterable[str] | None = None) -> None:
    """Refuse to run code that another user can change.

    All imported files and their folders must belong to root or to this user. Code that was changed before could have
    disabled this check, so it finds mistakes of the owner, not an attack that has succeeded.

    Parameters
    ----------
    places : iterable of str, optional
        Folders and files of code; by default those that this process imports from.

    Raises
    ------
    WallError
        If another user could change some code; the message names the file or folder.
    """
    seen: set[Path] = set()
    for place in _code() if places is None else places:
        path = Path(place or ".").absolute()
        if path.is_file():
            if _weak(path.resolve(), may_be_sticky=False):
                raise WallError(f"only the box's user and root may change its code; others can change {path}")
            path = path.parent
        if path not in seen and path.exists():
            seen.add(path)
            check_place(path, "code that the box imports")


def _code() -> Iterable[str]:
    """Yield the folders this process imports from, the files it has imported, and the files of this library."""
    yield from sys.path
    if sys.pycache_prefix:
        yield sys.pycache_prefix
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file:
            yield file
    yield from map(str, Path(__file__).parents[1].rglob("*.py"))


# ---- the socket


def user_of(connection: socket.socket) -> int:
    """Return the id of the user at the other end of a connection; -1 if the system does not tell it."""
    if not hasattr(socket, "SO_PEERCRED"):  # not Linux
        return -1
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", told)[1])  # the order is process, user, group


@contextlib.contextmanager
def only_one(private: Path) -> Iterator[None]:
    """Hold a lock during a ``with`` block, so that only one process runs a box.

    Raises
    ------
    LedgerError
        If another process runs the box.
    """
    import fcntl  # noqa: PLC0415 - not on Windows

    descriptor = os.open(private / "running", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerError(f"only one process may run a box; another runs {private.parent}") from None
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened_door(path: Path, *, mode: int) -> Iterator[socket.socket]:
    """Open the box's Unix socket for a ``with`` block, after a check that no other user can replace it.

    The socket is removed at the end of the block.

    Parameters
    ----------
    path : Path
        Path of the socket, in a folder that no other user may write to.
    mode : int
        File mode of the socket; users who can write to it can ask.

    Raises
    ------
    WallError
        If another user could replace the socket.
    InputError
        If something else is at this path, or the socket cannot be bound.
    """
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - links are refused, not resolved
    if len(os.fsencode(whole)) > _LONGEST:
        raise InputError(f"a socket's path must have at most {_LONGEST} bytes; {whole} has more; shorten it")
    check_place(whole.parent, "a socket")
    _remove_stale(whole)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        before = os.umask(0o777)  # nobody can connect before the mode is set
        try:
            door.bind(str(whole))
        except OSError as error:
            raise InputError(f"a box must open a socket at {whole}; it cannot ({error.strerror})") from None
        finally:
            os.umask(before)
        status = whole.lstat()
        try:
            whole.chmod(mode)
            door.listen(_BACKLOG)
            door.setblocking(False)
            yield door
        finally:
            with contextlib.suppress(OSError):
                if os.path.samestat(whole.lstat(), status):
                    whole.unlink()


def _remove_stale(path: Path) -> None:
    """Remove the socket that an earlier run has left, if no process listens at it; refuse anything else there."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
        raise InputError(f"{path} must be free, or a socket of this user; something else is there; remove it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        knock.settimeout(1.0)
        try:
            knock.connect(str(path))
        except (ConnectionRefusedError, PermissionError):
            path.unlink()
            return
        except OSError:
            pass
    raise InputError(f"{path} must be free; another process listens there; stop it, or name another --socket")
