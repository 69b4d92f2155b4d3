"""All calls that this package makes to a guard, and all imports of the guard package's inner modules."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reusable_holdout import Answer, Difference, ReusableHoldout, Rows
from reusable_holdout.errors import InputError, LedgerKeyError, PlanError
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
    tolerance: float | None = None,
    guardrails: Mapping[Any, Any] | None = None,
) -> Answer:
    """Ask a guard about predictions or scores or, with an incumbent, about the difference between both.

    Parameters
    ----------
    guard : ReusableHoldout or RemoteHoldout
    subject, incumbent : array-like or ScoreTable
        Predictions or scores of the new model and, optionally, of the old one.
    prior : float or None
        The developer's own estimate of the score or, with an incumbent, of the difference. If the guard's plan is for
        gates, this is the value that must be reached.
    at_least : float, optional
        The value that must be reached, in the metric's unit and direction. If it is given, a gate is asked.
    tolerance : float, optional
        How far below this value the population value may be when a gate of an earlier edition says yes.
    name : str
        Name of the question in the guard's history.
    guardrails : mapping, optional
        Guardrails of a gate, in the form of :meth:`ReusableHoldout.gate`. A RemoteHoldout refuses them.
    """
    answer: Answer
    if at_least is not None or guard.plan.asks == "gates":
        what = subject if incumbent is None else Difference(subject, incumbent)
        least = prior if at_least is None else at_least
        answer = guard.gate(what, least, tolerance=tolerance, guardrails=guardrails, name=name)
    elif incumbent is not None:
        answer = guard.compare(subject, incumbent, prior=prior, name=name)
    else:
        answer = guard.evaluate(subject, prior=prior, name=name)
    return answer


def open_beside(guard: ReusableHoldout, metric: Metric) -> ReusableHoldout:
    """Return a guard for another score of the same rows, which shares the budget of the first guard."""
    return guard.on(metric, name=metric.name, allow={"vacuous"})


def numbers_of(answer: Answer) -> dict[str, float]:
    """Return an answer as a dict of numbers.

    For a gate it has "accepted", 1 or 0, in place of the value, because a gate's value only repeats what was named.
    """
    told = {"difference" if answer.paired else "answer": answer.value}
    if answer.outcome in {"better", "not shown"}:
        told = {"accepted": float(answer.charged)}
    numbers = ("low", "high", "prior", "charged", "charges_left", "replayed")
    return told | {name: float(getattr(answer, name)) for name in numbers}


# ---- make and open


def metric_of(name: str, bounds: tuple[float, float] | None) -> Metric:
    """Return the metric with this name and, if `bounds` are given, with this range of targets or scores.

    Raises
    ------
    InputError
        If there is no such metric, or it takes no bounds.
    """
    if bounds is None:
        return resolve_metric(name)
    if name not in _BOUNDED:
        raise InputError(f"only {', '.join(_BOUNDED)} take bounds; got them for {name!r}; leave them out")
    return _BOUNDED[name](lower=bounds[0], upper=bounds[1])


def planned_gate(metric: Metric, rows: int, wish: Mapping[str, Any], *, vacuous: bool) -> Plan:
    """Return the plan of a gate for differences of scores; their range is twice as wide as the range of scores.

    Raises
    ------
    PlanError
        If no plan has the wished numbers, or the plan is vacuous and `vacuous` is False.
    """
    span = metric.upper - metric.lower
    plan = Plan(rows=rows, family="mean", bounds=(-span, span), gates=True, **wish)
    try:
        plan.check_says_something(vacuous=vacuous)
    except PlanError as error:
        words = str(error).replace("the metric's range", "the range of differences")
        raise PlanError(words.replace('allow={"vacuous"}', "vacuous=True"), error.nearest) from None
    return plan


def made_gate(
    rows: Rows, *, plan: Plan, ledger: str | Path, key: Path | None, **settings: Any
) -> ReusableHoldout:
    """Make the guard of a gate, or open it again; write a copy of its rows beside the ledger."""
    allow = {"vacuous"}  # the plan of scores may be vacuous: only differences are asked about
    if settings["witness"] is False:
        allow, settings["witness"] = {*allow, "no witness"}, None
    numbers = {name: getattr(plan, name) for name in ("queries", "charges", "confidence", "delta")}
    wish = Plan(gates=True, pair_spread=plan.stated_spread, **numbers)
    guard = ReusableHoldout(rows, None, plan=wish, ledger=ledger, key=key, allow=allow, **settings)
    try:
        pickle.dumps(guard)  # pickling writes the copy of the rows
    except BaseException:
        guard.close()
        raise
    return guard


def tolerance_of(guard: ReusableHoldout, ledger: str | Path, key: Path | None) -> float | None:
    """Return the tolerance that questions to a gate must name; None if it is the plan's, or if there is none.

    Only gates of earlier editions of the theory have a tolerance. It is read from a file beside the ledger. If the file
    is missing, for example beside a copy of the ledger, the tolerance of the last question is taken: with another
    tolerance, earlier questions could not be replayed.
    """
    if guard.plan.certifies:
        return None
    try:
        text = _tolerance_file(ledger, key).read_text()
    except OSError:
        own = _asked_with(guard)
        return None if own is None or math.isclose(own, guard.plan.tolerance) else own
    try:
        return float(json.loads(text)["tolerance"])
    except (ValueError, TypeError, LookupError):
        raise InputError(
            f"{_tolerance_file(ledger, key)} must hold a gate's tolerance, as gate init writes it; it does not; "
            "nothing was asked; run gate init again, with the same labels and settings"
        ) from None


def _asked_with(guard: ReusableHoldout) -> float | None:
    """Return the tolerance of the last question about a difference; None if there was no such question."""
    asked = guard.history()
    told = asked[asked["paired"] & asked["outcome"].isin({"better", "not shown"})]["threshold"]
    return None if told.empty else float(told.iloc[-1])


def _tolerance_file(ledger: str | Path, key: Path | None) -> Path:
    """Return the file of a gate's tolerance: beside a SQLite ledger, or beside the key if the ledger is on a server."""
    store = SqlLedger(ledger, must_exist=True)
    try:
        beside = store.path or key
    finally:
        store.close()
    if beside is None:
        raise LedgerKeyError("the key of a ledger on a server must be given; pass --key")
    return beside.with_name(f"{beside.name}.gate")


