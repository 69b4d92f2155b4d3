"""Gate: whether the score is at least what was named, and nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.kind import AGREED, FAILED, Outcome, Posed, Terms
from reusable_holdout.queries import GRID
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds.kind import State
    from reusable_holdout.validity import CellCode

__all__ = ["Gate", "open_to_worse"]

_YES = "cell 0"


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
        """Its one cell."""
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
        if outcome.told != _YES:
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
        return _YES


def open_to_worse(kind: Check, interval: Interval) -> Interval:
    """Interval without its bad end."""
    low, high = interval
    if kind.certificate.greater_is_better:
        end = kind.certificate.lower
        return Interval(np.full_like(low, end) if isinstance(low, np.ndarray) else end, high)
    end = kind.certificate.upper
    return Interval(low, np.full_like(high, end) if isinstance(high, np.ndarray) else end)
