"""What is measured goes from process to process, and comes in batches: what those are, and how they are asked."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import BudgetError, Halted, InputError, ModelError
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.answered import Query
from reusable_holdout.guard.asking import Asking, found_by
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.kinds import Floats, Integers
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.scores import Scores
from reusable_holdout.guard.kinds.stated import Statement, checked_names
from reusable_holdout.guard.models import check_data
from reusable_holdout.metrics.bound import BoundMetric

__all__ = [
    "Asked",
    "MeasuredModel",
    "about",
    "ask_all",
    "ask_once",
    "batch_priors",
    "checked_kind",
    "checked_models",
    "claim_each",
    "concealed",
    "count_of",
    "measured_of",
    "needs_rows",
]

Found: TypeAlias = "Integers | Literal['needless'] | None"  # None: the model failed on the holdout


class MeasuredModel(NamedTuple):
    """One fitted model, to be asked about.

    Attributes
    ----------
    model : estimator
    content : bytes
        What it is, the same in every process.
    measured : bytes or None
        What the guard measured on the holdout, or that the model failed there, concealed under the guard's key; None if
        it is still to be measured, if the query needs that.
    """

    model: Any
    content: bytes
    measured: bytes | None = None


class Asked(NamedTuple):
    """What came of a batch.

    Attributes
    ----------
    answers : list of Answer or None
        In the batch's order, up to a halt; None where the model failed on the holdout.
    halted : Halted or None
    """

    answers: list[Answer | None]
    halted: Halted | None


class _Measured(NamedTuple):
    """One query of a batch, measured."""

    model: MeasuredModel
    found: Found
    prior: float
    name: str


def count_of(several: Any, what: str) -> int:
    """How many there are, of a list, a tuple or an array; an InputError of something else."""
    if isinstance(several, str | bytes) or (not isinstance(several, Sequence) and np.ndim(several) != 1):
        raise InputError(f"{what} must be a list; got {type(several).__name__}; nothing was asked")
    return len(several)


def checked_models(models: Any) -> list[MeasuredModel]:
    """Models of a batch; an InputError if one of them is not what :meth:`Measuring.measure` gives."""
    count_of(models, "models")
    for one in models:
        sound = isinstance(one, MeasuredModel) and type(one.content) is bytes
        if not sound or not (one.measured is None or type(one.measured) is bytes):
            raise InputError(
                f"each of the models must come from this guard's measure(), unchanged; got {type(one).__name__}; "
                "nothing was asked"
            )
    return list(models)


def checked_kind(kind: object) -> Literal["evaluate", "choose"]:
    """What will be asked about a model; an InputError if nothing of that name can be."""
    if kind == "evaluate" or kind == "choose":  # noqa: PLR1714 - which narrows the type
        return kind
    raise InputError(f'kind must be "evaluate" or "choose"; got {kind!r}; nothing was measured')


def batch_priors(policy: Check, priors: Any, count: int, metric: str) -> list[float]:
    """Priors of a batch; of a ladder, whose queries state none, as many that are no numbers.

    An InputError if they are not as many as models, or one is out of bounds.
    """
    if "ladder" not in policy.name:
        return [float(one) for one in policy.asked_many(priors, None, count, metric)[0]]
    if count_of(priors, "priors") != count:
        raise InputError(
            f"there must be {count} priors, one for each model; got {len(priors)}; nothing was asked"
        )
    return [math.nan] * count


def ask_once(guard: Asking, measured: MeasuredModel, prior: float, name: str) -> Answer:
    """Ask about a model, unless it was asked about before: with this prior by itself, or once with any."""
    (model,) = checked_models([measured])
    guard._check_models([model.model])
    policy, (label,) = guard._ways.policy, checked_names([name], 1)
    asked = policy.asked(prior, None, guard.metric.name)
    question = guard._content.model_question(model.content, asked.unit + policy.series_unit(""))
    if guard._ledger.find(question) is None:
        question = guard._content.model_question(model.content, 0, b"once")

    def measure() -> Integers | None:
        return guard._measured(policy, guard._predicted([model.model], None), asked.prior, asked.tolerance)

    return guard._compared(policy, Query(question, label, "", asked.tolerance), asked.prior, measure)


# ---- what is measured


def needs_rows(guard: Asking, content: bytes, prior: float) -> bool:
    """Whether a query about a model needs the rows: it is new, and there was no halt."""
    return guard._transcript.needs_rows(guard._ways.policy, _digest(guard, content, prior))


def _stated(guard: Asking, prior: float) -> Statement:
    """What a query states: of a ladder, whose queries have no prior, nothing."""
    policy = guard._ways.policy
    return policy.asked(None if "ladder" in policy.name else prior, None, guard.metric.name)


def _digest(guard: Asking, content: bytes, prior: float) -> bytes:
    return guard._content.model_question(content, _stated(guard, prior).unit)


def concealed(guard: Asking, model: Any, content: bytes, kind: str) -> bytes:
    """Measure, and conceal what was found in as many bytes as anything else that could have been."""
    bound, ways = guard._holdout.bound, guard._ways
    by_rows = ways.choose.by_sample if kind == "choose" else ways.policy.measures_rows
    most = 2 * bound.rows + 4 if bound.is_ratio else bound.rows + 1
    found = _measured_on_rows(guard, model, kind)
    return guard._content.conceal(found, most if by_rows else 1, about(guard, kind, content))


def about(guard: Asking, kind: str, content: bytes) -> bytes:
    """What a concealed measurement is about: other rows, metrics, weights and policies may have the same key."""
    return f"{guard._ledger.epoch} {guard._view.text()} {kind} ".encode() + content


def _measured_on_rows(guard: Asking, model: Any, kind: str) -> Integers | None:
    """As the policy does, or for a choice, whose winner is the best by the metric itself; None if it fails."""
    guard._check_models([model])
    prepared = guard._holdout.predicted(model)
    if kind == "choose":
        sampled = guard._sampled(guard._ways.choose, prepared)
        if sampled is None:
            return None
        return np.array([sampled], dtype=np.int64) if isinstance(sampled, int) else sampled.packed()
    one = None if prepared is None else prepared[None]
    found = found_by(guard._ways.policy.measured, guard._holdout.bound, one)
    return None if found is None else np.atleast_1d(found[0])


@sealed
def measured_of(
    guard: Asking, models: Sequence[MeasuredModel], kind: str, X_train: Any
) -> list[Integers | None]:
    """What was measured of each; None of those that failed, or were fitted on rows of the holdout.

    All are tried on made-up rows first: what is refused there, free, must tell nothing of the holdout's.
    """
    if X_train is not None:
        check_data(X_train, "X_train")
    guard._holdout.try_out([one.model for one in models if one.measured is None], X_train)
    if models and guard._trained_on.holds(X_train):
        return [None] * len(models)
    return [
        _measured_on_rows(guard, one.model, kind)
        if one.measured is None
        else guard._content.reveal(one.measured, about(guard, kind, one.content))
        for one in models
    ]


@sealed
def _found(
    guard: Asking, models: Sequence[MeasuredModel], priors: Sequence[float], X_train: Any
) -> list[Found]:
    """What is decided on: measured now, if it was not, unless a halt or an earlier answer makes it needless."""
    needed = [
        one.measured is not None or needs_rows(guard, one.content, prior)
        for one, prior in zip(models, priors, strict=True)
    ]
    needing = [one for one, needs in zip(models, needed, strict=True) if needs]
    found = iter(measured_of(guard, needing, "evaluate", X_train))
    return [next(found) if needs else "needless" for needs in needed]


# ---- batches of predictions


def claim_each(
    guard: Asking, kind: Check, prepared: NDArray[Any], priors: Floats, queries: Sequence[Query]
) -> list[Answer | None]:
    """Ask one after the other, for what is told of one decides what the next can cost; None of one that failed."""
    answers: list[Answer | None] = []
    for one, prior, query in zip(prepared, priors.tolist(), queries, strict=True):
        try:
            measure = partial(guard._measured, kind, one[None], prior)
            answers.append(guard._compared(kind, query, prior, measure))
        except ModelError:
            answers.append(None)
        except Halted as halt:
            raise guard._transcript.halt(halt.reason, answers) from None
    return answers


# ---- what is asked


def ask_all(
    guard: Asking,
    models: Sequence[MeasuredModel],
    priors: Sequence[float],
    names: Sequence[str],
    X_train: Any,
) -> Asked:
    """Ask about models, in their order: together where there is room for all, else one by one up to the halt."""
    found = _found(guard, models, priors, X_train)
    batch = [_Measured(*one) for one in zip(models, found, priors, names, strict=True)]
    answers: list[Answer | None] = []
    try:
        if batch and not guard._ways.policy.on_board:
            with contextlib.suppress(BudgetError):  # fewer queries are left
                return Asked(_ask_together(guard, batch), None)
        for one in batch:
            try:
                answers.append(_ask_one(guard, one))
            except ModelError:
                answers.append(None)
    except Halted as halted:  # of all together, or of one
        answers += halted.answers
        return Asked(answers, guard._transcript.halt(halted.reason, answers))
    return Asked(answers, None)


@sealed
def _ask_together(guard: Asking, part: Sequence[_Measured]) -> list[Answer | None]:
    policy, names = guard._ways.policy, [one.name for one in part]
    stated = None if "ladder" in policy.name else np.array([one.prior for one in part])
    checked, _, units = policy.asked_many(stated, None, len(part), guard.metric.name)
    each = zip(part, units, strict=True)
    digests = [guard._content.model_question(one.model.content, unit) for one, unit in each]
    measured = _weighed([one.found for one in part], checked, policy, guard._holdout.bound)
    return guard._told_batch(lambda: guard._transcript.ask_many(policy, measured, checked, digests, names))


@sealed
def _ask_one(guard: Asking, one: _Measured) -> Answer:
    policy, asked = guard._ways.policy, _stated(guard, one.prior)
    every = _weighed([one.found], np.array([asked.prior]), policy, guard._holdout.bound)
    measured = None if every is None or every.failed[0] else every.values[0]
    query = Query(guard._content.model_question(one.model.content, asked.unit), one.name)
    return guard._compared(policy, query, asked.prior, lambda: measured)


def _weighed(found: Sequence[Found], priors: Floats, policy: Check, bound: BoundMetric) -> Scores | None:
    """Return the numbers that the policy decides on, one or a row for each query; None if no rows were needed."""
    known = {place: one for place, one in enumerate(found) if isinstance(one, np.ndarray)}
    if not known:
        return Scores.of([None] * len(found)) if None in found else None
    blank = np.zeros_like(next(iter(known.values())))
    measured = np.stack([known.get(place, blank) for place in range(len(found))])
    rows = measured if policy.measures_rows else measured[:, 0]
    failed = np.array([one is None for one in found])
    return Scores(policy.weighed(bound, rows, priors, None), failed)
