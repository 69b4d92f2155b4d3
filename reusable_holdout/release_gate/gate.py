"""The release gate: a guard of policy "gate", made of labels or of ids, and opened again where it is asked."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from reusable_holdout.errors import InputError, LedgerKeyError
from reusable_holdout.guard import ReusableHoldout
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.handle import Handle, read_private
from reusable_holdout.ledger import SqlLedger
from reusable_holdout.plan import Plan
from reusable_holdout.queries import Metric, mae, mse, resolve_metric, score
from reusable_holdout.release_gate.files import read_labels

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from reusable_holdout.release_gate.files import Table

__all__ = ["Gate", "Rows", "make_gate", "make_gate_of_scores", "open_gate"]


class Rows(NamedTuple):
    """What is public of a gate's rows.

    Attributes
    ----------
    size : int
    ids : numpy.ndarray of str or None
        Of shape (rows,); None if rows are told apart by their order.
    id_column : str or None
        What they were called.
    """

    size: int
    ids: NDArray[np.str_] | None
    id_column: str | None


class Gate(NamedTuple):
    """A gate that is open; it closes its guard at the end of a ``with`` block.

    Attributes
    ----------
    guard : ReusableHoldout
        Of policy "gate"; its own plan is that of scores.
    rows : Rows
    plan : Plan or None
        Of differences, where the gate was just made.
    """

    guard: ReusableHoldout
    rows: Rows
    plan: Plan | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.guard.close()


@sealed
def make_gate(
    ledger: str | Path,
    labels: Path,
    *,
    id_column: str | None = None,
    metric: str = "accuracy",
    bounds: tuple[float, float] | None = None,
    classes: Sequence[int] | Sequence[str] | None = None,
    key: Path | None = None,
    seed: int | None = None,
    spread: float | None = None,
    vacuous: bool = False,
    witness: str | Path | Literal[False] | None = None,
    **wish: Any,
) -> Gate:
    """Make a gate, or resume the one that was made with the same labels and settings.

    Beside the ledger lie from then on its noise key and a copy of the labels, both readable by their owner alone.

    Parameters
    ----------
    ledger : str or Path
        SQLite file, or URL of a server.
    labels : Path
        CSV, Parquet or JSON with one column, and one of ids.
    id_column : str, optional
        Column of ids: then predictions are aligned by them.
    metric : str
        A plain mean over rows.
    bounds : (float, float), optional
        Of the targets; for "mae" and "mse". Targets outside are moved to them, and nothing says so.
    classes : sequence, optional
        As for :class:`ReusableHoldout`: all labels that may occur, where they are public.
    key : Path, optional
        Key file, as for :class:`ReusableHoldout`.
    seed : int, optional
        Makes the key instead.
    spread : float, optional
        A guess of the standard deviation of the two models' difference on a row; of accuracies, the root of the share
        of rows on which one is right and the other wrong. The plan follows from it, and no verdict rests on it.
    vacuous : bool
        Whether to make it though the plan says nothing: its tolerance is more than a quarter of the range of
        differences.
    witness : str, Path or False, optional
        As for :class:`ReusableHoldout`.
    **wish
        queries, tolerance, charges, confidence and delta, as for :class:`Plan`; the tolerance is that of differences.

    Returns
    -------
    Gate
        The guard, and the plan of its differences.

    Raises
    ------
    InputError
        If labels or metric do not fit a gate; nothing was made.
    PlanError, LedgerMismatchError, LedgerError
        As for :class:`ReusableHoldout`.
    """
    X, y = _holdout(read_labels(labels, id_column=id_column), id_column)
    return _made(
        ledger,
        X,
        y,
        _metric(metric, bounds),
        None,
        classes=classes,
        key=key,
        seed=seed,
        spread=spread,
        vacuous=vacuous,
        witness=witness,
        wish=wish,
    )


@sealed
def make_gate_of_scores(
    ledger: str | Path,
    ids: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    metric: str = "score",
    bounds: tuple[float, float] | None = None,
    key: Path | None = None,
    seed: int | None = None,
    spread: float | None = None,
    vacuous: bool = False,
    witness: str | Path | Literal[False] | None = None,
    **wish: Any,
) -> Gate:
    """Make a gate of rows that have ids and no labels, whose scores come with every question; or resume it.

    Parameters
    ----------
    ledger : str or Path
        SQLite file, or URL of a server.
    ids : sequence of str
        Of the rows.
    groups : sequence of str, optional
        What each row belongs to: then a group is one draw.
    metric : str
        "score", or "pass@3" or "pass^3" with any number.
    bounds : (float, float), optional
        Of scores, if they are not in [0, 1].
    key, seed, spread, vacuous, witness, **wish
        As for :func:`make_gate`.

    Raises
    ------
    InputError
        If ids or metric do not fit; nothing was made.
    PlanError, LedgerMismatchError, LedgerError
        As for :class:`ReusableHoldout`.
    """
    chosen = (
        score(lower=bounds[0], upper=bounds[1]) if bounds and metric == "score" else _metric(metric, bounds)
    )
    if chosen.response != "judged":
        raise InputError(
            f"rows that have ids and no labels are scored: the metric must be score, pass@3 or pass^3; got {metric!r}; "
            "nothing was made; name --labels for others"
        )
    return _made(
        ledger,
        None,
        np.array(ids, dtype=np.str_),
        chosen,
        groups,
        key=key,
        seed=seed,
        spread=spread,
        vacuous=vacuous,
        witness=witness,
        wish=wish,
    )


@sealed
def open_gate(
    ledger: str | Path, *, labels: Path | None = None, id_column: str | None = None, key: Path | None = None
) -> Gate:
    """Open a gate that was made.

    Parameters
    ----------
    ledger : str or Path
    labels : Path, optional
        By default the copy beside the ledger.
    id_column : str, optional
        Of the labels; the one the gate was made with.
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
        gate = _open_copy(ledger, key)
    else:
        X, y = _holdout(read_labels(labels, id_column=id_column), id_column)
        gate = Gate(ReusableHoldout.open(ledger, X, y, key=key), _rows(X, y))
    if gate.guard.policy != "gate":
        gate.guard.close()
        raise InputError(
            f'the guard of {ledger} must have policy "gate"; it has {gate.guard.policy!r}; nothing was asked; make a '
            "gate of other rows with gate-init"
        )
    return gate


