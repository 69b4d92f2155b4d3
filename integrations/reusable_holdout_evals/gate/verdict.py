"""The question to a release gate: whether the new model is better than the old one by a named improvement."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from reusable_holdout import Difference, ReusableHoldout
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.metrics import Metric, ScoreTable, score
from reusable_holdout.scales import decimals_of
from reusable_holdout_evals.gate.gate import Gate
from reusable_holdout_evals.gate.tables import columns_of, in_order_of, read_table
from reusable_holdout_evals.guards import ask, open_beside

__all__ = ["NoWorse", "Verdict", "ask_gate"]

_NOTHING = "; nothing was asked and nothing was charged"


class Verdict(NamedTuple):
    """The answer of a gate about one release.

    Attributes
    ----------
    verdict : {"accepted", "rejected", "halted"}
        "halted" means that the budget is spent; nothing was told about the release.
    charged : bool
        True if this question took a charge; a question that was asked before takes none.
    charges_left, queries_left : int
        Number of further releases that can be accepted, and that can be asked about.
    low, high : float or None
        Certified interval of the improvement, in the metric's unit; positive if the new model is better. None if
        halted.
    no_worse : tuple of (str, float, float)
        Name and certified interval of each score that had to be no worse. After "rejected" these intervals hold every
        possible difference, because the verdict does not tell which score failed.
    improvement, tolerance : float
        The improvement that was named, and how far below it an accepted release may be: 0, except in earlier editions.
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
        """Return the verdict as text; after "accepted" comes the certified interval, rounded outwards."""
        if self.verdict != "accepted" or self.low is None or self.high is None:
            return self.verdict
        steps = 10 ** decimals_of(max(abs(self.low), abs(self.high), self.tolerance))
        low, high = math.floor(self.low * steps) / steps, math.ceil(self.high * steps) / steps
        return f"{self.verdict} (certified improvement: {low:g} to {high:g})"

    @property
    def note(self) -> str:
        """Warning if a gate of an earlier edition can accept noise alone, because little was named; else empty."""
        if self.verdict == "halted" or not self.tolerance or self.improvement >= self.tolerance:
            return ""
        return (
            f"note: the named improvement, {self.improvement:g}, is below the tolerance, {self.tolerance:.3g}: an "
            f"accepted release may be worse than the incumbent by {self.tolerance - self.improvement:.3g}, and noise "
            f"alone can be accepted; name {self.tolerance:.3g} or more, as gate init shows, to accept only better ones"
        )

    def record(self) -> dict[str, Any]:
        """Return the verdict as a dict that can be written as JSON."""
        record = self._asdict()
        if not record.pop("no_worse"):
            return record
        return record | {"no_worse": {name: {"low": low, "high": high} for name, low, high in self.no_worse}}


class NoWorse(NamedTuple):
    """A second score of the same rows, which may get worse by at most a given amount.

    Attributes
    ----------
    score : str
        Name of the score in the files, such as the name of a scorer.
    amount : float
        By how much the new model's score may be worse than the old model's; at least 0.
    lower, upper : float
        Range of the score.
    """

    score: str
    amount: float
    lower: float = 0.0
    upper: float = 1.0

    @property
    def metric(self) -> Metric:
        """The guard's metric for this score."""
        return score(lower=self.lower, upper=self.upper, of=self.score)


