"""Gate: whether the score is at least what was named, and with guardrails so are others; nothing else is told."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from reusable_holdout.certainty import CellCode, Interval
from reusable_holdout.guard.kinds import AGREED, FAILED, Floats, Integers, Outcome, Posed, State, Terms
from reusable_holdout.guard.kinds.check import Check, OfTwo
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import KeyedNoise

__all__ = ["Gate", "GateCompare", "GuardedCompare", "GuardedGate", "Verdict", "open_to"]


_CELL = "cell 0"


class Gate(Check):
    """Say whether the score is at least what was named, and nothing else.

    With the plan's confidence, at every question: the population value of what was accepted is at least its interval's
    bad end, that of what was rejected at most its good end. Both ends are functions of what was named, so at one
    question only one of them can miss: the population value lies above the good end of "no", or below the bad end of
    "yes", or between. So a side has all of the question's failure probability, not half of it.

    "Yes" is charged, and so is "failed", of a model or metric that fails on the holdout. See Renggli et al. (2019),
    "Continuous integration of machine learning models with ease.ml/ci", MLSys.
    """

    name: ClassVar[str] = "gate"
    one_sided: ClassVar[bool] = True

    @property
    def code(self) -> CellCode:
        """Code of a gate's one cell."""
        return self.certificate.theory.gate

    def grid_units(self, priors: Floats) -> Integers:
        """Named scores on the integer grid, rounded down as scores are: one that is exactly as named passes."""
        unit = (priors - self.certificate.lower) / self.certificate.span
        return np.floor(unit * GRID).astype(np.int64)

    def grid_unit(self, prior: float) -> int:
        """One named score on the integer grid."""
        return math.floor((prior - self.certificate.lower) / self.certificate.span * GRID)

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name; "yes" tells what was named, for how far beyond it the score lies is not told."""
        outcome = super().outcome(told, terms)
        return outcome if told == FAILED else outcome._replace(value=terms.prior)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of what was accepted, open to the good side, or rejected, open to the bad one."""
        if outcome.told != _CELL:
            return super().interval(outcome, terms, length)
        return self.accepted(terms.prior, terms.threshold, length)

    def accepted(self, prior: float, threshold: float, length: float) -> Interval:
        """Interval of what was accepted, open to the good side."""
        reach, certificate = self.certificate.comparison_tail, self.certificate
        low, high = certificate.around(
            prior - reach, prior + reach, length=length, share=certificate.shares.charged
        )
        # what was named is in its own interval, even between two counts
        return open_to(self.best, self, Interval(min(low, prior), max(high, prior)))

    def agreed(self, priors: Floats | float, thresholds: Floats | float, length: float) -> Interval:
        """Intervals of what was rejected."""
        return open_to(self.worst, self, super().agreed(priors, thresholds, length))

    def passes(
        self, measured: int | Integers, prior: float, question: bytes, state: State, length: float
    ) -> bool:
        """Whether what was measured is at least what was named, up to the noise."""
        terms = Terms(prior, self.threshold(prior, state, None))
        return self._deviates(self._at(state), measured, Posed(terms, question, length))

    def _told(self, value: float, terms: Terms) -> str:
        return _CELL


class GateCompare(OfTwo, Gate):
    """A gate on the difference of two models: whether the new one is better by what was named."""

    name: ClassVar[str] = "gate-compare"


def open_to(bound: float, kind: Check, interval: Interval) -> Interval:
    """Interval, or intervals, up to the worst or the best value there is on that side."""
    low, high = interval
    end = np.full_like(low, bound) if isinstance(low, np.ndarray) else bound
    return Interval(end, high) if bound == kind.certificate.lower else Interval(low, end)


_YES, _NO = "yes", "no"
_TOLD = re.compile(r"(yes|no|failed) with ((?:\d+:\S+ ?)+)")


