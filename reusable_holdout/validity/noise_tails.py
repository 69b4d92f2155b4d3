"""How far a mechanism's noise reaches, all questions at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from reusable_holdout.mechanisms.calibration import Calibration
from reusable_holdout.validity.theory import THEORY, Theory

if TYPE_CHECKING:
    from reusable_holdout.mechanisms.calibration import GuardMechanism

__all__ = ["NoiseTails"]


@dataclass(frozen=True)
class NoiseTails:
    """How far the mechanism's noise reaches, in units of the plan's noise scale, all questions at once.

    With probability at least ``1 - 0.05 beta`` no comparison is off by more than ``comparison``, and no value that is
    told by more than ``answer``; the questions are those of all views of the rows together, and this is the reach in
    view number ``view``.

    Notes
    -----
    A comparison's noise, one-sided, K times; the threshold's noise, two-sided, for a draw serves several questions,
    once for each time it is drawn; the noise of a charged or revealed value, two-sided, K times. Under target charging
    one noise is all three: two-sided, K times. Each question's noise is drawn after the question is chosen, so a plain
    union over indices is enough: no tree. The thresholds' draws are each view's own: the guard's own metric (view 0)
    has half of their share of the failure probability, view v has ``1/(2 v (v + 1))`` of it.
    """

    queries: int
    charges: int
    beta: float
    mechanism: GuardMechanism = "numeric-sparse"
    view: int = 0
    theory: Theory = THEORY

    @cached_property
    def _calibration(self) -> Calibration:
        return Calibration(self.mechanism, self.charges)

    @property
    def comparison(self) -> float:
        """Reach of query noise minus threshold noise, in units of the noise scale."""
        threshold, query, _ = self._calibration.scales
        if self._calibration.releases_the_comparison:
            return query * math.log(self.queries / (self.theory.noise_share * self.beta))
        reach = query * math.log(self.queries / (2.0 * self._beta(self.theory.query_noise)))
        if not threshold:
            return reach
        draws = 2 * self._calibration.threshold_draws * max(1, self.view * (self.view + 1))
        return reach + threshold * math.log(draws / self._beta(self.theory.threshold_noise))

    @property
    def answer(self) -> float:
        """Reach of the noise of a charged value, in units of the noise scale."""
        if self._calibration.releases_the_comparison:
            return self.comparison
        return self._calibration.scales[2] * math.log(self.queries / self._beta(self.theory.answer_noise))

    def _beta(self, share: float) -> float:
        """Failure probability of one kind of draws."""
        return share * self.theory.noise_share * self.beta
