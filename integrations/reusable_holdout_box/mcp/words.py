"""What an agent is told: of its tools before it asks, of an answer, of the end."""

from __future__ import annotations

import math
from typing import Any

from reusable_holdout import Answer
from reusable_holdout_box.remote import RemoteHoldout

__all__ = ["about", "about_compare", "about_evaluate", "halted", "said"]

_FILES = (
    "Pass predictions as a list in the order of the rows, or `file`, a path in your workspace: CSV (one column of "
    "predictions, and a column `id` if the rows have ids), Parquet, .npy or JSON. What does not fit is refused "
    "and costs "
    "nothing. The same question again gets the same answer, free."
)
_HONEST = (
    "State your own honest estimate as `prior`, from cross-validation or a dev set: a good one costs nothing, a "
    "wrong one "
    "a charge."
)


def about(remote: RemoteHoldout) -> str:
    """What the server is for."""
    plan, metric = remote.plan, remote.metric
    better = "greater" if metric.greater_is_better else "smaller"
    return (
        f"A private test set of {plan.rows:,} rows, scored by {metric.name} ({better} is better). You cannot see "
        "its labels; "
        f"you can ask about predictions. There are {plan.queries:,} questions and {plan.charges} charges in all, "
        "shared by "
        "everyone who asks, and never refilled. When they are spent nothing new is answered: plan your "
        "questions. Choose on "
        "your own dev set, and ask about what you mean to keep."
    )


def about_evaluate(remote: RemoteHoldout) -> str:
    """What the tool `evaluate` tells and costs."""
    name = remote.metric.name
    if remote.policy == "gate":
        told = (
            f"Asks whether the {name} of your predictions on the hidden rows is at least `prior`. You are told "
            "accepted or "
            "rejected, and nothing else. Accepted takes a charge; rejected takes a question only."
        )
    elif not remote.takes_priors:
        told = (
            f"Asks whether the {name} of your predictions on the hidden rows beats the best so far. You are told "
            "the new "
            "best, which takes a charge, or the old one, which takes a question only. Leave `prior` out."
        )
    else:
        told = (
            f"Asks whether the {name} of your predictions on the hidden rows is what you think it is. {_HONEST} "
            "If it is "
            "near, you are told that it agrees. If it is far off, you are told which way and about how far, and "
            "a charge is "
            "taken. Each new question takes one of the questions."
        )
    return f"{told}{_verdicts(remote)}{_of_answers(remote)} {_FILES}"


def about_compare(remote: RemoteHoldout) -> str:
    """What the tool `compare` tells and costs."""
    name, gate = remote.metric.name, remote.policy == "gate"
    what = (
        "is at least `prior`: accepted takes a charge, rejected a question only"
        if gate
        else f"is what you think it is. {_HONEST}"
    )
    return (
        f"Asks whether the difference in {name} on the hidden rows, your predictions less the incumbent's, "
        f"{what}. It is far "
        "sharper than two evaluations, because rows on which both agree do not count; ask it to learn whether a "
        "change is an "
        f"improvement.{_verdicts(remote)}{_of_answers(remote)} {_FILES}"
    )


def _verdicts(remote: RemoteHoldout) -> str:
    return (
        " No number is told, only whether it was charged." if getattr(remote, "verdict_only", False) else ""
    )


def _of_answers(remote: RemoteHoldout) -> str:
    """Say how predictions are compared with labels of which no list is told."""
    if getattr(remote, "private_labels", None) != "text":
        return ""
    return " A prediction is right if it is the row's label, whatever the case and the spaces; labels are not listed."


def said(answer: Answer, remote: RemoteHoldout) -> dict[str, Any]:
    """An answer as a tool's result: numbers for programs, and a sentence."""
    if remote.policy == "gate":
        outcome = "accepted" if answer.charged else "rejected"
    else:
        outcome = "deviates" if answer.charged else "agrees"
    cost = (
        "nothing, for it was asked before"
        if answer.replayed
        else "a question and a charge"
        if answer.charged
        else "a question"
    )
    left = remote.queries_left
    numbers = {name: getattr(answer, name) for name in ("value", "low", "high")}
    told = {name: one for name, one in numbers.items() if math.isfinite(one)}
    interval = (
        f": {answer.value:.4f}, surely between {answer.low:.4f} and {answer.high:.4f}"
        if len(told) == 3
        else ""
    )
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
    """The end, as a result that cannot be taken for a score."""
    spent = {
        "charges": "all charges are spent",
        "queries": "all questions are asked",
        "final": "a final was given",
    }
    return {
        "halted": True,
        "outcome": "halted",
        "says": f"HALTED: {spent.get(reason, reason)}. This question was not answered, and no new question ever "
        "will be. Do "
        "not try again: stop, and report what was answered before. Questions that were answered may be repeated.",
    }
