"""The only module of this package that calls a guard, or imports something from inside of the guard's package."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reusable_holdout import Answer, Difference, ReusableHoldout, Rows
from reusable_holdout.errors import InputError, LedgerKeyError
from reusable_holdout.guard.handle import Handle, read_private
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.metrics import Metric, ScoreTable, mae, mse, resolve_metric, rmse, score
from reusable_holdout.plan import Plan

_BOUNDED: dict[str, Callable[..., Metric]] = {"mae": mae, "mse": mse, "rmse": rmse, "score": score}


# ---- ask


def ask(
    guard: Any,
    subject: Any,
    incumbent: Any = None,
    *,
    prior: float | None,
    name: str,
    at_least: float | None = None,
    guardrails: Mapping[Any, Any] | None = None,
) -> Answer:
    """Ask a guard, here or elsewhere, about predictions or scores, or how much better they are than an incumbent's.

    Parameters
    ----------
    guard : ReusableHoldout or RemoteHoldout
    subject, incumbent : array-like or ScoreTable
    prior : float or None
        The developer's own estimate; with an incumbent, of the difference.
    at_least : float, optional
        Asks a gate instead: whether the difference reaches it, in the metric's unit and direction.
    name : str
        What history calls the question.
    guardrails : mapping, optional
        Of a gate, as for :meth:`ReusableHoldout.gate`.
    """
    answer: Answer
    if at_least is not None:
        answer = guard.gate(Difference(subject, incumbent), at_least, guardrails=guardrails, name=name)
    elif incumbent is not None:
        answer = guard.compare(subject, incumbent, prior=prior, name=name)
    else:
        answer = guard.evaluate(subject, prior=prior, name=name)
    return answer


def open_beside(guard: ReusableHoldout, metric: Metric) -> ReusableHoldout:
    """Return the guard of another score of the same rows, on the same budget."""
    return guard.on(metric, name=metric.name, allow={"vacuous"})


def numbers_of(answer: Answer) -> dict[str, float]:
    """Return an answer as named numbers. The value of a gate repeats what was named; "accepted" stands in its place."""
    told = {"difference" if answer.paired else "answer": answer.value}
    if answer.outcome in {"better", "not shown"}:
        told = {"accepted": float(answer.charged)}
    numbers = ("low", "high", "prior", "charged", "charges_left", "replayed")
    return told | {name: float(getattr(answer, name)) for name in numbers}


# ---- make and open


def metric_of(name: str, bounds: tuple[float, float] | None) -> Metric:
    """Return a metric by its name, with the range of its targets or scores.

    Raises
    ------
    InputError
        If there is no such metric, or it takes no bounds.
    """
    if bounds is None:
        return resolve_metric(name)
    if name not in _BOUNDED:
        raise InputError(f"bounds are those of {', '.join(_BOUNDED)}; got them for {name!r}; leave them out")
    return _BOUNDED[name](lower=bounds[0], upper=bounds[1])


def made_gate(
    rows: Rows, *, metric: Metric, vacuous: bool, wish: Mapping[str, Any], **settings: Any
) -> ReusableHoldout:
    """Make the guard of a gate, or resume it, and write a copy of its rows beside the ledger."""
    allow = {
        word
        for word, wanted in (("vacuous", vacuous), ("no witness", settings["witness"] is False))
        if wanted
    }
    settings["witness"] = settings["witness"] or None
    guard = ReusableHoldout(rows, None, metric=metric, plan=Plan(gates=True, **wish), allow=allow, **settings)
    pickle.dumps(guard)  # it writes the copy
    return guard


def made_guard(ids: Sequence[str], **settings: Any) -> ReusableHoldout:
    """Make the guard of rows that have ids, and are scored."""
    rows = Rows(None, ids, groups=settings.pop("groups", None))
    return ReusableHoldout(rows, None, **settings)


def open_guard(ledger: str | Path, X: Any, y: Any, **settings: Any) -> ReusableHoldout:
    """Open a guard with its rows; the settings are key and groups."""
    return ReusableHoldout.open(ledger, Rows(X, y, groups=settings.pop("groups", None)), **settings)


def open_guard_of(ledger: str | Path, table: ScoreTable) -> ReusableHoldout:
    """Open the guard whose rows are those of a table, in the order of their ids as text."""
    order = sorted(range(table.rows), key=lambda row: table.ids[row])
    groups = None if table.groups is None else [table.groups[row] for row in order]
    return open_guard(str(ledger), None, [table.ids[row] for row in order], groups=groups)


def open_copy(ledger: str | Path, key: Path | None) -> tuple[ReusableHoldout, Any]:
    """Open a guard by the copy of its rows that lies beside its ledger or key; return it with their X.

    Raises
    ------
    LedgerKeyError
        If the ledger is on a server, and no key is named.
    InputError
        If the copy is not there.
    """
    store = SqlLedger(ledger, must_exist=True)
    try:
        path, url, epoch = store.path, store.url, store.epoch
    finally:
        store.close()
    key_file = path.with_name(f"{path.name}.key") if key is None and path is not None else key
    if key_file is None:
        raise LedgerKeyError("the key of a ledger on a server must be given; pass --key")
    beside = path or key_file.absolute()
    name = beside.name if epoch == 1 else f"{beside.name}.{epoch}"
    copy = beside.with_name(f"{name}.holdout")
    if not copy.exists():
        raise InputError(
            f"the labels must lie in {copy}, where gate init puts a copy, or be named; they are not there; "
            "pass --labels, with the file of labels or ids that the gate was made of"
        )
    kept = read_private(copy)
    handle = Handle(str(path or url), str(key_file.absolute()), str(copy))
    return handle.open(), kept["X"]


# ---- check


def check_gate(guard: ReusableHoldout, ledger: str | Path) -> None:
    """Close and refuse a guard that is no gate."""
    if guard.plan.asks != "gates":
        guard.close()
        came = "it is for other questions; make a gate of other rows with gate init"
        raise InputError(f"the plan of {ledger} must be for gates; {came}; nothing was asked")


def check_judged(guard: Any) -> None:
    """Refuse a guard that has labels."""
    if guard.metric.response != "judged":
        raise InputError(
            f'the guard must have ids and metric "score"; its metric is {guard.metric.name!r}; nothing was asked'
        )