class Verdict(NamedTuple):
    """What the name of a guarded gate's outcome says."""

    told: str  # yes, no, or failed
    named: tuple[tuple[int, float], ...]  # view of each guardrail, and what was named for it

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read the name of an outcome; None if it is none of a guarded gate."""
        found = _TOLD.fullmatch(text)
        if found is None:
            return None
        pairs = [one.split(":") for one in found[2].split()]
        try:
            verdict = cls(found[1], tuple((int(view), float(prior)) for view, prior in pairs))
        except ValueError:
            return None
        return verdict if verdict.text() == text else None

    def text(self) -> str:
        """Name of the outcome."""
        return f"{self.told} with {' '.join(f'{view}:{prior!r}' for view, prior in self.named)}"


class GuardedGate(Check):
    """Say whether the score, and that of every guardrail, is at least what was named, and nothing else.

    "Yes" is one charge, and costs what a gate's does. It bounds each of the m scores, each with one m-th of the
    question's failure probability. "No" says that one of them failed, and not which: it bounds none. Each score takes
    one of the declared queries, for each is compared with noise of its own.
    """

    name: ClassVar[str] = "guarded-gate"
    by_table: ClassVar[bool] = False

    def __init__(self, gate: Gate, noise: KeyedNoise) -> None:
        super().__init__(gate.certificate, noise)
        self.gate = gate

    def grid_unit(self, prior: float) -> int:
        """What is named, on the integer grid, as for the gate."""
        return self.gate.grid_unit(prior)

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Threshold, as of the gate without guardrails."""
        return self.gate.threshold(prior, state, tolerance)

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name."""
        plain = {_YES: _CELL, _NO: AGREED, FAILED: FAILED}[self._verdict(told).told]
        return self.gate.outcome(plain, terms)._replace(told=told)

    def takes(self, told: str) -> int:
        """One for each score."""
        return 1 + len(self._verdict(told).named)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of the guard's own score."""
        verdict = self._verdict(outcome.told)
        if verdict.told != _YES:
            return self.all_values
        return self.gate.accepted(terms.prior, terms.threshold, _of_each(length, verdict))

    def bounds(self, told: str, rails: Sequence[Gate], length: float) -> list[Interval]:
        """Interval of each guardrail's score."""
        verdict = self._verdict(told)
        if verdict.told != _YES:
            return [rail.all_values for rail in rails]
        each = _of_each(length, verdict)
        return [
            rail.accepted(prior, rail.certificate.tolerance, each)
            for (_, prior), rail in zip(verdict.named, rails, strict=True)
        ]

    def _verdict(self, told: str) -> Verdict:
        verdict = Verdict.parse(told)
        if verdict is None:
            raise self.unknown(told)
        return verdict

    # ---- rule

    def decide_all(
        self,
        measured: Sequence[int | Integers | None],
        prior: float,
        rails: Sequence[tuple[int, Gate, float]],
        question: bytes,
        state: State,
    ) -> tuple[Terms, Outcome]:
        """Public numbers of one question, and what is told.

        Measured is what the guard's own metric does, then each guardrail's, as their gates measure; None of what failed
        on the holdout. Of each rail the view, and what was named for it.
        """
        verdict = Verdict(_NO, tuple((view, least) for view, _, least in rails))
        terms = self.terms(prior, state, None)
        found = [one for one in measured if one is not None]
        if len(found) < len(measured):
            told = FAILED
        else:
            gates = [(self.gate, prior), *((rail, least) for _, rail, least in rails)]
            each = _of_each(self.length(state), verdict)
            passed = [
                gate.passes(one, least, question, state, each)
                for (gate, least), one in zip(gates, found, strict=True)
            ]
            told = _YES if all(passed) else _NO
        return terms, self.outcome(verdict._replace(told=told).text(), terms)


def _of_each(length: float, verdict: Verdict) -> float:
    """Description length of each bound of a guarded gate."""
    return length + math.log(1 + len(verdict.named))


class GuardedCompare(GuardedGate):
    """A guarded gate on the differences of two models."""

    name: ClassVar[str] = "guarded-compare"
