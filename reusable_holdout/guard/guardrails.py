"""Guardrails of a gate: other metrics of the same rows, with their least values; one bit answers for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.subjects import (
    Difference,
    Subject,
    checked_priors,
    measured,
    prepared_subjects,
    weighed,
)
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.ways.gate import Gate, Named


class Rail(NamedTuple):
    """One guardrail as it was stated, or what the gate itself asks about."""

    view: GuardedView  # of its metric
    gate: Gate
    subject: Subject
    named: float  # what it must reach, in [0, 1]
    unit: Unit
    digest: bytes

    def value(self, X_train: Any) -> Named:
        """Measure the value; return it with its gate."""
        found = measured(self.view, self.gate, [self.subject], X_train)
        numbers, _ = weighed(self.gate, self.view.holdout.bound, found, np.array([self.named]), None)
        return Named(self.gate, self.named, None if numbers is None else numbers[0])


def stated(view: GuardedView, guardrails: Any, subject: Any) -> list[Rail]:
    """Check each guardrail's statement: a number, or a subject of its own and a number."""
    if not isinstance(guardrails, Mapping) or not guardrails:
        raise InputError(
            "guardrails must be a dict: guards made with on(), each with the value it must reach, such as "
            f"{{guard.on('recall'): 0.8}}; got {type(guardrails).__name__}; nothing was asked"
        )
    paired, seen, found = isinstance(subject, Difference), {view.number}, []
    for guard, given in guardrails.items():
        other = view.checked_view(guard)
        if other.number in seen:
            raise InputError(
                "a guardrail must be another metric of the same rows, named only once; got one twice; nothing was asked"
            )
        seen.add(other.number)
        if isinstance(given, tuple) and len(given) != 2:
            raise InputError(
                "a guardrail must be a number, or a tuple of a model or predictions and a number; got a tuple of "
                f"{len(given)}; nothing was asked; for two models pass (Difference(new, old), number)"
            )
        own, least = given if isinstance(given, tuple) else (subject, given)
        if paired:
            other.check_differences()
        unit = Unit.of(other.metric, paired=paired)
        named = float(checked_priors(least, 1, unit, other.metric.name, several=False)[0])
        (one,) = prepared_subjects(other, [own], paired=paired)
        gate = other.ways.gate_compare if paired else other.ways.gate
        digest = other.content.question("rail", one.content, gate.grid(named))
        found.append(Rail(other, gate, one, named, unit, digest))
    return found
