"""Candidates are fitted and predict in parallel; they are asked about serially, in their order.

This module and `choosing` alone look into the guard: scores of the holdout go from a worker to the guard, and to nobody
else.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone

from reusable_holdout.errors import BudgetError, Halted, HandleError, InputError, ModelError
from reusable_holdout.guard import check_is_guard
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.models import check_model
from reusable_holdout.guard.rows import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reusable_holdout import ReusableHoldout
    from reusable_holdout.guard import Answer

__all__ = [
    "Asked",
    "Question",
    "Way",
    "ask",
    "check_guard",
    "could_replay",
    "fitted_question",
    "guard_for_workers",
    "halt",
    "holdout_columns",
    "is_ladder",
    "question_of",
    "scores_of",
]


Way: TypeAlias = Literal["evaluate", "choose"]

_NEEDLESS = b"needless"  # in place of a score


class Question(NamedTuple):
    """One fitted model.

    Attributes
    ----------
    model : estimator
    content : bytes
        What it is, the same in every process.
    score : bytes or None
        What the guard measured on the holdout, concealed under its key; empty if the model failed there, None if it is
        still to be measured, if the question needs that.
    """

    model: Any
    content: bytes
    score: bytes | None


class Asked(NamedTuple):
    """What came of the questions of one batch.

    Attributes
    ----------
    answers : list of Answer or None
        In their order, up to a halt; None where the model failed on the holdout.
    halted : Halted or None
    """

    answers: list[Answer | None]
    halted: Halted | None


def check_guard(guard: ReusableHoldout, way: Way = "evaluate") -> None:
    """Refuse guards that cannot tell how good each of several models is.

    Raises
    ------
    InputError
        Saying what to use.
    """
    check_is_guard(guard)
    if guard._holdout.X is None:
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


def is_ladder(guard: ReusableHoldout) -> bool:
    """Whether it answers with the best score so far, and so takes no prior."""
    return "ladder" in guard.policy


def holdout_columns(guard: ReusableHoldout) -> int | None:
    """How many columns the holdout has; None if they are not counted."""
    shape = np.shape(guard._holdout.X)
    return int(shape[1]) if len(shape) == 2 else None


def guard_for_workers(guard: ReusableHoldout) -> ReusableHoldout | None:
    """Return the guard, if other processes can open it; None if its predictions are to be made here."""
    try:
        pickle.dumps(guard)
    except HandleError:
        return None
    return guard


def fitted_question(
    estimator: Any,
    parameters: dict[str, Any],
    X: Any,
    y: Any,
    fit_params: dict[str, Any],
    guard: ReusableHoldout | None,
    prior: float,
    way: Way = "evaluate",
) -> Question:
    """Fit one candidate, in whatever process, and let it predict if the guard is here and needs that."""
    model = clone(estimator).set_params(**clone(parameters, safe=False))
    if y is None:
        model.fit(X, **fit_params)
    else:
        model.fit(X, y, **fit_params)
    return question_of(model, guard, prior, way)


def question_of(model: Any, guard: ReusableHoldout | None, prior: float, way: Way = "evaluate") -> Question:
    """Question about one fitted model."""
    content = fingerprint(model)  # before it predicts: some models keep what they have seen
    if guard is None or (way == "evaluate" and not _needs_rows(guard, content, prior)):
        return Question(model, content, None)
    return Question(model, content, _score(guard, model, way))


@sealed
def _needs_rows(guard: ReusableHoldout, content: bytes, prior: float) -> bool:
    return guard._transcript.needs_rows(guard._ways.policy, _digest(guard, content, prior))


def _digest(guard: ReusableHoldout, content: bytes, prior: float) -> bytes:
    asked = guard._ways.policy.asked(None if is_ladder(guard) else prior, None, guard.metric.name)
    return guard._content.model_question(content, asked.unit)


@sealed
def _scores_to_ask(
    guard: ReusableHoldout, questions: Sequence[Question], priors: Sequence[float], X_train: Any
) -> list[bytes]:
    """What is decided on: measured now if it was not, and neither a halt nor an earlier answer makes it needless."""
    needed = [
        one.score is not None or _needs_rows(guard, one.content, prior)
        for one, prior in zip(questions, priors, strict=True)
    ]
    measured = scores_of(
        guard, [one for one, needs in zip(questions, needed, strict=True) if needs], "evaluate", X_train
    )
    found = iter(measured)
    return [
        next(found)
        if needs
        else b""
        if guard._transcript.has_failed(_digest(guard, one.content, prior))
        else _NEEDLESS
        for one, prior, needs in zip(questions, priors, needed, strict=True)
    ]


@sealed
def _score(guard: ReusableHoldout, model: Any, way: Way) -> bytes:
    """Measure as the policy does, or for a choice, whose winner is the best by the metric itself."""
    holdout = guard._holdout
    check_model(model, holdout.X, response=guard.metric.response, classes=holdout.bound.classes)
    prepared = holdout.predicted(model)
    if way == "choose":
        sampled = guard._sampled(guard._ways.choose, prepared)
        if sampled is None:
            return b""
        packed = np.array([sampled], dtype=np.int64) if isinstance(sampled, int) else sampled.packed()
        return guard._content.conceal(packed)
    try:
        found = None if prepared is None else guard._ways.policy.measured(holdout.bound, prepared[None])[0]
    except ModelError:
        return b""
    return b"" if found is None else guard._content.conceal(np.atleast_1d(found))


def ask(
    guard: ReusableHoldout,
    questions: Sequence[Question],
    priors: Sequence[float],
    names: Sequence[str],
    X_train: Any,
) -> Asked:
    """Ask about a batch of models that were fitted on these rows, in its order; it shares the history before it.

    Every answer is durable before it is returned. A model that fails on the holdout is answered by None, takes a
    charge, and ends the batch for those before it; so do all that were fitted on rows of the holdout.

    Raises
    ------
    InputError
        If a model does not fit the holdout, or a prior the metric; nothing of this batch was asked.
    """
    scores = _scores_to_ask(guard, questions, priors, X_train)
    answers: list[Answer | None] = []
    try:
        while len(answers) < len(questions):
            start = len(answers)
            stop = next((i for i in range(start, len(scores)) if not scores[i]), len(scores))
            part = slice(start, max(stop, start + 1))
            _ask_part(guard, questions[part], scores[part], priors[part], names[part], answers)
    except Halted as halted:
        return Asked(answers, halted)
    return Asked(answers, None)


@sealed
def scores_of(guard: ReusableHoldout, questions: Sequence[Question], way: Way, X_train: Any) -> list[bytes]:
    """What the guard measured of each; empty of those that failed, or were fitted on rows of the holdout.

    All are tried on made-up rows first: what is refused there, free, must tell nothing of the holdout's.
    """
    guard._holdout.try_out([one.model for one in questions if one.score is None], X_train)
    if questions and guard._trained_on.holds(X_train):
        return [b""] * len(questions)
    return [_score(guard, one.model, way) if one.score is None else one.score for one in questions]


def _ask_part(
    guard: ReusableHoldout,
    questions: Sequence[Question],
    scores: Sequence[bytes],
    priors: Sequence[float],
    names: Sequence[str],
    answers: list[Answer | None],
) -> None:
    """Ask about models that all predicted, or about one that failed; add what was answered."""
    if scores[0]:
        try:
            answers += _ask_many(guard, questions, scores, priors, names)
        except BudgetError:  # fewer queries are left: ask one by one, up to the halt
            pass
        except Halted as halted:
            answers += halted.answers
            raise
        else:
            return
    for question, score, prior, name in zip(questions, scores, priors, names, strict=True):
        try:
            answers.append(_ask_one(guard, question, score, prior, name))
        except ModelError:
            answers.append(None)


@sealed
def _ask_many(
    guard: ReusableHoldout,
    questions: Sequence[Question],
    scores: Sequence[bytes],
    priors: Sequence[float],
    names: Sequence[str],
) -> list[Answer]:
    stated = None if is_ladder(guard) else np.array(priors, dtype=np.float64)
    checked, limits, units = guard._ways.policy.asked_many(stated, None, len(questions), guard.metric.name)
    digests = [
        guard._content.model_question(one.content, unit) for one, unit in zip(questions, units, strict=True)
    ]
    measured = _revealed(guard, scores, checked)
    try:
        answers = guard._transcript.ask_many(
            guard._ways.policy, measured, checked, digests, list(names), tolerances=limits
        )
    except Halted as halted:
        guard._tell([answer for answer in halted.answers if not answer.replayed])
        raise
    guard._tell([answer for answer in answers if not answer.replayed])
    return answers


@sealed
def _ask_one(guard: ReusableHoldout, question: Question, score: bytes, prior: float, name: str) -> Answer:
    asked = guard._ways.policy.asked(None if is_ladder(guard) else prior, None, guard.metric.name)
    digest = guard._content.model_question(question.content, asked.unit)
    found = _revealed(guard, [score], np.array([asked.prior])) if score else None
    measured = None if found is None else found[0]
    answer = guard._transcript.ask(
        guard._ways.policy, measured, asked.prior, Query(digest, name, tolerance=asked.tolerance)
    )
    if not answer.replayed:
        guard._tell([answer])
    return answer


def _revealed(
    guard: ReusableHoldout, scores: Sequence[bytes], priors: NDArray[np.float64]
) -> NDArray[np.int64] | None:
    """What the policy decides on, for each question: a number, or a row of them; None if nothing was measured."""
    known = {place: guard._content.reveal(one) for place, one in enumerate(scores) if one != _NEEDLESS}
    if not known:
        return None
    blank = np.zeros_like(next(iter(known.values())))
    measured = np.stack([known.get(place, blank) for place in range(len(scores))])
    policy = guard._ways.policy
    rows = measured if policy.measures_rows else measured[:, 0]
    return policy.weighed(guard._holdout.bound, rows, priors, None)


@sealed
def could_replay(guard: ReusableHoldout, priors: Sequence[float]) -> int:
    """How many questions with these priors, from the first, could have been asked before.

    Of a halted guard only what it has answered can be had. Whether a model is one of those is known when it is fitted;
    that no question had its prior is known before.
    """
    if is_ladder(guard):
        return len(priors)
    policy, history = guard._ways.policy, guard.history()
    own = history["view"] == guard.view
    known = set(policy.grid_units(history["prior"][own].dropna().to_numpy(np.float64)).tolist())
    units = policy.grid_units(np.asarray(priors, dtype=np.float64)).tolist()
    return next((place for place, unit in enumerate(units) if unit not in known), len(units))


@sealed
def halt(guard: ReusableHoldout) -> Halted:
    """Exception that a new question would raise now."""
    return guard._transcript.halt(guard.halt_reason or "queries", [])
