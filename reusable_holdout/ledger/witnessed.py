"""Whether a ledger goes on from what its witness has seen of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reusable_holdout.errors import RolledBackError
from reusable_holdout.ledger.records import genesis
from reusable_holdout.ledger.schema import plain
from reusable_holdout.witness import Head

if TYPE_CHECKING:
    from reusable_holdout.ledger.connection import Connected

__all__ = ["check_goes_on", "lost", "rolled_back", "tell"]


def check_goes_on(ledger: Connected, cursor: Any, here: Head, seen: Head) -> None:
    """Refuse a ledger in which the witness's head does not stand: it may be ahead of that, never behind.

    Parameters
    ----------
    ledger : Connected
    cursor : Any
        In a transaction, or of a read.
    here : Head
        The ledger's, as it was read before.
    seen : Head
        The witness's.

    Raises
    ------
    RolledBackError
        If it does not.
    """
    if seen == here:
        return
    sql = ledger._sql_of(seen.epoch)  # perhaps a later one than here: others rotate
    if seen.query:
        cursor.execute(sql.seal_at, (seen.query,))
        found = cursor.fetchone()
        known = None if found is None else plain(found[0])
    else:
        cursor.execute(sql.configuration)
        found = cursor.fetchone()
        known = None if found is None else genesis(found[0])
    if known != seen.seal:
        raise rolled_back(ledger.place, here, seen)


def tell(ledger: Connected, head: Head, seen: Head | None) -> None:
    """Tell the witness of a head that is committed, after the one that it was seen to hold.

    Raises
    ------
    RolledBackError
        If it has been told of another meanwhile that is not of this ledger.
    """
    if ledger.witness is None:
        return
    held = ledger.witness.advance(head, after=seen)
    while held != head:  # another process of this ledger has told it of its own, or a copy of the ledger has

        def work(cursor: Any, held: Head = held) -> None:
            tail = ledger._tail(cursor)
            check_goes_on(ledger, cursor, Head(ledger.epoch, tail.query, tail.seal), held)

        ledger._read(work)
        if not head.is_later_than(held):
            return
        held = ledger.witness.advance(head, after=held)


def rolled_back(place: str, here: Head, seen: Head) -> RolledBackError:
    """Error of a ledger that is not a successor of what its witness saw."""
    return RolledBackError(
        f"a ledger must go on from what its witness has seen, {seen.query} answers of epoch {seen.epoch}; {place} has "
        f"{here.query} of epoch {here.epoch}, or others: an older copy was restored, or two copies were used; nothing "
        "is answered; put the newest copy back, or guard fresh rows: a budget is never refilled"
    )


def lost(place: str, witness: str) -> RolledBackError:
    """Error of a ledger with answers whose witness has seen nothing."""
    return RolledBackError(
        f"a ledger's witness must have seen it; that of {place} is {witness}, which has seen nothing: it was lost, or "
        "is another; nothing was answered and nothing was charged; restore it, or, if you are sure that this is the "
        "newest copy of the ledger, begin it anew: reusable-holdout witness LEDGER"
    )
