"""The history of an epoch, as anyone can read it without the holdout and its key."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.earlier import Earlier
from reusable_holdout.errors import InputError, LedgerError, printable
from reusable_holdout.guard.configuration import Configuration, facts_of
from reusable_holdout.guard.views import VIEW
from reusable_holdout.ledger import Ledger, Row, SqlLedger
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.slips import checked_call
from reusable_holdout.ways import Allowance, Told
from reusable_holdout.ways.table import PAIRED, outcome_word

COLUMNS = [
    *("query", "view", "metric", "name", "series"),
    *("prior", "value", "low", "high", "threshold"),
    *("outcome", "charged", "way", "told", "nats", "asked"),
    *("paired", "charges_left", "asked_at", "measured"),
]
"""Columns of a history."""


class Released(NamedTuple):
    """The history of a ledger, with the facts needed to draw it.

    Attributes
    ----------
    history : pandas.DataFrame
        The history, as :meth:`ReusableHoldout.history`.
    charges : int
        The whole budget.
    metric : str
        Name of the metric.
    mistake : str
        Known error in its certificate, in words; empty if none is known.
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
        Number of a holdout of the ledger, from 1; by default the last.

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
    """Read one epoch of a ledger; InputError if the ledger has no such epoch."""
    configurations = ledger.configurations()
    if not isinstance(epoch, int) or not 1 <= epoch <= len(configurations):
        raise InputError(f"epoch must be a whole number from 1 to {len(configurations)}; got {epoch!r}")
    facts, rows = facts_of(configurations[epoch - 1]), ledger.rows(epoch=epoch)
    mistake = facts.mistake if isinstance(facts, Earlier) else ""
    return Released(history_of(facts, rows), facts.plan["charges"], facts.metric["name"], mistake)


def history_of(facts: Configuration | Earlier, rows: Sequence[Row]) -> pd.DataFrame:
    """Return the history of an epoch's rows, of this version or an earlier one, in the units of their metrics."""
    if isinstance(facts, Earlier):
        return _frame(facts.released(rows))
    views, allowance = facts.views(rows), Allowance.of(facts.plan)
    names = [views[0].metric["name"], *(row.name for row in rows if row.kind == VIEW)]
    units = [[Unit.of(view.metric, paired=paired) for paired in (False, True)] for view in views]
    left, found = allowance.left_after(rows), []
    for row, charges_left in zip(rows, left, strict=True):
        number = int(row.value) if row.kind == VIEW else row.view
        paired, told = row.kind in PAIRED, Told.parse(row.told)
        unit = units[row.view][paired]
        low, high = unit.ends(row.low, row.high)
        numbers = (unit.own(row.prior), unit.own(row.value), low, high, row.threshold * unit.span)
        if row.kind == VIEW:
            numbers, word = (0.0, row.value, 0.0, 0.0, 0.0), VIEW
        else:
            word = "failed" if told is None else outcome_word(row.kind, told)
        if word == "failed":
            numbers = (*numbers[:1], np.nan, np.nan, np.nan, numbers[4])
        of_view = 0 if row.kind == VIEW else number
        about = (row.query, of_view, names[number], *map(printable, (row.name, row.series)))
        text = (
            "" if row.kind == VIEW and views[number].adds else row.told
        )  # else digests of all rows that it adds
        outcome = (word, bool(row.charged), row.kind, text, row.nats, row.asked)
        found.append((*about, *numbers, *outcome, paired, charges_left, row.asked_at))
    return _frame(found)


def _frame(found: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    frame = pd.DataFrame(found, columns=COLUMNS[:-1])
    frame = frame.astype({"charged": bool, "paired": bool, "charges_left": np.int64})
    frame["asked_at"] = pd.to_datetime(frame["asked_at"], unit="s", utc=True)
    told = [Told.parse(text) for text in frame["told"]]
    frame["measured"] = frame["value"].where(
        np.array([one is not None and one.says_a_value for one in told], dtype=bool)
    )
    return frame
