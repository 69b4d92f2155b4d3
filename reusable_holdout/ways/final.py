"""Final: the certified end of a project, which releases the holdout's own value once and ends the questions."""

from __future__ import annotations

from typing import ClassVar

from reusable_holdout.certainty import GRID_SLACK, Certificate, Interval
from reusable_holdout.metrics import GRID
from reusable_holdout.rules.samples import Sample
from reusable_holdout.rules.sets import left_by
from reusable_holdout.ways import ALL, FAILED, VALUE, HaltReason, Outcome, State, Terms, Told, Way, tidy

__all__ = ["Final"]


class Final(Way):
    """The holdout's exact value with the narrowest interval; nothing is asked of these rows afterwards.

    With the plan's confidence, the intervals of a final and of all answers before it hold together. A final has its own
    share of the failure probability. Its own place in the history costs nothing: the charges and outcomes before it
    determine when it is asked. Its value costs nothing, too. The earlier the last charge came, the narrower it is.

    It has no noise, and the plan's epsilon does not cover it. Where the rows' evidence decides, the interval that the
    evidence leaves is released with the value. It may depend on the rows in any way: nothing is asked afterwards.
    """

    ends: ClassVar[bool] = True

    def __init__(self, certificate: Certificate, name: str) -> None:
        super().__init__(certificate, name)
        self.by_rows = certificate.spread is not None  # then the rows' evidence leaves the interval

    def halt_reason(self, state: State) -> HaltReason | None:
        """Return "final" after a final: it is the one thing that is answered after a halt, and once."""
        return "final" if state.closed else None

    def length(self, state: State, answers: int = 1) -> float:
        """Return the description length of a final of several answers."""
        return self.certificate.final_length(
            charges=state.charges, nats=state.nats, answers=answers, last_charge=state.last_charge
        )

    def takes(self, told: Told) -> int:
        """Return none of the declared queries."""
        return 0

    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return an outcome: "failed", or the value and all that its interval rests on."""
        if told == Told(FAILED):
            return Outcome(told, 0.0, False, 0.0)
        value, ends = told.value, told.ends
        fits = (
            value is not None
            and told == Told(VALUE, value=value, ends=ends)
            and (ends is not None) == self.by_rows
        )
        low, high = ends or (0.0, 1.0)
        if not fits or value is None or not 0.0 <= low <= value <= high <= 1.0:
            raise self.unknown(told)
        return Outcome(told, value, False, 0.0)

    def interval(self, told: Told, terms: Terms, length: float) -> Interval:
        """Return the interval of the population value."""
        if told.value is None:
            return ALL
        if told.ends is not None:
            return Interval(*told.ends)
        low, high = told.value - GRID_SLACK, told.value + GRID_SLACK
        return self.certificate.around(low, high, length=length, share=0.5)

    def decide(self, measured: Sample | int | None, length: float) -> tuple[Terms, Outcome]:
        """Return the outcome of a measurement, at a description length; a failure if nothing was measured."""
        told = Told(FAILED)
        if isinstance(measured, int):
            told = Told(VALUE, value=tidy(measured / GRID))
        elif measured is not None:
            value = tidy(measured.score / GRID)
            low, high = map(float, left_by(measured.ends(self.certificate.final_set(length))))
            told = Told(VALUE, value=value, ends=(min(low, value), max(high, value)))
        outcome = self.outcome(told, Terms(0.0))
        return Terms(outcome.value), outcome
