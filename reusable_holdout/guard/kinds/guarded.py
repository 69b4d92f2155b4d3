"""Guarded gate: whether the score is at least what was named, and so is that of every guardrail."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.kind import AGREED, FAILED, Outcome, State, Terms
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds.gate import Gate
    from reusable_holdout.mechanisms import KeyedNoise

__all__ = ["GuardedCompare", "GuardedGate", "Verdict"]

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

    def __init__(self, gate: Gate, noise: KeyedNoise) -> None:
        super().__init__(gate.certificate, noise)
        self.gate = gate

    def grid_unit(self, prior: float) -> int:
        """What is named, on the integer grid, as for the gate."""
        return self.gate.grid_unit(prior)

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """As for the gate."""
        return self.gate.threshold(prior, state, tolerance)

    def thresholds(
        self, priors: NDArray[np.float64], state: State, tolerances: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """As for the gate."""
        return self.gate.thresholds(priors, state, tolerances)

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name."""
        verdict = Verdict.parse(told)
        if verdict is None:
            raise self.unknown(told)
        plain = {_YES: "cell 0", _NO: AGREED, FAILED: FAILED}[verdict.told]
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
            return Interval(self.certificate.lower, self.certificate.upper)
        return self.gate.accepted(terms.prior, terms.threshold, self.length_of_each(length, verdict))

    def length_of_each(self, length: float, verdict: Verdict) -> float:
        """Description length of each of its bounds."""
        return length + math.log(1 + len(verdict.named))

    def bounds(self, told: str, rails: Sequence[Gate], length: float) -> list[Interval]:
        """Interval of each guardrail's score."""
        verdict = Verdict.parse(told)
        if verdict is None or verdict.told != _YES:
            return [Interval(rail.certificate.lower, rail.certificate.upper) for rail in rails]
        each = self.length_of_each(length, verdict)
        return [
            rail.accepted(prior, rail.certificate.tolerance, each)
            for (_, prior), rail in zip(verdict.named, rails, strict=True)
        ]

    # ---- rule

    def decide_all(
        self,
        measured: Sequence[int | NDArray[np.int64] | None],
        terms: Terms,
        rails: Sequence[tuple[int, Gate, float]],
        question: bytes,
        state: State,
    ) -> Outcome:
        """Decide one question.

        Parameters
        ----------
        measured : sequence of int, numpy.ndarray of int64 or None
            Of the guard's own metric, then of each guardrail, as their gates do; None if it failed on the holdout.
        rails : sequence of (int, Gate, float)
            View of each guardrail, and what was named for it.
        """
        verdict = Verdict(_NO, tuple((view, prior) for view, _, prior in rails))
        found = [one for one in measured if one is not None]
        if len(found) < len(measured):
            told = FAILED if self.gate.tells_failures(state) else _NO
            return self.outcome(verdict._replace(told=told).text(), terms)
        gates = [(self.gate, terms.prior), *((rail, prior) for _, rail, prior in rails)]
        each = self.length_of_each(self.length(state), verdict)
        passed = [
            gate.passes(one, prior, question, state, each)
            for (gate, prior), one in zip(gates, found, strict=True)
        ]
        return self.outcome(verdict._replace(told=_YES if all(passed) else _NO).text(), terms)


class GuardedCompare(GuardedGate):
    """A guarded gate on the differences of two models."""

    name: ClassVar[str] = "guarded-compare"
