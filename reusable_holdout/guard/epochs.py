"""The start of a new epoch in a ledger: for other rows, or for the same rows under another plan.

Another plan is possible only while nothing has been released about the rows.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from reusable_holdout.errors import LedgerMismatchError
from reusable_holdout.guard.configuration import OVERLAP, Configuration
from reusable_holdout.guard.known_rows import OwnedRows
from reusable_holdout.guard.views import Counts, tells
from reusable_holdout.ledger import Ledger, Transaction


def planned_anew(ledger: Ledger, wanted: Configuration, rows: OwnedRows, key: bytes, witness: str) -> Ledger:
    """Return the ledger in which the rows have the wanted configuration, if need be in a new epoch.

    Nothing is rewritten: a guard that still uses the earlier plan finds that its epoch is over. A LedgerMismatchError
    is raised if answers were released under the earlier plan.
    """
    text = ledger.configuration()
    if text is None:
        return ledger
    stored = Configuration.parse(text)
    with contextlib.suppress(LedgerMismatchError):
        wanted.check_same(stored)
        return ledger
    if (wanted.key, wanted.holdout) != (stored.key, stored.holdout):  # other rows: the caller refuses them
        return ledger
    rows.check_same(stored, key)
    if OVERLAP in stored.allow and OVERLAP not in wanted.allow:
        raise LedgerMismatchError(
            'once overlap was allowed for rows, every plan of them must allow it; got no allow={"overlap"}; nothing '
            "was changed; pass it again"
        )
    kept = rows.kept(key, epoch=ledger.epoch + 1)
    marks = replace(wanted, another_budget=stored.another_budget, witness=witness)
    follows = replace(marks, known_rows=kept.digests)
    with ledger.transaction() as transaction:
        asked = transaction.tail.query
        known = guesses(stored.counts, stored.metric) == guesses(wanted.counts, wanted.metric)
        if asked or (tells(stored.counts) and not known):
            heard = f"queries answered: {asked:,}" if asked else "class counts were told"
            raise LedgerMismatchError(
                f"rows can get another plan only before anything about them was told; {heard}; nothing was changed; "
                "resume with ReusableHoldout.open, or use fresh rows and another ledger"
            )
        begin_epoch(ledger, transaction, follows, kept.text)
    latest = ledger.latest()
    ledger.close()
    return latest


def guesses(counts: Counts | None, metric: dict[str, Any]) -> tuple[Any, ...]:
    """Return the guess of the class counts, True if the counts must be released, and the metric they serve."""
    return counts and counts.prevalence, tells(counts), metric


def begin_epoch(
    ledger: Ledger, transaction: Transaction, configuration: Configuration, known_rows: bytes
) -> None:
    """End the current epoch of a ledger, and begin the next, sealed to it."""
    follows = replace(configuration, epoch=ledger.epoch + 1, previous=transaction.tail.seal.hex())
    transaction.rotate(follows.text(), known_rows)
