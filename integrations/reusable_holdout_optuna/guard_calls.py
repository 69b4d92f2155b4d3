"""All calls to a guard that this package makes."""

from __future__ import annotations

from typing import Any

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import Halted, InputError

__all__ = ["ask_about", "check_guard", "halt_of"]


def check_guard(guard: ReusableHoldout) -> None:
    """Check that a guard's plan allows questions whose answers are scores of trials.

    Raises
    ------
    InputError
        If its plan is for gates alone; the message names an alternative.
    """
    if guard.plan.asks == "gates":
        raise InputError(
            "this guard's plan is for gates, which do not tell the score of each trial; nothing was run; optimize "
            "first, then ask guard.gate(best, at_least=...)"
        )


def ask_about(guard: ReusableHoldout, asked: Any, prior: float, name: str) -> Answer:
    """Ask the guard about a fitted model, or about predictions for the holdout's rows, and return its answer."""
    answer: Answer = guard.evaluate(asked, prior=prior, name=name)
    return answer


def halt_of(guard: ReusableHoldout) -> Halted | None:
    """Return the exception that a new question would raise; None if the guard has not halted."""
    return guard.halt() if guard.halted else None
