"""Recomputing the hash chain of a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger.records import Row, Tail, check_follows, genesis, seal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["chain_problems"]

_DIGEST_BYTES = 32
_KINDS = Row(int, int, bytes, float, float, int, float, float, float, float, int, float, float, str)  # type: ignore[arg-type]


def chain_problems(
    configuration: str,
    rows: Sequence[Row],
    seals: Sequence[tuple[int, bytes]],
) -> list[str]:
    """Say what was changed, removed or added since the rows were sealed.

    Finds every change but the removal of whole commits from the end; for that, compare the last seal with one noted
    earlier.

    Parameters
    ----------
    configuration : str
        As stored.
    rows : sequence of Row
        All rows, in order.
    seals : sequence of (int, bytes)
        Query number of each commit's last row, with its seal.

    Returns
    -------
    list of str
        One sentence for each problem; empty for a sound chain.
    """
    return list(_problems(configuration, rows, seals))


def _problems(configuration: str, rows: Sequence[Row], seals: Sequence[tuple[int, bytes]]) -> Iterator[str]:
    mistyped = [problem for row in rows for problem in _type_problems(row)]
    if mistyped:  # a database may hold anything in any column, and then nothing can be recomputed
        yield from mistyped
        return
    for place, row in enumerate(rows, start=1):
        if row.query != place:
            yield f"row {place} is missing: the next one found is {row.query}"
            return
    previous, done, charges, nats = genesis(configuration), 0, 0, 0.0
    for last, stored in seals:
        commit = rows[done:last]
        if not commit or len(rows) < last:
            yield f"a commit ends at row {last}, but {len(rows)} rows are there"
            return
        yield from _row_problems(Tail(done, charges, nats, previous), commit)
        if seal(previous, commit) != stored:
            first = "the configuration or " if done == 0 else ""
            span = f"row {last}" if last == done + 1 else f"rows {done + 1} to {last}"
            yield f"{first}{span} changed after being sealed, or what stands before did"
        previous, done = stored, last
        charges, nats = commit[-1].charges, commit[-1].spent_nats
    if done < len(rows):
        yield f"rows {done + 1} to {len(rows)} are not sealed: they were added, or rows after them were removed"
    if len({row.digest for row in rows}) < len(rows):
        yield "a question was answered twice"


def _type_problems(row: Row) -> Iterator[str]:
    for name, value, kind in zip(Row._fields, row, _KINDS, strict=True):
        if type(value) is not kind or (isinstance(value, bytes) and len(value) != _DIGEST_BYTES):
            yield f"row {row.query!r}: its {name} must be of another type"


def _row_problems(tail: Tail, commit: Sequence[Row]) -> Iterator[str]:
    try:
        check_follows(tail, commit)
    except LedgerError:
        yield f"the sums in rows {tail.query + 1} to {commit[-1].query} do not continue those before"
    if any(row.batch != tail.query + 1 for row in commit):
        yield f"rows {tail.query + 1} to {commit[-1].query} are one batch, but do not say so"
