"""The release gate: a guard that is made of labels or of ids, and opened again where it is asked."""

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

_LIKELY = 1.645  # standard errors: a normal variable stays above minus so many with probability 0.95


class Gate(NamedTuple):
    """An open gate. At the end of a ``with`` block it closes its guard.

    Attributes
    ----------
    guard : ReusableHoldout
        A guard whose plan is for gates.
    ids : numpy.ndarray of str or None
        Ids of the rows, of shape (rows,), by which predictions are aligned; None if their order tells rows apart.
    id_column : str or None
        Name of the column of ids when the gate was made.
    tolerance : float or None
        How far below the named improvement an accepted release can be: the narrowest that differences allow, which
        every question must name, as :func:`ask_gate` does. None for a guard that was not made by :func:`make_gate`:
        then it is the plan's.
    plan : Plan or None
        Plan of differences, where the gate was just made.
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
        Range of targets or scores, for "mae", "mse" and "score". Targets outside are moved to it, and nothing says
        so.
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
    chosen = guards.metric_of(metric or ("accuracy" if ids is None else "score"), bounds)
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
    return Gate(guard, *_ids(X), plan.tolerance, plan)


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


# ---- what a gate can show


class Possible(NamedTuple):
    """The differences that a gate can show.

    Attributes
    ----------
    rows : int
        Rows, or groups if there are some.
    queries, charges : int
        Releases that can be asked about, and accepted.
    shown : float
        Smallest improvement to name so that an accepted release is certified to be better at all.
    needed : float
        True improvement with which a release is accepted at least nine times in ten.
    fixed : float
        The same as `shown` for a single comparison that is fixed in advance.
    """

    rows: int
    queries: int
    charges: int
    shown: float
    needed: float
    fixed: float

    def record(self) -> dict[str, Any]:
        """Return the numbers for programs."""
        return self._asdict()

    def __str__(self) -> str:
        accepted = "1 release" if self.charges == 1 else f"{self.charges:,} releases"
        return "\n".join(
            [
                f"What {self.rows:,} rows can show",
                f"  {accepted} can be accepted, of {self.queries:,} that can be asked about",
                f"  name an improvement of {self.shown:.3g} or more: then what is accepted is certified to be better",
                f"  a release that is truly better by {self.needed:.3g} is accepted nine times in ten",
                f"  a release that is truly better by less than {self.shown:.3g} is mostly rejected",
                f"  (a single comparison, fixed in advance, would certify from {self.fixed:.3g} on)",
            ]
        )


def what_is_possible(plan: Plan) -> Possible:
    """Return the differences that a gate can show.

    Parameters
    ----------
    plan : Plan
        Plan of differences, for gates. Its tolerance is the improvement to name; a release needs 1.645 standard
        errors more, at the spread that was guessed, or else at the largest possible spread.
    """
    spread = plan.span / 2.0 if plan.stated_spread is None else plan.stated_spread
    return Possible(
        rows=plan.rows,
        queries=plan.queries,
        charges=plan.charges,
        shown=plan.tolerance,
        needed=plan.tolerance + _LIKELY * spread / math.sqrt(plan.rows),
        fixed=plan.one_look,
    )
