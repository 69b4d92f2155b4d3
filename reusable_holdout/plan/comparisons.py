"""What a plan says of differences of two models, on the budget of scores."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from reusable_holdout.errors import InputError
from reusable_holdout.plan.outlook import Outlook
from reusable_holdout.validity import BY_EVIDENCE

if TYPE_CHECKING:
    from reusable_holdout.plan.wish import Wish
    from reusable_holdout.validity import Certificate

__all__ = ["Comparisons"]


class Comparisons(Outlook):
    """Noise and certificate of comparisons."""

    comparison_tolerance: float
    comparison_noise: float

    def paired_certificate(self, *, greater_is_better: bool = True) -> Certificate:
        """Intervals and thresholds of differences of two models, on the same budget.

        They are decided by evidence, unless a threshold is stated or the mechanism is target charging.
        """
        certificate, span = self.certificate(greater_is_better=greater_is_better), self.span
        by_evidence = self._compared.by_evidence
        return replace(
            certificate,
            bound=replace(certificate.bound, family="bounded"),
            noise_scale=self.comparison_noise,
            tolerance=self.comparison_tolerance,
            lower=-span,
            upper=span,
            least_threshold=min(self._compared.deviation_sd(self.rows), 1.0) * 2.0 * span,
            shares=BY_EVIDENCE if by_evidence and self.policy != "gate" else certificate.shares,
            spread=span,
            by_evidence=by_evidence,
        )

    def _scale_of_comparisons(self, stated: float | None, *, noise_is_stated: bool) -> float:
        """Scale of the noise of differences: none, or the scores' own, for one row can change them twice as much."""
        own = 2.0 * self.noise_scale
        if stated is None:
            return own if noise_is_stated or self._wish.by_evidence or not self._compared.by_evidence else 0.0
        if stated not in (0.0, own):
            raise InputError(
                f"comparison_noise is 0, or {own:g}, twice the noise scale, for both draw the same noise; got "
                f"{stated:g}; leave it out"
            )
        return stated

    @cached_property
    def _compared(self) -> Wish:
        """The same numbers of differences."""
        return replace(self._wish, family="paired", estimate=0.5, spread=None)
