"""The calls of a guard that this package makes: all of them are here."""

from __future__ import annotations

from typing import Any

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard import Answer

__all__ = ["ask_about", "check_guard", "halt_of"]


def check_guard(guard: ReusableHoldout) -> None:
    """Check that a guard can tell how good each of several trials is.

    Raises
    ------
    InputError
        If it cannot; the message says what to use.
    """
    if guard.policy in {"gate", "ladder", "parameter-free-ladder"}:
        raise InputError(
            f"this guard's policy, {guard.policy!r}, does not tell the score of each trial; nothing was run; optimize "
            "first, then ask guard.compare(best, incumbent, prior=...)"
        )


def ask_about(guard: ReusableHoldout, asked: Any, prior: float, name: str) -> Answer:
    """Ask about a fitted model, or about predictions for the holdout's rows."""
    if any(hasattr(asked, method) for method in ("predict", "predict_proba", "decision_function")):
        return guard.evaluate(asked, prior=prior, name=name)
    return guard.evaluate_predictions(asked, prior=prior, name=name)


def halt_of(guard: ReusableHoldout) -> Halted | None:
    """Return the exception that a new question would raise; None if one would be answered."""
    return guard.halt() if guard.halted else None
