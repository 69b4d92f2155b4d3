"""A gate is asked: two files of predictions or scores, and what the new one must be better by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from reusable_holdout import ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.metrics import Metric, ScoreTable, score
from reusable_holdout.scales import decimals_of
from reusable_holdout_evals.gate.files import in_order_of, read_table
from reusable_holdout_evals.gate.gate import Gate

__all__ = ["NoWorse", "Verdict", "ask_gate", "ask_gate_of_scores"]


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
    no_worse : tuple of (str, float, float)
        Name and certified interval of each metric that was to be no worse; of "rejected", which does not say what
        failed, all differences there are.
    improvement, tolerance : float
        What was named, and how far below it what is accepted may be: named below the tolerance, it may be worse.
    """

    verdict: Literal["accepted", "rejected", "halted"]
    charged: bool
    charges_left: int
    queries_left: int
    low: float | None
    high: float | None
    no_worse: tuple[tuple[str, float, float], ...] = ()
    improvement: float = 0.0
    tolerance: float = 0.0

    def __str__(self) -> str:
        """Verdict, and of what is accepted the certified interval, rounded outwards."""
        if self.verdict != "accepted" or self.low is None or self.high is None:
            return self.verdict
        steps = 10 ** decimals_of(max(abs(self.low), abs(self.high), self.tolerance))
        low, high = math.floor(self.low * steps) / steps, math.ceil(self.high * steps) / steps
        return f"{self.verdict} (certified improvement: {low:g} to {high:g})"

    @property
    def note(self) -> str:
        """Warning that a named improvement is too small to tell an improvement from noise; else empty."""
        if self.verdict == "halted" or self.improvement >= self.tolerance:
            return ""
        return (
            f"note: the named improvement, {self.improvement:g}, is below the tolerance, {self.tolerance:.3g}: what is "
            f"accepted may be worse than the incumbent by {self.tolerance - self.improvement:.3g}, and noise alone can "
            f"be accepted; to accept only what is better, name {self.tolerance:.3g} or more, as gate-init shows"
        )

    def record(self) -> dict[str, Any]:
        """For programs."""
        record = self._asdict()
        if not record.pop("no_worse"):
            return record
        return record | {"no_worse": {name: {"low": low, "high": high} for name, low, high in self.no_worse}}


class NoWorse(NamedTuple):
    """Another score of the same rows, and how much worse it may be.

    Attributes
    ----------
    score : str
        Its name in the files, such as a scorer's.
    amount : float
        At least 0.
    lower, upper : float
        Its bounds.
    """

    score: str
    amount: float
    lower: float = 0.0
    upper: float = 1.0

    @property
    def metric(self) -> Metric:
        """Metric of the gate's rows."""
        return score(lower=self.lower, upper=self.upper, of=self.score)


