"""Short texts for MLflow's list of runs: whether a run's model is overfitted, and what is left of the budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reusable_holdout import ReusableHoldout
from reusable_holdout.deferred import pandas as pd

__all__ = ["BUDGET", "NOTE", "OVERFITTING", "budget_in_words", "halt_note", "is_halted", "noted", "words_of"]

OVERFITTING = "holdout_overfitting"
BUDGET = "holdout_budget"
NOTE = "mlflow.note.content"

_HALTS = {"charges": "budget spent", "queries": "all queries asked", "final": "final given"}
_WHY = {
    "charges": "no charge is left of {charges:,}, and only a final can still be had from this holdout",
    "queries": "all {queries:,} declared queries are asked, and only a final can still be had from this holdout",
    "final": "a final was given, and nothing new will be learnt from this holdout",
}
_COMPARED = ("check", "choose", "compare")  # ways whose answers are compared with a prior


def words_of(guard: ReusableHoldout, rows: pd.DataFrame) -> dict[str, str]:
    """Return the tags that describe in words the last of some lines of the history; no tags if there are no lines."""
    if not len(rows):
        return {}
    last = rows.iloc[-1]
    tags = {} if guard.halted else {BUDGET: _left(guard, int(last["charges_left"]))}
    return tags | {OVERFITTING: _overfitting(last, higher_is_better=guard.metric.greater_is_better)}


def budget_in_words(guard: ReusableHoldout) -> str:
    """Return the number of charges left as a text; if the guard has halted, the reason."""
    reason = guard.halt_reason
    return _left(guard, guard.charges_left) if reason is None else f"halted: {_HALTS[reason]}"


def is_halted(tags: Mapping[str, str]) -> bool:
    """Return True if a run's tags say that its guard has halted."""
    return tags.get(BUDGET, "").startswith("halted")


def halt_note(guard: ReusableHoldout, reason: str) -> str:
    """Return a paragraph about the halt, for the note of a run."""
    plan = guard.plan
    why = _WHY[reason].format(charges=plan.charges, queries=plan.queries)
    return f"**The guard has halted** after answer {guard.answered}: {why}. What was released stays valid."


def noted(tags: Mapping[str, str], note: str) -> dict[str, str]:
    """Return a tag with the run's note, to which a paragraph is added; the owner's text stays."""
    return {NOTE: "\n\n".join(one for one in (tags.get(NOTE), note) if one)}


def _left(guard: ReusableHoldout, charges: int) -> str:
    return f"{charges:,} of {guard.plan.charges:,} charges left"


def _overfitting(row: Any, *, higher_is_better: bool) -> str:
    """Return a text that compares an answer with its prior: "overfitted" if the prior is better than the interval."""
    if row["outcome"] == "failed":
        return "the model failed on the holdout"
    if row["way"] not in _COMPARED:
        return f"answered by a {row['way']}"
    prior, by = row["prior"], f"{abs(row['prior'] - row['value']):.4f}"
    if row["low"] <= prior <= row["high"]:
        return "agrees with its prior"
    return (
        f"overfitted by {by}"
        if (prior > row["high"]) == higher_is_better
        else f"better than its prior by {by}"
    )
