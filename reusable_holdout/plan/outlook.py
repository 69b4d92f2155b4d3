"""What a plan says will happen: thresholds, widths, privacy, how far an honest search gets, what else rows would give.

Of scores, and of differences of two models, on the same budget.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import certainty
from reusable_holdout.errors import InputError
from reusable_holdout.noise import Calibration, GuardMechanism, expected_charges_of_stages
from reusable_holdout.plan import others
from reusable_holdout.plan.numbers import real, real_or_none, whole_or_none
from reusable_holdout.plan.solution import check_says_something, says_something
from reusable_holdout.plan.stated import Stated
from reusable_holdout.plan.wish import Numbers, Wish
from reusable_holdout.slips import checked_call

__all__ = ["Outlook"]


class Outlook(Stated):
    """Public numbers that follow from a plan."""

    _wish: Wish

    def certificate(
        self, *, greater_is_better: bool = True, reserved_nats: float | None = None
    ) -> certainty.Certificate:
        """Intervals and thresholds of this plan, in the metric's unit.

        So many nats may be told beside the charges: by default as many as the promises allow.
        """
        normalised = self._wish.certificate(self._numbers)
        fixed, spread = normalised.fixed_threshold, normalised.spread
        return replace(
            normalised,
            noise_scale=self.noise_scale,
            lower=self.lower,
            upper=self.upper,
            estimate=self.estimate,
            tolerance=self.tolerance,
            fixed_threshold=None if fixed is None else fixed * self.span,
            spread=None if spread is None else spread * self.span,
            least_threshold=min(self._wish.deviation_sd(self.rows), 1.0) * self.span,
            reserved_nats=normalised.reserved_nats + self.spare_nats
            if reserved_nats is None
            else reserved_nats,
            final_noise=self.final_noise,
            exam_rows=self.exam_rows,
            greater_is_better=greater_is_better,
        )

    @cached_property
    def _certificate(self) -> certainty.Certificate:
        return self.certificate()

    @property
    def _numbers(self) -> Numbers:
        return Numbers(self.rows, self.queries, self.charges, self.tolerance / self.span)

    def _at(self, estimate: float | None) -> float:
        """Value of the metric that was named, or the plan's."""
        at = self.estimate if estimate is None else estimate
        return real("estimate", at, least=self.lower, most=self.upper)

    @checked_call
    def threshold_at(self, *, charges: int, estimate: float | None = None) -> float:
        """Threshold in force after so many charges, at a prior near `estimate`."""
        if not 0 <= charges < self.charges:
            raise InputError(
                f"charges must lie in [0, {self.charges}): after the last the guard halts; got {charges}"
            )
        at, certificate = self._at(estimate), self._certificate
        return float(certificate.threshold(at, charges=charges, nats=certificate.charge_nats * charges))

    @property
    def threshold(self) -> float:
        """Threshold T before the first charge, at `estimate`."""
        return self.threshold_at(charges=0)

    @checked_call
    def half_width(self, *, query: int, charges: int, estimate: float | None = None) -> float:
        """Half-width of the confidence bound alone, at one question.

        The released interval adds the threshold (agreed) or half the cell (charged), and the noise's reach.

        Parameters
        ----------
        query : int
            Number of the question, from 1 to `queries`.
        charges : int
            Charges made before it, each of the dearest; fewer than `query`. It may exceed the plan's, to see what they
            would cost.
        estimate : float, optional
            Observed value; the plan's by default.

        Raises
        ------
        InputError
            If a number is out of its range.
        """
        at, certificate = self._at(estimate), self._certificate
        if whole_or_none("query", query, self.queries) is None or not 0 <= charges < query:
            raise InputError(f"charges must lie in [0, query); got {charges} charges at query {query}")
        return certificate.half_width(charges=charges, nats=certificate.charge_nats * charges, estimate=at)

    @checked_call
    def final_half_width(
        self, *, charges: int = 0, nats: float = 0.0, answers: int = 1, estimate: float | None = None
    ) -> float:
        """Half-width that a final will certify after so many charges, each of the dearest, in the metric's unit.

        Where the last of them came early it is narrower: see :attr:`ReusableHoldout.final_width`.

        Parameters
        ----------
        charges : int
            In [0, `charges` of the plan].
        nats : float
            Cost of reveals and choices beside them.
        answers : int
            Models that the final is about.
        estimate : float, optional
            Value that it finds; the plan's by default.
        """
        at, certificate = self._at(estimate), self._certificate
        if not 0 <= charges <= self.charges:
            raise InputError(f"charges must lie in [0, {self.charges}]; got {charges}")
        spent = certificate.charge_nats * charges + nats
        length = certificate.final_length(charges=charges, nats=spent, answers=answers)
        return certificate.final_half_width(length=length, estimate=at, answers=answers)

    @property
    def one_look(self) -> float:
        """Half-width of an exact interval around `estimate` for one question fixed in advance; the metric's unit."""
        level = math.log(self._wish.beta / 2.0)
        if self._certificate.final_by_evidence:
            return self._certificate.likely_half_width(-level, self.estimate)
        bound, unit = self._certificate.bound, self._unit
        width = bound.upper(unit, log_level=level) - bound.lower(unit, log_level=level)
        return float(width) * self.span / 2.0

    @property
    def set_aside(self) -> float:
        """Nats that are set aside for reveals and choices; of a view those that the guard's own plan allows."""
        return self.shared.told_nats or self._wish.reserved_nats

    @cached_property
    def spare_nats(self) -> float:
        """Nats of reveals and choices that the promises allow beside what `reveals` and `choices` set aside.

        None of a view: what may be told of the rows the guard's own plan says.
        """
        return 0.0 if self.shared.view else self._wish.spare_nats(self._numbers)

    @property
    def prior_error(self) -> float:
        """Standard deviation of an honest prior's own error, in the metric's unit."""
        return self._wish.honest_error(self.rows) * self.span

    @property
    def row_spread(self) -> float | None:
        """Standard deviation of a row's loss that the plan expects, in the metric's unit; None where none matters."""
        return self._certificate.spread if self._certificate.by_evidence else None

    @property
    def _unit(self) -> float:
        """The estimate, normalised."""
        return (self.estimate - self.lower) / self.span

    @cached_property
    def honest_search(self) -> float:
        """Probability that a search whose priors are off by `prior_error` is answered to its last question.

        Not a number for ladders, claims and gates, whose charges are no deviations of priors.
        """
        if self.policy in certainty.BY_DISTANCE or self.policy == "gate":
            return math.nan
        return self._wish.honest(self._numbers)

    @checked_call
    def honest_charges(self, *, queries: int | None = None) -> NDArray[np.float64]:
        """Distribution of the charges of an honest search after so many questions, by default before the last.

        Returns
        -------
        numpy.ndarray of shape (charges + 1,)
            Probability of 0, 1, ... charges; with all of them made the search has been halted.
        """
        return self._wish.search(self._numbers, whole_or_none("queries", queries, self.queries))

    @property
    def fixed_half_width(self) -> float:
        """Half-width around `estimate` if all questions had been written down before the first answer: an oracle's."""
        return others.fixed_half_width(
            self._certificate, queries=self.queries, beta=self._wish.beta, estimate=self.estimate
        )

    @property
    def deviation_sd(self) -> float:
        """Standard deviation of holdout value minus an honest prior from as many rows; the metric's unit."""
        return self._wish.deviation_sd(self.rows) * self.span

    @cached_property
    def expected_null_charges(self) -> float:
        """Charges that chance alone will make, over all queries, if every prior is honest."""
        shown = min(self.charges, 200)  # beyond, the chain's last stage is never reached by chance
        return expected_charges_of_stages(
            [self.threshold_at(charges=charges) for charges in range(shown)],
            deviation_sd=self.deviation_sd,
            queries=self.queries,
            noise_scale=self.noise_scale,
            mechanism=self.mechanism,
        )

    @property
    def vacuous(self) -> bool:
        """Whether a tolerance is more than a quarter of its range: then the promise says nothing.

        That of scores, or that of differences of two, whose range is twice theirs.
        """
        scores, differences = (self.tolerance, self.span), (self.comparison_tolerance, 2.0 * self.span)
        return not (says_something(*scores) and says_something(*differences))

    def check_says_something(self, *, vacuous: bool) -> None:
        """Refuse to make a guard of a plan that says nothing, unless its owner insists.

        Raises
        ------
        PlanError
            With the numbers that would do.
        """
        if not vacuous:
            check_says_something(self._wish, self.span, self.tolerance, self.comparison_tolerance)

    # ---- differential privacy

    @property
    def _sensitivity(self) -> float:
        """Largest change of a score, as a fraction of the metric's range, when one row changes."""
        return self.influence / self.rows

    @property
    def epsilon_each(self) -> float:
        """Sensitivity of a score over the noise scale."""
        return self._sensitivity / (self.noise_scale / self.span) if self.noise_scale else math.inf

    @cached_property
    def epsilon(self) -> float:
        """Differential privacy at `delta` of the charges, the reveals and choices set aside, and a final with noise."""
        return self._epsilon_before_final(self.mechanism, self.epsilon_each) + self.final_epsilon

    @property
    def final_epsilon(self) -> float:
        """What each model of a final adds to `epsilon`; 0 for a final without noise, which epsilon excludes."""
        return self._sensitivity / (self.final_noise / self.span) if self.final_noise else 0.0

    def _epsilon_before_final(self, mechanism: GuardMechanism, each: float) -> float:
        told = self.reveals + 2 * len(self.choices)  # a choice's winner is found at half the cost of one more
        return Calibration(mechanism, self.charges).epsilon(each=each, delta=self.delta, told=told)

    @property
    def privacy_is_vacuous(self) -> bool:
        """Whether ``exp(epsilon) - 1``, what privacy alone would say about the error, is half the range or more."""
        return self.epsilon >= math.log(1.5)

    # ---- differences of two models

    def paired_certificate(
        self, *, greater_is_better: bool = True, reserved_nats: float | None = None
    ) -> certainty.Certificate:
        """Intervals and thresholds of differences of two models, on the same budget.

        They are decided by evidence, unless a threshold is stated or the mechanism is target charging.
        """
        certificate = self.certificate(greater_is_better=greater_is_better, reserved_nats=reserved_nats)
        span = self.span
        by_evidence, shares = self._compared.by_evidence, certificate.shares
        if by_evidence and self.policy != "gate":
            shares = certificate.theory.by_evidence
        return replace(
            certificate,
            bound=replace(certificate.bound, family="bounded"),
            noise_scale=self.comparison_noise,
            noisy=certificate.noisy or certificate.noise_scale > 0.0,
            tolerance=self.comparison_tolerance,
            lower=-span,
            upper=span,
            least_threshold=min(self._compared.deviation_sd(self.rows), 1.0) * 2.0 * span,
            shares=shares,
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
