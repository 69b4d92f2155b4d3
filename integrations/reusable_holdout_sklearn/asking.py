"""Which guards can be asked about models, and how candidates become what they are asked about."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from sklearn.base import clone

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import HandleError, HoldoutError, InputError, ModelError, Refused
from reusable_holdout.guard import MeasuredModel, check_is_guard
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.pools import let_pools_carry_halts

__all__ = ["Way", "called", "check_guard", "fitted_and_measured", "guard_for_workers", "refusals"]


Way: TypeAlias = Literal["evaluate", "choose"]

_LONGEST_NAME = 120
_MOST_READ = 10_000  # of a model that shows its data


def check_guard(guard: ReusableHoldout, way: Way = "evaluate") -> None:
    """Refuse guards that cannot tell how good each of several models is.

    Raises
    ------
    InputError
        Saying what to use.
    """
    check_is_guard(guard)
    if not guard.has_features:
        raise InputError(
            "models are asked about with the holdout's features; this guard holds labels only; nothing was fitted; "
            "make it with ReusableHoldout(X, y, ...)"
        )
    if guard.policy == "gate" and way == "evaluate":
        raise InputError(
            "a gate says yes or no to one named score, and does not tell which of several models is best; nothing was "
            'fitted; use ask="choose", or search first, then ask guard.compare(search.best_estimator_, incumbent, '
            "prior=...)"
        )


@contextmanager
def refusals() -> Iterator[None]:
    """Raise what the guard refuses as `Refused`, which no loop turns into NaN, from worker processes too.

    A model that fails on the holdout is no refusal: the loop's `error_score` says what becomes of it.
    """
    try:
        yield
    except ModelError:
        raise
    except HoldoutError as error:
        refused = Refused(error)
    else:
        return
    let_pools_carry_halts()
    raise refused


def called(model: Any) -> str:
    """What history calls a question about a model, or a text: one printable line, no longer than is read."""
    try:
        text = model if isinstance(model, str) else repr(model)
    except Exception:  # a model that cannot be shown can be asked about
        text = type(model).__name__
    line = " ".join(text[:_MOST_READ].split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 3] + "..."


def guard_for_workers(guard: ReusableHoldout) -> ReusableHoldout | None:
    """Return the guard, if other processes can open it; None if its predictions are to be made here."""
    try:
        pickle.dumps(guard)
    except HandleError:
        return None
    return guard


def fitted_and_measured(
    estimator: Any,
    parameters: dict[str, Any],
    X: Any,
    y: Any,
    fit_params: dict[str, Any],
    guard: ReusableHoldout | None,
    prior: float,
    way: Way = "evaluate",
) -> MeasuredModel:
    """Fit one candidate, in whatever process, and measure it if the guard is here and needs that."""
    model = clone(estimator).set_params(**clone(parameters, safe=False))
    if y is None:
        model.fit(X, **fit_params)
    else:
        model.fit(X, y, **fit_params)
    if guard is None:
        return MeasuredModel(model, fingerprint(model))
    return guard.measure(model, prior=prior, kind=way)
