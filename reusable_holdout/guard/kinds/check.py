"""Check: agree with the analyst's own estimate, or tell which way and about how far it is off.

Of one model, or of the difference of two. Here a distance decides; :mod:`~reusable_holdout.guard.kinds.evidence` has
those that the rows' evidence decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from reusable_holdout.certainty import CellCode, Certificate, Interval, ThresholdTable
from reusable_holdout.guard.kinds import (
    AGREED,
    FAILED,
    Floats,
    Integers,
    Outcome,
    Posed,
    Prepared,
    State,
    Terms,
)
from reusable_holdout.guard.kinds.scores import Scores
from reusable_holdout.guard.kinds.stated import Stated
from reusable_holdout.metrics import GRID, BoundMetric
from reusable_holdout.noise import Calibration, GuardCore, KeyedNoise

__all__ = ["Batch", "Check", "Compare", "OfTwo"]


class Batch(NamedTuple):
    """A batch, decided up to a halt; each of shape (decided,)."""

    priors: Floats
    thresholds: Floats
    outcomes: list[Outcome | None]  # None: agreed


class Check(Stated):
    """Compare with a prior; what deviates from it past a threshold is charged, and told as a cell of deviations.

    Releases are (epsilon, delta)-differentially private as the plan states; the intervals are valid by the transcript
    code, whatever the noise. A question is charged when its score deviates from its prior past a threshold, all with
    the noise that :class:`~reusable_holdout.mechanisms.Calibration` says, in integers, ties included. The cell is that
    of a value with noise of its own. "Agreed" costs nothing: the positions of the charges are counted by the transcript
    code. See Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "The reusable holdout", Science 349, and
    "Generalization in Adaptive Data Analysis and Holdout Reuse", Figure 1.
    """

    name: ClassVar[str] = "check"
    #: Which deviations are charged: both (0), or improvements only (1).
    one_sided: ClassVar[bool] = False
    #: Whether the threshold at a prior follows from the plan's tolerance, for all priors together.
    by_table: ClassVar[bool] = True
    #: Whether rows are measured, one question at a time, and not scores alone.
    measures_rows: ClassVar[bool] = False

    def __init__(self, certificate: Certificate, noise: KeyedNoise) -> None:
        super().__init__(certificate)
        self._calibration = Calibration(certificate.mechanism, certificate.charges)
        self._scale = Fraction(certificate.noise_scale) / Fraction(certificate.span) * GRID
        self._noise = noise
        self._mechanism: GuardCore | None = None
        self.table = lru_cache(maxsize=4)(self._made_table)

    @classmethod
    def check(cls, bound: BoundMetric, ledger: str | Path | None) -> None:
        """Refuse a metric or a ledger that the policy cannot be for, before anything is made; here none."""

    # ---- terms

    def prior(self, stated: Any, state: State) -> Any:
        """Prior of a question, or of each of several: the analyst's own."""
        return stated

    def check_room(self, priors: Floats, tolerances: Floats | None, state: State) -> None:
        """Refuse what cannot be kept in this state, before anything is decided; here nothing."""

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Threshold of a question."""
        return self.table(state.charges, state.nats).at(prior)

    def thresholds(self, priors: Floats, state: State, tolerances: Floats | None) -> Floats:
        """Thresholds of several questions: those of a table at once."""
        if self.by_table and tolerances is None:
            return self.table(state.charges, state.nats).at_each(priors)
        limits = [None] * len(priors) if tolerances is None else tolerances.tolist()
        pairs = zip(priors.tolist(), limits, strict=True)
        return np.array([self.threshold(prior, state, limit) for prior, limit in pairs])

    def terms(self, stated: float, state: State, tolerance: float | None) -> Terms:
        """Public numbers of a question."""
        prior = self.prior(stated, state)
        return Terms(prior, self.threshold(prior, state, tolerance))

    # ---- code and interval

    @property
    def code(self) -> CellCode:
        """Cells of a charge."""
        return self.certificate.theory.charge

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "agreed", "failed", or "cell" and its place."""
        if told == AGREED:
            return Outcome(AGREED, terms.prior, False, 0.0)
        if told == FAILED:
            return Outcome(FAILED, self.worst, True, self.code.failure_nats)
        place = self.numbered(told, "cell", range(len(self.code.cells)))
        nearest, farthest = self._cell(place, terms)
        if math.isinf(self.code.cells[place].far):  # of one that is open, its middle would flatter
            farthest = nearest
        value = self.certificate.tidy((nearest + farthest) / 2.0)
        return Outcome(f"cell {place}", value, True, self.code.nats[place])

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of the population value: around the prior, or around the cell that was told."""
        certificate = self.certificate
        if outcome.told == FAILED:
            return self.all_values
        if outcome.told == AGREED:
            return self.agreed(terms.prior, terms.threshold, length)
        low, high = self._reached(int(outcome.told.split()[1]), terms)
        return certificate.around(low, high, length=length, share=certificate.shares.charged)

    def agreed(self, priors: Floats | float, thresholds: Floats | float, length: float) -> Interval:
        """Intervals of questions that were not charged."""
        certificate = self.certificate
        reach = thresholds + certificate.comparison_tail
        low, high = certificate.around(
            priors - reach, priors + reach, length=length, share=certificate.shares.agreed
        )
        # an answer is in its own interval, even where no score lies within reach
        if isinstance(low, np.ndarray):
            return Interval(np.minimum(low, priors), np.maximum(high, priors))
        return Interval(min(low, priors), max(high, priors))

    def _direction(self, place: int) -> int:
        """Sign of the deviations of a cell, in the metric's unit: the overfitting side is the worse."""
        return -self.code.cells[place].side * self.certificate.better

    def _cell(self, place: int, terms: Terms) -> tuple[float, float]:
        """Ends of a cell, the nearest to the prior first, within the metric's bounds."""
        cell, sign = self.code.cells[place], self._direction(place)
        lower, upper = self.certificate.lower, self.certificate.upper
        near, far = (
            min(max(terms.prior + sign * end * terms.threshold, lower), upper)
            for end in (cell.near, cell.far)
        )
        return near, far

    def _reached(self, place: int, terms: Terms) -> tuple[float, float]:
        """Where the holdout's value can lie when a cell is told: its ends and the noise's reach."""
        certificate, sign = self.certificate, self._direction(place)
        near, far = self._cell(place, terms)
        if self.code.cells[place].near <= 1.0:  # also told for a value that noise has brought nearer
            deviation = terms.threshold - certificate.comparison_tail
            near = terms.prior + sign * (
                deviation if deviation > certificate.answer_tail else -certificate.answer_tail
            )
        else:
            near -= sign * certificate.answer_tail
        far += sign * certificate.answer_tail
        return min(near, far), max(near, far)

    # ---- rule

    def measured(self, bound: BoundMetric, prepared: Prepared) -> Integers:
        """What is measured before anything is stated: each question's score on the grid; shape (queries,).

        Raises ModelError if a metric of the user's own fails on the holdout.
        """
        return bound.score(prepared)

    def weighed(
        self, bound: BoundMetric, measured: Integers, priors: Floats, tolerances: Floats | None
    ) -> Integers:
        """What decisions are made on, from what was measured and what is stated; here the same."""
        return measured

    def scored(
        self, bound: BoundMetric, prepared: Prepared, priors: Floats, tolerances: Floats | None
    ) -> Integers:
        """What decisions are made on, for each of several questions; raises as `measured` does."""
        return self.weighed(bound, self.measured(bound, prepared), priors, tolerances)

    def answer(
        self, prior: float, tolerance: float | None, question: bytes, measured: Any, state: State
    ) -> tuple[Terms, Outcome]:
        """Public numbers of one question, and what is told; nothing was measured of what failed on the holdout."""
        terms = self.terms(prior, state, tolerance)
        if measured is None:
            return terms, self.fail(terms, state)
        return terms, self.decide(measured, terms, question, state)

    def decide(self, score: int | Integers, terms: Terms, question: bytes, state: State) -> Outcome:
        """Decide one question, by what was measured; nothing is final until the ledger has it."""
        mechanism, posed = self._at(state), Posed(terms, question, self.length(state))
        charged = self._deviates(mechanism, score, posed)
        return self._charge(mechanism, score, posed) if charged else self.outcome(AGREED, terms)

    def fail(self, terms: Terms, state: State) -> Outcome:
        """Decide a question that failed on the holdout: a charge, for that it did is a fact about the holdout."""
        return self.outcome(FAILED, terms)

    def decide_many(
        self,
        scores: Scores,
        stated: Floats,
        questions: Sequence[bytes],
        state: State,
        tolerances: Floats | None = None,
    ) -> Batch:
        """Decide a batch in order, up to a halt; stretches between charges are compared at once."""
        query_noise = self._at(state).query_noise(questions)
        priors, thresholds = stated.copy(), np.empty(len(stated))
        outcomes: list[Outcome | None] = [None] * len(stated)
        start = 0
        while start < len(priors) and state.charges < self.certificate.charges:
            rest = slice(start, None)
            failed = scores.failed[rest]
            mechanism, length = self._at(state), self.length(state)
            priors[rest] = self.prior(stated[rest], state)
            thresholds[rest] = self.thresholds(
                priors[rest], state, None if tolerances is None else tolerances[rest]
            )
            here = start + (int(failed.argmax()) if failed.any() else len(failed))
            if here > start:
                some = slice(start, here)
                above = mechanism.first_deviation(
                    *self._compared(scores.values[some], priors[some], thresholds[some], length),
                    questions[some],
                    query_noise=query_noise[some],
                )
                here = here if above is None else start + above
            start = here + 1
            if here == len(priors):
                break
            terms = Terms(float(priors[here]), float(thresholds[here]))
            if scores.failed[here]:
                outcome = self.fail(terms, state)
            else:
                outcome = self._charge(mechanism, scores.values[here], Posed(terms, questions[here], length))
            outcomes[here] = outcome
            state = state._replace(
                charges=state.charges + 1,
                nats=state.nats + outcome.nats,
                value=outcome.value,
                last_charged=questions[here],
            )
        return Batch(priors[:start], thresholds[:start], outcomes[:start])

    def _score(self, measured: int | Integers) -> int:
        """Score on the grid, of what was measured."""
        return int(measured)

    def _deviates(self, mechanism: GuardCore, measured: int | Integers, posed: Posed) -> bool:
        """Whether one question is charged, as several are: without an array, for it is asked most."""
        limit = math.floor(posed.terms.threshold / self.certificate.span * GRID)
        prior = self.grid_unit(posed.terms.prior)
        return mechanism.deviates(self._score(measured), prior, limit, posed.question)

    def _compared(
        self, measured: Integers, priors: Floats, thresholds: Floats, length: float
    ) -> tuple[Integers, Integers, Integers]:
        """What is compared with what, and by how much it may be off; on the grid, for each question."""
        limits = np.floor(thresholds / self.certificate.span * GRID).astype(np.int64)
        return measured, self.grid_units(priors), limits

    def _charge(self, mechanism: GuardCore, measured: int | Integers, posed: Posed) -> Outcome:
        value = self._noisy(mechanism, self._score(measured), posed.question)
        return self.outcome(self._told(value, posed.terms), posed.terms)

    def _noisy(self, mechanism: GuardCore, score: int, question: bytes) -> float:
        """Value with the noise of an answer, in the metric's unit and within its bounds."""
        noisy = min(max(mechanism.charge(score, question), 0), GRID) / GRID
        return self.certificate.lower + noisy * self.certificate.span

    def _told(self, value: float, terms: Terms) -> str:
        """Name of the cell of a value."""
        deviation = (terms.prior - value) * self.certificate.better
        return f"cell {self.code.place(deviation / terms.threshold)}"

    def _at(self, state: State) -> GuardCore:
        """Give the mechanism of this state: another process may have charged, or a commit may have failed."""
        mechanism = self._mechanism
        if mechanism is None or (mechanism.spent, mechanism.last_charged) != (
            state.charges,
            state.last_charged,
        ):
            mechanism = self._mechanism = self._resumed(state)
        return mechanism

    def _resumed(self, state: State) -> GuardCore:
        return self._calibration.core(
            scale=self._scale,
            noise=self._noise,
            spent=state.charges,
            last_charged=state.last_charged,
            direction=self._direction_compared,
        )

    @property
    def _direction_compared(self) -> int:
        """Sign of what is charged, of what is compared; 0 for both."""
        return self.certificate.better if self.one_sided else 0

    def _made_table(self, charges: int, nats: float) -> ThresholdTable:
        return ThresholdTable(self.certificate, charges=charges, nats=nats)


class OfTwo(Check):
    """A question about the difference of two models, new less old; so are certificate and prior."""

    def measured(self, bound: BoundMetric, prepared: Prepared) -> Integers:
        """Half the difference of what is measured of each, on the grid; one question."""
        new, old = super().measured(bound, prepared)
        halved: Integers = (new - old + GRID)[None] >> 1
        return halved


class Compare(OfTwo):
    """A check of the difference of two models."""

    name: ClassVar[str] = "compare"
