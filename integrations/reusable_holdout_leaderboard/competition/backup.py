"""Backups of a folder of competitions (board, ledgers, labels and keys) while servers are using it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.version import __version__
from reusable_holdout_leaderboard.competition.competition import Competition
from reusable_holdout_leaderboard.competition.organising import rotation_locked
from reusable_holdout_leaderboard.store.database import Database
from reusable_holdout_leaderboard.store.records import StoreError
from reusable_holdout_leaderboard.store.tables import SCHEMA

__all__ = ["back_up", "restore"]

_MANIFEST, _BOARD, _LEDGER = "backup.json", "board.db", "ledger.db"
_FILES = ("labels-*.parquet", "fresh-labels.parquet", "ledger.key", "public/*")
_CHUNK = 1 << 20


def back_up(folder: Path, to: Path, *, clock: Callable[[], float] = time.time) -> dict[str, Any]:
    """Copy a folder of competitions as it is at one moment, and return the manifest of the copy.

    Servers keep running. Submissions wait while the board is copied. In the copy, a ledger is never older than the
    board. Answers that the ledger has and the board lacks belong to pending submissions.

    A noise key that lies outside the folder is not copied.

    Parameters
    ----------
    folder : Path
    to : Path
        Folder that is made. If the backup fails, the folder is not there.
    clock : callable

    Raises
    ------
    InputError
        If there is no board, or `to` exists already.
    StoreError
        If a file cannot be read or written.
    """
    folder, to = folder.absolute(), to.absolute()
    if not (folder / _BOARD).exists():
        raise InputError(
            f"a backup needs a board; there is none in {folder}; nothing was copied; name another folder"
        )
    if to.exists():
        raise InputError(
            f"a backup needs a new folder; {to} exists already; nothing was copied; name another"
        )
    part = to.with_name(f"{to.name}.{secrets.token_hex(8)}")
    try:
        with _disk():
            part.mkdir(mode=0o700, parents=True)
            manifest = _copy_all(folder, part, at=clock())
            part.rename(to)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return manifest


def restore(
    backup: Path, folder: Path, *, key_file: Path | None = None, clock: Callable[[], float] = time.time
) -> dict[str, Any]:
    """Put a backup into an empty folder, check it, note the restoration on each board, and return the manifest.

    Answers that were given after the backup are forgotten, so that part of a budget can be spent again. Each restored
    board therefore tells everyone when its backup was made.

    Parameters
    ----------
    backup : Path
    folder : Path
        A folder that is empty, or that does not exist yet.
    key_file : Path, optional
        Noise key, if it was outside the folder that was backed up.
    clock : callable

    Raises
    ------
    InputError
        If the backup is incomplete or was changed, or the folder is not empty.
    StoreError, LedgerError
        If the restored boards cannot be opened.
    """
    backup, folder = backup.absolute(), folder.absolute()
    manifest = _checked(backup)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"a backup is restored into an empty folder; {folder} is not empty; nothing was restored; move its content "
            "away and keep it, because it may be newer than the backup"
        )
    part = folder.with_name(f"{folder.name}.{secrets.token_hex(8)}")
    try:
        with _disk():
            for name in manifest["files"]:
                _copy_file(backup / name, part / name)
            for slug, known in manifest["competitions"].items():
                with Competition.open(part, slug, key_file=key_file, clock=clock) as competition:
                    competition.note_restored({"backup": manifest["at"], "answers": known["answers"]})
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()
            part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return manifest


def _copy_all(folder: Path, part: Path, *, at: float) -> dict[str, Any]:
    slugs = Competition.slugs(folder)
    board = Database(folder / _BOARD)
    with contextlib.closing(board), contextlib.ExitStack() as held:
        for slug in slugs:  # a rotation takes the locks in this order, too: a deadlock cannot happen
            held.enter_context(rotation_locked(folder / slug))
        with board.writing():
            _copy_database(folder / _BOARD, part / _BOARD)
            for slug in slugs:
                _copy_database(folder / slug / _LEDGER, part / slug / _LEDGER)
        for slug in slugs:
            for found in _files_of(folder / slug):
                _copy_file(found, part / found.relative_to(folder))
    if (folder / "admin.token").exists():
        _copy_file(folder / "admin.token", part / "admin.token")
    manifest = {
        "at": datetime.fromtimestamp(at, UTC).isoformat(),
        "library": __version__,
        "schema": SCHEMA,
        "competitions": {slug: {"answers": _answers(part / slug / _LEDGER)} for slug in slugs},
        "files": {
            str(one.relative_to(part)): _digest(one) for one in sorted(part.rglob("*")) if one.is_file()
        },
    }
    with _private(part / _MANIFEST) as file:
        file.write(json.dumps(manifest, indent=1).encode())
    return manifest


def _files_of(folder: Path) -> Iterator[Path]:
    for pattern in _FILES:
        yield from (one for one in folder.glob(pattern) if one.is_file())


def _copy_database(path: Path, to: Path) -> None:
    """Copy a SQLite file in use, including its write-ahead log."""
    with _private(to):
        pass
    source = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    with contextlib.closing(source), contextlib.closing(sqlite3.connect(to)) as target:
        source.backup(target)


def _answers(ledger: Path) -> int:
    """Return the number of answers in a ledger, in all epochs together."""
    with contextlib.closing(SqlLedger(ledger, must_exist=True)) as opened:
        return sum(len(opened.rows(epoch=epoch)) for epoch in range(1, opened.epoch + 1))


def _copy_file(path: Path, to: Path) -> None:
    with path.open("rb") as source, _private(to) as target:
        shutil.copyfileobj(source, target, _CHUNK)


@contextlib.contextmanager
def _private(path: Path) -> Iterator[Any]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _checked(backup: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((backup / _MANIFEST).read_text())
        files, schema = dict(manifest["files"]), int(manifest["schema"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"a backup must have a readable {_MANIFEST}; {backup} has none; nothing was restored"
        ) from None
    if schema != SCHEMA:
        raise InputError(
            f"a backup must have format {SCHEMA}; this one has format {schema}, of reusable-holdout "
            f"{manifest['library']}; nothing was restored; install that version"
        )
    for name, digest in files.items():
        path = backup / name
        if (
            not path.resolve().is_relative_to(backup.resolve())
            or not path.is_file()
            or _digest(path) != digest
        ):
            raise InputError(
                f"a backup must be unchanged; {name} is missing or different; nothing was restored"
            )
    return manifest


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _disk() -> Iterator[None]:
    problem = ""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        problem = getattr(error, "strerror", None) or type(error).__name__
    if problem:
        raise StoreError(
            f"a backup needs every file to be read and written; one was not ({problem}); nothing was made"
        )
