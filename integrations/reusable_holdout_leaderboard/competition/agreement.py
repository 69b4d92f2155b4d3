"""Whether a board and its ledger are of the same moment: each of them shows when the other was restored."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reusable_holdout.errors import RolledBackError
from reusable_holdout.ledger import genesis
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.witness import Head
from reusable_holdout_leaderboard.competition.epoch import head_of
from reusable_holdout_leaderboard.store.records import StoreError
from reusable_holdout_leaderboard.store.store import Store

__all__ = ["check_agreement"]

_NUMBERED = re.compile(r".+ #(\d{1,18})", re.DOTALL)


def check_agreement(store: Store, number: int, place: str) -> None:
    """Refuse a ledger that is older than its board, and a board that is older than its ledger.

    The board keeps the ledger's head as it was after the last answer that was recorded. The ledger may be ahead of it
    only by questions whose submissions the board knows: they were reserved before they were asked.

    Parameters
    ----------
    store : Store
    number : int
        Of the competition.
    place : str
        File or URL of the ledger.

    Raises
    ------
    RolledBackError
        If the ledger is older, or another: its budget would be spent twice.
    StoreError
        If the board is older: it lacks submissions that were answered.
    """
    ledger = SqlLedger(place, must_exist=True)
    try:
        seen = store.ledger_head(number)
        if seen is not None and not _stands_in(seen, ledger):
            here = head_of(ledger)
            raise RolledBackError(
                f"a ledger must go on from what its board has seen, {seen.query} answers of label set {seen.epoch}; "
                f"{ledger.place} has {here.query} of label set {here.epoch}, or others: an older copy was restored; "
                "nothing is answered; put the newest copy back, or hold another competition on fresh labels: a "
                "budget is never refilled"
            )
        asked = set(
            _numbers_after(seen, ledger)
        )  # before the board is looked at: it knows each of them by then
    finally:
        ledger.close()
    given = store.numbers_given()
    missing = [one for one in asked if one > given]
    if missing:
        raise StoreError(
            f"a board must know every submission that its ledger has answered; it has given {given} numbers, and lacks "
            f"{len(missing)} of those that were answered: an older board was restored; nothing is answered; "
            "put the newest copy back, or restore board and ledger from one backup: 'reusable-holdout board restore'"
        )


def _stands_in(seen: Head, ledger: SqlLedger) -> bool:
    configurations = ledger.configurations()
    if not 1 <= seen.epoch <= len(configurations):
        return False
    if seen.query == 0:
        return genesis(configurations[seen.epoch - 1]) == seen.seal
    return dict(ledger.seals(epoch=seen.epoch)).get(seen.query) == seen.seal


def _numbers_after(seen: Head | None, ledger: SqlLedger) -> Iterator[int]:
    """Numbers of the submissions that the ledger has answered since; questions of other names are not the board's."""
    first = 1 if seen is None else seen.epoch
    for epoch in range(first, ledger.epoch + 1):
        after = seen.query if seen is not None and epoch == seen.epoch else 0
        for row in ledger.rows(after, epoch=epoch):
            numbered = _NUMBERED.fullmatch(row.name)
            if numbered is not None:
                yield int(numbered[1])
