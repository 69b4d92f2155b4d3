"""What of a guarded search and a guarded scorer is pickled: whereabouts or a certificate in the guard's place.

All of it is made of what skops can read, too: a frame is a dict of lists.
"""

from __future__ import annotations

from typing import Any

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.guard import Whereabouts
from reusable_holdout_sklearn.candidates import frame_of

__all__ = ["TRUSTED_TYPES", "loaded_state", "pickled_state"]

TRUSTED_TYPES = [
    "reusable_holdout.guard.absent.FrozenGuard",
    "reusable_holdout.guard.answer.Answer",
    "reusable_holdout.guard.frozen.FrozenAnswer",
    "reusable_holdout.guard.frozen.FrozenCertificate",
    "reusable_holdout.guard.whereabouts.ForWorkers",
    "reusable_holdout.guard.whereabouts.Whereabouts",
    "reusable_holdout_sklearn.priors.PriorScorer",
    "reusable_holdout_sklearn.scorer.GuardedScorer",
    "reusable_holdout_sklearn.search.GuardedSearchCV",
]
"""What ``skops.io.load(trusted=)`` and MLflow's ``skops_trusted_types=`` must allow besides the model's own types."""

_GUARD, _RESULTS = "guard", "guard_results_"


def pickled_state(state: dict[str, Any]) -> dict[str, Any]:
    """State of a search or a scorer with nothing in it that says where the guard's files lie."""
    state = dict(state)
    if state.get(_GUARD) is not None:
        state[_GUARD] = Whereabouts(state[_GUARD], state.get("certificate_"))
    if _RESULTS in state:
        state[_RESULTS] = _lists(state[_RESULTS])
    return state


def loaded_state(state: dict[str, Any]) -> dict[str, Any]:
    """State that :func:`pickled_state` was given, with the guard, or with what stands for it here."""
    state = dict(state)
    if state.get(_GUARD) is not None:
        state[_GUARD] = state[_GUARD].guard()
    if _RESULTS in state:
        state[_RESULTS] = frame_of(state[_RESULTS])
    return state


def _lists(frame: pd.DataFrame) -> dict[str, list[Any]]:
    missing = frame["query"].isna()
    lists = {str(name): frame[name].tolist() for name in frame.columns}
    return lists | {
        "query": [None if gone else int(query) for gone, query in zip(missing, lists["query"], strict=True)]
    }
