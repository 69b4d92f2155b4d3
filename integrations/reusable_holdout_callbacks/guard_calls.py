"""All calls that this package makes to a guard."""

from __future__ import annotations

from typing import Any

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.guard import check_is_guard

__all__ = ["ask_about", "check_guard"]


def check_guard(guard: ReusableHoldout) -> None:
    """Check that a guard can answer questions about the models of a training.

    Raises
    ------
    InputError
        If the guard holds no features, or its plan is for gates alone. The message names an alternative.
    LedgerError
        If the guard is not in this process.
    """
    check_is_guard(guard)
    if not guard.has_features:
        raise InputError(
            "the model of each round must predict from the holdout's features; this guard holds labels only; nothing "
            "was made; make it with ReusableHoldout(X, y, ...)"
        )
    if guard.plan.asks == "gates":
        raise InputError(
            "this guard's plan is for gates, which do not tell the score of each round; nothing was made; train first, "
            "then ask guard.gate(model, at_least=...)"
        )


def ask_about(guard: ReusableHoldout, model: Any, prior: float, name: str) -> Answer:
    """Ask the guard about the model of one round, and return its answer."""
    answer: Answer = guard.evaluate(model, prior=prior, name=name)
    return answer
