"""One epoch of a ledger, read and written with a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from reusable_holdout.ledger.failures import refusal
from reusable_holdout.ledger.records import Row, Tail, genesis
from reusable_holdout.ledger.schema import CHUNK, SCHEMA, Statements
from reusable_holdout.version import __version__
from reusable_holdout.witness import Head

__all__ = ["Epoch", "fetch"]


class Epoch(NamedTuple):
    """The number of an epoch, and the statements of its database; all methods take a cursor."""

    number: int
    sql: Statements

    def look(self, cursor: Any, question: bytes) -> tuple[int | None, Tail, Row | None]:
        """Return the ledger's last epoch, if it has any; the end of this one; the row of a question, if it has one."""
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
        """Return rows with query numbers above `after`, in order; of one way to ask, if it is named."""
        return list(map(Row._make, fetch(cursor, self.sql.rows, self.number, after, kind)))

    def find(self, cursor: Any, digests: Sequence[bytes], rows: int) -> dict[bytes, Row]:
        """Return the rows of the questions that were answered, of so many rows."""
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
        """Return True if a head, of any epoch, stands in the ledger."""
        if head.query:
            return fetch(cursor, self.sql.seal_at, head.epoch, head.query) == [(head.seal,)]
        text = self.texts(cursor).get(head.epoch)
        return text is not None and genesis(text) == head.seal

    def append(self, cursor: Any, rows: Sequence[Row], sealed: bytes) -> Head:
        """Add the rows of one commit; return the head with them."""
        if len(rows) > 1:  # plain tuples bind faster than named ones
            cursor.executemany(self.sql.insert.format(self.number), map(tuple, rows[:-1]))
        cursor.execute(self.sql.insert_sealed.format(self.number), (*rows[-1], sealed))
        return Head(self.number, rows[-1].query, sealed)

    def begin(self, cursor: Any, configuration: str, known_rows: bytes) -> Head:
        """Store a configuration; return the head with it."""
        values = (self.number, SCHEMA, __version__, configuration, known_rows or None)
        cursor.execute(self.sql.configure, values)
        return Head(self.number, 0, genesis(configuration))


def fetch(cursor: Any, statement: str, *parameters: Any) -> list[Any]:
    """Return all rows of a statement."""
    found: list[Any] = cursor.execute(statement, parameters).fetchall()
    return found