def ask_gate(
    gate: Gate,
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
    gate : Gate
        From :func:`open_gate` or :func:`make_gate`.
    predictions, incumbent : Path
        CSV, Parquet or JSON: one column, or for a metric of probabilities one for each class, named by it.
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
    guard = gate.guard
    _check_improvement(guard, improvement)
    if guard.metric.response == "judged":
        raise InputError(
            "the rows of this gate have ids and no labels, and are scored; got predictions; nothing was asked; name "
            "the files with --inspect, --lm-eval or --scores"
        )
    new, old = (_predictions(gate, path, id_column) for path in (predictions, incumbent))
    return _asked(guard, new, old, improvement, None, predictions.name if name is None else name)


def ask_gate_of_scores(
    gate: Gate,
    read: Callable[[bool, str | None], ScoreTable],
    *,
    improvement: float,
    no_worse: Sequence[NoWorse] = (),
    name: str = "",
) -> Verdict:
    """Ask whether the new scores are better by at least so much, and no other metric is worse than named.

    It is one question with one verdict and one charge, whose intervals bound each of the metrics: "rejected" does not
    say which of them failed. Each takes one of the declared queries.

    Parameters
    ----------
    gate : Gate
        From :func:`make_gate_of_scores` or :func:`open_gate`.
    read : callable
        Table of the new files, or of the incumbent's, if its first argument is False; of the gate's own score, or of
        the one that is named.
    improvement : float
        As for :func:`ask_gate`.
    no_worse : sequence of NoWorse
        The others.
    name : str
        What history calls the question.

    Raises
    ------
    InputError
        If files or numbers do not fit; nothing was asked and nothing was charged.
    """
    guard = gate.guard
    _check_improvement(guard, improvement)
    if guard.metric.response != "judged":
        raise InputError(
            f"this gate has labels, for {guard.metric.name}; got files of scores; nothing was asked; name "
            "--predictions, or make a gate of ids"
        )
    names = [one.metric.name for one in no_worse]
    if len(set(names)) < len(names):
        raise InputError(f"each metric that is to be no worse must be named once; got {', '.join(names)}")
    new, old = read(True, None), read(False, None)
    for table in (new, old):
        guard.check_predictions(table)
    others = [(one, read(True, one.score), read(False, one.score)) for one in no_worse]
    rails = {}
    for one, *tables in others:
        rail = _rail(guard, one)
        for table in tables:
            rail.check_predictions(table)
        rails[rail] = (*tables, -one.amount)
    return _asked(guard, new, old, improvement, rails or None, name)


def _rail(guard: ReusableHoldout, stated: NoWorse) -> ReusableHoldout:
    """Guard of another score."""
    span = stated.upper - stated.lower
    if not 0.0 <= stated.amount <= span:
        raise InputError(
            f"how much worse {stated.score!r} may be must be a number in [0, {span:g}]; got {stated.amount}; nothing "
            "was asked"
        )
    return guard.on(stated.metric, name=stated.metric.name, vacuous=True)  # its own plan is that of scores


def _check_improvement(guard: ReusableHoldout, improvement: float) -> None:
    span = guard.metric.upper - guard.metric.lower
    if not abs(improvement) <= span:  # nor NaN
        raise InputError(
            f"the improvement must be a number in [{-span:g}, {span:g}]; got {improvement}; nothing was asked and "
            "nothing was charged"
        )


def _asked(
    guard: ReusableHoldout, new: Any, old: Any, improvement: float, rails: dict[Any, Any] | None, name: str
) -> Verdict:
    sign = 1.0 if guard.metric.greater_is_better else -1.0
    try:
        answer = guard.compare_predictions(new, old, prior=sign * improvement, name=name, guardrails=rails)
    except Halted:
        found = Verdict("halted", False, guard.charges_left, guard.queries_left, None, None)
        return found._replace(improvement=improvement, tolerance=guard.plan.comparison_tolerance)
    low, high = sorted((sign * answer.low, sign * answer.high))
    return Verdict(
        "accepted" if answer.charged else "rejected",
        answer.charged and not answer.replayed,
        answer.charges_left,
        guard.queries_left,
        low,
        high,
        tuple((one.metric, one.low, one.high) for one in answer.guardrails),
        improvement,
        guard.plan.comparison_tolerance,
    )


# ---- predictions


def _predictions(gate: Gate, path: Path, id_column: str | None) -> NDArray[Any]:
    """Predictions of one file as the guard takes them, checked here so that messages can name the file."""
    rows = gate.rows
    if rows.ids is None and id_column is not None:
        raise InputError(
            "rows are aligned by ids if the gate was made with ids; this one was not; make it with --id, or leave "
            "--id out and keep the labels' order"
        )
    text = gate.guard.private_labels == "text"
    table = read_table(path, id_column=id_column or rows.id_column, text=text)
    values = _columns(in_order_of(rows.ids, table, path, rows=rows.size), gate.guard, path)
    try:
        gate.guard.check_predictions(values)
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
