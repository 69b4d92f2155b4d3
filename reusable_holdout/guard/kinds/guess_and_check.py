"""Guess and check: the analyst's guess, within the tolerance that she names for it; of one model, or of two."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from reusable_holdout.guard.kinds import State
from reusable_holdout.guard.kinds.check import Check, OfTwo
from reusable_holdout.guard.kinds.stated import StatedWithTolerance

__all__ = ["GuessAndCheck", "GuessAndCompare"]


class GuessAndCheck(StatedWithTolerance, Check):
    """Compare with the analyst's guess, within the tolerance she names for it.

    See Rogers, Roth, Smith, Srebro, Thakkar and Woodworth (2020), "Guaranteed validity for empirical approaches to
    adaptive data analysis", Algorithm 1.
    """

    name: ClassVar[str] = "guess-and-check"

    def can_keep(self, prior: float, tolerance: float, state: State) -> bool:
        """Whether its threshold is no smaller than the least one."""
        return self._exact(prior, state, tolerance) >= self.certificate.least_threshold

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Threshold that keeps this tolerance, or the least there is.

        Inside a batch an earlier charge may have made the tolerance too narrow. Refusing it then would tell that there
        was a charge and take it back; so the least threshold serves, and the interval says how wide it has become.
        """
        if tolerance is None:
            return super().threshold(prior, state, tolerance)
        return max(self._exact(prior, state, tolerance), self.certificate.least_threshold)

    def _exact(self, prior: float, state: State, tolerance: float) -> float:
        length = self.length(state)
        return float(self.certificate.threshold_of_length(prior, length, tolerance=tolerance, least=-np.inf))


class GuessAndCompare(OfTwo, GuessAndCheck):
    """Guess and check of the difference of two models."""

    name: ClassVar[str] = "guess-and-compare"
