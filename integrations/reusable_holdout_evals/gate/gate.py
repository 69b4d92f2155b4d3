"""The release gate: a guard that is made of labels or of ids, and opened again where it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.plan import Plan
from reusable_holdout_evals.gate.tables import read_labels
from reusable_holdout_evals.guards import (
    ReusableHoldout,
    check_gate,
    made_gate,
    metric_of,
    open_copy,
    open_guard,
    planned_gate,
    sealed,
)

__all__ = ["Gate", "make_gate", "open_gate"]


class Gate(NamedTuple):
    """An open gate. At the end of a ``with`` block it closes its guard.

    Attributes
    ----------
    guard : ReusableHoldout
        A guard of policy "gate".
    ids : numpy.ndarray of str or None
        Ids of the rows, of shape (rows,), by which predictions are aligned; None if their order tells rows apart.
    id_column : str or None
        Name of the column of ids when the gate was made.
    plan : Plan or None
        Plan of differences, where the gate was just made.
    """

    guard: ReusableHoldout
    ids: NDArray[np.str_] | None
    id_column: str | None
    plan: Plan | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.guard.close()


@sealed
def make_gate(
    ledger: str | Path,
    labels: Path | None = None,
    *,
    ids: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    id_column: str | None = None,
    metric: str | None = None,
    bounds: tuple[float, float] | None = None,
    classes: Sequence[int] | Sequence[str] | None = None,
    key: Path | None = None,
    seed: int | None = None,
    vacuous: bool = False,
    witness: str | Path | Literal[False] | None = None,
    **wish: Any,
) -> Gate:
    """Make a gate, or resume the gate that was made with the same rows and settings.

    Its noise key and a copy of the labels lie beside the ledger from then on. Only their owner can read them.

    Parameters
    ----------
    ledger : str or Path
        SQLite file, or URL of a server.
    labels : Path, optional
        CSV, Parquet or JSON with one column of labels, and one of ids; or else `ids`.
    ids : sequence of str, optional
        Ids of rows that have no labels: their scores come with every question.
    groups : sequence of str, optional
        Group of each of the ids. Then a group is one draw.
    id_column : str, optional
        Column of ids in the file of labels. Then predictions are aligned by them.
    metric : str, optional
        A plain mean over rows, by default "accuracy"; of ids "score", the default, "pass@3" or "pass^3".
    bounds : (float, float), optional
        Range of targets or scores, for "mae", "mse" and "score".
    classes : sequence, optional
        All labels that may occur, where everyone may know them; as for :class:`ReusableHoldout`.
    key : Path, optional
        Key file, as for :class:`ReusableHoldout`.
    seed : int, optional
        Makes the key instead, for tests.
    vacuous : bool
        True to make the gate though its tolerance is more than a quarter of the range of differences.
    witness : str, Path or False, optional
        As for :class:`ReusableHoldout`.
    **wish
        Numbers of the :class:`Plan` of differences: queries, charges, tolerance, confidence, delta and spread, a guess
        of the standard deviation of the two models' difference on a row. No verdict rests on the guess.

    Raises
    ------
    InputError
        If rows or metric do not fit; nothing was made.
    PlanError, LedgerMismatchError, LedgerError
        As for :class:`ReusableHoldout`.
    """
    if (labels is None) == (ids is None):
        raise InputError(
            "a gate has labels, or ids of rows that are scored; name one of them; nothing was made"
        )
    X, y = _rows(labels, id_column) if labels is not None else (None, np.array(ids, dtype=np.str_))
    chosen = metric_of(metric or ("accuracy" if ids is None else "score"), bounds)
    if ids is not None and chosen.response != "judged":
        raise InputError(
            f"rows that have ids and no labels are scored: the metric must be score, pass@3 or pass^3; got {metric!r}; "
            "nothing was made; name --labels for other metrics"
        )
    bound = chosen.bind(y, classes=classes)
    if not bound.by_rows:
        raise InputError(
            f"a gate compares row by row, by a metric that is a plain mean over rows; {chosen.name} is none; nothing "
            "was made; take accuracy, brier, log_loss, mae or mse"
        )
    plan = planned_gate(chosen, bound.rows if groups is None else len(set(groups)), wish, vacuous=vacuous)
    guard = made_gate(
        X,
        y,
        plan=plan,
        metric=chosen,
        groups=None if groups is None else np.array(groups, dtype=np.str_),
        classes=classes,
        ledger=ledger,
        key=key,
        seed=seed,
        witness=witness,
    )
    return Gate(guard, *_ids(X), plan)


@sealed
def open_gate(
    ledger: str | Path, *, labels: Path | None = None, id_column: str | None = None, key: Path | None = None
) -> Gate:
    """Open a gate that was made.

    Parameters
    ----------
    ledger : str or Path
    labels : Path, optional
        File of labels or ids; by default the copy beside the ledger.
    id_column : str, optional
        Column of ids in that file, as when the gate was made.
    key : Path, optional
        Key file, if it does not lie beside the ledger.

    Raises
    ------
    InputError
        If the guard of this ledger is no gate.
    LedgerError, LedgerMismatchError, LedgerKeyError
        If there is no such ledger, it belongs to other labels, or key or labels are missing.
    """
    if labels is None:
        guard, X, _ = open_copy(ledger, key)
    else:
        X, y = _rows(labels, id_column)
        guard = open_guard(ledger, X, y, key=key)
    check_gate(guard, ledger)
    return Gate(guard, *_ids(X))


def _rows(labels: Path, id_column: str | None) -> tuple[pd.DataFrame | None, NDArray[Any]]:
    """Return ids and labels as a guard's X and y, so that the ids are in the ledger's digest and in the copy."""
    table = read_labels(labels, id_column=id_column)
    ids = None
    if table.ids is not None:
        ids = pd.DataFrame({id_column: table.ids.astype(np.object_)}, dtype="object")
    return ids, table.frame.iloc[:, 0].to_numpy()


def _ids(X: Any) -> tuple[NDArray[np.str_] | None, str | None]:
    """Return ids, and the name of their column; a guard that was made in Python may have features in X instead."""
    columns = getattr(X, "columns", None)
    if columns is None or len(columns) != 1:
        return None, None
    return np.asarray(X[columns[0]].to_numpy()).astype(np.str_), str(columns[0])
