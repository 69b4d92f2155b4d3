"""The texts for an agent: of its tools before it asks, of an answer, and of the end."""

from __future__ import annotations

import math
from typing import Any

from reusable_holdout_box.guards import Answer
from reusable_holdout_box.remote import RemoteHoldout

__all__ = ["about", "about_compare", "about_evaluate", "budget_of", "halted", "said"]

_FILES = (
    "Pass predictions as a list in the order of the rows, or `file`, a path in your workspace: CSV (one column of "
    "predictions, and a column `id` if the rows have ids), Parquet, .npy or JSON. Wrong input is refused, and costs "
    "nothing. The same question again gets the same answer, free."
)
_HONEST = (
    "State your own honest estimate as `prior`, from cross-validation or a dev set: a good estimate costs nothing, a "
    "wrong one costs a charge."
)
_SPENT = {
    "charges": "all charges are spent",
    "queries": "all questions are asked",
    "final": "a final was given",
}


def about(remote: RemoteHoldout) -> str:
    """Say what the server is for."""
    plan, metric = remote.plan, remote.metric
    better = "greater" if metric.greater_is_better else "smaller"
    return (
        f"A private test set of {plan.rows:,} rows, scored by {metric.name} ({better} is better). You cannot see its "
        f"labels; you can ask about predictions. There are {plan.queries:,} questions and {plan.charges} charges in "
        "all. Everyone who asks shares them, and they are never refilled. When they are spent nothing new is answered: "
        "plan your questions. Choose on your own dev set, and ask about the models that you mean to keep."
    )


def about_evaluate(remote: RemoteHoldout) -> str:
    """Say what the tool `evaluate` tells and costs."""
    asks = f"Asks whether the {remote.metric.name} of your predictions on the hidden rows"
    if remote.policy == "gate":
        told = (
            f"{asks} is at least `prior`. You are told accepted or rejected, and nothing else. Accepted takes a "
            "charge; rejected takes a question only."
        )
    elif not remote.takes_priors:
        told = (
            f"{asks} beats the best so far. You are told the new best, which takes a charge, or the old one, which "
            "takes a question only. Leave `prior` out."
        )
    else:
        told = (
            f"{asks} is what you think it is. {_HONEST} If your estimate is near, you are told that it agrees. If it "
            "is far off, you are told which way and about how far, and a charge is taken. Each new question takes one "
            "of the questions."
        )
    return f"{told}{_limits(remote)} {_FILES}"


def about_compare(remote: RemoteHoldout) -> str:
    """Say what the tool `compare` tells and costs."""
    what = f"is what you think it is. {_HONEST}"
    if remote.policy == "gate":
        what = "is at least `prior`: accepted takes a charge, rejected a question only"
    return (
        f"Asks whether the difference in {remote.metric.name} on the hidden rows, your predictions less the "
        f"incumbent's, {what}. It is far sharper than two evaluations, because rows on which both agree do not count; "
        f"ask it to learn whether a change is an improvement.{_limits(remote)} {_FILES}"
    )


def _limits(remote: RemoteHoldout) -> str:
    """Say what a box of verdicts does not tell, and how labels whose set is private are compared."""
    text = " No number is told, only whether it was charged." if remote.verdict_only else ""
    if remote.private_labels == "text":
        text += " A prediction is right if it is the row's label, whatever the case and the spaces. Labels are secret."
    return text


def said(answer: Answer, remote: RemoteHoldout) -> dict[str, Any]:
    """Return an answer as a tool's result: numbers for programs, and a sentence."""
    words = ("accepted", "rejected") if remote.policy == "gate" else ("deviates", "agrees")
    outcome = words[0 if answer.charged else 1]
    cost = "a question and a charge" if answer.charged else "a question"
    cost = "nothing, for it was asked before" if answer.replayed else cost
    left = remote.queries_left
    told = {name: one for name in ("value", "low", "high") if math.isfinite(one := getattr(answer, name))}
    interval = ""
    if len(told) == 3:
        interval = f": {answer.value:.4f}, surely between {answer.low:.4f} and {answer.high:.4f}"
    return {
        "halted": False,
        "outcome": outcome,
        **told,
        "charged": answer.charged,
        "replayed": answer.replayed,
        "queries_left": left,
        "charges_left": answer.charges_left,
        "says": f"{outcome}{interval}. It cost {cost}. Left: {left:,} questions, {answer.charges_left} charges.",
    }


def halted(reason: str) -> dict[str, Any]:
    """Return the end as a result that cannot be taken for a score."""
    return {
        "halted": True,
        "outcome": "halted",
        "says": f"HALTED: {_SPENT.get(reason, reason)}. This question was not answered, and no new question ever will "
        "be. Do not try again: stop, and report what was answered before. Answered questions may be repeated.",
    }


def budget_of(remote: RemoteHoldout) -> dict[str, Any]:
    """Return what is left."""
    reason, left, charges = remote.halt_reason, remote.queries_left, remote.charges_left
    if reason is not None:
        return halted(reason) | {"queries_left": left, "charges_left": charges}
    plan = remote.plan
    return {
        "halted": False,
        "queries": plan.queries,
        "queries_left": left,
        "charges": plan.charges,
        "charges_left": charges,
        "says": f"Left: {left:,} of {plan.queries:,} questions, {charges} of {plan.charges} charges.",
    }
