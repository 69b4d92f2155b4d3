"""Differential privacy of what a plan's guard releases."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, get_args

from reusable_holdout import mechanisms
from reusable_holdout.mechanisms import Calibration, GuardMechanism
from reusable_holdout.plan.stated import Stated

if TYPE_CHECKING:
    from reusable_holdout.mechanisms import MechanismNoise

__all__ = ["Privacy"]


class Privacy(Stated):
    """Differential privacy that follows from a plan's noise."""

    @property
    def epsilon_each(self) -> float:
        """Sensitivity of a score over the noise scale."""
        if self.noise_scale == 0.0:
            return math.inf
        return self.influence / self.asked_rows / (self.noise_scale / self.span)

    @cached_property
    def epsilon(self) -> float:
        """Differential privacy at `delta` of the charges, the reveals and choices set aside, and a final with noise."""
        return self._epsilon_before_final(self.mechanism, self.epsilon_each) + self.final_epsilon

    @property
    def final_epsilon(self) -> float:
        """What each model of a final adds to `epsilon`; 0 for a final without noise, which epsilon excludes."""
        return self.influence / self.asked_rows / (self.final_noise / self.span) if self.final_noise else 0.0

    def _epsilon_before_final(self, mechanism: GuardMechanism, each: float) -> float:
        return Calibration(mechanism, self.charges).epsilon(each=each, delta=self.delta, told=self._told)

    @property
    def _told(self) -> int:
        """Values told besides those of charges: a choice's winner is found at half the cost of one more."""
        return self.reveals + 2 * len(self.choices)

    @cached_property
    def epsilons(self) -> dict[GuardMechanism, float]:
        """Epsilon of each mechanism that adds noise, at the stated noise scale or at noise of the same reach."""
        open_scale = self._wish if "noise_scale" in self.stated else replace(self._wish, noise_scale=None)
        epsilons: dict[GuardMechanism, float] = {}
        for mechanism in get_args(GuardMechanism):
            if mechanism == "noiseless" or (mechanism == "target-charging" and self._wish.by_evidence):
                continue
            own = mechanism == self._wish.mechanism  # a kept plan has its scale, stated or not
            scale = replace(self._wish if own else open_scale, mechanism=mechanism).scale(
                rows=self.rows,
                tolerance=self.tolerance / self.span,
                queries=self.queries,
                charges=self.charges,
            )
            each = self.influence / self.asked_rows / scale if scale else math.inf
            epsilons[mechanism] = self._epsilon_before_final(mechanism, each) + self.final_epsilon
        return epsilons

    def compare_mechanisms(self) -> tuple[MechanismNoise, ...]:
        """Noise that every mechanism of the library would need for this plan's guarantee, in the metric's unit.

        That of everything before the final.

        Raises
        ------
        InputError
            If the plan has no noise, hence no guarantee.
        """
        return mechanisms.compare_mechanisms(
            epsilon=self.epsilon - self.final_epsilon,
            delta=self.delta,
            charges=self.charges,
            sensitivity=self.influence / self.asked_rows * self.span,
        )

    @property
    def privacy_is_vacuous(self) -> bool:
        """Whether ``exp(epsilon) - 1``, what privacy alone would say about the error, is half the range or more."""
        return self.epsilon >= math.log(1.5)