def ask_gate(
    gate: Gate,
    new: Path | ScoreTable,
    incumbent: Path | ScoreTable,
    *,
    improvement: float,
    no_worse: Mapping[NoWorse, tuple[ScoreTable, ScoreTable]] | None = None,
    id_column: str | None = None,
    name: str = "",
) -> Verdict:
    """Ask if the new model is better than the incumbent by at least `improvement`.

    If `no_worse` names other scores, the new model is accepted only if none of them is worse by more than its amount.
    With the guard's confidence, the intervals of all verdicts together contain the population values. Only "accepted"
    or "rejected" is told about the rows, and "rejected" does not tell which score failed. The question takes at most
    one charge, and one of the declared queries for each score.

    Parameters
    ----------
    gate : Gate
    new, incumbent : Path or ScoreTable
        For a gate with labels, files of predictions: CSV, Parquet or JSON with one column or, for a metric of
        probabilities, a column for each class with the class as its name. For a gate with ids, tables of scores.
    improvement : float
        The improvement to reach, in the metric's unit. It is positive if the new model must be better, also for losses,
        and negative if a slightly worse model may be accepted.
    no_worse : mapping of NoWorse to (ScoreTable, ScoreTable), optional
        For a gate with ids: other scores that must not get worse, each with the tables of the new model and of the
        incumbent.
    id_column : str, optional
        Column of ids in the files, if it has another name than when the gate was made.
    name : str
        Name of the question in the guard's history.

    Returns
    -------
    Verdict

    Raises
    ------
    InputError
        If files, tables or numbers do not fit; nothing was asked and nothing was charged.
    """
    guard = gate.guard
    span = guard.metric.upper - guard.metric.lower
    if not abs(improvement) <= span:  # refuses NaN, too
        raise InputError(
            f"the improvement must be a number in [{-span:g}, {span:g}]; got {improvement}{_NOTHING}"
        )
    subject, old = (_subject(gate, one, id_column) for one in (new, incumbent))
    stated = no_worse or {}
    if len({one.metric.name for one in stated}) < len(stated):
        raise InputError(f"each score that is to be no worse must be named once; one came twice{_NOTHING}")
    rails = {_rail(guard, one): (Difference(*tables), -one.amount) for one, tables in stated.items()}
    return _asked(gate, subject, old, improvement, rails or None, name)


def _rail(guard: ReusableHoldout, stated: NoWorse) -> ReusableHoldout:
    """Return the guard that answers about a second score of the same rows."""
    span = stated.upper - stated.lower
    if not 0.0 <= stated.amount <= span:
        raise InputError(
            f"how much worse {stated.score!r} may be must be a number in [0, {span:g}]; got {stated.amount}{_NOTHING}"
        )
    return open_beside(guard, stated.metric)


def _asked(gate: Gate, new: Any, old: Any, improvement: float, rails: Any, name: str) -> Verdict:
    guard = gate.guard
    sign = 1.0 if guard.metric.greater_is_better else -1.0
    tolerance = (
        (0.0 if guard.plan.certifies else guard.plan.tolerance) if gate.tolerance is None else gate.tolerance
    )
    try:
        answer = ask(
            guard,
            new,
            old,
            prior=None,
            at_least=sign * improvement,
            tolerance=gate.tolerance,
            name=name,
            guardrails=rails,
        )
    except Halted:
        left = (guard.charges_left, guard.queries_left)
        return Verdict("halted", False, *left, None, None, (), improvement, tolerance)
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
        tolerance,
    )


def _subject(gate: Gate, given: Path | ScoreTable, id_column: str | None) -> Any:
    """Return scores or predictions in the form that the guard takes; an error message names the file."""
    guard, judged = gate.guard, gate.guard.metric.response == "judged"
    if judged != isinstance(given, ScoreTable):
        has = "ids and no labels" if judged else f"labels, for {guard.metric.name}"
        takes = (
            "scores: name their files with --inspect, --lm-eval or --scores" if judged else "--predictions"
        )
        raise InputError(f"this gate has {has}, and takes {takes}; got something else{_NOTHING}")
    if isinstance(given, ScoreTable):
        return given
    values = _predictions(gate, given, id_column)
    try:
        guard.check_predictions(values)
    except InputError as error:
        raise InputError(f"{given}: {error}{_NOTHING}") from None
    return values


def _predictions(gate: Gate, path: Path, id_column: str | None) -> NDArray[Any]:
    """Read a file of predictions, and return them in the order of the gate's rows."""
    guard = gate.guard
    if gate.ids is None and id_column is not None:
        raise InputError(
            "--id needs a gate that was made with ids; this one was not; make the gate with --id, or leave --id out "
            "and give the predictions in the order of the labels"
        )
    table = read_table(path, id_column=id_column or gate.id_column, text=guard.private_labels == "text")
    return columns_of(in_order_of(gate.ids, table, path, rows=guard.rows), guard, path)
