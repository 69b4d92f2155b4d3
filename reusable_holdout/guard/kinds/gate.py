"""Gate: whether the score is at least what was named, and with guardrails so are others; nothing else is told."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from reusable_holdout.guard.kinds import AGREED, FAILED, Outcome, Posed, State, Terms
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.queries import GRID
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds import State
    from reusable_holdout.mechanisms import KeyedNoise
    from reusable_holdout.validity import CellCode

__all__ = ["Gate", "GuardedCompare", "GuardedGate", "Verdict", "open_to_worse"]


_CELL = "cell 0"


class Gate(Check):
    """Say whether the score is at least what was named, and nothing else.

    With the plan's confidence, at every question: the population value of what was accepted is at least its interval's
    bad end, that of what was rejected at most its good end.

    Notes
    -----
    "Yes" is charged, and which questions were charged is all that an answer tells. A model that fails on the holdout is
    told to have failed where the plan has room for what that costs, and is rejected where it has none.

    Both ends are functions of what was named, so at one question only one of them can miss: the population value lies
    above the good end of "no", or below the bad end of "yes", or between. So a side has all of the question's failure
    probability, not half of it.

    References
    ----------
    .. [1] Renggli et al. (2019), "Continuous integration of machine learning models with ease.ml/ci", MLSys.
    """

    name: ClassVar[str] = "gate"
    one_sided: ClassVar[bool] = True

    @property
    def code(self) -> CellCode:
        """Code of a gate's one cell."""
        return self.certificate.theory.gate

    def grid_units(self, priors: NDArray[np.float64]) -> NDArray[np.int64]:
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
        if certificate.greater_is_better:  # what was named is in its own interval, even between two counts
            return Interval(min(low, prior), certificate.upper)
        return Interval(certificate.lower, max(high, prior))

    def agreed(
        self, priors: NDArray[np.float64] | float, thresholds: NDArray[np.float64] | float, length: float
    ) -> Interval:
        """Intervals of what was rejected."""
        return open_to_worse(self, super().agreed(priors, thresholds, length))

    def fail(self, terms: Terms, state: State) -> Outcome:
        """Decide a question that failed on the holdout: where telling so would break a promise of the plan, a "no"."""
        return self.outcome(FAILED if self.tells_failures(state) else AGREED, terms)

    def tells_failures(self, state: State) -> bool:
        """Whether the plan has room for what it costs to tell a failure."""
        after, nats = state.charges + 1, state.nats + self.code.failure_nats
        return after >= self.certificate.charges or self.certificate.room(charges=after, nats=nats) >= 0.0

    def passes(
        self,
        measured: int | NDArray[np.int64],
        prior: float,
        question: bytes,
        state: State,
        length: float,
    ) -> bool:
        """Whether what was measured is at least what was named, up to the noise."""
        terms = Terms(prior, self.threshold(prior, state, None))
        return self._deviates(self._at(state), measured, Posed(terms, question, length))

    def _told(self, value: float, terms: Terms) -> str:
        return _CELL


def open_to_worse(kind: Check, interval: Interval) -> Interval:
    """Interval without its bad end."""
    low, high = interval
    worst = np.full_like(low, kind.worst) if isinstance(low, np.ndarray) else kind.worst
    return Interval(worst, high) if kind.certificate.greater_is_better else Interval(low, worst)


_YES, _NO = "yes", "no"
_TOLD = re.compile(r"(yes|no|failed) with ((?:\d+:\S+ ?)+)")


class Verdict(NamedTuple):
    """What the name of a guarded gate's outcome says.

    Attributes
    ----------
    told : {"yes", "no", "failed"}
    named : tuple of (int, float)
        View of each guardrail, and what was named for it.
    """

    told: str
    named: tuple[tuple[int, float], ...]

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read the name of an outcome; None if it is none of a guarded gate."""
        found = _TOLD.fullmatch(text)
        try:
            pairs = [one.split(":") for one in found[2].split()] if found else []
            verdict = (
                cls(found[1], tuple((int(view), float(prior)) for view, prior in pairs)) if found else None
            )
        except ValueError:
            return None
        return verdict if verdict is not None and verdict.text() == text else None

    def text(self) -> str:
        """Name of the outcome."""
        return f"{self.told} with {' '.join(f'{view}:{prior!r}' for view, prior in self.named)}"


class GuardedGate(Check):
    """Say whether the score, and that of every guardrail, is at least what was named, and nothing else.

    Notes
    -----
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
        verdict = Verdict.parse(told)
        if verdict is None:
            raise self.unknown(told)
        plain = {_YES: _CELL, _NO: AGREED, FAILED: FAILED}[verdict.told]
        return self.gate.outcome(plain, terms)._replace(told=told)

    def takes(self, told: str) -> int:
        """One for each score."""
        verdict = Verdict.parse(told)
        if verdict is None:
            raise self.unknown(told)
        return 1 + len(verdict.named)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of the guard's own score."""
        verdict = Verdict.parse(outcome.told)
        if verdict is None or verdict.told != _YES:
            return self.all_values
        return self.gate.accepted(terms.prior, terms.threshold, self.length_of_each(length, verdict))

    def length_of_each(self, length: float, verdict: Verdict) -> float:
        """Description length of each of its bounds."""
        return length + math.log(1 + len(verdict.named))

    def bounds(self, told: str, rails: Sequence[Gate], length: float) -> list[Interval]:
        """Interval of each guardrail's score."""
        verdict = Verdict.parse(told)
        if verdict is None or verdict.told != _YES:
            return [rail.all_values for rail in rails]
        each = self.length_of_each(length, verdict)
        return [
            rail.accepted(prior, rail.certificate.tolerance, each)
            for (_, prior), rail in zip(verdict.named, rails, strict=True)
        ]

    # ---- rule

    def decide_all(
        self,
        measured: Sequence[int | NDArray[np.int64] | None],
        prior: float,
        rails: Sequence[tuple[int, Gate, float]],
        question: bytes,
        state: State,
    ) -> tuple[Terms, Outcome]:
        """Public numbers of one question, and what is told.

        Parameters
        ----------
        measured : sequence of int, numpy.ndarray of int64 or None
            Of the guard's own metric, then of each guardrail, as their gates do; None if it failed on the holdout.
        rails : sequence of (int, Gate, float)
            View of each guardrail, and what was named for it.
        """
        verdict = Verdict(_NO, tuple((view, least) for view, _, least in rails))
        terms = self.terms(prior, state, None)
        found = [one for one in measured if one is not None]
        if len(found) < len(measured):
            told = FAILED if self.gate.tells_failures(state) else _NO
        else:
            gates = [(self.gate, prior), *((rail, least) for _, rail, least in rails)]
            each = self.length_of_each(self.length(state), verdict)
            passed = [
                gate.passes(one, least, question, state, each)
                for (gate, least), one in zip(gates, found, strict=True)
            ]
            told = _YES if all(passed) else _NO
        return terms, self.outcome(verdict._replace(told=told).text(), terms)


class GuardedCompare(GuardedGate):
    """A guarded gate on the differences of two models."""

    name: ClassVar[str] = "guarded-compare"
