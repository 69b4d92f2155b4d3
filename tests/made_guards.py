"""The one door of the tests: a guard from settings that are stated flat, whichever part of it they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np

from reusable_holdout import Plan, ReusableHoldout, Rows

__all__ = ["made_guard", "right_in", "settings_of"]

_ROWS = {"classes", "sample_weight", "groups", "ids", "prevalence", "training"}
_PLAN = {
    "threshold",
    "noise",
    "confidence",
    "prior_error",
    "reveals",
    "choices",
    "delta",
    "spread",
    "board",
    "gates",
    "final_share",
}
_EVERYDAY = {"queries", "tolerance", "charges", "estimate"}
_SAID = {"key", "witness", "ledger"}
_ALLOWED = {
    "vacuous": "vacuous",
    "another_budget": "second budget",
    "overlapping": "overlap",
    "unwitnessed": "no witness",
}


def settings_of(X: Any, y: Any, settings: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a guard for flat settings; a setting of None is left out."""
    settings = {name: value for name, value in settings.items() if value is not None or name in _SAID}
    words = {"gate": {"gates": True}, "claims": {"board": "claims"}, "thresholdout": {}}
    if "policy" in settings:
        settings |= words[settings.pop("policy")]
    rows = {name: value for name, value in settings.items() if name in _ROWS}
    numbers = {name: value for name, value in settings.items() if name in _PLAN and value is not None}
    if numbers.get("gates"):
        numbers.setdefault("final_share", 0.25)  # so that tests of all plans may end with a final
    given = {name: value for name, value in settings.items() if name not in _ROWS | _PLAN | _ALLOWED.keys()}
    allow = {word for name, word in _ALLOWED.items() if settings.get(name)}
    if allow:
        given["allow"] = {*given.get("allow", ()), *allow}
    if numbers:
        everyday = {name: given.pop(name) for name in sorted(_EVERYDAY & given.keys())}
        given["plan"] = Plan(**numbers, **everyday)
    return ([Rows(X, y, **rows)] if rows else [X, y]), given


def made_guard(X: Any, y: Any, **settings: Any) -> ReusableHoldout:
    """Make a guard: settings of rows, plan and guard are told apart by their names."""
    arguments, given = settings_of(X, y, settings)
    return ReusableHoldout(*arguments, **given)


def right_in(labels: Any, share: float, variant: int = 0) -> Any:
    """Return predictions that are right in exactly this share of the rows; variants are right in other rows."""
    wrong = np.roll(np.arange(len(labels)) >= round(share * len(labels)), variant)
    return np.where(wrong, 1 - labels, labels)
