"""The state of some libraries' objects, without the parts in which two equal objects differ."""

from __future__ import annotations

from typing import Any

__all__ = ["state_of"]

_COUNTERS = slice(7, 11)  # of scikit-learn's search trees: how much they have searched
_MADE_BY_EACH_FIT = ("model_guid", "train_finish_time")  # CatBoost's name and date of a model


def state_of(value: Any, state: Any) -> Any:
    """Return the part of an object's state that is equal for equal objects."""
    if type(value).__name__ == "Bunch":  # a pickled one has lost it
        return None
    if isinstance(state, tuple):
        return (*state[: _COUNTERS.start], *state[_COUNTERS.stop :])
    if hasattr(value, "get_metadata"):
        copied = value.copy()
        metadata = copied.get_metadata()
        for name in _MADE_BY_EACH_FIT:
            metadata[name] = ""
        return copied.__getstate__()
    return state
