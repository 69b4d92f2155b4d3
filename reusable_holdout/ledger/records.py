"""Rows of a ledger, the hash chain that seals them, and the problems that recomputing it finds."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_type_hints

from reusable_holdout.errors import LedgerError

_SEAL_BYTES = 32
_DIGEST_BYTES = 32
_ROUNDING = 1e-9  # of sums that were added up in another order
_NUMBERS = struct.Struct(">qq32sddqdddddqdqdq")  # all columns but the texts, in their order
_TEXTS = 4


class Row(NamedTuple):
    """One released answer. Sums run over the whole ledger up to and including this row.

    Attributes
    ----------
    query : int
        Number of the answer: from 1, without gaps.
    batch : int
        Query at which the row's batch began.
    digest : bytes
        32 bytes that name the question.
    prior, value, threshold, tolerance, low, high : float
        In the metric's unit. A tolerance of 0 says that the question named none of its own.
    charged : int
        0 or 1.
    nats : float
        Cost of the outcome.
    charges, spent_nats : int, float
        Sums of `charged` and `nats`.
    asked : int
        Sum of the declared queries that answers took: a choice takes one for each candidate, a final none, others one.
    asked_at : float
        Unix seconds.
    view : int
        Number of the view that was asked about: 0 is the guard's own metric, others were opened later.
    kind : str
        The way in which it was asked.
    told : str
        Name of the outcome.
    name : str
        The analyst's name of the question, as one plain line; ledgers of 0.2.0 hold some names unchanged.
    series : str
        Series of the question; a ladder keeps a best for each series.
    """

    query: int
    batch: int
    digest: bytes
    prior: float
    value: float
    charged: int
    threshold: float
    tolerance: float
    low: float
    high: float
    nats: float
    charges: int
    spent_nats: float
    asked: int
    asked_at: float
    view: int
    kind: str
    told: str
    name: str
    series: str = ""


COLUMNS: dict[str, type] = get_type_hints(Row)  # in their order


class Tail(NamedTuple):
    """Sums at the end of a ledger, the kind of its last row, the seal of its last commit, and its last charge.

    Attributes
    ----------
    last_charged : bytes
        Digest of the question that was charged last; empty if none was.
    last_charge : int
        Declared queries that were taken up to the last charge.
    """

    query: int
    charges: int
    spent_nats: float
    asked: int
    kind: str
    seal: bytes
    last_charged: bytes = b""
    last_charge: int = 0

    @classmethod
    def before(cls, configuration: str) -> Tail:
        """Return the end of a ledger that has a configuration and no row."""
        return cls(0, 0, 0.0, 0, "", genesis(configuration))


def genesis(configuration: str) -> bytes:
    """Return the seal of an empty ledger, which seals its configuration."""
    return hashlib.blake2b(configuration.encode(), digest_size=_SEAL_BYTES, person=b"genesis").digest()


def seal(previous: bytes, rows: Sequence[Row]) -> bytes:
    """Return the seal of a commit: a digest of the seal before it and of every column of its rows.

    The encoding holds the number of rows, the lengths of all texts, all numbers in fixed widths, and the texts. So
    different rows have different encodings.

    Raises
    ------
    LedgerError
        If a column's value does not fit its type, because other rows could then have the same encoding.
    """
    sealed = _sealed(previous, rows)
    if sealed is None:  # raised here, because an encoder's error would quote the value
        raise LedgerError(
            "a row's columns must hold integers, floats, a digest of 32 bytes and a text that UTF-8 can write; "
            "one does not; nothing was written"
        )
    return sealed


def _sealed(previous: bytes, rows: Sequence[Row]) -> bytes | None:
    """Return the seal of a commit; None if a column's value does not fit its type."""
    try:
        if any(len(row[2]) != _DIGEST_BYTES for row in rows):  # struct would pad or cut it without a word
            return None
        numbers = [_NUMBERS.pack(*row[:-_TEXTS]) for row in rows]
        texts = [text.encode() for row in rows for text in (row.kind, row.told, row.name, row.series)]
    except (struct.error, TypeError, AttributeError, OverflowError, UnicodeEncodeError):
        return None
    lengths = struct.pack(f">{len(texts) + 1}q", len(rows), *map(len, texts))
    encoded = b"".join([previous, lengths, *numbers, *texts])
    return hashlib.blake2b(encoded, digest_size=_SEAL_BYTES, person=b"commit").digest()


