"""The socket of a box: where others knock, and which user does."""

from __future__ import annotations

import contextlib
import fcntl
import grp
import os
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reusable_holdout.errors import InputError, LedgerError
from reusable_holdout_box.wall import check_place

__all__ = ["Peer", "only_one", "opened_door", "peer_of"]

_BACKLOG = 64
_LONGEST = 100  # bytes of a socket's path; the kernel has room for 107


class Peer(NamedTuple):
    """Who is at the other end, by the kernel's word; -1 where the system does not tell."""

    pid: int
    uid: int
    gid: int


def peer_of(connection: socket.socket) -> Peer:
    """Process, user and group that opened a connection."""
    if not hasattr(socket, "SO_PEERCRED"):  # not Linux
        return Peer(-1, -1, -1)
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return Peer(*struct.unpack("3i", told))


@contextlib.contextmanager
def only_one(private: Path) -> Iterator[None]:
    """Refuse a second process that would run the same box.

    Raises
    ------
    LedgerError
        If one runs.
    """
    descriptor = os.open(private / "running", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerError(f"one process runs a box; another one runs {private.parent} already") from None
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def opened_door(path: Path, *, mode: int, group: str | None = None) -> Iterator[socket.socket]:
    """Bind a socket that no other user can have put there, nor exchange; it is removed at the end.

    Parameters
    ----------
    path : Path
        In a folder that no other user may write to.
    mode : int
        Of the socket: who may write to it may ask.
    group : str, optional
        Of the socket, by name or number.

    Raises
    ------
    WallError
        If another user could exchange it.
    InputError
        If something else is there, or it cannot be bound.
    """
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - links are refused, not resolved
    if len(os.fsencode(whole)) > _LONGEST:
        raise InputError(
            f"a socket's path must have at most {_LONGEST} bytes; {whole} has more; name a shorter one"
        )
    check_place(whole.parent, "a socket")
    _remove_stale(whole)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o777)  # nobody connects before mode and group are set
        try:
            door.bind(str(whole))
        except OSError as error:
            raise InputError(f"a box must be able to bind {whole}; it is not ({error.strerror})") from None
        finally:
            os.umask(before)
        status = whole.lstat()
        try:
            if group is not None:
                os.chown(whole, -1, _group(group), follow_symlinks=False)
            whole.chmod(mode)
            door.listen(_BACKLOG)
            door.setblocking(False)
            yield door
        except PermissionError:
            raise InputError(f"the user that runs the box must be in group {group!r}; it is not") from None
        finally:
            _remove_own(whole, status)
    finally:
        door.close()


def _group(name: str) -> int:
    if name.isdigit():
        return int(name)
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise InputError(f"there must be a group {name!r}; there is none") from None


def _remove_stale(path: Path) -> None:
    """Remove the socket that an earlier run left; nothing else, and none that somebody listens at."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
        raise InputError(
            f"{path} must be free, or a socket of this user's; something else is there; remove it"
        )
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


def _remove_own(path: Path, status: os.stat_result) -> None:
    with contextlib.suppress(OSError):
        if os.path.samestat(path.lstat(), status):
            path.unlink()
