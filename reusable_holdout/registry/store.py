"""The registry: which rows of this user have a budget, and in which ledger."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import create_key_file, read_key_file
from reusable_holdout.registry.sketch import Part, Sketch, Sketcher, overlap

__all__ = ["VARIABLE", "Budget", "Registry"]

VARIABLE = "REUSABLE_HOLDOUT_REGISTRY"
"""Environment variable: the registry's folder; "off" for none."""

_OFF = "off"
_FILE, _KEY, _LOCK = "registry.db", "registry.key", "making.lock"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS budgets (
    id INTEGER PRIMARY KEY, ledger TEXT NOT NULL, made TEXT NOT NULL, row_count INTEGER NOT NULL, total TEXT NOT NULL,
    forgotten INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS parts (
    budget INTEGER NOT NULL REFERENCES budgets (id), kind TEXT NOT NULL, rate REAL NOT NULL,
    distinct_values REAL NOT NULL, repeated REAL NOT NULL, numbers BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS forgotten (
    budget INTEGER PRIMARY KEY REFERENCES budgets (id), at TEXT NOT NULL, because TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS told (
    total TEXT NOT NULL, what TEXT NOT NULL, nats REAL NOT NULL, PRIMARY KEY (total, what)
);
"""
_EVERY = """
SELECT id, ledger, made, row_count, total, forgotten, coalesce(at, ''), coalesce(because, '')
FROM budgets LEFT JOIN forgotten ON budget = id ORDER BY id
"""
_WAIT = 60.0  # seconds, for another process


class Budget(NamedTuple):
    """A budget that rows have.

    Attributes
    ----------
    ledger : str
        Its file or URL, without a password.
    made : str
        When, in UTC.
    rows : int
    forgotten : bool
        Whether its owner had it forgotten.
    share : float
        Share of the rows asked about that it has, about.
    forgotten_at, because : str
        When it was forgotten, in UTC, and why; empty if it was not, or by a version that did not ask.
    """

    ledger: str
    made: str
    rows: int
    forgotten: bool
    share: float = 1.0
    forgotten_at: str = ""
    because: str = ""


class Registry:
    """Budgets of the rows of one user, in a folder only she can read.

    Parameters
    ----------
    folder : Path
        Made if it is missing.

    Raises
    ------
    LedgerError, LedgerKeyError
        If it cannot be written, or others can read its key.
    """

    def __init__(self, folder: Path) -> None:
        self._file, self._lock = folder / _FILE, folder / _LOCK
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._file, os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise LedgerError(
                f"the registry of rows must be writable at {folder}; it is not ({error.strerror}); set {VARIABLE} to a "
                f'folder that is, or to "{_OFF}"'
            ) from None
        key = folder / _KEY
        self._key = read_key_file(key) if key.exists() else create_key_file(key)

    @classmethod
    def of_user(cls, *, may_be_new: bool = True) -> Self | None:
        """The user's own: where the environment says, else in the state folder of this system; None if it is off."""
        named = os.environ.get(VARIABLE, "")
        if named == _OFF:
            return None
        folder = Path(named)
        if not named:
            from platformdirs import user_state_path  # noqa: PLC0415 - not needed where a folder is named

            folder = user_state_path("reusable-holdout", appauthor=False)
        return cls(folder) if may_be_new or (folder / _FILE).exists() else None

    @staticmethod
    def is_named() -> bool:
        """Whether the environment names its folder."""
        return bool(os.environ.get(VARIABLE))

    def sketcher(self) -> Sketcher:
        """Makes sketches under this registry's key."""
        return Sketcher(self._key)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make one guard at a time: of two that are made at once on one ledger, the second finds the first."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LedgerError(
                f"the registry of rows must be writable; {self._lock} is not ({error.strerror}); set {VARIABLE} to "
                f'another folder, or to "{_OFF}"'
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:  # closing alone would leave it with children that were forked meanwhile
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def claim(self, sketch: Sketch, ledger: str, *, insist: bool = False) -> list[Budget]:
        """Give rows a budget in a ledger, unless they have one: of two processes that race one does.

        Parameters
        ----------
        sketch : Sketch
        ledger : str
        insist : bool
            Give them another one.

        Returns
        -------
        list of Budget
            What these rows, or some of them, have already, the largest share first. If it is not empty, and all of it
            was not forgotten, nothing was given unless `insist`.
        """
        with self.connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            found = self._budgets_of(connection, sketch)
            if insist or all(budget.forgotten for budget in found):
                self._give(connection, sketch, ledger)
            connection.commit()
        return found

    def known(self, sketch: Sketch) -> list[Budget]:
        """Return what these rows, or some of them, have already, the largest share first."""
        with self.connected() as connection:
            return self._budgets_of(connection, sketch)

    def release(self, sketch: Sketch, ledger: str) -> None:
        """Take back the last claim, which came to nothing; earlier budgets, and forgotten ones, stay."""
        with self.connected() as connection:
            named = "SELECT max(id) FROM budgets WHERE total = ? AND ledger = ? AND NOT forgotten"
            found = connection.execute(named, (sketch.total, ledger)).fetchall()
            connection.executemany("DELETE FROM parts WHERE budget = ?", found)
            connection.executemany("DELETE FROM budgets WHERE id = ?", found)
            connection.commit()

    def budgets(self) -> list[Budget]:
        """All that are known, in the order in which they were made."""
        with self.connected() as connection:
            every = connection.execute(_EVERY).fetchall()
        return [
            Budget(ledger, made, count, bool(forgotten), forgotten_at=at, because=because)
            for _, ledger, made, count, _, forgotten, at, because in every
        ]

    def has_told(self) -> bool:
        """Return True if class counts or sizes of groups were told of any rows."""
        with self.connected() as connection:
            return connection.execute("SELECT 1 FROM told LIMIT 1").fetchone() is not None

    def told(self, sketch: Sketch, now: tuple[str, float] | None = None) -> float:
        """Nats of all class counts and sizes of groups that were told of these rows, each of them once.

        Parameters
        ----------
        sketch : Sketch
        now : tuple of str and float, optional
            What is told now, and its nats: it is remembered before anybody hears it.
        """
        with self.connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if now is not None:
                connection.execute("INSERT OR IGNORE INTO told VALUES (?, ?, ?)", (sketch.total, *now))
            (nats,) = connection.execute(
                "SELECT TOTAL(nats) FROM told WHERE total = ?", (sketch.total,)
            ).fetchone()
            connection.commit()
        return float(nats)

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """Open its database; a LedgerError says that it cannot be read or written."""
        try:
            with closing(sqlite3.connect(self._file, timeout=_WAIT, isolation_level=None)) as connection:
                connection.executescript(_SCHEMA)
                yield connection
        except sqlite3.Error as error:
            raise LedgerError(
                f"the registry of rows must be a file that can be read and written; {self._file} is not ({error}); set "
                f'{VARIABLE} to another folder, or to "{_OFF}"'
            ) from None

    def _budgets_of(self, connection: sqlite3.Connection, sketch: Sketch) -> list[Budget]:
        found = []
        for number, ledger, made, count, total, forgotten, *why in connection.execute(_EVERY).fetchall():
            parts = connection.execute(
                "SELECT kind, rate, distinct_values, repeated, numbers FROM parts WHERE budget = ?", (number,)
            )
            known = tuple(
                Part(kind, rate, distinct, repeated, np.frombuffer(least, dtype="<u8"))
                for kind, rate, distinct, repeated, least in parts
            )
            share = overlap(sketch, Sketch(count, total, known))
            if share:
                found.append(Budget(ledger, made, count, bool(forgotten), share, *why))
        return sorted(found, key=lambda budget: -budget.share)

    def _give(self, connection: sqlite3.Connection, sketch: Sketch, ledger: str) -> None:
        made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        number = connection.execute(
            "INSERT INTO budgets (ledger, made, row_count, total) VALUES (?, ?, ?, ?)",
            (ledger, made, sketch.rows, sketch.total),
        ).lastrowid
        connection.executemany(
            "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?)",
            [(number, *part[:-1], part.numbers.astype("<u8").tobytes()) for part in sketch.parts],
        )