# ---- making and opening


def _made(
    ledger: str | Path,
    X: pd.DataFrame | None,
    y: NDArray[Any],
    metric: Metric,
    groups: Sequence[str] | None,
    *,
    classes: Sequence[int] | Sequence[str] | None = None,
    key: Path | None,
    seed: int | None,
    spread: float | None,
    vacuous: bool,
    witness: str | Path | Literal[False] | None,
    wish: dict[str, Any],
) -> Gate:
    bound = metric.bind(y, classes=classes)
    if not bound.by_rows:
        raise InputError(
            f"a gate compares row by row, by a metric that is a plain mean over rows; {metric.name} is none; nothing "
            "was made; take accuracy, brier, log_loss, mae or mse"
        )
    span = metric.upper - metric.lower
    plan = Plan(
        rows=bound.rows if groups is None else len(set(groups)),
        family="paired",
        bounds=(-span, span),
        policy="gate",
        spread=spread,
        **wish,
    )
    plan.check_says_something(vacuous=vacuous)
    guard = ReusableHoldout(
        X,
        y,
        metric=metric,
        policy="gate",
        queries=plan.queries,
        charges=plan.charges,
        noise_scale=plan.noise_scale / 2.0,  # of a score; a difference gets twice as much
        confidence=plan.confidence,
        delta=plan.delta,
        comparison_tolerance=plan.tolerance,
        groups=None if groups is None else np.array(groups, dtype=np.str_),
        classes=classes,
        ledger=ledger,
        key=key,
        seed=seed,
        witness=witness,
        vacuous=True,  # as far as scores go, about which a gate is not asked
    )
    pickle.dumps(guard)  # writes the copy of the labels
    return Gate(guard, _rows(X, y), plan)


def _metric(name: str, bounds: tuple[float, float] | None) -> Metric:
    bounded = {"mae": mae, "mse": mse}.get(name)
    if bounded is None or bounds is None:
        if bounds is not None:
            raise InputError(f"bounds are those of mae and mse; got them for {name!r}; leave them out")
        return resolve_metric(name)
    return bounded(lower=bounds[0], upper=bounds[1])


def _holdout(table: Table, id_column: str | None) -> tuple[pd.DataFrame | None, NDArray[Any]]:
    """Ids and labels as a guard's X and y: so the ids are in the ledger's digest, and in the copy of the labels."""
    import pandas as pd  # noqa: PLC0415

    y = table.frame.iloc[:, 0].to_numpy()
    ids = (
        None if table.ids is None else pd.DataFrame({id_column: table.ids.astype(np.object_)}, dtype="object")
    )
    return ids, y


def _rows(X: Any, y: Any) -> Rows:
    """What is public of the rows the gate was made with: ids stand in X, or are all that y holds."""
    columns = getattr(X, "columns", None)
    if columns is None or len(columns) != 1:  # none, or a guard that was made in Python with features
        return Rows(len(y), None, None)
    return Rows(len(y), np.asarray(X[columns[0]].to_numpy()).astype(np.str_), str(columns[0]))


def _open_copy(ledger: str | Path, key: Path | None) -> Gate:
    store = SqlLedger(ledger, must_exist=True)
    try:
        path, url, epoch = store.path, store.url, store.epoch
    finally:
        store.close()
    if key is not None:
        key_file = key.absolute()
    elif path is not None:
        key_file = path.with_name(f"{path.name}.key")
    else:
        raise LedgerKeyError("the key of a ledger on a server must be given; pass --key")
    beside = path or key_file
    name = beside.name if epoch == 1 else f"{beside.name}.{epoch}"
    copy = beside.with_name(f"{name}.holdout")
    if not copy.exists():
        raise InputError(
            f"the labels must lie in {copy}, where gate-init puts a copy, or be named; they are not there; "
            "pass --labels, with the file of labels or ids that the gate was made of"
        )
    kept = read_private(copy)
    return Gate(Handle(str(path or url), str(key_file), str(copy)).open(), _rows(kept["X"], kept["y"]))
