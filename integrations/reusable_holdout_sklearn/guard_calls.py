"""All calls to a guard that this package makes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from reusable_holdout import Answer, Question, ReusableHoldout
from reusable_holdout.errors import (
    BudgetError,
    Halted,
    HandleError,
    HoldoutError,
    InputError,
    ModelError,
    Refused,
)
from reusable_holdout.guard import Estimate, Measured, check_is_guard, prospects
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.pools import let_pools_carry_halts

__all__ = [
    "Way",
    "answer_once",
    "ask_about_all",
    "ask_each",
    "can_leave_the_process",
    "check_guard",
    "check_room",
    "is_known_choice",
    "measure_model",
    "possible_replays",
    "printable_name",
    "refusals",
]

Way: TypeAlias = Literal["evaluate", "choose", "final"]

_LONGEST_NAME = 120
_MOST_READ = 10_000  # at most this many characters of a repr are read, because it may hold data


# ---- what may be asked


def check_guard(guard: ReusableHoldout, ask: Way = "evaluate") -> None:
    """Check that a guard can be asked about models in this way.

    Raises
    ------
    InputError
        If the guard holds no features, or its plan is for gates and `ask` is "evaluate". The message names an
        alternative.
    LedgerError
        If the guard is not in this process.
    """
    check_is_guard(guard)
    if not guard.has_features:
        raise InputError(
            "to ask about models, a guard must hold features; this guard holds labels only; nothing was fitted; "
            "make it with ReusableHoldout(X, y, ...)"
        )
    if ask == "evaluate" and guard.plan.asks == "gates":
        raise InputError(
            "this guard's plan is for gates, which do not tell the score of each model; nothing was fitted; search "
            "with a plain scorer, then ask guard.gate(search.best_estimator_, at_least=...)"
        )


def check_room(
    guard: ReusableHoldout, ask: Way, candidates: int, priors: Sequence[float] | None = None
) -> None:
    """Check that the guard can answer a final, or that its plan has room for a choice, of this many candidates.

    Raises
    ------
    BudgetError, InputError, Halted
        If :mod:`reusable_holdout.guard.prospects` raises them. For a choice the message also says how much room
        nested loops need.
    """
    if ask == "final":
        prospects.check_final(guard, candidates, priors)
        return
    try:
        prospects.check_choice(guard, candidates, priors)
    except (BudgetError, InputError) as error:
        raise type(error)(
            f"{error}; each fold of an outer loop, such as a nested cross-validation, makes a choice of its own; make "
            f"the guard with room for all of them: plan=Plan(choices=[{candidates}] * folds, ...), and at least "
            f"{candidates} * folds queries"
        ) from None


def can_leave_the_process(guard: ReusableHoldout) -> bool:
    """Return True if the guard can be pickled, so that worker processes can open it."""
    try:
        pickle.dumps(guard)
    except HandleError:
        return False
    return True


def possible_replays(guard: ReusableHoldout, priors: Sequence[float]) -> int:
    """Return the number of models, counted from the first, about which the guard may answer.

    These are all models; after a halt, only those before the first one whose prior no earlier question had.
    """
    return prospects.could_replay(guard, priors) if guard.halted else len(priors)


def is_known_choice(guard: ReusableHoldout, priors: Sequence[float]) -> bool:
    """Return True if an earlier choice may have had these priors, so that a new one may be a replay."""
    return prospects.could_have_chosen(guard, priors)


# ---- what is asked


def measure_model(guard: ReusableHoldout | None, model: Any, prior: Estimate, way: Way) -> Measured:
    """Measure a fitted model on the guard's holdout, in a worker process or in this one.

    Without a guard the model is only wrapped; it is measured when the guard is asked about it.
    """
    if guard is None:
        return Measured(model, fingerprint(model))
    return guard.measure(model, prior=prior.mean, prior_error=prior.error, way=way)


def ask_each(
    guard: ReusableHoldout,
    models: Sequence[Measured],
    priors: Sequence[Estimate],
    names: Sequence[str],
    X_train: Any,
) -> tuple[list[Answer | None], Halted | None]:
    """Ask about each model in turn.

    Returns
    -------
    answers : list of (Answer or None)
        None for a model that failed on the holdout. After a halt the list is shorter than `models`.
    halted : Halted or None
        The halt that ended the questions early, if there was one.
    """
    means, errors = map(list, zip(*priors, strict=True))
    batch = Question("evaluate", list(models), means, name=list(names), X_train=X_train, prior_error=errors)
    halted = None
    try:
        try:
            (found,) = guard.ask([batch])
        except BudgetError:  # too few queries are left for the batch: ask one by one
            each = zip(models, priors, names, strict=True)
            found = guard.ask(
                [
                    batch._replace(subjects=model, priors=prior.mean, prior_error=prior.error, name=name)
                    for model, prior, name in each
                ]
            )
    except Halted as halt:
        found, halted = halt.answers, halt
    return [None if isinstance(one, ModelError) else one for one in found], halted


def ask_about_all(
    guard: ReusableHoldout,
    ask: Way,
    models: Sequence[Measured],
    priors: Sequence[float],
    names: Sequence[str],
    X_train: Any,
) -> tuple[list[Answer | None], int]:
    """Ask for a choice or a final of all models.

    Returns
    -------
    answers : list of (Answer or None)
        None for a model that failed on the holdout, and for each model that a choice did not choose.
    best : int
        Place of the best model.
    """
    if ask == "choose":
        choice = guard.choose(models, priors, name=f"best of {len(models)}", X_train=X_train)
        return [
            choice.answer if place == choice.index else None for place in range(len(models))
        ], choice.index
    finals = guard.final(list(models), list(priors), name=list(names), X_train=X_train)
    return [None if isinstance(one, ModelError) else one for one in finals], finals.best_index


def answer_once(guard: ReusableHoldout, model: Any, content: bytes, prior: float) -> float:
    """Ask about a fitted model and return the answer's value.

    If the model was asked about before, with any prior, the recorded answer is repeated.
    """
    asked, name = Measured(model, content), printable_name(model)
    (found,) = guard.ask([Question("evaluate", asked, prior, name=name, once=True)])
    if isinstance(found, ModelError):
        raise found
    return float(found.value)


def printable_name(model: Any) -> str:
    """Return the name of a question about a model: one printable line of at most 120 characters.

    The line is made from the model's repr, or from `model` itself if it is a text.
    """
    try:
        text = model if isinstance(model, str) else repr(model)
    except Exception:  # a model whose repr fails can still be asked about
        text = type(model).__name__
    line = " ".join(text[:_MOST_READ].split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 3] + "..."


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the guard's errors inside a ``with`` block into `Refused`.

    Loops of scikit-learn replace an ordinary exception by NaN; `Refused` stops them, also in worker processes. A
    ``ModelError`` stays as it is if a model fails on the holdout: the loop's `error_score` decides about it.
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
