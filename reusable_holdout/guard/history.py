"""What a ledger shows to anyone: the released answers, what is left of the charges, and epochs as they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.errors import HoldoutError, InputError, LedgerError
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.guard.kinds import Allowance
from reusable_holdout.guard.views import VIEW
from reusable_holdout.ledger import Row, genesis
from reusable_holdout.slips import checked_call

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from reusable_holdout import witness as witnesses
    from reusable_holdout.ledger import Ledger
    from reusable_holdout.witness import Head
else:  # of a ledger that has one
    (witnesses,) = modules_on_first_use("reusable_holdout", "witness")

__all__ = [
    "Epoch",
    "Released",
    "history_frame",
    "read_epochs",
    "released",
    "released_by",
]


_COLUMNS = [
    "query",
    "view",
    "metric",
    "name",
    "series",
    "prior",
    "value",
    "charged",
    "low",
    "high",
    "threshold",
    "kind",
    "told",
    "nats",
    "asked",
    "paired",
    "charges_left",
    "asked_at",
]


class Released(NamedTuple):
    """History of a ledger, with what is needed to draw it.

    Attributes
    ----------
    history : pandas.DataFrame
        As :meth:`ReusableHoldout.history`.
    charges : int
        The whole budget.
    metric : str
        Name of the metric.
    """

    history: pd.DataFrame
    charges: int
    metric: str


@checked_call
def released(ledger: str | Path, *, epoch: int | None = None) -> Released:
    """Read a ledger without the holdout and its key.

    Parameters
    ----------
    ledger : str or Path
        SQLite file or URL.
    epoch : int, optional
        Of its holdouts, from 1; the last by default.

    Raises
    ------
    LedgerError
        If there is no such ledger, or it holds no guard.
    InputError
        If there is no such epoch.
    """
    from reusable_holdout.ledger import SqlLedger  # noqa: PLC0415 - loads SQLAlchemy

    store = SqlLedger(ledger, must_exist=True)
    try:
        if store.configuration() is None:
            raise LedgerError(f"{store!r} holds no guard yet")
        return released_by(store, store.epoch if epoch is None else epoch)
    finally:
        store.close()


def released_by(ledger: Ledger, epoch: int) -> Released:
    """Read one epoch of a ledger.

    Raises
    ------
    InputError
        If there is no such epoch.
    """
    configurations = ledger.configurations()
    if not isinstance(epoch, int) or not 1 <= epoch <= len(configurations):
        raise InputError(f"epoch must be a whole number from 1 to {len(configurations)}; got {epoch!r}")
    configuration = Configuration.parse(configurations[epoch - 1])
    metric = configuration.metric["name"]
    history = history_frame(ledger.rows(epoch=epoch), Allowance.of(configuration.plan), metric)
    return Released(history, configuration.plan["charges"], metric)


def history_frame(rows: Sequence[Row], allowance: Allowance, metric: str) -> pd.DataFrame:
    """Frame of released answers.

    Parameters
    ----------
    rows : sequence of Row
        In order.
    allowance : Allowance
    metric : str
        Name of the guard's own; what others are called, they were opened with.
    """
    import pandas as pd  # noqa: PLC0415 - slow to import, and asking does not need it

    frame = pd.DataFrame(rows, columns=list(Row._fields))
    names = [metric, *(row.name for row in rows if row.kind == VIEW)]
    frame["metric"] = [names[int(row.value) if row.kind == VIEW else row.view] for row in rows]
    frame["charged"] = frame["charged"].astype(bool)
    frame["paired"] = frame["kind"].str.endswith("compare").astype(bool)
    frame["charges_left"] = np.array(allowance.left_after(rows), dtype=np.int64)
    frame["asked_at"] = pd.to_datetime(frame["asked_at"], unit="s", utc=True)
    return frame[_COLUMNS]


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
        return witnesses.witness_at(place).read() if place else None
    except HoldoutError:
        if witness is not None:
            raise
        return None
