"""Checks that keep other users out of the process that holds the labels, and out of its files.

The kernel keeps users apart. It can do so only if no other user can read or change a file of the box, change its code,
or dump its memory.
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
    """Another user could read or change something that must belong to the box alone; nothing was opened."""


def close_memory() -> None:
    """Let nobody but root read this process: no core dump, no trace, no ``/proc``; and let it gain no privilege.

    On systems other than Linux only core dumps are forbidden.
    """
    import resource  # noqa: PLC0415 - not on Windows

    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for option, value in ((_PR_SET_DUMPABLE, 0), (_PR_SET_NO_NEW_PRIVS, 1)):
        if prctl(option, value, 0, 0, 0) != 0:
            raise WallError(f"the kernel must close this process's memory; prctl({option}) failed")


def check_private(folder: Path) -> None:
    """Refuse a folder if it or a file in it is a link, or another user owns it, or can read or change it.

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
            f"{path} must belong to the user that runs the box, and to nobody else, and be no link; its user is "
            f"{status.st_uid} with mode {stat.filemode(status.st_mode)}; nothing was opened; chown it, and chmod it to "
            "600 (a folder to 700)"
        )
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise WallError(f"{path} must have one name; it has {status.st_nlink}; remove the others")


def check_place(path: Path, what: str) -> None:
    """Refuse a folder that another user could exchange: it and all above it must be root's or ours, and ours to write.

    A folder above it that everyone can write to, such as ``/tmp``, must be sticky: then nobody can move our files.

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
    """Say why others could exchange a file in a folder; empty if they cannot."""
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
    """Refuse to run code that another user can change: all imported files and their folders must be root's or ours.

    Code that has run already could have changed this check. So it finds mistakes, and not an attack that succeeded.

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
                raise WallError(f"code that the box imports must be its own or root's; {path} is not")
            path = path.parent
        if path not in seen and path.exists():
            seen.add(path)
            check_place(path, "code that the box imports")


def _code() -> Iterable[str]:
    """Yield the folders this process imports from, the files it has imported, and the files of our packages."""
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
    """Return the user at the other end of a connection, as the kernel says; -1 where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):  # not Linux
        return -1
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", told)[1])  # after the process, before the group


@contextlib.contextmanager
def only_one(private: Path) -> Iterator[None]:
    """Refuse a second process that would run the same box.

    Raises
    ------
    LedgerError
        If one runs.
    """
    import fcntl  # noqa: PLC0415 - not on Windows

    descriptor = os.open(private / "running", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerError(f"one process runs a box; another one runs {private.parent}") from None
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened_door(path: Path, *, mode: int) -> Iterator[socket.socket]:
    """Bind a socket that no other user can have put there or can exchange. It is removed at the end.

    Parameters
    ----------
    path : Path
        In a folder that no other user may write to.
    mode : int
        Mode of the socket: who can write to it can ask.

    Raises
    ------
    WallError
        If another user could exchange it.
    InputError
        If something else is there, or it cannot be bound.
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
            raise InputError(f"a box must be able to bind {whole}; it is not ({error.strerror})") from None
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
    """Remove the socket that an earlier run left, if nobody listens at it; refuse anything else."""
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
    raise InputError(f"{path} must be free; somebody listens there; stop it, or name another --socket")
