"""Policies of leaderboards: a submission is compared with the best so far, and only a new best is told."""

from __future__ import annotations

import hashlib
import math
import warnings
from typing import TYPE_CHECKING, cast

import numpy as np

from reusable_holdout.errors import HoldoutError, InputError
from reusable_holdout.holdout.inputs import checked_names
from reusable_holdout.holdout.thresholdout import Asked, Decision, Decisions, State, Thresholdout
from reusable_holdout.queries import GRID
from reusable_holdout.queries.scoring import Mean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from reusable_holdout.mechanisms import KeyedNoise
    from reusable_holdout.queries import BoundMetric
    from reusable_holdout.validity import Certificate

__all__ = ["Ladder", "ParameterFreeLadder", "ParameterFreeLadderWarning"]

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


class Ladder(Thresholdout):
    """Compare with the best score so far, and tell improvements of at least a step.

    Notes
    -----
    The last released value is the best: a submission that is no new best is answered with it. With several series, such
    as the teams of a competition, each has a best of its own, and all share the budget.

    Its step eta is the plan's threshold, and the noise is the mechanism's. The published step, of order
    ``(ln(n)/n)^(1/3)``, is one at which a score can rise from worst to best within the budget: at most 1/eta new bests,
    whose description costs an error of about ``sqrt(ln(K)/(eta n))``. It is had by stating
    ``threshold=(ln(n)/n)**(1/3), charges=ceil(1/threshold)``: at 10,000 rows and 1,000 queries 0.097 and 11, which
    keeps a tolerance of 0.183. Left to itself the plan goes the other way: from tolerance and charges it takes the
    largest step they leave, which shrinks with every charge. With 11 charges that is 0.051 at first and 0.011 at the
    last, and keeps 0.080; in return a climb by small steps may spend the charges.

    References
    ----------
    .. [1] Blum and Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions", Algorithm 1
       and Theorem 3.1.
    """

    climbs = True

    def series_unit(self, series: object) -> int:
        """Another series is another question: the same predictions are compared with another best."""
        (name,) = checked_names([series], 1)  # type: ignore[list-item]
        if not name:
            return 0
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1

    def asked(self, prior: object, tolerance: object, metric: str) -> Asked:
        """Nothing is stated: the same predictions are the same question, whatever is best by now."""
        _refuse_prior(prior)
        if tolerance is not None:
            super().asked(prior, tolerance, metric)
        return Asked(math.nan, None, 0)

    def asked_many(
        self, priors: ArrayLike | None, tolerances: ArrayLike | None, count: int, metric: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, list[int]]:
        """Nothing is stated for any of them."""
        _refuse_prior(priors)
        if tolerances is not None:
            super().asked_many(priors, tolerances, count, metric)
        return np.full(count, math.nan), None, [0] * count

    def prior(self, stated: float, state: State) -> float:
        """Best score so far."""
        return self.certificate.start if state.value is None else state.value

    def priors(self, stated: NDArray[np.float64], state: State) -> NDArray[np.float64]:
        """Best score so far, for each."""
        return np.full(len(stated), self.prior(0.0, state))


