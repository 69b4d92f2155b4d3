"""What a plan says of differences of two models, on the budget of scores."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from reusable_holdout.errors import InputError
from reusable_holdout.plan.numbers import real_or_none
from reusable_holdout.plan.outlook import Outlook

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
            noisy=certificate.noisy or certificate.noise_scale > 0.0,
            tolerance=self.comparison_tolerance,
            lower=-span,
            upper=span,
            least_threshold=min(self._compared.deviation_sd(self.rows), 1.0) * 2.0 * span,
            shares=certificate.theory.by_evidence
            if by_evidence and self.policy != "gate"
            else certificate.shares,
            spread=span,
            by_evidence=by_evidence,
            of_ratio=False,
        )

    def _settle_comparisons(self, tolerance: float | None, noise: float | None, *, stated: bool) -> None:
        """Tolerance and noise of differences: no noise, or the scores' own, for one row changes them twice as much.

        Where the scores' own was stated, it is theirs.
        """
        limit = real_or_none("comparison_tolerance", tolerance, above=0.0, most=2.0 * self.span)
        self.comparison_tolerance = self.tolerance if limit is None else limit
        scale, own = real_or_none("comparison_noise", noise, least=0.0), 2.0 * self.noise_scale
        if scale not in (None, 0.0, own):
            raise InputError(
                f"comparison_noise is 0, or {own:g}, twice the noise scale, for both draw the same noise; got "
                f"{scale:g}; leave it out"
            )
        if scale is None:
            like_scores = stated or self._wish.by_evidence or not self._compared.by_evidence
            scale = own if like_scores else 0.0
        self.comparison_noise = scale

    @cached_property
    def _compared(self) -> Wish:
        """The same numbers of differences."""
        return replace(self._wish, family="paired", estimate=0.5, spread=None)
