"""The calls of a guard that this package makes: all of them are here."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import (
    BudgetError,
    Halted,
    HandleError,
    HoldoutError,
    InputError,
    ModelError,
    Refused,
)
from reusable_holdout.guard import (
    Asked,
    Choice,
    MeasuredModel,
    check_is_guard,
)
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.pools import let_pools_carry_halts

__all__ = [
    "Way",
    "answer_once",
    "ask_best",
    "ask_each",
    "can_leave_the_process",
    "check_guard",
    "check_room",
    "halt_of",
    "is_known_choice",
    "measure_model",
    "possible_replays",
    "printable_name",
    "refusals",
]

Way: TypeAlias = Literal["evaluate", "choose"]

_LONGEST_NAME = 120
_MOST_READ = 10_000  # characters of a model's repr, which may show its data


# ---- what may be asked


def check_guard(guard: ReusableHoldout, ask: Way = "evaluate") -> None:
    """Check that a guard can tell how good each of several models is.

    Raises
    ------
    InputError
        If it cannot; the message says what to use.
    LedgerError
        If the guard is not in this process.
    """
    check_is_guard(guard)
    if not guard.has_features:
        raise InputError(
            "models are asked about with the holdout's features; this guard holds labels only; nothing was fitted; "
            "make it with ReusableHoldout(X, y, ...)"
        )
    if ask == "evaluate" and (guard.policy == "gate" or not guard.takes_priors):
        raise InputError(
            f"this guard's policy, {guard.policy!r}, does not tell the score of each model; nothing was fitted; search "
            'with GuardedSearchCV(ask="choose"), or search first and ask guard.compare(search.best_estimator_, '
            "incumbent, prior=...)"
        )


def check_room(guard: ReusableHoldout, candidates: int, priors: Sequence[float] | None = None) -> None:
    """Check that a choice among so many candidates fits the plan, and say how much room nested loops need.

    Raises
    ------
    BudgetError, InputError, Halted
        As :meth:`ReusableHoldout.check_choice` does.
    """
    try:
        guard.check_choice(candidates, priors)
    except (BudgetError, InputError) as error:
        raise type(error)(
            f"{error}; each fold of an outer loop, such as a nested cross-validation, asks a choice of its own; make "
            f"the guard with room for all of them: choices=[{candidates}] * folds, and at least {candidates} * folds "
            "queries"
        ) from None


def can_leave_the_process(guard: ReusableHoldout) -> bool:
    """Return True if other processes can open the guard."""
    try:
        pickle.dumps(guard)
    except HandleError:
        return False
    return True


def possible_replays(guard: ReusableHoldout, priors: Sequence[float]) -> int:
    """Return how many models, from the first, can have an answer: after a halt only replays can."""
    return guard.could_replay(priors) if guard.halted else len(priors)


def is_known_choice(guard: ReusableHoldout, priors: Sequence[float]) -> bool:
    """Return True if a choice with these priors may have been asked before."""
    return guard.could_have_chosen(priors)


def halt_of(guard: ReusableHoldout) -> Halted:
    """Return the exception that a new question would raise."""
    return guard.halt()


# ---- what is asked


def measure_model(guard: ReusableHoldout | None, model: Any, prior: float, way: Way) -> MeasuredModel:
    """Measure a fitted model, in whatever process; without a guard it is measured when it is asked about."""
    if guard is None:
        return MeasuredModel(model, fingerprint(model))
    return guard.measure(model, prior=prior, kind=way)


def ask_each(
    guard: ReusableHoldout,
    models: Sequence[MeasuredModel],
    priors: Sequence[float],
    names: Sequence[str],
    X_train: Any,
) -> Asked:
    """Ask about each model of a batch; the halt, if there was one, is for the caller to raise."""
    return guard.ask(models, priors, names=names, X_train=X_train)


def ask_best(
    guard: ReusableHoldout, models: Sequence[MeasuredModel], priors: Sequence[float], X_train: Any
) -> Choice:
    """Ask which model is the best, in one question."""
    return guard.ask_choice(models, priors, name=f"best of {len(models)}", X_train=X_train)


def answer_once(guard: ReusableHoldout, model: Any, content: bytes, prior: float) -> float:
    """Ask about a fitted model, or repeat its recorded answer, whatever its prior was."""
    asked = MeasuredModel(model, content)
    return guard.ask_once(asked, prior=prior, name=printable_name(model)).value


def printable_name(model: Any) -> str:
    """Return the name of a question about a model, or a text: one printable line of at most 120 characters."""
    try:
        text = model if isinstance(model, str) else repr(model)
    except Exception:  # a model that cannot be shown can be asked about
        text = type(model).__name__
    line = " ".join(text[:_MOST_READ].split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 3] + "..."


@contextmanager
def refusals() -> Iterator[None]:
    """Raise an error of the guard as `Refused`, which no loop turns into NaN, also out of worker processes.

    A model that fails on the holdout is no refusal: the loop's `error_score` decides about it.
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
