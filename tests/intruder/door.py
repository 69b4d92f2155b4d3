"""Attempts to take the place of a box's socket."""

import os
import socket

from intruder.case import CASE, LIBC, own, report, told


def try_socket():
    path = CASE.socket
    ways = {
        "remove it": lambda: away(path, lambda: "moved"),
        "bind beside it": lambda: bound(os.path.join(os.path.dirname(path), "socket2")),
        "bind in its place": lambda: away(path, lambda: bound(path)),
        "link in its place": lambda: away(path, lambda: linked(path)),
        "change its mode": lambda: os.chmod(path, 0o666) or "changed",
        "change its owner": lambda: os.chown(path, os.getuid(), -1) or "changed",
        "exchange it": lambda: exchanged(path),
    }
    report("socket", ways)


def away(path, act):
    """Move the socket away during an action."""
    os.rename(path, path + ".old")
    done = act()
    os.rename(path + ".old", path)
    return done


def bound(path):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
    os.unlink(path)
    return "bound"


def linked(path):
    os.symlink(CASE.work, path)
    os.unlink(path)
    return "linked"


def exchanged(path):
    place = own("mine")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
    before = os.stat(path)
    told(LIBC.renameat2(-100, path.encode(), -100, place.encode(), 2), "renameat2")
    LIBC.renameat2(-100, path.encode(), -100, place.encode(), 2)
    return before
