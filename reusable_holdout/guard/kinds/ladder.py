"""Ladder: a submission is compared with the best so far, and only a new best is told."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.inputs import checked_names
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.gate import open_to_worse
from reusable_holdout.guard.kinds.kind import AGREED, FAILED, Outcome, State, Terms
from reusable_holdout.guard.kinds.stated import Asked
from reusable_holdout.validity import Interval, StepCode

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Ladder"]


class Ladder(Check):
    """Compare with the best score so far, and tell improvements of at least a step.

    With the plan's confidence, at every submission: the interval of a new best contains its population value, and any
    other submission's population value is at most its interval's good end.

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

    name: ClassVar[str] = "ladder"
    one_sided: ClassVar[bool] = True
    climbs: ClassVar[bool] = True

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
        return self.start if state.value is None else state.value

    def priors(self, stated: NDArray[np.float64], state: State) -> NDArray[np.float64]:
        """Best score so far, for each."""
        return np.full(len(stated), self.prior(0.0, state))

    @property
    def start(self) -> float:
        """The best score before the first submission: the worst there is."""
        return self._worst(Terms(0.0, 0.0))

    # ---- code and interval

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "agreed", "failed" (the best stays), or a number of "steps" from 1."""
        if told == AGREED:
            return super().outcome(told, terms)
        code = StepCode(self._places(terms), self.certificate.theory.steps_failed)
        if told == FAILED:
            return Outcome(FAILED, terms.prior, True, code.failure_nats)
        word, _, steps = told.partition(" ")
        if word != "steps" or not steps.isdecimal() or not 1 <= int(steps) <= code.places:
            raise self.unknown(told)
        value = terms.prior + self.certificate.better * terms.threshold * int(steps)
        return Outcome(f"steps {int(steps)}", self.certificate.tidy(value), True, code.nats(int(steps)))

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

    def agreed(
        self, priors: NDArray[np.float64] | float, thresholds: NDArray[np.float64] | float, length: float
    ) -> Interval:
        """Intervals of submissions that are no new best: how far below it they are is not told."""
        return open_to_worse(self, super().agreed(priors, thresholds, length))

    @property
    def _rounding(self) -> float:
        return self.certificate.theory.step_rounding

    def _places(self, terms: Terms) -> int:
        """How many steps the range has."""
        return max(1, math.ceil(self.certificate.span / terms.threshold - self._rounding))

    def _told(self, value: float, terms: Terms) -> str:
        steps = self.certificate.better * (value - terms.prior) / terms.threshold
        return f"steps {min(max(1, math.floor(steps + self._rounding)), self._places(terms))}"


def _refuse_prior(prior: object) -> None:
    if prior is not None:
        raise InputError(
            "a ladder compares with the best score so far, and takes no prior; got one; leave it out; nothing was asked"
        )
