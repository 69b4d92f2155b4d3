"""The connection of a ledger: one for all threads of a process, and never shared across a fork.

SQLite counts a process's file locks in the process's memory, and a fork copies the count but not the locks. A child
that opens the ledger again would then trust locks it does not have: when the parent closes, the write-ahead log is
deleted under the child, and what the child commits from then on is lost. Nothing the child does can mend that, so the
parent closes its connections before it forks; both open new ones when they next need them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import postgresql, sqlite
from reusable_holdout.ledger.failures import failure, reason, refusal
from reusable_holdout.ledger.records import Row, Tail, genesis
from reusable_holdout.ledger.schema import CHUNK, SCHEMA, Statements
from reusable_holdout.version import __version__
from reusable_holdout.witness import Head

_T = TypeVar("_T")

_SERVER = re.compile(
    r"(?P<begin>postgresql(\+psycopg)?://)((?P<user>[^:/?#@]*)(?P<password>:[^/?#@]*)?@)?(?P<rest>[^?#@]*)(\?[^#]*)?"
)

_PATIENCE_SECONDS = 10.0  # for the transactions of other threads, which last milliseconds
_PAUSE_SECONDS = 0.001

_OPEN: weakref.WeakSet[Connection] = weakref.WeakSet()
# URLs that the parent used when this process was forked: here they cannot be used safely.
_ORPHANED: set[str | None] = set()


class Connection:
    """A ledger's connection to its database, with a lock that lets one thread at a time use it.

    Parameters
    ----------
    location : str, Path or None
        SQLite file, or URL of a server; None for a database in memory, which lasts as long as this object.
    must_exist : bool
        True to refuse a SQLite file that does not exist yet.

    Attributes
    ----------
    url : str or None
    path : Path or None
        The SQLite file; None on a server or in memory.
    place : str
        The file, or the URL without a password, for people to read.
    driver : object
        The driver's connection; None while there is none.
    active : object
        The transaction that is open; None for none.
    user : int
        The thread that uses the connection now; 0 for none.
    refused : str
        The reason why it cannot be used any more, "closed" or "forked"; empty while it can be used.
    """

    url: str | None = None
    path: Path | None = None
    driver: Any = None
    active: object | None
    refused = ""
    _cursor: Any = None

    def __init__(self, location: str | Path | None, *, must_exist: bool = False) -> None:
        if location is not None:
            self.url, self.path = resolved(location)
        self.place = "memory" if self.url is None else str(self.path or shown(self.url))
        self._database = postgresql if self.url is not None and self.path is None else sqlite
        self.sql, self._must_exist = self._database.STATEMENTS, must_exist
        self._file: tuple[int, int] | None = None
        self.begin_afresh()
        _OPEN.add(self)

    def another(self) -> Connection:
        """Return a new connection to the same database, which must exist; a connection to memory returns itself."""
        return self if self.url is None else Connection(self.path or self.url, must_exist=True)

    def __del__(self) -> None:
        self._end()

    def run(self, done: str, work: Callable[..., _T], *arguments: Any) -> _T:
        """Call `work` with a cursor, outside transactions; a LedgerError says that the ledger could not be `done`."""
        self.acquire()
        try:
            return self.attempt(done, lambda: work(self.cursor(), *arguments))
        finally:
            self.release()

    def attempt(self, done: str, work: Callable[..., _T], *arguments: Any) -> _T:
        """Call `work`; drop the connection if it fails. A LedgerError says that the ledger could not be `done`."""
        try:
            return work(*arguments)
        except BaseException as error:
            self.drop()
            problem = reason(error)
            if problem is None:
                raise
        raise failure(self.place, done, problem, on_server=self._database is postgresql)

    def acquire(self) -> None:
        """Wait for other threads; a LedgerError refuses a thread inside a transaction, and a connection out of use."""
        self.lock.acquire()
        if self.refused or self.active is not None or self.url in _ORPHANED:
            kind = self.refused or ("orphaned" if self.active is None else "nested")
            self.lock.release()
            raise refusal(kind)
        with _Gate.lock:
            self.user = threading.get_ident()

    def release(self) -> None:
        """Let the next thread begin."""
        self.active = None
        self.user = 0
        self.lock.release()

    def cursor(self) -> Any:
        """Return a cursor; a LedgerError refuses a file that replaced the opened one: answers in it would be lost."""
        if self._file is not None and self.path and file_identity(self.path) != self._file:
            raise refusal("gone", place=self.place)
        if self.driver is None:
            if self.path is not None:
                _check_file(self.path, must_exist=self._must_exist)
            self.driver = self._database.connect(str(self.path or self.url or ":memory:"))
            self._cursor = self.driver.cursor()
            self._database.settle(self.driver)
            if self.path is not None and self._file is None:
                self._file = file_identity(self.path)
        return self._cursor

    def prepare(self, cursor: Any) -> int:
        """Make the tables if there are none, in one of several processes that try; return the last epoch, from 1.

        A LedgerError refuses another database, and a ledger of another schema: it names the version to open it with.
        """
        if not self._has_tables(cursor):
            cursor.execute(self.sql.alone)
            for statement in () if self._has_tables(cursor) else self.sql.tables:
                cursor.execute(statement)
            cursor.execute("COMMIT")
        found = cursor.execute(self.sql.schemas).fetchall()
        for _, schema, library in found:
            if schema != SCHEMA:
                raise LedgerError(
                    f"the ledger {self.place} must have schema {SCHEMA}; it has {schema!r}; nothing was changed; open "
                    f"it with version {library}, which wrote it: only ledgers of 0.2.0 and later stay readable"
                )
        return int(found[-1][0]) if found else 1

    def _has_tables(self, cursor: Any) -> bool:
        present = {name for (name,) in cursor.execute(self.sql.present).fetchall()}
        ours = present & {"configuration", "answers"}
        if len(ours) < 2 and present and (ours or self.path is not None):
            raise LedgerError(
                f"{self.place} must be a ledger or empty; it is another database; name another file"
            )
        return bool(ours)

    def begin_afresh(self) -> None:
        """Make a new lock and forget the connection: in a new object, and in a child after a fork."""
        self.lock = threading.RLock()
        self.active = self.driver = self._cursor = None  # those that were open at a fork are the parent's
        self.user = 0

    def drop(self) -> None:
        """Forget a connection that failed, with all it has not committed; the next use makes another."""
        if self.url is None:  # nothing else has the rows that are in memory
            self.roll_back()
        else:
            self._end()

    def roll_back(self) -> None:
        """Undo the statements that were not committed."""
        try:
            if self.driver is not None:
                self.driver.rollback()
        except Exception:
            self._end()

    def close(self) -> None:
        """Close the connection; later use raises LedgerError."""
        with self.lock:
            if self.active is not None:
                raise refusal("nested")
            with _Gate.lock:
                self.user = threading.get_ident()
            self.refused = self.refused or "closed"
            self._end()
            self.user = 0

    def _end(self) -> None:
        held = (self._cursor, self.driver)  # a connection keeps its locks while its cursor is open
        self.driver = self._cursor = None
        for one in held:
            with contextlib.suppress(Exception):  # the failure that led here is the one to report
                one.close()


class _Gate:
    """A lock that is held during a fork: meanwhile a running use of a ledger may end, but no use begins."""

    lock = threading.Lock()


def _before() -> None:
    """Wait, up to a limit, until no other thread uses a ledger; then close every connection that is not in use."""
    _Gate.lock.acquire()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for one in list(_OPEN):
        while one.user not in {0, threading.get_ident()} and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        if not one.user:
            one.drop()


def _in_parent() -> None:
    _Gate.lock.release()


def _in_child() -> None:
    _Gate.lock = threading.Lock()
    for one in list(_OPEN):
        if one.user:  # even closing it would harm the parent
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(one._cursor))
        else:
            one._end()
        if one.url is None:
            one.refused = one.refused or "forked"
        elif one.user:
            _ORPHANED.add(one.url)
        one.begin_afresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


# ---- places


def resolved(location: str | Path) -> tuple[str, Path | None]:
    """Return the URL of a ledger, and its file if it is SQLite; a LedgerError refuses anything else."""
    problem = ""
    if isinstance(location, str) and re.match(r"sqlite\b.*://", location):
        scheme, _, rest = location.partition("://")
        if scheme not in {"sqlite", "sqlite+pysqlite"} or "?" in rest or not rest.startswith("/"):
            problem = (
                "a SQLite ledger's URL must be sqlite:///file and nothing more: options could make answers less "
                "durable; got a driver, a host, options or no file; leave them out; a ledger in memory is ledger=None"
            )
        location = unquote(rest[1:])
    elif isinstance(location, str) and "://" in location:
        if _SERVER.fullmatch(location):
            return location, None
        problem = (
            "a ledger's URL must be postgresql+psycopg://user@host/database; got another database, or a URL that "
            "cannot be read; write special characters of a password as %40"
        )
    if not isinstance(location, str | Path) or str(location) in {"", ":memory:"} or "\0" in str(location):
        problem = problem or f"a ledger must be a file or the URL of a server; got {type(location).__name__}"
    if problem:
        raise LedgerError(f"{problem}; nothing was made")
    path = Path(location).absolute()
    return f"sqlite:///{quote(str(path), safe=' +/')}", path


def shown(url: str) -> str:
    """Return a URL without its options and the password that it may hold."""
    return _masked(url, ":***")


def without_password(url: str) -> str:
    """Return a URL without its password, which may stand before the host or among the options."""
    place, _, options = url.partition("?")
    if _SERVER.fullmatch(place) is None:
        return url
    kept = [one for one in options.split("&") if one and not one.startswith("password=")]
    return _masked(place, "") + "?" * bool(kept) + "&".join(kept)


def _masked(url: str, mark: str) -> str:
    """Return a URL without its options, and with a mark in place of its password."""
    found = _SERVER.fullmatch(url)
    if found is None:
        return url
    user = "" if found["user"] is None else f"{found['user']}{mark * bool(found['password'])}@"
    return f"{found['begin']}{user}{found['rest']}"


def _check_file(path: Path, *, must_exist: bool) -> None:
    """Refuse a path that cannot be a ledger's file."""
    if path.is_dir():
        raise LedgerError(f"a ledger must be a file; {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise LedgerError(f"a ledger's folder must exist; {path.parent} does not; make it first")
    if must_exist and not path.exists():
        raise LedgerError(
            f"there is no ledger at {path}; name another file, or make a guard with ReusableHoldout(X, y, ledger=...)"
        )


def file_identity(path: str | Path) -> tuple[int, int] | None:
    """Return a value that changes when a file is replaced, and not when it grows; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - with every use of a ledger
    except OSError:
        return None
    return status.st_dev, status.st_ino


class Epoch(NamedTuple):
    """The number of an epoch, and the statements of its database; all methods take a cursor."""

    number: int
    sql: Statements

    def look(self, cursor: Any, question: bytes) -> tuple[int | None, Tail, Row | None]:
        """Return the number of the ledger's last epoch or None, the end of this epoch, and a question's row or None."""
        (found,) = fetch(cursor, self.sql.look, self.number, self.number, self.number, question)
        latest, query, charges, nats, asked, kind, sealed, charged, charge, *row = found
        if query is None:
            return latest, Tail.before(self.texts(cursor).get(self.number, "")), None
        if type(sealed) is not bytes:
            raise refusal("unsealed")
        tail = Tail(query, charges, nats, asked, kind, sealed, charged or b"", charge or 0)
        return latest, tail, None if row[0] is None else Row._make(row)

    def texts(self, cursor: Any) -> dict[int, str]:
        """Return the configurations of all epochs by their numbers; another program may have put anything there."""
        return {number: str(text) for number, text in fetch(cursor, self.sql.configurations)}

    def rows(self, cursor: Any, after: int, kind: str | None) -> list[Row]:
        """Return rows with query numbers above `after`, in order; if `kind` is given, only rows of this way to ask."""
        return list(map(Row._make, fetch(cursor, self.sql.rows, self.number, after, kind)))

    def find(self, cursor: Any, digests: Sequence[bytes], rows: int) -> dict[bytes, Row]:
        """Return the rows of the questions that were answered, by digest; `rows` is the number of rows in the epoch."""
        if rows < len(digests):  # then looking at all of them is cheaper
            known = {digest for (digest,) in fetch(cursor, self.sql.digests, self.number)}
            digests = list(known.intersection(digests))
        digests = sorted(digests)  # neighbours lie on the same pages of the index
        found: list[Any] = []
        for start in range(0, len(digests), CHUNK):
            chunk = digests[start : start + CHUNK]
            statement = self.sql.found.format(", ".join([self.sql.digest] * len(chunk)))
            found += fetch(cursor, statement, *chunk, self.number)
        return {row.digest: row for row in map(Row._make, found)}

    def stands(self, cursor: Any, head: Head) -> bool:
        """Return True if the ledger holds this head, of any epoch."""
        if head.query:
            return fetch(cursor, self.sql.seal_at, head.epoch, head.query) == [(head.seal,)]
        text = self.texts(cursor).get(head.epoch)
        return text is not None and genesis(text) == head.seal

    def append(self, cursor: Any, rows: Sequence[Row], sealed: bytes) -> Head:
        """Add the rows of one commit; return the new head."""
        if len(rows) > 1:  # plain tuples bind faster than named ones
            cursor.executemany(self.sql.insert.format(self.number), map(tuple, rows[:-1]))
        cursor.execute(self.sql.insert_sealed.format(self.number), (*rows[-1], sealed))
        return Head(self.number, rows[-1].query, sealed)

    def begin(self, cursor: Any, configuration: str, known_rows: bytes) -> Head:
        """Store a configuration; return the new head."""
        values = (self.number, SCHEMA, __version__, configuration, known_rows or None)
        cursor.execute(self.sql.configure, values)
        return Head(self.number, 0, genesis(configuration))


def fetch(cursor: Any, statement: str, *parameters: Any) -> list[Any]:
    """Return all rows of a statement."""
    return list(cursor.execute(statement, parameters).fetchall())
