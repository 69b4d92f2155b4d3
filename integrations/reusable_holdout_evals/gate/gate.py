"""The release gate: functions that make it, open it again, and compute what differences it can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import ReusableHoldout, Rows
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.plan import Plan
from reusable_holdout_evals import guards
from reusable_holdout_evals.gate.tables import read_labels

__all__ = ["Gate", "Possible", "make_gate", "open_gate", "what_is_possible"]


class Gate(NamedTuple):
    """An open gate. At the end of a ``with`` block it closes its guard.

    Attributes
    ----------
    guard : ReusableHoldout
        A guard whose plan is for gates.
    ids : numpy.ndarray of str or None
        Ids of the rows, of shape (rows,), by which predictions are brought into order. None if predictions come in the
        order of the labels.
    id_column : str or None
        Name of the column of ids when the gate was made.
    tolerance : float or None
        For a gate of an earlier edition of the theory: how far below the named improvement an accepted release may be.
    plan : Plan or None
        The guard's plan if the gate was just made; None if it was opened again.
    """

    guard: ReusableHoldout
    ids: NDArray[np.str_] | None
    id_column: str | None
    tolerance: float | None = None
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
    """Make a gate, or open again the gate that was made with the same rows and settings.

    The gate's noise key and a copy of the labels are written beside the ledger. Only the user who makes the gate can
    read them.

    Parameters
    ----------
    ledger : str or Path
        SQLite file, or URL of a server.
    labels : Path, optional
        CSV, Parquet or JSON with one column of labels and, if `id_column` names it, one of ids. Give either `labels` or
        `ids`.
    ids : sequence of str, optional
        Ids of rows that have no labels; each question then brings a score for every row.
    groups : sequence of str, optional
        The group of each row, in the order of the ids. The rows of a group count as one draw.
    id_column : str, optional
        Column of ids in the file of labels, by which predictions are then brought into order.
    metric : str, optional
        A metric that is a plain mean over rows; by default "accuracy". For `ids` it is "score" (the default), "pass@3"
        or "pass^3".
    bounds : (float, float), optional
        Range of targets or scores, for "mae", "mse" and "score". Values outside are moved to the nearer bound, without
        a message.
    classes : sequence, optional
        All labels that may occur, if everyone may know them; see :class:`ReusableHoldout`.
    key : Path, optional
        File of the noise key; see :class:`ReusableHoldout`.
    seed : int, optional
        Number from which the noise key is made, for tests; by default the key is random.
    vacuous : bool
        True to make the gate even if it can show only differences above a quarter of their range.
    witness : str, Path or False, optional
        Place of the witness; see :class:`ReusableHoldout`.
    **wish
        Arguments of the :class:`Plan` of differences: queries, charges, tolerance, confidence, delta and spread. The
        tolerance is the difference to be shown nine times in ten, even at the last charge. The spread is a guess: the
        standard deviation, over the rows, of the difference between two models. Every verdict is valid even if the
        guess is wrong.

    Returns
    -------
    Gate

    Raises
    ------
    InputError
        If rows or metric do not fit; nothing was made.
    PlanError, LedgerMismatchError, LedgerError
        If :class:`ReusableHoldout` raises them.
    """
    if (labels is None) == (ids is None):
        raise InputError(
            "a gate needs either labels or the ids of scored rows; got both or neither; nothing was made"
        )
    X, y = _rows(labels, id_column) if labels is not None else (None, np.array(ids, dtype=np.str_))
    chosen = guards.metric_of(metric or ("accuracy" if ids is None else "score"), bounds)
    if ids is not None and chosen.response != "judged":
        raise InputError(
            f"for rows with ids and no labels the metric must be score, pass@3 or pass^3; got {metric!r}; nothing was "
            "made; for other metrics, name --labels"
        )
    bound = chosen.bind(y, classes=classes)
    if not bound.by_rows:
        raise InputError(
            f"a gate compares row by row, so its metric must be a plain mean over rows; {chosen.name} is not; nothing "
            "was made; take accuracy, brier, log_loss, mae or mse"
        )
    plan = guards.planned_gate(
        chosen, bound.rows if groups is None else len(set(groups)), wish, vacuous=vacuous
    )
    named = None if groups is None else np.array(groups, dtype=np.str_)
    guard = guards.made_gate(
        Rows(X, y, groups=named, classes=classes),
        metric=chosen,
        plan=plan,
        ledger=ledger,
        key=key,
        seed=seed,
        witness=witness,
    )
    return Gate(guard, *_ids(X), None, guard.plan)


@sealed
def open_gate(
    ledger: str | Path, *, labels: Path | None = None, id_column: str | None = None, key: Path | None = None
) -> Gate:
    """Open a gate that :func:`make_gate` has made.

    Parameters
    ----------
    ledger : str or Path
        SQLite file, or URL of a server.
    labels : Path, optional
        File of labels or ids; by default the copy beside the ledger.
    id_column : str, optional
        Column of ids in that file; the same as when the gate was made.
    key : Path, optional
        Key file, if it is not beside the ledger.

    Returns
    -------
    Gate

    Raises
    ------
    InputError
        If the plan of this ledger's guard is not for gates.
    LedgerError, LedgerMismatchError, LedgerKeyError
        If there is no such ledger, it belongs to other labels, or key or labels are missing.
    """
    if labels is None:
        guard, X = guards.open_copy(ledger, key)
    else:
        X, y = _rows(labels, id_column)
        guard = guards.open_guard(ledger, X, y, key=key)
    guards.check_gate(guard, ledger)
    try:
        return Gate(guard, *_ids(X), guards.tolerance_of(guard, ledger, key))
    except BaseException:
        guard.close()
        raise


def _rows(labels: Path, id_column: str | None) -> tuple[pd.DataFrame | None, NDArray[Any]]:
    """Return ids and labels as a guard's X and y, so that the ledger's digest and the copy include the ids."""
    table = read_labels(labels, id_column=id_column)
    ids = None
    if table.ids is not None:
        ids = pd.DataFrame({id_column: table.ids.astype(np.object_)}, dtype="object")
    return ids, table.frame.iloc[:, 0].to_numpy()


def _ids(X: Any) -> tuple[NDArray[np.str_] | None, str | None]:
    """Return the ids in a gate's X and the name of their column.

    Return None for both if X holds features instead, as in a guard that was not made by :func:`make_gate`.
    """
    columns = getattr(X, "columns", None)
    if columns is None or len(columns) != 1:
        return None, None
    return np.asarray(X[columns[0]].to_numpy()).astype(np.str_), str(columns[0])


# ---- what a gate can show


class Possible(NamedTuple):
    """The differences between two models that a gate can show.

    Attributes
    ----------
    rows : int
        Number of rows, or of groups if the rows have groups.
    queries, charges : int
        Number of releases that can be asked about, and that can be accepted.
    needed, last : float
        A release is accepted nine times in ten if its true improvement exceeds the named one by this number, at the
        first charge and at the last.
    fixed : float
        Smallest improvement that a single comparison could certify, if it were fixed in advance.
    """

    rows: int
    queries: int
    charges: int
    needed: float
    last: float
    fixed: float

    def record(self) -> dict[str, Any]:
        """Return the numbers as a dict that can be written as JSON."""
        return self._asdict()

    def __str__(self) -> str:
        accepted = "1 release" if self.charges == 1 else f"{self.charges:,} releases"
        return "\n".join(
            [
                f"What {self.rows:,} rows can show",
                f"  {accepted} can be accepted, of {self.queries:,} that can be asked about",
                "  an accepted release is certified to be better by at least what you name",
                f"  one that is truly better than that by {self.needed:.3g} is accepted nine times in ten, and by "
                f"{self.last:.3g} at the last",
                f"  (a single comparison, fixed in advance, would certify from {self.fixed:.3g} on)",
            ]
        )


def what_is_possible(plan: Plan) -> Possible:
    """Return the differences between two models that a gate can show.

    They follow from the plan's guess of the spread of differences.

    Parameters
    ----------
    plan : Plan
        The plan of a gate.
    """
    level = -math.log((1.0 - plan.confidence) / 2.0)
    return Possible(
        rows=plan.rows,
        queries=plan.queries,
        charges=plan.charges,
        needed=plan.shown_difference(pairs=True),
        last=plan.shown_difference(charges=plan.charges - 1, pairs=True),
        fixed=plan.pairs.likely_half_width(level, 0.5) * 2.0 * plan.span,
    )
