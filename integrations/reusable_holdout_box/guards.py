"""The only module of the box that calls a guard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import InputError

_POLICIES = ("thresholdout", "gate", "guess-and-check")
_CALLS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "evaluate": (1, lambda guard, one, **stated: guard.evaluate_predictions(*one, **stated)),
    "many": (0, lambda guard, all_, priors=None, **stated: guard.evaluate_many(all_, priors, **stated)),
    "compare": (2, lambda guard, both, **stated: guard.compare_predictions(*both, **stated)),
    "reveal": (1, lambda guard, one, **stated: guard.reveal_predictions(*one, **stated)),
    "choose": (
        0,
        lambda guard, all_, priors=None, **stated: guard.choose_predictions(all_, priors, **stated),
    ),
    "final": (
        0,
        lambda guard, all_, **stated: guard.final_predictions(all_ if all_[1:] else all_[0], **stated),
    ),
}
"""Calls by the way to ask, with the number of models that it is about; 0 for any number."""

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
    if not predictions or count not in {0, len(predictions)}:
        wanted = f"{count} models" if count else "at least one model"
        raise InputError(f"{way} is a question about {wanted}; got {len(predictions)}; nothing was asked")
    found = call(guard, list(predictions), **stated)
    return [found] if isinstance(found, Answer) else found


def made_guard(y: Any, *, policy: Any = "thresholdout", **settings: Any) -> ReusableHoldout:
    """Make the guard of a new box; InputError if no box can hold one of this policy."""
    if policy not in _POLICIES:
        raise InputError(
            f"the policy of a box must be one of {', '.join(_POLICIES)}; got {policy!r}; nothing was made"
        )
    return ReusableHoldout(None, y, policy=policy, **settings)


def open_guard(ledger: Path, y: Any) -> ReusableHoldout:
    """Open the guard of a box; InputError if an older version made it with another policy."""
    guard = ReusableHoldout.open(ledger, None, y)
    if guard.policy in _POLICIES:
        return guard
    guard.close()
    raise InputError(f"a box of policy {guard.policy!r} must be opened with version 0.2; nothing was opened")
