"""Gates that also tell what is worse: the gate of a difference, then the gate of the reversed difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reusable_holdout.answer import Answer
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard.subjects import Difference


def gate_or_worse(
    tell: Any, gate: Callable[..., Answer], subject: Any, at_least: Any, name: Any, **more: Any
) -> Answer:
    """Ask if a difference reaches `at_least`; if that is not shown, ask if the reversed one reaches minus `at_least`.

    The reversed difference reaches this exactly if the difference is at most `at_least`. Both questions are ordinary
    gates, each with its own name, row and declared query, so a gate needs no third outcome. If the guard halts before
    the second gate, the exception's `answers` hold the first answer.
    """
    if not (tell is True and isinstance(subject, Difference)) or more.get("guardrails"):
        raise InputError(
            "tell_worse must be True or False, and True needs one Difference(new, old) and no guardrails; got "
            "something else; nothing was asked; leave tell_worse out, or compare the model with another"
        )
    first = gate(subject, at_least, name=name, **more)
    if first.outcome != "not shown":
        return first
    named = f"{first.name[:180]}, reversed".lstrip(", ")  # a name has 200 letters at most
    try:
        other = gate(Difference(subject.old, subject.new), 0.0 - float(at_least), name=named, **more)
    except Halted as halt:
        halt.answers = [first, *halt.answers]
        raise
    if other.outcome != "better":
        return first._replace(replayed=first.replayed and other.replayed)
    value, prior, low, high = (0.0 - one for one in (other.value, other.prior, other.high, other.low))
    return other._replace(value=value, prior=prior, low=low, high=high, outcome="worse", name=first.name)
