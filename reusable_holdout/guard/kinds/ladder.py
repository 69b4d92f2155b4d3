"""Ladders: a submission is compared with the best so far, and only a new best is told."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from reusable_holdout.certainty import Certificate, Interval, StepCode
from reusable_holdout.errors import HoldoutError, InputError
from reusable_holdout.guard.kinds import AGREED, FAILED, Floats, Integers, Outcome, Prepared, State, Terms
from reusable_holdout.guard.kinds.check import Batch, Check
from reusable_holdout.guard.kinds.gate import open_to
from reusable_holdout.guard.kinds.scores import Scores
from reusable_holdout.guard.kinds.stated import Statement, checked_names
from reusable_holdout.metrics import GRID, BoundMetric
from reusable_holdout.metrics.scoring import Mean
from reusable_holdout.noise import KeyedNoise

__all__ = ["Ladder", "ParameterFreeLadder", "ParameterFreeLadderWarning"]


class Ladder(Check):
    """Compare with the best score so far, and tell improvements of at least a step.

    With the plan's confidence, at every submission: the interval of a new best contains its population value, and any
    other submission's population value is at most its interval's good end. The last released value is the best: a
    submission that is no new best is answered with it. With several series, such as the teams of a competition, each
    has a best of its own, and all share the budget.

    Its step eta is the plan's threshold, and the noise is the mechanism's. The published step, of order
    ``(ln(n)/n)^(1/3)``, is one at which a score can rise from worst to best within the budget: at most 1/eta new bests,
    whose description costs an error of about ``sqrt(ln(K)/(eta n))``. It is had by stating
    ``threshold=(ln(n)/n)**(1/3), charges=ceil(1/threshold)``: at 10,000 rows and 1,000 queries 0.097 and 11, which
    keeps a tolerance of 0.183. Left to itself the plan goes the other way: from tolerance and charges it takes the
    largest step they leave, which shrinks with every charge. With 11 charges that is 0.051 at first and 0.011 at the
    last, and keeps 0.080; in return a climb by small steps may spend the charges. See Blum and Hardt (2015), "The
    Ladder: a reliable leaderboard for machine learning competitions", Algorithm 1 and Theorem 3.1.
    """

    name: ClassVar[str] = "ladder"
    one_sided: ClassVar[bool] = True
    climbs: ClassVar[bool] = True

    def series_unit(self, series: object) -> int:
        """Another series is another question: the same predictions are compared with another best."""
        (name,) = checked_names([series], 1)  # type: ignore[list-item]
        if not name:
            return 0
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1

    def asked(self, prior: object, tolerance: object, metric: str) -> Statement:
        """Nothing is stated: the same predictions are the same question, whatever is best by now."""
        self.check_given(prior, tolerance)
        return Statement(math.nan, None, 0)

    def asked_many(
        self, priors: ArrayLike | None, tolerances: ArrayLike | None, count: int, metric: str
    ) -> tuple[Floats, Floats | None, list[int]]:
        """Nothing is stated for any of them."""
        self.check_given(priors, tolerances)
        return np.full(count, math.nan), None, [0] * count

    def check_given(self, prior: object, tolerance: object) -> None:
        """Refuse both."""
        if prior is not None:
            raise InputError(_NO_PRIOR)
        super().check_given(math.nan, tolerance)

    def prior(self, stated: Any, state: State) -> float:
        """Best score so far."""
        return self.start if state.value is None else state.value

    @property
    def start(self) -> float:
        """The best score before the first submission: the worst there is."""
        return self.worst

    # ---- code and interval

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "agreed", "failed" (the best stays), or a number of "steps" from 1."""
        if told == AGREED:
            return super().outcome(told, terms)
        code = StepCode(self._places(terms), self.certificate.theory.steps_failed)
        if told == FAILED:
            return Outcome(FAILED, terms.prior, True, code.failure_nats)
        steps = self.numbered(told, "steps", range(1, code.places + 1))
        value = terms.prior + self.certificate.better * terms.threshold * steps
        return Outcome(f"steps {steps}", self.certificate.tidy(value), True, code.nats(steps))

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of a new best: rounded to the worse side, and told as one step at least, which noise may make."""
        if outcome.told in {AGREED, FAILED}:
            return super().interval(outcome, terms, length)
        certificate = self.certificate
        worse = max(certificate.answer_tail, certificate.comparison_tail) + self._rounding * terms.threshold
        better = terms.threshold + certificate.answer_tail
        low, high = (worse, better) if certificate.greater_is_better else (better, worse)
        return certificate.around(
            outcome.value - low, outcome.value + high, length=length, share=certificate.shares.charged
        )

    def agreed(self, priors: Floats | float, thresholds: Floats | float, length: float) -> Interval:
        """Intervals of submissions that are no new best: how far below it they are is not told."""
        return open_to(self.worst, self, super().agreed(priors, thresholds, length))

    @property
    def _rounding(self) -> float:
        return self.certificate.theory.step_rounding

    def _places(self, terms: Terms) -> int:
        """How many steps the range has."""
        return max(1, math.ceil(self.certificate.span / terms.threshold - self._rounding))

    def _told(self, value: float, terms: Terms) -> str:
        steps = self.certificate.better * (value - terms.prior) / terms.threshold
        return f"steps {min(max(1, math.floor(steps + self._rounding)), self._places(terms))}"


_NO_PRIOR = "a ladder compares with the best score so far, and takes no prior; got one; leave it out; nothing was asked"
_IN_MEMORY = (
    "a parameter-free ladder needs the losses of the best submission on each row, which a ledger does not hold, for "
    "they are private: it can only live in the memory of one process; got ledger=; nothing was made; leave it out, or "
    'use policy="ladder"'
)
_WALKED_DOWN = (
    "the step of a parameter-free ladder adapts to the data, and flipping labels pair by pair walks its best up by "
    '2/rows at a time: charges are spent fast, and the intervals grow with them; use policy="ladder", whose step '
    "the plan chooses"
)


class ParameterFreeLadderWarning(HoldoutError, UserWarning):  # noqa: N818 - a warning
    """A leaderboard is guarded by a step that adapts to the data.

    An error of this library as well, for where warnings are errors its words must reach the user.
    """


class ParameterFreeLadder(Ladder):
    """Compare with the best submission so far, by a step that is the standard error of their difference.

    Every interval holds as the plan says, by the transcript code; nothing is differentially private, and no noise is
    drawn. Whoever makes such a guard is warned: the step adapts to the data, and that is what an analyst can use. Two
    labels flipped make a standard error of ``sqrt(2)/n`` at most, and a gain of 2/n if both flips are right, so a
    pair-flip attack climbs by 2/n at about every fourth submission at first; unguarded, the reported loss falls from
    0.50 to 0.25 in n submissions. Here each step is a charge: the guard halts, or with charges to spare the intervals
    grow beyond all that was gained. The plain Ladder's step is fixed, and pair flips do not pass it.

    A submission is a new best if its mean loss is less than ``R - s/sqrt(n)``, R the best that was told, s the sample
    standard deviation of the n differences of losses, submission minus best (in units of the range, 1 at most); ties
    are none. It is told rounded to 1/n. Departures from the published algorithm: before the first submission the best
    is the worst score there is, not an infinite one; and of losses other than 0 and 1, an improvement that is lost by
    rounding is none, for that it happened would be told by nothing but the charge.

    *What the analyst learns* is which submissions are new bests, and their rounded values: nothing else that she is
    told depends on the holdout, s included, for the threshold that is told is ``1/sqrt(n)`` whatever s. So the
    transcript code covers it. A submission that is no new best has a mean of at most ``R + s/sqrt(n)``, or one that
    rounds to R or below: both are at most ``R + 1/sqrt(n)``, since s <= 1. So pair flips, which pass the published rule
    with a gain of 2/n each, buy lower reported losses and pay for each with description length.

    All of it is computed in integers, the losses being rounded to the grid first. The losses of the best stay in this
    object, by the number of charges after which it stands: a decision whose commit fails is decided again. See Blum and
    Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions", Algorithm 2.
    """

    name: ClassVar[str] = "parameter-free-ladder"
    measures_rows: ClassVar[bool] = True

    def __init__(self, certificate: Certificate, noise: KeyedNoise) -> None:
        super().__init__(certificate, noise)
        self._bests: dict[int, Integers | None] = {}

    def series_unit(self, series: object) -> int:
        """There is one series."""
        return Check.series_unit(self, series)

    @classmethod
    def check(cls, bound: BoundMetric, ledger: str | Path | None) -> None:
        """Refuse a ledger outside of this process, and a metric that is no plain mean over all rows; warn always."""
        if ledger is not None:
            raise InputError(_IN_MEMORY)
        if not isinstance(bound.statistic, Mean) or bound.sensitivity * bound.rows != 1:
            raise InputError(
                f"a parameter-free ladder compares losses row by row, of a metric that is a plain mean over all rows; "
                f"{bound.metric.name} is none, or has weights; nothing was made; use accuracy or a mean loss, and of a "
                'slice guard its rows alone; or use policy="ladder"'
            )
        # check, check_may_stand, __init__, sealed, user
        warnings.warn(ParameterFreeLadderWarning(_WALKED_DOWN), stacklevel=5)

    # ---- code and interval

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: a new best is a number of "steps" of 1/n, from 1."""
        return super().outcome(told, terms._replace(threshold=self.certificate.span / self._rows))

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of a new best: half a place of rounding, no noise."""
        if outcome.told in {AGREED, FAILED}:
            return super().interval(outcome, terms, length)
        certificate, value = self.certificate, outcome.value
        half = certificate.span / self._rows / 2.0 + certificate.answer_tail
        return certificate.around(value - half, value + half, length=length, share=certificate.shares.charged)

    @property
    def _rows(self) -> int:
        return self.certificate.bound.rows

    # ---- rule

    def measured(self, bound: BoundMetric, prepared: Prepared) -> Integers:
        """Each row's term on the grid; shape (queries, rows)."""
        statistic = cast("Mean", bound.statistic)
        terms = np.empty((len(prepared), bound.rows), dtype=np.int64)
        for row, query in zip(terms, prepared, strict=True):
            row[:] = np.rint(statistic.shares(query) * GRID)
        return terms

    def decide(self, score: int | Integers, terms: Terms, question: bytes, state: State) -> Outcome:
        """Decide one submission, by the terms of its rows."""
        self._forget_others(state)
        return self._decide(np.asarray(score), terms, state)

    def decide_many(
        self,
        scores: Scores,
        stated: Floats,
        questions: Sequence[bytes],
        state: State,
        tolerances: Floats | None = None,
    ) -> Batch:
        """Decide a batch in order, up to a halt."""
        self._forget_others(state)
        outcomes: list[Outcome | None] = []
        terms: list[Terms] = []
        for rows, broken in zip(scores.values, scores.failed, strict=True):
            if state.charges >= self.certificate.charges:
                break
            terms.append(self.terms(math.nan, state, None))
            outcome = self._failed(terms[-1], state) if broken else self._decide(rows, terms[-1], state)
            outcomes.append(outcome if outcome.charged else None)
            state = state._replace(
                charges=state.charges + int(outcome.charged),
                nats=state.nats + outcome.nats,
                value=outcome.value,
            )
        priors, thresholds = (
            np.array([getattr(one, name) for one in terms]) for name in ("prior", "threshold")
        )
        return Batch(priors, thresholds, outcomes)

    def fail(self, terms: Terms, state: State) -> Outcome:
        """Decide a submission that failed on the holdout: a charge, and the best stays."""
        self._forget_others(state)
        return self._failed(terms, state)

    def _failed(self, terms: Terms, state: State) -> Outcome:
        self._bests[state.charges + 1] = self._bests.get(state.charges)
        return super().fail(terms, state)

    def _forget_others(self, state: State) -> None:
        """Keep the best of a committed state alone: others were replaced, or never committed."""
        self._bests = {state.charges: self._bests.get(state.charges)}

    def _decide(self, rows: Integers, terms: Terms, state: State) -> Outcome:
        places = self._gained(rows, terms, self._bests.get(state.charges))
        if places < 1:
            return self.outcome(AGREED, terms)
        self._bests[state.charges + 1] = rows.copy()  # not the whole batch
        return self.outcome(f"steps {places}", terms)

    def _gained(self, rows: Integers, terms: Terms, best: Integers | None) -> int:
        """Places that a submission is better than the best; none if it passes no standard error."""
        certificate, count, total = self.certificate, len(rows), int(rows.sum())
        place = round((terms.prior - certificate.lower) / certificate.span * count)  # n-th parts of the range
        gained = certificate.better * (round(total // count / GRID * count) - place)
        if gained < 1 or best is None:
            return gained
        # gain > s/sqrt(n) without roots, for it is half a place at least
        gain = certificate.better * (total - place * GRID)
        differences = rows - best
        others = max(1, count - 1)
        squares = count * _sum_of_squares(differences) - int(differences.sum()) ** 2
        return gained if gain * gain * others > min(squares, count * others * GRID * GRID) else 0


def _sum_of_squares(differences: Integers) -> int:
    """Exact sum of squares of whole numbers of up to 33 bits with their sign, which 64 bits do not hold."""
    high, low = differences >> 16, differences & 0xFFFF
    return (int((high * high).sum()) << 32) + (int((high * low).sum()) << 17) + int((low * low).sum())
