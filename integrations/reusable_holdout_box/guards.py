"""The only module of the box that calls a guard, or imports something from inside of the guard's package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from reusable_holdout import Answer, Choice, ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.kinds.stated import checked_names, checked_prior, checked_priors
from reusable_holdout.metrics import Metric

__all__ = [
    "WAYS",
    "Answer",
    "Choice",
    "ReusableHoldout",
    "ask",
    "checked_names",
    "checked_prior",
    "checked_priors",
    "make",
    "open_guard",
    "sealed",
]

_CALLS: Mapping[str, tuple[int | None, Callable[..., Any]]] = {
    "evaluate": (1, lambda guard, one, **stated: guard.evaluate_predictions(*one, **stated)),
    "many": (None, lambda guard, all_, priors=None, **stated: guard.evaluate_many(all_, priors, **stated)),
    "compare": (2, lambda guard, both, **stated: guard.compare_predictions(*both, **stated)),
    "reveal": (1, lambda guard, one, **stated: guard.reveal_predictions(*one, **stated)),
    "choose": (
        None,
        lambda guard, all_, priors=None, **stated: guard.choose_predictions(all_, priors, **stated),
    ),
    "final": (
        None,
        lambda guard, all_, **stated: guard.final_predictions(all_ if all_[1:] else all_[0], **stated),
    ),
}
WAYS = tuple(_CALLS)
"""Ways to ask; "many" is a batch of evaluations."""


def ask(guard: Any, way: str, predictions: Sequence[Any], **stated: Any) -> Any:
    """Ask a guard, here or elsewhere.

    Parameters
    ----------
    guard : ReusableHoldout or RemoteHoldout
    way : str
        One of :data:`WAYS`.
    predictions : sequence
        One entry for each model that the question is about.
    **stated
        Prior, priors, tolerance, tolerances, name or names.

    Returns
    -------
    list of Answer, or Choice

    Raises
    ------
    InputError
        If this way is about another number of models; nothing was asked.
    HoldoutError, Halted
        From the guard.
    """
    count, call = _CALLS[way]
    if not predictions or count not in {None, len(predictions)}:
        raise InputError(
            f"{way} is a question about {count or 'at least one of the'} predictions; got {len(predictions)}; "
            "nothing was asked"
        )
    found = call(guard, list(predictions), **stated)
    return [found] if isinstance(found, Answer) else found


def make(
    y: Any, *, metric: Metric, ids: Any, ledger: Path, witness: str | Path | Literal[False], **wish: Any
) -> ReusableHoldout:
    """Make the guard of a new box."""
    return ReusableHoldout(None, y, metric=metric, ids=ids, ledger=ledger, witness=witness, **wish)


def open_guard(ledger: Path, y: Any) -> ReusableHoldout:
    """Open the guard of a box."""
    return ReusableHoldout.open(ledger, None, y)
