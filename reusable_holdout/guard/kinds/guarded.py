"""Guarded gate: whether the score is at least what was named, and so is that of every guardrail."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from reusable_holdout.guard.kinds.gate import Gate
from reusable_holdout.guard.kinds.kind import AGREED, FAILED, Outcome, State, Terms
from reusable_holdout.validity import Interval, Shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reusable_holdout.mechanisms import KeyedNoise
    from reusable_holdout.validity import Certificate

__all__ = ["GuardedCompare", "GuardedGate", "Rail", "Verdict"]

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


class Rail(Gate):
    """A guardrail: the comparison of one more metric of the rows with what was named for it."""

    name: ClassVar[str] = "rail"

    def __init__(self, certificate: Certificate, noise: KeyedNoise) -> None:
        super().__init__(replace(certificate, shares=Shares(1.0, 1.0), fixed_threshold=0.0), noise)

    def passes(self, score: int, prior: float, question: bytes, state: State) -> bool:
        """Whether a score on the grid is at least what was named, up to the noise."""
        return self._at(state).deviates(score, self.grid_unit(prior), 0, question)

    def passed(self, prior: float, length: float) -> Interval:
        """Interval of what passed, open to the good side."""
        return super().interval(Outcome("cell 0", prior, True, 0.0), Terms(prior, 0.0), length)


class GuardedGate(Gate):
    """Say whether the score, and that of every guardrail, is at least what was named, and nothing else.

    Notes
    -----
    "Yes" is one charge, and costs what a gate's does. It bounds each of the m scores, each with one m-th of the
    question's failure probability. "No" says that one of them failed, and not which: it bounds none. Each score takes
    one of the declared queries, for each is compared with noise of its own.
    """

    name: ClassVar[str] = "guarded-gate"

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name."""
        verdict = Verdict.parse(told)
        if verdict is None:
            raise self.unknown(told)
        plain = {_YES: "cell 0", _NO: AGREED, FAILED: FAILED}[verdict.told]
        return super().outcome(plain, terms)._replace(told=told)

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
        plain = outcome._replace(told="cell 0")
        return super().interval(plain, terms, self.length_of_each(length, verdict))

    def length_of_each(self, length: float, verdict: Verdict) -> float:
        """Description length of each of its bounds."""
        return length + math.log(1 + len(verdict.named))

    def bounds(self, told: str, rails: Sequence[Rail], length: float) -> list[Interval]:
        """Interval of each guardrail's score."""
        verdict = Verdict.parse(told)
        if verdict is None or verdict.told != _YES:
            return [Interval(rail.certificate.lower, rail.certificate.upper) for rail in rails]
        each = self.length_of_each(length, verdict)
        return [rail.passed(prior, each) for (_, prior), rail in zip(verdict.named, rails, strict=True)]

    # ---- rule

    def decide_all(
        self,
        scores: Sequence[int | None],
        terms: Terms,
        rails: Sequence[tuple[int, Rail, float]],
        question: bytes,
        state: State,
    ) -> Outcome:
        """Decide one question.

        Parameters
        ----------
        scores : sequence of int or None
            On the grid: of the guard's own metric, then of each guardrail; None if it failed on the holdout.
        rails : sequence of (int, Rail, float)
            View of each guardrail, and what was named for it.
        """
        verdict = Verdict(_NO, tuple((view, prior) for view, _, prior in rails))
        found = [score for score in scores if score is not None]
        if len(found) < len(scores):
            told = FAILED if self.tells_failures(state) else _NO
            return self.outcome(verdict._replace(told=told).text(), terms)
        passed = [self._at(state).deviates(found[0], self.grid_unit(terms.prior), 0, question)]
        passed += [
            rail.passes(score, prior, question, state)
            for (_, rail, prior), score in zip(rails, found[1:], strict=True)
        ]
        return self.outcome(verdict._replace(told=_YES if all(passed) else _NO).text(), terms)


class GuardedCompare(GuardedGate):
    """A guarded gate on the differences of two models."""

    name: ClassVar[str] = "guarded-compare"