def made_guard(ids: Sequence[str], **settings: Any) -> ReusableHoldout:
    """Make a guard of rows that have ids and no labels, for metrics of judged scores."""
    rows = Rows(None, ids, groups=settings.pop("groups", None))
    return ReusableHoldout(rows, None, **settings)


def open_guard(ledger: str | Path, X: Any, y: Any, **settings: Any) -> ReusableHoldout:
    """Open a guard with its rows; the settings may be `key` and `groups`."""
    return ReusableHoldout.open(ledger, Rows(X, y, groups=settings.pop("groups", None)), **settings)


def open_guard_of(ledger: str | Path, table: ScoreTable) -> ReusableHoldout:
    """Open the guard whose rows are the ids of a table, sorted as text."""
    order = sorted(range(table.rows), key=lambda row: table.ids[row])
    groups = None if table.groups is None else [table.groups[row] for row in order]
    return open_guard(str(ledger), None, [table.ids[row] for row in order], groups=groups)


def open_copy(ledger: str | Path, key: Path | None) -> tuple[ReusableHoldout, Any]:
    """Open a guard with the copy of its rows that is beside the ledger or the key.

    Returns
    -------
    guard : ReusableHoldout
    X : object
        The X of the copy: a table of ids, features, or None.

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
            f"the labels must lie in {copy}, where gate init puts a copy; they are not there; "
            "pass --labels, with the file of labels or ids that the gate was made of"
        )
    kept = read_private(copy)
    handle = Handle(str(path or url), str(key_file.absolute()), str(copy))
    return handle.open(), kept["X"]


# ---- check


def check_gate(guard: ReusableHoldout, ledger: str | Path) -> None:
    """Close a guard whose plan is not for gates, and raise InputError."""
    if guard.plan.asks != "gates":
        guard.close()
        came = "it is for other questions; make a gate of other rows with gate init"
        raise InputError(f"the plan of {ledger} must be for gates; {came}; nothing was asked")


def check_judged(guard: Any) -> None:
    """Raise InputError if a guard's metric is not a metric of judged scores."""
    if guard.metric.response != "judged":
        raise InputError(
            f'the guard must have ids and metric "score"; its metric is {guard.metric.name!r}; nothing was asked'
        )
