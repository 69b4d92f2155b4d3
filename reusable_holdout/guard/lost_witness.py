"""A ledger whose witness was lost, and the new witness that replaces it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from reusable_holdout import witness as witnesses
from reusable_holdout.errors import LedgerError
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.guard.stores import find_key, sql_ledger

__all__ = ["begin_witness"]


def begin_witness(ledger: str | Path, *, key: Path | None = None) -> str:
    """Let a ledger's witness that was lost, and has seen nothing, begin at the ledger as it is; where it is.

    Parameters
    ----------
    ledger : str or Path
    key : Path, optional
        Noise key, if it does not lie beside the ledger.

    Raises
    ------
    LedgerError
        If the ledger has no witness, or it has seen something.
    """
    with closing(sql_ledger(ledger, must_exist=True)) as store:
        place = Configuration.parse(store.configuration() or "").witness
        if not place:
            raise LedgerError(
                f"the ledger {store.place} must have a witness; it has none; open its guard with witness="
            )
        witness = witnesses.witness_at(place, find_key(store, key=key, seed=None)[0])
        if witness.read() is not None:
            raise LedgerError(
                f"a witness begins anew where it has seen nothing; {place} remembers this ledger; nothing was changed; "
                "verify says whether the ledger goes on from that"
            )
        store.watched_by(witness, may_begin=True)
    return place
