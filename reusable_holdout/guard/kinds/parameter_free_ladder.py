"""The parameter-free ladder: a published board whose step adapts to the data, and what that costs. A warning."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from reusable_holdout.errors import HoldoutError, InputError
from reusable_holdout.guard.kinds.check import Batch, Check
from reusable_holdout.guard.kinds.kind import AGREED, FAILED, Outcome, State, Terms
from reusable_holdout.guard.kinds.ladder import Ladder
from reusable_holdout.queries import GRID
from reusable_holdout.queries.scoring import Mean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from reusable_holdout.mechanisms import KeyedNoise
    from reusable_holdout.queries import BoundMetric
    from reusable_holdout.validity import Certificate, Interval

__all__ = ["ParameterFreeLadder", "ParameterFreeLadderWarning"]

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

    Every interval holds as the plan says, by the transcript code; nothing is differentially private.

    Parameters
    ----------
    certificate : Certificate
        Of the plan.
    noise : KeyedNoise
        Not drawn from.

    Warns
    -----
    ParameterFreeLadderWarning
        When a guard is made. The step adapts to the data, and that is what an analyst can use: two labels flipped make
        a standard error of ``sqrt(2)/n`` at most, and a gain of 2/n if both flips are right, so a pair-flip attack
        climbs by 2/n at about every fourth submission at first; unguarded, the reported loss falls from 0.50 to 0.25 in
        n submissions. Here each step is a charge: the guard halts, or with charges to spare the intervals grow beyond
        all that was gained. The plain Ladder's step is fixed, and pair flips do not pass it.

    Notes
    -----
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
    object, by the number of charges after which it stands: a decision whose commit fails is decided again.

    References
    ----------
    .. [1] Blum and Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions", Algorithm 2.
    """

    name: ClassVar[str] = "parameter-free-ladder"
    measures_rows: ClassVar[bool] = True

    def __init__(self, certificate: Certificate, noise: KeyedNoise) -> None:
        super().__init__(certificate, noise)
        self._bests: dict[int, NDArray[np.int64] | None] = {}

    def series_unit(self, series: object) -> int:
        """There is one series."""
        return Check.series_unit(self, series)

    @classmethod
    def check(cls, bound: BoundMetric, ledger: str | Path | None) -> None:
        """Refuse a ledger and a metric it cannot be for; warn.

        Raises
        ------
        InputError
            If there is a ledger outside of this process, or the metric is no plain mean over all rows.

        Warns
        -----
        ParameterFreeLadderWarning
            Always.
        """
        if ledger is not None:
            raise InputError(_IN_MEMORY)
        if not isinstance(bound.statistic, Mean) or bound.sensitivity * bound.rows != 1:
            raise InputError(
                f"a parameter-free ladder compares losses row by row, of a metric that is a plain mean over all rows; "
                f"{bound.metric.name} is none, or has weights; nothing was made; use accuracy or a mean loss, and of a "
                'slice guard its rows alone; or use policy="ladder"'
            )
        warnings.warn(ParameterFreeLadderWarning(_WALKED_DOWN), stacklevel=4)  # check, __init__, sealed, user

    # ---- code and interval

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: a new best is a number of "steps" of 1/n, from 1."""
        return super().outcome(told, terms._replace(threshold=self.certificate.span / self._rows))

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of a new best: half a place of rounding, no noise."""
        if outcome.told in {AGREED, FAILED}:
            return super().interval(outcome, terms, length)
        certificate = self.certificate
        half = certificate.span / self._rows / 2.0 + certificate.answer_tail
        value = outcome.value
        return certificate.around(value - half, value + half, length=length, share=certificate.shares.charged)

    @property
    def _rows(self) -> int:
        return self.certificate.bound.rows

    # ---- rule

    def measured(self, bound: BoundMetric, prepared: NDArray[np.generic]) -> NDArray[np.int64]:
        """Each row's term on the grid; shape (queries, rows)."""
        statistic = cast("Mean", bound.statistic)
        terms = np.empty((len(prepared), bound.rows), dtype=np.int64)
        for row, query in zip(terms, prepared, strict=True):
            row[:] = np.rint(statistic.shares(query) * GRID)
        return terms

    def decide(self, score: int | NDArray[np.int64], terms: Terms, question: bytes, state: State) -> Outcome:
        """Decide one submission, by the terms of its rows."""
        self._forget_others(state)
        return self._decide(np.asarray(score), terms, state)

    def decide_many(
        self,
        scores: NDArray[np.int64],
        stated: NDArray[np.float64],
        questions: Sequence[bytes],
        state: State,
        tolerances: NDArray[np.float64] | None = None,
    ) -> Batch:
        """Decide a batch in order, up to a halt."""
        self._forget_others(state)
        outcomes: list[Outcome | None] = []
        terms: list[Terms] = []
        for rows in scores:
            if state.charges >= self.certificate.charges:
                break
            terms.append(self.terms(math.nan, state, None))
            outcome = self._decide(rows, terms[-1], state)
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
        self._bests[state.charges + 1] = self._bests.get(state.charges)
        return super().fail(terms, state)

    def _forget_others(self, state: State) -> None:
        """Keep the best of a committed state alone: others were replaced, or never committed."""
        self._bests = {state.charges: self._bests.get(state.charges)}

    def _decide(self, rows: NDArray[np.int64], terms: Terms, state: State) -> Outcome:
        places = self._gained(rows, terms, self._bests.get(state.charges))
        if places < 1:
            return self.outcome(AGREED, terms)
        self._bests[state.charges + 1] = rows.copy()  # not the whole batch
        return self.outcome(f"steps {places}", terms)

    def _gained(self, rows: NDArray[np.int64], terms: Terms, best: NDArray[np.int64] | None) -> int:
        """Places that a submission is better than the best; none if it passes no standard error."""
        better, count = self.certificate.better, len(rows)
        place = self._place(terms.prior, count)
        gained = better * (round(_mean(rows) / GRID * count) - place)
        if gained < 1 or best is None:
            return gained
        # gain > s/sqrt(n) without roots, for it is half a place at least
        gain = better * (int(rows.sum()) - place * GRID)
        differences = rows - best
        others = max(1, count - 1)
        squares = count * _sum_of_squares(differences) - int(differences.sum()) ** 2
        return gained if gain * gain * others > min(squares, count * others * GRID * GRID) else 0

    def _place(self, value: float, rows: int) -> int:
        """How many n-th parts of the range a told value lies above the lower bound."""
        return round((value - self.certificate.lower) / self.certificate.span * rows)


def _mean(terms: NDArray[np.int64]) -> int:
    return int(terms.sum()) // len(terms)


def _sum_of_squares(differences: NDArray[np.int64]) -> int:
    """Exact sum of squares of whole numbers of up to 33 bits with their sign, which 64 bits do not hold."""
    high, low = differences >> 16, differences & 0xFFFF
    return (int((high * high).sum()) << 32) + (int((high * low).sum()) << 17) + int((low * low).sum())
