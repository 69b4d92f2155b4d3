"""Gate: release one bit, whether a value reaches a named one and, with guardrails, other values reach theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from reusable_holdout.certainty import Interval
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import SparseVector
from reusable_holdout.rules import Floats, Integers
from reusable_holdout.ways import ALL, FAILED, NO, YES, Outcome, State, Terms, Told, Way
from reusable_holdout.ways.check import Check

_YES, _NO = Told(YES), Told(NO)


class Gate(Check):
    """One bit: whether the value is at least the named one.

    With the plan's confidence, at every question: the population value is at least the interval's low end if it was
    accepted, and at most its high end if not. Both ends are functions of the named value, so at one question only one
    of them can miss. Therefore a side has all of the question's failure probability, not half of it.

    "Yes" is charged, and so is "failed". See Renggli et al. (2019), "Continuous integration of machine learning models
    with ease.ml/ci", MLSys.
    """

    calm: ClassVar[Told] = _NO

    def grid(self, prior: float) -> int:
        """Return the named value on the grid, rounded down as scores are, so that an equal score passes."""
        return math.floor(prior * GRID)

    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return an outcome; "yes" releases the named value, and not how far the value lies above it."""
        code = self.certificate.theory.gate
        if told == _NO:
            return Outcome(told, terms.prior, False, 0.0)
        if told == _YES:
            return Outcome(told, terms.prior, True, code.nats[0])
        if told != Told(FAILED):
            raise self.unknown(told)
        return Outcome(told, 0.0, True, code.failure_nats)

    def interval(self, told: Told, terms: Terms, length: float) -> Interval:
        """Return the interval after an acceptance, which is open above, or after a "no", which is open below."""
        if told.failed:
            return ALL
        rule = self.rule.accepted if told.word == YES else self.rule.rejected
        return rule(terms.prior, terms.unit, length)

    def calm_intervals(self, priors: Floats, units: Floats, length: float) -> Interval:
        """Return the intervals of what was not accepted."""
        each = zip(priors.tolist(), units.tolist(), strict=True)
        ends = [self.rule.rejected(prior, unit, length) for prior, unit in each]
        return Interval(*(np.array(side, dtype=np.float64) for side in zip(*ends, strict=True)))

    def _told(
        self, core: SparseVector, weighed: Integers, digest: bytes, terms: Terms, length: float
    ) -> Told:
        return _YES


class Named(NamedTuple):
    """One value that a guarded gate checks: its gate, its named value, and its weighed rows."""

    gate: Gate
    named: float
    weighed: Integers | None  # None if it failed on the holdout


class GuardedGate(Way):
    """One bit: whether the value and every guardrail's value reach their named ones.

    "Yes" is one charge, at the cost of a gate's. It bounds each of the m values, each with one m-th of the question's
    failure probability. "No" says that one of them failed, and not which one: it bounds none. Each value takes one of
    the declared queries, because each is compared with noise of its own. A question's own tolerance is the same
    fraction of the range for every metric.
    """

    def __init__(self, gate: Gate, name: str) -> None:
        super().__init__(gate.certificate, name)
        self.gate = gate
        self.takes_tolerances = gate.takes_tolerances

    def keeps(self, prior: float, tolerance: float, length: float) -> bool:
        """Return True if the gate without guardrails can keep a tolerance."""
        return self.gate.keeps(prior, tolerance, length)

    def grid(self, prior: float) -> int:
        """Return a named value on the grid, as a gate does."""
        return self.gate.grid(prior)

    def unit(self, prior: float, state: State, tolerance: float | None) -> float:
        """Return the unit of the gate without guardrails."""
        return self.gate.unit(prior, state, tolerance)

    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return the outcome of the gate itself, with its guardrails named."""
        if not told.rails:
            raise self.unknown(told)
        return self.gate.outcome(told._replace(rails=()), terms)._replace(told=told)

    def takes(self, told: Told) -> int:
        """Return one query for each value."""
        return 1 + len(told.rails)

    def interval(self, told: Told, terms: Terms, length: float) -> Interval:
        """Return the interval of the guard's own value."""
        if told.word != YES:
            return ALL
        return self.gate.rule.accepted(terms.prior, terms.unit, of_each(length, told))

    def bounds(
        self, told: Told, rails: Sequence[Gate], length: float, tolerance: float | None
    ) -> list[Interval]:
        """Return the interval of each guardrail's value."""
        if told.word != YES:
            return [ALL for _ in rails]
        each = zip(told.rails, rails, strict=True)
        return [
            rail.rule.accepted(named, rail.unit(named, State(), tolerance), of_each(length, told))
            for (_, named), rail in each
        ]

    def decide(
        self,
        values: Sequence[Named],
        views: Sequence[int],
        digest: bytes,
        state: State,
        tolerance: float | None = None,
    ) -> tuple[Terms, Outcome]:
        """Decide one question, about the guard's own value first; `views` are the views of the guardrails."""
        own, *rails = values
        terms = Terms(own.named, self.unit(own.named, state, tolerance))
        told = _NO._replace(rails=tuple((view, rail.named) for view, rail in zip(views, rails, strict=True)))
        found = [(one, one.weighed) for one in values if one.weighed is not None]
        if len(found) < len(values):
            return terms, self.outcome(told._replace(word=FAILED), terms)
        length = of_each(self.length(state), told)
        passed = [
            one.gate.deviates(
                weighed, Terms(one.named, one.gate.unit(one.named, state, tolerance)), digest, state, length
            )
            for one, weighed in found
        ]
        return terms, self.outcome(told._replace(word=YES if all(passed) else NO), terms)


def of_each(length: float, told: Told) -> float:
    """Return the description length of each bound of a guarded gate."""
    return length + math.log(1 + len(told.rails))
