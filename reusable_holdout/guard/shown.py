"""A guard and what it releases, as short tables for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reusable_holdout.errors import HoldoutError
from reusable_holdout.markup import facts_table

if TYPE_CHECKING:
    from reusable_holdout.guard.answer import Answer, Choice
    from reusable_holdout.guard.record import Record

__all__ = ["answer_table", "choice_table", "guard_table"]


def guard_table(guard: Record) -> str:
    """What anyone may know of a guard, and what is left of its budget."""
    plan = guard.plan
    facts = [("metric", f"{guard.metric.name}, by {plan.policy}"), ("holdout", guard._units)]
    try:
        asked, left, reason = guard.queries_asked, guard.charges_left, guard.halt_reason
    except HoldoutError:
        return facts_table("ReusableHoldout", [*facts, ("state", "closed")])
    of_each = plan.policy == "claims"
    about = "about " if of_each else ""
    facts += [
        ("charges of each series", f"{plan.charges:,}")
        if of_each
        else ("charges left", f"{left:,} of {plan.charges:,}"),
        ("queries asked", f"{asked:,} of {plan.queries:,}"),
        ("agreed answers", f"within {about}{plan.tolerance:g}, up to estimate {plan.estimate:g}"),
        ("intervals", f"hold all at once with probability {plan.confidence:g}"),
        ("state", "answers" if reason is None else f"halted: {reason}"),
    ]
    return facts_table("ReusableHoldout", facts)


def answer_table(answer: Answer) -> str:
    """One released answer."""
    return facts_table(answer.name or "Answer", _facts(answer))


def choice_table(choice: Choice) -> str:
    """The winner of a choice."""
    facts = [
        ("winner", f"candidate {choice.index}"),
        *_facts(choice.answer),
        ("others", f"none is better than {choice.others:.4f}"),
    ]
    return facts_table(choice.answer.name or "Choice", facts)


def _facts(answer: Answer) -> list[tuple[str, str]]:
    marks = ", replayed" * answer.replayed + ", of rows with another budget" * answer.another_budget
    facts = [
        ("difference" if answer.paired else "answer", f"{answer.value:.4f}"),
        ("interval", f"[{answer.low:.4f}, {answer.high:.4f}]"),
        ("prior", f"{answer.prior:.4f}"),
        ("told", f"{answer.told}{', charged' * answer.charged} ({answer.kind}{marks})"),
        ("query", f"{answer.query:,}, {answer.charges_left:,} charges left"),
    ]
    return facts + [
        (f"guardrail {rail.metric}", f"[{rail.low:.4f}, {rail.high:.4f}], named {rail.prior:.4f}")
        for rail in answer.guardrails
    ]
