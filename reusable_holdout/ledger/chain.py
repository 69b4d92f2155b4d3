"""Recomputing the hash chain of a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger.records import Row, Tail, genesis, seal, sums_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["chain_problems"]

_DIGEST_BYTES = 32
_TYPES = (int, int, bytes, float, float, int, *[float] * 5, int, float, int, float, int, *[str] * 4)


def chain_problems(
    configuration: str,
    rows: Sequence[Row],
    seals: Sequence[tuple[int, bytes]],
    *,
    expected_head: bytes | None = None,
    expected_queries: int | None = None,
) -> list[str]:
    """Say what was changed, removed or added since the rows were sealed.

    Finds every change but the removal of whole commits from the end; what was noted earlier finds that too.

    Parameters
    ----------
    configuration : str
        As stored.
    rows : sequence of Row
        All rows, in order.
    seals : sequence of (int, bytes)
        Query number of each commit's last row, with its seal.
    expected_head : bytes, optional
        Last seal at an earlier time: must still be in the chain.
    expected_queries : int, optional
        Number of rows at an earlier time: as many must still be there. With `expected_head`, where that seal stood.

    Returns
    -------
    list of str
        One sentence for each problem; empty for a sound chain. No sentence quotes a released value.
    """
    problems = list(_problems(configuration, rows, seals))
    if expected_queries is not None and len(rows) < expected_queries:
        problems.append(f"{expected_queries} rows were here, {len(rows)} are left: the end was cut off")
    if expected_head is not None:
        known = [(0, genesis(configuration)), *seals]
        if not any(stored == expected_head and expected_queries in {None, last} for last, stored in known):
            problems.append(
                "the expected head is not in the chain: rows were cut off or replaced since it was noted"
            )
    return problems


def _problems(configuration: str, rows: Sequence[Row], seals: Sequence[tuple[int, bytes]]) -> Iterator[str]:
    mistyped = [problem for row in rows for problem in _type_problems(row)]
    if mistyped:  # a database may hold anything in any column, and then nothing can be recomputed
        yield from mistyped
        return
    yield from _repeated(rows)
    for place, row in enumerate(rows, start=1):
        if row.query != place:
            yield f"row {place} is missing, or rows were swapped or renumbered: row {row.query!r} stands there"
            return
    tail = Tail.before(configuration)
    for last, stored in seals:
        if not isinstance(last, int) or not tail.query < last <= len(rows) or not isinstance(stored, bytes):
            yield f"a seal after row {tail.query} stands at no row of its own: rows or seals were removed or added"
            return
        commit = rows[tail.query : last]
        yield from sums_problems(tail, commit)
        if not _seals(stored, tail.seal, commit):
            first = "the configuration or " if tail.query == 0 else ""
            span = f"row {last}" if len(commit) == 1 else f"one of rows {tail.query + 1} to {last}"
            yield f"{first}{span} was changed after being sealed, or a row near it was removed or added"
        tail = Tail.after(commit[-1], stored, None)
    if tail.query < len(rows):
        yield f"rows {tail.query + 1} to {len(rows)} are not sealed: they were added, or rows after them were removed"


def _type_problems(row: Row) -> Iterator[str]:
    for name, value, kind in zip(Row._fields, row, _TYPES, strict=True):
        if type(value) is not kind or (isinstance(value, bytes) and len(value) != _DIGEST_BYTES):
            yield f"row {row.query!r}: its {name} must be of another type"


def _seals(stored: bytes, previous: bytes, commit: Sequence[Row]) -> bool:
    try:
        return seal(previous, commit) == stored
    except LedgerError:  # a text no ledger can write, so no ledger sealed it
        return False


def _repeated(rows: Sequence[Row]) -> Iterator[str]:
    first: dict[object, int] = {}
    for place, row in enumerate(rows, start=1):
        if first.setdefault(row.digest, place) != place:
            yield f"rows {first[row.digest]} and {place} answer the same question"
