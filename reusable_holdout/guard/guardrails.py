"""Guardrails of a gate, other metrics of the same rows and what each must reach: one question, one bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.guard.answer import Answer, Guardrail
from reusable_holdout.guard.answered import Query
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.kinds.gate import Gate, GuardedGate
from reusable_holdout.guard.kinds.stated import Statement, checked_names
from reusable_holdout.guard.kinds.table import rail_of

__all__ = ["gate_models", "gate_predictions"]


class Rail(NamedTuple):
    """One guardrail as it was stated."""

    guard: Asking  # of its metric
    gate: Gate
    prior: float  # what it must reach
    unit: int  # the same, on the integer grid
    predictions: list[Any]  # of its own; empty for the gate's


def gate_models(
    guard: Asking, models: list[Any], prior: float | None, guardrails: Any, name: str, X_train: Any
) -> Answer:
    """Ask about one model, or about the difference of two."""
    paired = len(models) == 2
    kind, asked = _guarded(guard, prior, paired=paired)
    rails = _stated(guard, guardrails, paired=paired, predictions=0)
    guards = [guard, *(one.guard for one in rails)]
    for one in guards:
        one._check_models(models)
    content = fingerprint(models if paired else models[0])
    parts = [guard._content.model_question(content, asked.unit, b"gate")]
    parts += [one.guard._content.model_question(content, one.unit, b"rail") for one in rails]
    predicted = [partial(one._predicted, models, X_train) for one in guards]
    return _gated(guard, kind, asked, parts, predicted, rails, name)


def gate_predictions(
    guard: Asking, given: list[Any], prior: float | None, guardrails: Any, name: str
) -> Answer:
    """Ask about predictions, or about the difference of two."""
    paired = len(given) == 2
    kind, asked = _guarded(guard, prior, paired=paired)
    rails = _stated(guard, guardrails, paired=paired, predictions=len(given))
    guards = [guard, *(one.guard for one in rails)]
    prepared = [
        each._holdout.bound.prepare_many(own)
        for each, own in zip(guards, [given, *(one.predictions or given for one in rails)], strict=True)
    ]
    units = [asked.unit, *(one.unit for one in rails)]
    parts = [
        each._content.question(own, unit, b"guarded")
        for each, own, unit in zip(guards, prepared, units, strict=True)
    ]
    return _gated(guard, kind, asked, parts, [partial(np.asarray, own) for own in prepared], rails, name)


def _guarded(guard: Asking, prior: float | None, *, paired: bool) -> tuple[GuardedGate, Statement]:
    """Kind of the question, and what it states; refused where there is no gate, or there are no differences."""
    kind = guard._ways.guarded_comparison if paired else guard._ways.guarded
    if kind is None:
        raise InputError(
            f"guardrails belong to a gate, which says whether all hold; the policy here is {guard.policy!r}; "
            'nothing was asked; ask guard.on(policy="gate")'
        )
    if paired:
        guard._check_differences()
    return kind, kind.asked(prior, None, guard.metric.name)


def _stated(guard: Asking, guardrails: Any, *, paired: bool, predictions: int) -> list[Rail]:
    """Check what is stated of each guardrail: a number, or so many predictions of its own and a number."""
    if not isinstance(guardrails, Mapping) or not guardrails:
        raise InputError(
            "guardrails must be a dict from guards that on() gave to what each must reach, such as "
            f"{{guard.on(metric='recall'): 0.8}}; got {type(guardrails).__name__}; nothing was asked"
        )
    stated = []
    seen = {guard.view}
    for other, named in guardrails.items():
        same = isinstance(other, Asking) and other._transcript is guard._transcript
        if not same or other.view in seen:
            raise InputError(
                "a guardrail must be another metric of the same rows, from on() of the same guard, and each once; "
                f"got {type(other).__name__}{' of view ' + str(other.view) if same else ''}; nothing was asked"
            )
        seen.add(other.view)
        given = list(named) if isinstance(named, tuple) else [named]
        if len(given) not in {1, 1 + predictions}:
            raise InputError(
                "a guardrail must be given as a number, or with predictions of its own as a tuple of these and the "
                f"number; got a tuple of {len(given)}; nothing was asked"
            )
        if paired:
            other._check_differences()
        gate = rail_of(other._view.kept, other._noise, paired=paired)
        least = gate.asked(given[-1], None, other.metric.name)
        stated.append(Rail(other, gate, least.prior, least.unit, given[:-1]))
    return stated


def _gated(
    guard: Asking,
    kind: GuardedGate,
    asked: Statement,
    parts: Sequence[bytes],
    predicted: Sequence[Callable[[], NDArray[Any] | None]],
    rails: Sequence[Rail],
    name: str,
) -> Answer:
    (label,) = checked_names([name], 1)
    question = Query(guard._content.several(b"guarded", parts), label)
    gates = [(guard, kind.gate, asked.prior), *((one.guard, one.gate, one.prior) for one in rails)]
    named = [(one.guard.view, one.gate, one.prior) for one in rails]

    def measure() -> list[NDArray[np.int64] | None]:
        return [
            each._measured(gate, own(), prior)
            for (each, gate, prior), own in zip(gates, predicted, strict=True)
        ]

    answer = guard._answer(
        kind,
        question,
        partial(guard._transcript.check_room, len(parts)),
        measure,
        lambda measured, state: kind.decide_all(measured, asked.prior, named, question.digest, state),
        takes=len(parts),
    )
    length = guard._transcript.length_of(kind, question.digest)
    bounds = kind.bounds(answer.told, [one.gate for one in rails], length)
    each = (
        Guardrail(one.guard.metric.name, one.prior, float(low), float(high))
        for one, (low, high) in zip(rails, bounds, strict=True)
    )
    return guard._told(answer._replace(guardrails=tuple(each)))
