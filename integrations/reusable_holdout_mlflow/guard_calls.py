"""Functions that ask a guard a question or read its released answers."""

from __future__ import annotations

from typing import Any

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.deferred import pandas as pd

__all__ = ["ask_about", "released"]


def ask_about(
    guard: ReusableHoldout,
    model: Any,
    X: Any,
    y: Any,
    *,
    prior: float | None,
    tolerance: float | None,
    name: str,
) -> Answer:
    """Ask the guard how good a model is, and return its answer."""
    answer: Answer = guard.evaluate(model, X, y, prior=prior, tolerance=tolerance, name=name)
    return answer


def released(guard: ReusableHoldout, *, first: int, last: int | None = None) -> pd.DataFrame:
    """Return the lines of the guard's history for some queries about the guard's own metric.

    Parameters
    ----------
    guard : ReusableHoldout
    first, last : int
        Numbers of the first and the last query, both included; by default up to the end.
    """
    history = guard.history()
    history = history[(history["view"] == guard.view) & (history["way"] != "view")]
    wanted = history["query"] >= first
    return history[wanted if last is None else wanted & (history["query"] <= last)]
