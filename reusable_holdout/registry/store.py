"""The registry on disk: the rows of this user that have a budget, and the ledger of each."""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import create_key_file, read_key_file
from reusable_holdout.registry.sketch import Part, Sketch, Sketcher, overlap
from reusable_holdout.witness import locked

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
SELECT id, total, ledger, made, row_count, forgotten, 1.0, coalesce(at, ''), coalesce(because, '')
FROM budgets LEFT JOIN forgotten ON budget = id ORDER BY id
"""
_PARTS = "SELECT kind, rate, distinct_values, repeated, numbers FROM parts WHERE budget = ?"
_WAIT = 60.0  # seconds, for another process


class Budget(NamedTuple):
    """A budget that rows have.

    Attributes
    ----------
    ledger : str
        File or URL of the ledger, without a password.
    made : str
        Time in UTC.
    rows : int
    forgotten : bool
        True if its owner marked it as forgotten.
    share : float
        Estimated share of the rows in question that have this budget.
    forgotten_at, because : str
        Time in UTC and reason; empty if it was not forgotten, or by a version that kept no reason.
    """

    ledger: str
    made: str
    rows: int
    forgotten: bool = False
    share: float = 1.0
    forgotten_at: str = ""
    because: str = ""


def now() -> str:
    """Return the time in UTC, as a registry keeps it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def shared(sketch: Sketch, known: Iterable[tuple[Budget, Sketch]]) -> list[Budget]:
    """Return the budgets that some of the rows of a sketch have, the largest share first."""
    found = [budget._replace(share=overlap(sketch, other)) for budget, other in known]
    return sorted([one for one in found if one.share], key=lambda budget: -budget.share)


class Registry:
    """The budgets of the rows of one user, in a folder that only this user can read.

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
            raise _unusable(folder, str(error.strerror)) from None
        key = folder / _KEY
        self._key = read_key_file(key) if key.exists() else create_key_file(key)

    @classmethod
    def of_user(cls, *, may_be_new: bool = True) -> Self | None:
        """Return the user's registry, in the folder that the environment names, or the state folder; None if off."""
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
        """Return True if the environment names its folder."""
        return bool(os.environ.get(VARIABLE))

    def sketcher(self) -> Sketcher:
        """Return a maker of sketches under this registry's key."""
        return Sketcher(self._key)

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Return a lock, held while a guard is made: a second process that makes one on the ledger finds the first."""
        return locked(self._lock, functools.partial(_unusable, self._lock))

    def claim(self, sketch: Sketch, ledger: str, *, insist: bool = False) -> list[Budget]:
        """Give rows a budget in a ledger, unless they have one; if two processes race, only one of them does.

        Parameters
        ----------
        sketch : Sketch
        ledger : str
        insist : bool
            True to give the rows another budget even if they have one.

        Returns
        -------
        list of Budget
            Earlier budgets of these rows, or of some of them, the largest share first. If any of them is not
            forgotten, nothing was given unless `insist`.
        """
        with self.connected() as connection:
            found = shared(sketch, _known(connection))
            if insist or all(budget.forgotten for budget in found):
                _give(connection, sketch, ledger)
        return found

    def known(self, sketch: Sketch) -> list[Budget]:
        """Return the budgets of these rows, or of some of them, the largest share first."""
        with self.connected("BEGIN") as connection:
            return shared(sketch, _known(connection))

    def release(self, sketch: Sketch, ledger: str) -> None:
        """Remove the last claim, for which no guard was made; earlier budgets, and forgotten ones, stay."""
        with self.connected() as connection:
            named = "SELECT max(id) FROM budgets WHERE total = ? AND ledger = ? AND NOT forgotten"
            found = connection.execute(named, (sketch.total, ledger)).fetchone()
            connection.execute("DELETE FROM parts WHERE budget = ?", found)
            connection.execute("DELETE FROM budgets WHERE id = ?", found)

    def budgets(self) -> list[Budget]:
        """Return all budgets, in the order in which they were made."""
        with self.connected("BEGIN") as connection:
            return [budget for budget, _ in _known(connection)]

    def has_told(self) -> bool:
        """Return True if class counts or sizes of groups were released for any rows."""
        with self.connected("BEGIN") as connection:
            return connection.execute("SELECT 1 FROM told LIMIT 1").fetchone() is not None

    def told(self, sketch: Sketch, fact: tuple[str, float] | None = None) -> float:
        """Return the nats of all class counts and sizes of groups that were released for these rows, each once.

        Parameters
        ----------
        sketch : Sketch
        fact : tuple of str and float, optional
            A fact that is about to be released, and its nats; it is stored before it is released.
        """
        with self.connected() as connection:
            if fact is not None:
                connection.execute("INSERT OR IGNORE INTO told VALUES (?, ?, ?)", (sketch.total, *fact))
            total = "SELECT TOTAL(nats) FROM told WHERE total = ?"
            return float(connection.execute(total, (sketch.total,)).fetchone()[0])

    @contextlib.contextmanager
    def connected(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """Open its database for one transaction; a LedgerError says that it cannot be read or written."""
        try:
            opened = sqlite3.connect(self._file, timeout=_WAIT, isolation_level=None)
            with contextlib.closing(opened) as connection:
                connection.executescript(_SCHEMA)
                connection.execute(begin)
                yield connection
                connection.commit()
        except sqlite3.Error as error:
            raise _unusable(self._file, str(error)) from None


def _unusable(place: Path, why: str) -> LedgerError:
    return LedgerError(
        f"the registry of rows must be writable; {place} is not ({why}); set {VARIABLE} to a folder that is, or to "
        f'"{_OFF}"'
    )


def _known(connection: sqlite3.Connection) -> Iterator[tuple[Budget, Sketch]]:
    for number, total, *facts in connection.execute(_EVERY).fetchall():
        budget = Budget(*facts)._replace(forgotten=bool(facts[3]))
        parts = connection.execute(_PARTS, (number,))
        found = [Part._make((*part[:-1], np.frombuffer(part[-1], dtype="<u8"))) for part in parts]
        yield budget, Sketch(budget.rows, total, tuple(found))


def _give(connection: sqlite3.Connection, sketch: Sketch, ledger: str) -> None:
    number = connection.execute(
        "INSERT INTO budgets (ledger, made, row_count, total) VALUES (?, ?, ?, ?)",
        (ledger, now(), sketch.rows, sketch.total),
    ).lastrowid
    connection.executemany(
        "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?)",
        [(number, *part[:-1], part.numbers.astype("<u8").tobytes()) for part in sketch.parts],
    )