class ParameterFreeLadder(Ladder):
    """Compare with the best submission so far, by a step that is the standard error of their difference.

    Every interval holds as the plan says, by
    :class:`~reusable_holdout.validity.one_sided.ParameterFreeLadderCertificate`; nothing is differentially private.

    Parameters
    ----------
    certificate : Certificate
        Of the plan.
    noise : KeyedNoise
        Not drawn from.
    paired : bool
        Whether its questions compare two models: a ladder has none.

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

    All of it is computed in integers, the losses being rounded to the grid first. The losses of the best stay in this
    object, by the number of charges after which it stands: a decision whose commit fails is decided again.

    References
    ----------
    .. [1] Blum and Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions", Algorithm 2.
    """

    def __init__(self, certificate: Certificate, noise: KeyedNoise, *, paired: bool = False) -> None:
        super().__init__(certificate, noise, paired=paired)
        self._bests: dict[int, NDArray[np.int64] | None] = {}

    def series_unit(self, series: object) -> int:
        """There is one series."""
        return Thresholdout.series_unit(self, series)

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

    # ---- what is not public

    def measured(self, bound: BoundMetric, prepared: NDArray[np.generic]) -> NDArray[np.int64]:
        """Each row's term on the grid; shape (queries, rows)."""
        statistic = cast("Mean", bound.statistic)
        terms = np.empty((len(prepared), bound.rows), dtype=np.int64)
        for row, query in zip(terms, prepared, strict=True):
            row[:] = np.rint(statistic.shares(query) * GRID)
        return terms

    def decide(
        self,
        score: int | NDArray[np.int64],
        stated: float,
        question: bytes,
        state: State,
        tolerance: float | None = None,
    ) -> Decision:
        """Decide one submission, by the terms of its rows."""
        self._forget_others(state)
        return self._decide(np.asarray(score), question, state)

    def decide_many(
        self,
        scores: NDArray[np.int64],
        stated: NDArray[np.float64],
        questions: Sequence[bytes],
        state: State,
        tolerances: NDArray[np.float64] | None = None,
    ) -> Decisions:
        """Decide a batch in order, up to a halt."""
        self._forget_others(state)
        decided: list[Decision] = []
        for terms, question in zip(scores, questions, strict=True):
            if self.halt_reason(state) is not None:
                break
            decision = self._decide(terms, question, state)
            decided.append(decision)
            spent = state.charges + int(decision.charged)
            state = State(state.query, spent, state.nats + decision.nats, decision.value)
        columns = list(zip(*decided, strict=True))[:5]
        priors, values, charged, thresholds, nats = (np.array(column) for column in columns)
        return Decisions(priors, values, charged, thresholds, nats)

    def fail(self, stated: float, state: State, tolerance: float | None = None) -> Decision:
        """Decide a submission that failed on the holdout: a charge, and the best stays."""
        self._forget_others(state)
        self._bests[state.charges + 1] = self._bests.get(state.charges)
        return super().fail(stated, state, tolerance)

    def _forget_others(self, state: State) -> None:
        """Keep the best of a committed state alone: others were replaced, or never committed."""
        self._bests = {state.charges: self._bests.get(state.charges)}

    def _decide(self, terms: NDArray[np.int64], question: bytes, state: State) -> Decision:
        prior = self.prior(math.nan, state)
        threshold = self.threshold(prior, state, None)
        if not self._is_new_best(terms, prior, threshold, self._bests.get(state.charges)):
            return Decision(prior, prior, False, threshold, 0.0)
        self._bests[state.charges + 1] = terms.copy()  # not the whole batch
        return self._charge(self._at(state), _mean(terms), prior, question, threshold)

    def _is_new_best(
        self, terms: NDArray[np.int64], prior: float, threshold: float, best: NDArray[np.int64] | None
    ) -> bool:
        certificate, rows = self.certificate, len(terms)
        score = certificate.lower + _mean(terms) / GRID * certificate.span
        place, told = (
            self._place(value, rows) for value in (prior, certificate.rounded(score, prior, threshold))
        )
        if certificate.direction * (told - place) < 1:
            return False
        if best is None:
            return True
        # gain > s/sqrt(n) without roots, for it is half a place at least
        gain = certificate.direction * (int(terms.sum()) - place * GRID)
        differences = terms - best
        others = max(1, rows - 1)
        squares = rows * _sum_of_squares(differences) - int(differences.sum()) ** 2
        return gain * gain * others > min(squares, rows * others * GRID * GRID)

    def _place(self, value: float, rows: int) -> int:
        """How many n-th parts of the range a told value lies above the lower bound."""
        return round((value - self.certificate.lower) / self.certificate.span * rows)


def _mean(terms: NDArray[np.int64]) -> int:
    return int(terms.sum()) // len(terms)


def _sum_of_squares(differences: NDArray[np.int64]) -> int:
    """Exact sum of squares of whole numbers of up to 33 bits with their sign, which 64 bits do not hold."""
    high, low = differences >> 16, differences & 0xFFFF
    return (int((high * high).sum()) << 32) + (int((high * low).sum()) << 17) + int((low * low).sum())


def _refuse_prior(prior: object) -> None:
    if prior is not None:
        raise InputError(
            "a ladder compares with the best score so far, and takes no prior; got one; leave it out; nothing was asked"
        )
