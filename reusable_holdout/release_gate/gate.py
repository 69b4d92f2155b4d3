"""The release gate: a guard of policy "gate", asked about two files of predictions."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from reusable_holdout.errors import Halted, InputError, LedgerKeyError
from reusable_holdout.guard import ReusableHoldout
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.handle import Handle
from reusable_holdout.ledger import SqlLedger
from reusable_holdout.plan import Plan
from reusable_holdout.queries import mae, mse, resolve_metric
from reusable_holdout.release_gate.files import in_order_of, read_labels, read_table

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from reusable_holdout.queries import Metric
    from reusable_holdout.release_gate.files import Table

__all__ = ["Gate", "Verdict", "ask_gate", "make_gate", "open_gate"]


class Verdict(NamedTuple):
    """What a gate says of one release.

    Attributes
    ----------
    verdict : {"accepted", "rejected", "halted"}
        Halted: the budget is spent, and nothing was told of the release.
    charged : bool
        Whether this question took a charge; one that was asked before takes none.
    charges_left, queries_left : int
        How many more releases can be accepted, and asked about.
    low, high : float or None
        Certified interval of the improvement, in the metric's unit, positive if the new model is better; None if
        halted.
    """

    verdict: Literal["accepted", "rejected", "halted"]
    charged: bool
    charges_left: int
    queries_left: int
    low: float | None
    high: float | None


class Gate(NamedTuple):
    """A gate that was made.

    Attributes
    ----------
    guard : ReusableHoldout
        Of policy "gate"; its own plan is that of scores.
    plan : Plan
        Of differences.
    """

    guard: ReusableHoldout
    plan: Plan


@sealed
def make_gate(
    ledger: str | Path,
    labels: Path,
    *,
    id_column: str | None = None,
    metric: str = "accuracy",
    bounds: tuple[float, float] | None = None,
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
        CSV or Parquet with one column, and one of ids.
    id_column : str, optional
        Column of ids: then predictions are aligned by them.
    metric : str
        A plain mean over rows.
    bounds : (float, float), optional
        Of the targets; for "mae" and "mse".
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
    chosen = _metric(metric, bounds)
    holdout = _holdout(read_labels(labels, id_column=id_column), id_column)
    bound = chosen.bind(holdout[1])
    if not bound.by_rows:
        raise InputError(
            f"a gate compares row by row, by a metric that is a plain mean over rows; {chosen.name} is none; nothing "
            "was made; take accuracy, brier, log_loss, mae or mse"
        )
    span = chosen.upper - chosen.lower
    plan = Plan(
        rows=bound.rows,
        family="paired",
        bounds=(-span, span),
        policy="gate",
        spread=spread,
        **wish,
    )
    plan.check_says_something(vacuous=vacuous)
    guard = ReusableHoldout(
        *holdout,
        metric=chosen,
        policy="gate",
        queries=plan.queries,
        charges=plan.charges,
        noise_scale=plan.noise_scale / 2.0,  # of a score; a difference gets twice as much
        confidence=plan.confidence,
        delta=plan.delta,
        comparison_tolerance=plan.tolerance,
        ledger=ledger,
        key=key,
        seed=seed,
        witness=witness,
        vacuous=True,  # as far as scores go, about which a gate is not asked
    )
    pickle.dumps(guard)  # writes the copy of the labels
    return Gate(guard, plan)


@sealed
def open_gate(
    ledger: str | Path, *, labels: Path | None = None, id_column: str | None = None, key: Path | None = None
) -> ReusableHoldout:
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
        guard = _open_copy(ledger, key)
    else:
        table = read_labels(labels, id_column=id_column)
        guard = ReusableHoldout.open(ledger, *_holdout(table, id_column), key=key)
    if guard.policy != "gate":
        guard.close()
        raise InputError(
            f'the guard of {ledger} must have policy "gate"; it has {guard.policy!r}; nothing was asked; make a gate '
            "of other rows with gate-init"
        )
    return guard


def ask_gate(
    guard: ReusableHoldout,
    predictions: Path,
    incumbent: Path,
    *,
    improvement: float,
    id_column: str | None = None,
    name: str | None = None,
) -> Verdict:
    """Ask whether the new predictions are better than the old ones by at least so much.

    With the guard's confidence the intervals of all verdicts together contain the population values. What is told
    depends on the labels through "accepted" or "rejected" alone.

    Parameters
    ----------
    guard : ReusableHoldout
        From :func:`open_gate` or :func:`make_gate`.
    predictions, incumbent : Path
        CSV or Parquet: one column, or for a metric of probabilities one for each class, named by it.
    improvement : float
        In the metric's unit, positive if better, also for losses; negative to accept what is not much worse.
    id_column : str, optional
        Column of ids, if the gate was made with ids and they are called otherwise here.
    name : str, optional
        What history calls the question; by default the file of the new predictions.

    Raises
    ------
    InputError
        If a file or the improvement does not fit; nothing was asked and nothing was charged.
    """
    span = guard.metric.upper - guard.metric.lower
    if not abs(improvement) <= span:  # nor NaN
        raise InputError(
            f"the improvement must be a number in [{-span:g}, {span:g}]; got {improvement}; nothing was asked and "
            "nothing was charged"
        )
    new, old = (_predictions(guard, path, id_column) for path in (predictions, incumbent))
    sign = 1.0 if guard.metric.greater_is_better else -1.0
    try:
        answer = guard.compare_predictions(
            new, old, prior=sign * improvement, name=predictions.name if name is None else name
        )
    except Halted:
        return Verdict("halted", False, guard.charges_left, _queries_left(guard), None, None)
    low, high = sorted((sign * answer.low, sign * answer.high))
    return Verdict(
        "accepted" if answer.charged else "rejected",
        answer.charged and not answer.replayed,
        answer.charges_left,
        _queries_left(guard),
        low,
        high,
    )


def _queries_left(guard: ReusableHoldout) -> int:
    return guard.plan.queries - guard.queries_asked


# ---- making and opening


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


def _ids(guard: ReusableHoldout) -> tuple[str, NDArray[np.str_]] | None:
    """Name and values of the ids the gate was made with."""
    X = guard._holdout.X
    columns = getattr(X, "columns", None)
    if columns is None or len(columns) != 1:  # none, or a guard that was made in Python with features
        return None
    return str(columns[0]), np.asarray(X[columns[0]].to_numpy()).astype(np.str_)


def _open_copy(ledger: str | Path, key: Path | None) -> ReusableHoldout:
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
            "pass --labels"
        )
    return Handle(str(path or url), str(key_file), str(copy)).open()


# ---- asking


def _predictions(guard: ReusableHoldout, path: Path, id_column: str | None) -> NDArray[Any]:
    """Predictions of one file as the guard takes them, checked here so that messages can name the file."""
    known, bound = _ids(guard), guard._holdout.bound
    if known is None and id_column is not None:
        raise InputError(
            "rows are aligned by ids if the gate was made with ids; this one was not; make it with --id, or leave "
            "--id out and keep the labels' order"
        )
    named, ids = (None, None) if known is None else known
    table = read_table(path, id_column=id_column or named)
    frame = in_order_of(ids, table, path, rows=bound.rows)
    values = _columns(frame, guard, path)
    try:
        bound.prepare(values)
    except InputError as error:
        raise InputError(f"{path}: {error}; nothing was asked and nothing was charged") from None
    return values


def _columns(frame: pd.DataFrame, guard: ReusableHoldout, path: Path) -> NDArray[Any]:
    """One column, or the classes' probabilities in the guard's order."""
    if frame.shape[1] == 1:
        return frame.iloc[:, 0].to_numpy()
    found = [str(name) for name in frame.columns]
    if guard.metric.response != "probabilities":
        raise InputError(
            f"{path} must have one column of predictions; it has {', '.join(found[:10])}; leave the others out, or "
            "name the ids with --id"
        )
    wanted = [str(one) for one in (() if guard.classes is None else guard.classes.tolist())]
    if sorted(found) != sorted(wanted):
        raise InputError(
            f"{path} must have one column for each class, named {', '.join(wanted[:10])}; it has "
            f"{', '.join(found[:10])}; rename them"
        )
    return frame.set_axis(found, axis=1)[wanted].to_numpy()
