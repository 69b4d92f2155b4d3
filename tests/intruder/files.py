"""Attempts to read or change a box's files."""

import contextlib
import mmap
import os
import shutil
import sqlite3
from functools import partial

from intruder.case import CASE, opened, own, ran, read, report


def through(make, path, use=read):
    """Use a path through a link of our own."""
    place = own("link")
    make(path, place)
    return use(place)


def through_folder(path):
    here = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        with open(os.open(os.path.basename(path), os.O_RDONLY, dir_fd=here), "rb") as file:
            return file.read(100)
    finally:
        os.close(here)


def from_within(path):
    before = os.getcwd()
    os.chdir(os.path.dirname(path))
    try:
        return read(os.path.basename(path))
    finally:
        os.chdir(before)


def mapped(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        return pages[:100]


def as_database(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        return base.execute("select count(*) from sqlite_master").fetchall()


def rewritten(path):
    """Overwrite the first byte with itself, which shows that the file can be changed."""
    with open(path, "r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(first)
        return b"written"


def moved_and_back(path):
    place = own("moved")
    os.rename(path, place)
    os.rename(place, path)
    return "moved"


def replaced(path):
    place = own("new")
    shutil.copy(path, place)
    os.replace(place, path)
    return "replaced"


def sent(path):
    ours, theirs = os.pipe()
    with open(path, "rb") as file:
        os.sendfile(theirs, file.fileno(), 0, 50)
    os.close(theirs)
    return os.read(ours, 50)


FILES = {
    "open": read,
    "open without following links": lambda path: os.open(path, os.O_RDONLY | os.O_NOFOLLOW),
    "open by a path with dots": lambda path: read(
        os.path.join(CASE.private, "..", "private", os.path.basename(path))
    ),
    "open through its folder": through_folder,
    "open from within its folder": from_within,
    "open through /proc/self/root": lambda path: read(f"/proc/self/root{path}"),
    "open through the box's /proc root": lambda path: read(f"/proc/{CASE.pid}/root{path}"),
    "hard link": partial(through, os.link),
    "symbolic link": partial(through, os.symlink),
    "map": mapped,
    "copy": partial(through, shutil.copy),
    "sendfile": sent,
    "cat": lambda path: ran("cat", path),
    "stat": lambda path: os.stat(path).st_size,
    "append": lambda path: opened(path, "ab"),
    "overwrite": rewritten,
    "move": moved_and_back,
    "replace": replaced,
    "make it everybody's": lambda path: os.chmod(path, 0o600) or "changed",
    "set its time": lambda path: os.utime(path) or "changed",
}


def try_files():
    private, above = CASE.private, os.path.dirname(CASE.private)
    paths = {name: os.path.join(private, name) for name in CASE.files}
    ways = {
        f"{way}: {name}": partial(act, path) for name, path in paths.items() for way, act in FILES.items()
    }
    report("files", ways | {"open as a database: guard.db": lambda: as_database(paths["guard.db"])})
    ledgers = [paths[one] for one in ("guard.db", "guard.db.heads")]
    folder = {
        "list": lambda: os.listdir(private),
        "go into": lambda: from_within(paths["box.json"]),
        "make a file in": lambda: opened(os.path.join(private, "own"), "wb"),
        "make a folder in": lambda: os.mkdir(os.path.join(private, "folder")) or "made",
        "move": lambda: moved_and_back(private),
        "make everybody's": lambda: os.chmod(private, 0o700) or "changed",
        "find": lambda: ran("find", private, "-type", "f"),
        "tar": lambda: ran("tar", "cf", own("tar"), private),
        "link to": lambda: through(os.symlink, private, os.listdir),
        "list above": lambda: os.listdir(above),
        "make a file above": lambda: opened(os.path.join(above, "own"), "wb"),
        "make everybody's above": lambda: os.chmod(above, 0o711) or "changed",
        "copy the ledger away": lambda: [through(shutil.copy, one) for one in ledgers],
        "restore the ledger": lambda: [replaced(one) for one in ledgers],
    }
    report("folder", {f"{way} the folder": act for way, act in folder.items()})
