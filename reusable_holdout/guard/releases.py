"""History of an epoch: all that was released, as anyone can read it without the holdout and its key."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reusable_holdout.certainty import edition
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError, LedgerError, printable
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.guard.kinds import Allowance, failed
from reusable_holdout.guard.views import VIEW
from reusable_holdout.ledger import Ledger, Row, SqlLedger
from reusable_holdout.slips import checked_call

__all__ = ["Released", "history_frame", "released", "released_by"]

_COLUMNS = [
    *("query", "view", "metric", "name", "series", "prior", "value", "charged", "low", "high", "threshold"),
    *("kind", "told", "nats", "asked", "paired", "charges_left", "asked_at"),
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
    mistake : str
        What was wrong with its certificate, in words; empty if nothing is known to be.
    """

    history: pd.DataFrame
    charges: int
    metric: str
    mistake: str = ""


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
    with contextlib.closing(SqlLedger(ledger, must_exist=True)) as store:
        if store.configuration() is None:
            raise LedgerError(f"{store!r} holds no guard yet")
        return released_by(store, store.epoch if epoch is None else epoch)


def released_by(ledger: Ledger, epoch: int) -> Released:
    """Read one epoch of a ledger; an InputError if there is no such."""
    configurations = ledger.configurations()
    if not isinstance(epoch, int) or not 1 <= epoch <= len(configurations):
        raise InputError(f"epoch must be a whole number from 1 to {len(configurations)}; got {epoch!r}")
    configuration = Configuration.parse(configurations[epoch - 1])
    metric = configuration.metric["name"]
    rows = ledger.rows(epoch=epoch)
    history = history_frame(rows, Allowance.of(configuration.plan), metric)
    if edition(
        configuration.rules["scores"]["theory"]
    ).failures_reserved:  # before, they were shown the worst value
        history.loc[[failed(row) for row in rows], ["value", "low", "high"]] = np.nan
    return Released(history, configuration.plan["charges"], metric, configuration.mistake)


def history_frame(rows: Sequence[Row], allowance: Allowance, metric: str) -> pd.DataFrame:
    """Frame of released answers, in order, with the name of the guard's own metric; others were opened with theirs."""
    frame = pd.DataFrame(rows, columns=list(Row._fields))
    names = [metric, *(row.name for row in rows if row.kind == VIEW)]
    frame["metric"] = [names[int(row.value) if row.kind == VIEW else row.view] for row in rows]
    for column in ("metric", "name", "series") if rows else ():  # older ledgers keep names as they came
        frame[column] = frame[column].map(printable)
    frame["charged"] = frame["charged"].astype(bool)
    frame["paired"] = frame["kind"].str.endswith("compare").astype(bool)
    frame["charges_left"] = np.array(allowance.left_after(rows), dtype=np.int64)
    frame["asked_at"] = pd.to_datetime(frame["asked_at"], unit="s", utc=True)
    return frame[_COLUMNS]
