"""Final: the certified end of a project, which releases the holdout's own value once and ends the questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from reusable_holdout.certainty import (
    GRID_SLACK,
    WEIGHT_UNITS,
    Certificate,
    Interval,
    final_weights,
    weight_nats,
)
from reusable_holdout.metrics import GRID
from reusable_holdout.rules.samples import Sample
from reusable_holdout.rules.sets import left_by
from reusable_holdout.ways import ALL, FAILED, VALUE, HaltReason, Outcome, State, Terms, Told, Way, tidy


class Final(Way):
    """The holdout's exact value with the narrowest interval; nothing is asked of these rows afterwards.

    With the plan's confidence, the intervals of a final and of all answers before it hold together. A final has its own
    share of the failure probability. Its own place in the history costs nothing: the charges and outcomes before it
    determine when it is asked. Its value costs nothing, too. The earlier the last charge came, the narrower it is.
    Several answers share the weight of one: each has its own, fixed by the priors before the rows are read.

    It has no noise, and the plan's epsilon does not cover it. Where the rows' evidence decides, the interval that the
    evidence leaves is released with the value. It may depend on the rows in any way: nothing is asked afterwards.
    """

    ends: ClassVar[bool] = True

    def __init__(
        self, certificate: Certificate, name: str, error: float = 0.0, since: State | None = None
    ) -> None:
        super().__init__(certificate, name)
        self.since = since  # when the rows came, if that was later; nothing told before is about them
        self._error = error  # standard deviation of a prior's own error
        self.by_rows = certificate.spread is not None  # then the rows' evidence leaves the interval

    def halt_reason(self, state: State) -> HaltReason | None:
        """Return "final" after a final, else None: a final is answered even after a halt, but only once."""
        return "final" if state.closed else None

    def length(self, state: State, answers: int = 1) -> float:
        """Return the description length of a final, without its answers' own weights if they have any."""
        since = self.since or State(last_charge=0)
        charges, last = state.charges - since.charges, state.last_charge
        last = None if last is None else max(last - since.asked, 0)
        length = self.certificate.final_length(
            charges=charges, nats=state.nats - since.nats, last_charge=last
        )
        return length if self.certificate.theory.weighs_finals else length + math.log(answers)

    def weights(self, priors: Sequence[float], answers: int, metrics: int) -> list[int] | None:
        """Return the weights of one metric's answers among all of a final; None if all have the same.

        Parameters
        ----------
        priors : sequence of float
            Priors of this metric's models.
        answers, metrics : int
            Number of answers of the final, and of the metrics that they are about.
        """
        if answers == 1 or not self.certificate.theory.weighs_finals:
            return None
        return final_weights(priors, self._error, WEIGHT_UNITS // metrics)

    def takes(self, told: Told) -> int:
        """Return 0: a final takes none of the declared queries."""
        return 0

    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return an outcome: "failed", or the value and all that its interval rests on."""
        weight = told.weight
        if weight is not None and not 1 <= weight <= WEIGHT_UNITS:
            raise self.unknown(told)
        if told == Told(FAILED, weight=weight):
            return Outcome(told, 0.0, False, 0.0)
        value, ends = told.value, told.ends
        fits = (
            told == Told(VALUE, value=value, ends=ends, weight=weight) and (ends is not None) == self.by_rows
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
        length += weight_nats(told.weight)
        low, high = told.value - GRID_SLACK, told.value + GRID_SLACK
        return self.certificate.around(low, high, length=length, share=0.5)

    def decide(
        self,
        measured: Sample | int | None,
        length: float,
        prior: float | None = None,
        weight: int | None = None,
    ) -> tuple[Terms, Outcome]:
        """Return the outcome of a measurement, at a description length; a failure if nothing was measured."""
        told = Told(FAILED)
        if isinstance(measured, int):
            told = Told(VALUE, value=tidy(measured / GRID))
        elif measured is not None:
            value = tidy(measured.score / GRID)
            left = self.certificate.final_set(length + weight_nats(weight))
            low, high = map(float, left_by(measured.ends(left)))
            told = Told(VALUE, value=value, ends=(min(low, value), max(high, value)))
        outcome = self.outcome(told._replace(weight=weight), Terms(0.0))
        return Terms(outcome.value if prior is None else prior), outcome