def check_follows(tail: Tail, rows: Sequence[Row]) -> None:
    """Raise a LedgerError if rows do not continue the ledger as one batch.

    Their numbers must have no gaps, their sums must be right, all values finite, and all rows of the same batch.
    """
    problem = next(_sums_problems(tail, rows), None)
    if problem is not None:
        raise LedgerError(
            f"a new row must continue the ledger after query {tail.query}; {problem}; nothing was written"
        )


def _sums_problems(tail: Tail, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the rows of one commit whose numbers and running totals do not follow from the rows before, in words."""
    number, charges, nats, batch = tail.query, tail.charges, tail.spent_nats, tail.query + 1
    asked = tail.asked
    for row in rows:
        query, began, _, prior, value, charged, threshold, tolerance = row[:8]
        low, high, cost, sum_charged, sum_cost, sum_asked, at = row[8:15]
        number += 1
        try:
            charges += charged
            nats += cost
            sound = (
                sum_charged == charges
                and abs(sum_cost - nats) <= _ROUNDING * (1.0 + abs(nats))
                and sum_asked >= asked
                and (charged == 0 or charged == 1)  # noqa: PLR1714 - faster than a set, and on the hot path
            )
            finite = math.isfinite(prior + value + threshold + tolerance + low + high + nats + at)
        except TypeError:  # only rows that another program changed hold other types
            yield f"row {number} holds something other than numbers"
            return
        asked = sum_asked
        if query != number:
            yield f"row {number} says it is row {query!r}"
        if began != batch:
            yield f"row {number} belongs to the batch that began at row {batch}, but names another"
        if not sound:
            yield f"the sums in row {number} do not continue those before"
            charges, nats = sum_charged, sum_cost  # one wrong sum is one problem, not one for every later row
        if not finite:
            yield f"row {number} holds a value that is not finite"


# ---- recomputing


def chain_problems(configuration: str, rows: Sequence[Row], seals: Sequence[tuple[int, bytes]]) -> list[str]:
    """Return the changes, removals and additions since the rows were sealed.

    Every change is found but one: the removal of whole commits from the end leaves a sound chain with an earlier head.

    Parameters
    ----------
    configuration : str
        The stored configuration.
    rows : sequence of Row
        All rows, in order.
    seals : sequence of (int, bytes)
        Query number of each commit's last row, with its seal.

    Returns
    -------
    list of str
        One sentence for each problem; empty for a sound chain. No sentence quotes a released value.
    """
    return list(_problems(configuration, rows, seals))


def _problems(configuration: str, rows: Sequence[Row], seals: Sequence[tuple[int, bytes]]) -> Iterator[str]:
    mistyped = [
        f"row {row.query!r}: its {name} is of the wrong type"
        for row in rows
        for (name, kind), value in zip(COLUMNS.items(), row, strict=True)
        if type(value) is not kind or (isinstance(value, bytes) and len(value) != _DIGEST_BYTES)
    ]
    if mistyped:  # a database may hold anything in any column, and then nothing can be recomputed
        yield from mistyped
        return
    first: dict[bytes, int] = {}
    for place, row in enumerate(rows, start=1):
        if first.setdefault(row.digest, place) != place:
            yield f"rows {first[row.digest]} and {place} answer the same question"
        if row.query != place:
            yield f"row {place} is missing, or rows were swapped or renumbered: row {row.query!r} stands there"
            return
    tail = Tail.before(configuration)
    for last, stored in seals:
        if not isinstance(last, int) or not tail.query < last <= len(rows) or not isinstance(stored, bytes):
            yield f"the seal after row {tail.query} belongs to no later row: rows or seals were removed or added"
            return
        commit = rows[tail.query : last]
        yield from _sums_problems(tail, commit)
        if _sealed(tail.seal, commit) != stored:
            which = "the configuration or " if tail.query == 0 else ""
            span = f"row {last}" if len(commit) == 1 else f"one of rows {tail.query + 1} to {last}"
            yield f"{which}{span} was changed after being sealed, or a row near it was removed or added"
        row = commit[-1]
        tail = Tail(row.query, row.charges, row.spent_nats, row.asked, row.kind, stored)
    if tail.query < len(rows):
        yield f"rows {tail.query + 1} to {len(rows)} are not sealed: they were added, or rows after them were removed"
