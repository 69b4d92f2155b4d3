"""Epochs of a ledger, read whole to be verified."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reusable_holdout.errors import HoldoutError, LedgerError
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.ledger import genesis
from reusable_holdout.witness import witness_at

if TYPE_CHECKING:
    from pathlib import Path

    from reusable_holdout.ledger import Row
    from reusable_holdout.witness import Head

__all__ = ["Epoch", "read_epochs"]


class Epoch(NamedTuple):
    """One epoch, as it lies in the ledger.

    Attributes
    ----------
    text : str
        Its configuration.
    rows : list of Row
    seals : list of (int, bytes)
        Query number of each commit's last row, with the commit's seal.
    known_rows : bytes
    """

    text: str
    rows: list[Row]
    seals: list[tuple[int, bytes]]
    known_rows: bytes

    def chain(self) -> list[str]:
        """Seals in order, from that of the configuration; hex."""
        return [
            genesis(self.text).hex(),
            *(sealed.hex() for _, sealed in self.seals if isinstance(sealed, bytes)),
        ]


def read_epochs(ledger: str | Path, witness: str | Path | None) -> tuple[list[Epoch], Head | None]:
    """Epochs of a ledger, and what its witness had seen before they were read.

    Parameters
    ----------
    ledger : str or Path
        SQLite file or URL.
    witness : str, Path or None
        None for the one that stands in the ledger.

    Raises
    ------
    LedgerError
        If there is no such ledger, or it holds no guard.
    """
    from reusable_holdout.ledger import SqlLedger  # noqa: PLC0415 - loads SQLAlchemy

    store = SqlLedger(ledger, must_exist=True)
    try:
        epochs, last = [], store.configuration()
        if last is None:
            raise LedgerError("the ledger holds no guard: there is nothing to verify")
        seen = _seen(last, witness)
        for number, text in enumerate(store.configurations(), start=1):
            rows = store.rows(after=-(1 << 62), epoch=number)  # none is below 1 unless somebody added it
            seals = store.seals(epoch=number)
            # others were committed meanwhile
            seals = [one for one in seals if rows and one[0] <= rows[-1].query]
            epochs.append(Epoch(text, rows, seals, store.known_rows(number)))
    finally:
        store.close()
    return epochs, seen


def _seen(text: str, witness: str | Path | None) -> Head | None:
    """Highest head that a witness has seen; None if there is none, or not one that was not named can be reached."""
    try:
        place = Configuration.parse(text).witness if witness is None else witness
        return witness_at(place).read() if place else None
    except HoldoutError:
        if witness is not None:
            raise
        return None
