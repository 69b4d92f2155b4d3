"""The outlook of a plan: thresholds, widths, privacy, and the charges of an honest search."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import Certificate, Shares, fixed_queries_half_width
from reusable_holdout.errors import InputError
from reusable_holdout.noise import Calibration
from reusable_holdout.plan.numbers import Family, Scale, SharedBudget, real, whole_or_none
from reusable_holdout.plan.solution import check_says_something, says_something
from reusable_holdout.plan.wish import Asks, Numbers, Wish
from reusable_holdout.slips import checked_call

_SAME = 1e-9  # in nats or parts of the range: the rounding of another machine, which verifies the ledger


class Outlook:
    """Public numbers that follow from a plan, in the metric's unit."""

    stated: tuple[str, ...]
    rows: int
    queries: int
    charges: int
    tolerance: float
    confidence: float
    estimate: float
    lower: float
    upper: float
    greater_is_better: bool
    delta: float
    family: Family
    influence: float
    variation: float
    asks: Asks
    noise: float
    stated_threshold: float | None
    stated_prior_error: float | None
    stated_spread: float | None
    final_share: float
    growth_share: float
    reveals: int
    choices: tuple[int, ...]
    shared: SharedBudget
    order: str | None
    _wish: Wish

    @property
    def span(self) -> float:
        """Range of the metric."""
        return self.upper - self.lower

    @property
    def scale(self) -> Scale:
        """Bounds and direction of the metric."""
        return Scale(self.lower, self.upper, self.greater_is_better)

    def unit(self, value: float) -> float:
        """Return a value of the metric in [0, 1], where greater is better."""
        return self.scale.unit(value)

    @property
    def _numbers(self) -> Numbers:
        return Numbers(self.rows, self.queries, self.charges, self.tolerance / self.span)

    @cached_property
    def scores(self) -> Certificate:
        """Certificate of questions about one model."""
        least = self._wish.least_threshold(self._numbers)
        certificate = self._wish.certificate(self._numbers)
        return replace(certificate, least_threshold=least, reserved_nats=self.told_nats)

    def _at(self, estimate: float | None) -> float:
        """Return a value of the metric, by default the plan's estimate, in [0, 1]."""
        at = self.estimate if estimate is None else estimate
        return self.unit(real("estimate", at, least=self.lower, most=self.upper))

    @checked_call
    def threshold_at(self, *, charges: int, estimate: float | None = None) -> float:
        """Return the threshold in force after this number of charges, at a prior near `estimate`."""
        if not 0 <= charges < self.charges:
            raise InputError(
                f"charges must lie in [0, {self.charges}), because the last one halts the guard; got {charges}"
            )
        at, certificate = self._at(estimate), self.scores
        threshold = certificate.threshold(at, charges=charges, nats=certificate.charge_nats * charges)
        return float(threshold) * self.span

    @property
    def threshold(self) -> float:
        """Threshold T before the first charge, at `estimate`."""
        return self.threshold_at(charges=0)

    @checked_call
    def half_width(self, *, query: int, charges: int, estimate: float | None = None) -> float:
        """Return the half-width of the confidence bound alone, at one question.

        The released interval is wider: it adds the threshold (agreed) or half the cell (charged), and the reach of the
        noise.

        Parameters
        ----------
        query : int
            Number of the question, from 1 to `queries`.
        charges : int
            Charges made before it, each at the largest cost; fewer than `query`. There may be more than the plan has,
            to see what they would cost.
        estimate : float, optional
            Observed value; the plan's by default.

        Raises
        ------
        InputError
            If a number is out of its range.
        """
        at, certificate = self._at(estimate), self.scores
        if whole_or_none("query", query, self.queries) is None or not 0 <= charges < query:
            raise InputError(f"charges must lie in [0, query); got {charges} charges at query {query}")
        nats = certificate.charge_nats * charges
        return certificate.half_width(charges=charges, nats=nats, estimate=at) * self.span

    @checked_call
    def final_half_width(
        self, *, charges: int = 0, nats: float = 0.0, answers: int = 1, estimate: float | None = None
    ) -> float:
        """Return the half-width that a final will certify after this many charges at their largest cost.

        It is narrower if the last charge came early: see :attr:`ReusableHoldout.final_width`.

        Parameters
        ----------
        charges : int
            In [0, `charges` of the plan].
        nats : float
            Cost of reveals and choices, in addition to the charges.
        answers : int
            Number of models that the final is about; all have the same weight.
        estimate : float, optional
            Value that the final finds; the plan's estimate by default.
        """
        at, certificate = self._at(estimate), self.scores
        if not 0 <= charges <= self.charges:
            raise InputError(f"charges must lie in [0, {self.charges}]; got {charges}")
        spent = certificate.charge_nats * charges + nats
        length = certificate.final_length(charges=charges, nats=spent) + math.log(answers)
        return certificate.final_half_width(length=length, estimate=at) * self.span

    def rows_to_rotate(self, width: float) -> float:
        """Return the number of new rows from which `rotate` gives a narrower final than `extend`.

        `width` is the half-width of a final now, such as :attr:`ReusableHoldout.final_width`. If nothing was charged,
        the number is infinite: then `extend` is always better.
        """
        fresh, now = self.final_half_width() ** 2, width**2
        return self.rows * fresh / (now - fresh) if now > fresh * (1.0 + _SAME) else math.inf

    @checked_call
    def agreed_half_width(self, *, charges: int) -> float:
        """Return the half-width of an agreed answer's interval around `estimate`, after this many charges.

        Parameters
        ----------
        charges : int
            Charges made, each at the largest cost; fewer than the plan has, for after the last the guard halts.
        """
        if not 0 <= charges < self.charges:
            raise InputError(f"charges must lie in [0, {self.charges}); got {charges}")
        certificate = self.scores
        if not certificate.is_constant:
            return self.tolerance
        length = certificate.length(charges=charges, nats=certificate.charge_nats * charges)
        low, high = certificate.agreed_around(length)
        return float(high - low) / 2.0 * self.span

    def certificate_of(self, *, pairs: bool) -> Certificate:
        """Return the certificate of questions about one model, or about the difference of two."""
        raise NotImplementedError

    @property
    def certifies(self) -> bool:
        """True if only gates are asked and "better" certifies that the population value reaches the named number."""
        return self._wish.certifies

    @checked_call
    def shown_difference(self, *, charges: int = 0, pairs: bool = False) -> float:
        """Return the difference that a gate shows nine times in ten, in the metric's unit.

        If the population value is better than the named value by this difference, the gate says "better" with
        probability 0.9, for rows whose losses spread as the plan guesses.

        Parameters
        ----------
        charges : int
            Charges made before, none of them for a failure; fewer than the plan has.
        pairs : bool
            True for the difference of two models.
        """
        if not 0 <= charges < self.charges:
            raise InputError(f"charges must lie in [0, {self.charges}); got {charges}")
        wish = self._compared if pairs else self._wish
        gates = self.gates(self.certificate_of(pairs=pairs))
        length = gates.length(charges=charges, nats=charges * gates.theory.gate.nats[0])
        found = wish.shown(gates, length, signs=pairs and self.family == "binomial")
        return found * self.span * (2.0 if pairs else 1.0)

    @property
    def one_look(self) -> float:
        """Half-width of an exact interval around `estimate` for one question fixed in advance."""
        return self._fixed(1, by_rows=self.scores.spread is not None)

    @property
    def set_aside(self) -> float:
        """The nats reserved for reveals and choices; for another metric those that the guard's own plan allows."""
        return self.shared.told_nats or self._wish.reserved_nats

    @cached_property
    def spare_nats(self) -> float:
        """The nats that reveals and choices may cost beyond those that the plan reserves, while all promises are kept.

        It is 0 in a view's plan, because the plan of the guard itself limits all releases about the rows.
        """
        return 0.0 if self.shared.view else self._wish.spare_nats(self._numbers)

    @property
    def prior_error(self) -> float:
        """Standard deviation of an honest prior's own error."""
        return self._wish.honest_error(self.rows) * self.span

    @property
    def row_spread(self) -> float | None:
        """Standard deviation of a row's loss that the plan expects; None if the plan does not use any."""
        spread, decides = self.scores.spread, self.scores.decides
        return None if spread is None or decides == "distance" else spread * self.span

    @cached_property
    def honest_search(self) -> float:
        """Probability that a search whose priors are off by `prior_error` is answered to its last question.

        It is NaN for plans of gates, of claims, or of a final alone: they have no search that could be charged.
        """
        asked = self.asks == "all" and self.final_share < 1.0
        return self._wish.honest(self._numbers) if asked else math.nan

    @checked_call
    def honest_charges(self, *, queries: int | None = None) -> NDArray[np.float64]:
        """Return the distribution of an honest search's charges after `queries` questions; by default before the last.

        Returns
        -------
        numpy.ndarray of shape (charges + 1,)
            Probability of 0, 1, ... charges; after the last of them the search is halted.
        """
        return self._wish.search(self._numbers, whole_or_none("queries", queries, self.queries))

    @property
    def fixed_half_width(self) -> float:
        """Half-width around `estimate` if all questions were fixed before the first answer, as only an oracle can."""
        return self._fixed(self.queries, by_rows=self.scores.decides != "distance")

    def _fixed(self, queries: int, *, by_rows: bool) -> float:
        certificate, beta, at = self.scores, self._wish.beta, self._wish.estimate
        if by_rows:
            return certificate.likely_half_width(math.log(2.0 * queries / beta), at) * self.span
        width = fixed_queries_half_width(certificate.bound, queries=queries, beta=beta, estimate=at)
        return width * self.span

    @property
    def deviation_sd(self) -> float:
        """Standard deviation of the difference between the holdout's value and an honest prior."""
        return self._wish.deviation_sd(self.rows) * self.span

    @property
    def vacuous(self) -> bool:
        """True if the tolerance is more than a quarter of the range: then the promise says nothing."""
        return not says_something(self.tolerance, self.span)

    def check_says_something(self, *, vacuous: bool) -> None:
        """Refuse to make a guard of a plan that says nothing, unless its owner allows it.

        Raises
        ------
        PlanError
            If the tolerance is vacuous; the error names numbers with which it is not.
        """
        if not vacuous:
            check_says_something(self._wish, self.scale, self.tolerance)

    # ---- differential privacy

    @property
    def epsilon_each(self) -> float:
        """Sensitivity of a score over the noise scale."""
        return self.influence / self.rows / (self.noise / self.span) if self.noise else math.inf

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of differential privacy at `delta`, for all charges and the reserved reveals and choices."""
        told = self.reveals + 2 * len(self.choices)  # finding a choice's winner costs half as much as a value
        calibration = Calibration(self._wish.mechanism, self.charges)
        return calibration.epsilon(each=self.epsilon_each, delta=self.delta, told=told)

    @property
    def privacy_is_vacuous(self) -> bool:
        """True if ``exp(epsilon) - 1``, the error bound from privacy alone, is half the range or more."""
        return self.epsilon >= math.log(1.5)

    @property
    def comparison_noise(self) -> float:
        """The noise scale of comparisons of two models: 0, or twice the scores', because one row changes both.

        It is 0 unless a noise scale was stated, or scores and differences are decided in the same way.
        """
        compared = self._compared.decides == "evidence"
        like_scores = "noise" in self.stated or self._wish.decides == "evidence" or not compared
        return 2.0 * self.noise if like_scores else 0.0

    @cached_property
    def _compared(self) -> Wish:
        """The plan's numbers for differences of two models, which are halved so that they lie in [0, 1]."""
        wish = self._wish
        if not wish.theory.threshold_level:
            return replace(wish, family="paired", estimate=0.5, spread=None)
        error = None if wish.prior_error is None else wish.prior_error / 2.0
        # two models whose errors have half of their variance in common differ as much as one model's scores
        spread = (wish.row_spread if wish.pair_spread is None else wish.pair_spread) / 2.0
        return replace(wish, family="paired", estimate=0.5, spread=spread, prior_error=error)

    # ---- certificates

    @property
    def open_wish(self) -> Wish:
        """The numbers of the plan and its facts, in units of the metric's range."""
        return self._wish

    @property
    def leaves_room(self) -> bool:
        """True if one reveal, or another metric's class counts, may be released although all charges may be spent."""
        return self.told_nats >= self._wish.room_nats

    @cached_property
    def told_nats(self) -> float:
        """The nats that may be released in addition to the charges: reserved and spare nats."""
        return self.set_aside + self.spare_nats

    def gates(self, certificate: Certificate) -> Certificate:
        """Return the certificate of gates that corresponds to a certificate of checks."""
        fixed = 0.0 if certificate.decides == "distance" else certificate.fixed_threshold
        return replace(certificate, shares=Shares(1.0, 1.0), fixed_threshold=fixed, threshold_sds=0.0)

    @property
    def told(self) -> Certificate:
        """The certificate of values that are released on request: reveals, choices, finals."""
        return replace(self.scores, shares=Shares(0.5, 0.5))

    @property
    def reveals_by_rows(self) -> bool:
        """True if reveals and choices release the confidence set of the rows' evidence."""
        return self.scores.spread is not None and self.privacy_is_vacuous

    def shared_with(self, view: int) -> SharedBudget:
        """Return the budget for a plan of another metric of the same rows, so that it breaks no promise of this one."""
        return SharedBudget(
            view=view,
            told_before=self.shared.told_before,
            charge_nats=self.scores.charge_nats,
            told_nats=self.told_nats,
            noisy=self.noise > 0.0,
            theory=self.shared.theory,
        )

    @property
    def confidence_of_added(self) -> float:
        """Confidence of a final about the added rows alone, of which nothing was told before the first of them came."""
        return 1.0 - (1.0 - self.confidence) * self.growth_share

    def may_tell(self, nats: float) -> bool:
        """Return True if the plan, with these nats released as well, keeps its tolerance up to the last charge.

        It uses no rule that a later version may plan by differently, because it verifies the numbers of a ledger.
        """
        least, spare, scores = self.set_aside, nats - self.set_aside, self.scores
        if abs(spare) <= _SAME * (1.0 + least):
            return True
        if spare < 0.0 or scores.adaptive or self.shared.view:
            return False
        slack, length = 2.0 * _SAME, replace(scores, reserved_nats=nats).affordable_length
        if self._wish.certifies:
            return self._wish.shown(scores, length) <= scores.tolerance + slack
        if scores.threshold_sds or (scores.fixed_threshold is not None and scores.decides == "distance"):
            return scores.agreed_reach(length) <= scores.tolerance + slack
        threshold = scores.threshold_of_length(scores.estimate, length, least=-math.inf)
        return bool(threshold >= (0.0 if self.asks == "gates" else self.deviation_sd / self.span) - slack)
