"""Plan: solve for what was not stated, round towards more protection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from reusable_holdout.certainty import Policy, edition, worst_choice_nats
from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.noise import GuardMechanism
from reusable_holdout.plan import report
from reusable_holdout.plan.numbers import (
    BY_ROWS,
    Family,
    checked_bounds,
    checked_confidence,
    checked_manner,
    checked_spread,
    real,
    real_or_none,
    round_up,
    whole_or_none,
    wholes,
)
from reusable_holdout.plan.outlook import Outlook
from reusable_holdout.plan.solution import solved
from reusable_holdout.plan.stated import OWN_BUDGET, SharedBudget, stated_of
from reusable_holdout.plan.wish import ALLOWANCE, MOST_QUERIES, MOST_ROWS, MOST_TOLERANCE, Numbers, Wish
from reusable_holdout.slips import checked_call

__all__ = ["Plan"]

_ROUNDING = 1e-9  # nats
_CANDIDATES = 100  # of the choice that is set aside where nothing is said of choices


class Plan(Outlook):
    """What a guarded holdout can promise; give three of rows, queries, charges and tolerance.

    With probability at least `confidence`, every released interval contains the population value, for all
    adaptively chosen queries at once (the transcript code, which needs no privacy). Up to `estimate`, an agreed
    answer is within `tolerance` of the population value.

    Parameters
    ----------
    rows : int, optional
        Holdout rows n, independent draws from the population; the smallest sufficient number if left out.
    queries : int, optional
        Questions K that will be asked at most; the largest possible number if left out.
    charges : int, optional
        Deviations that can be paid for; the largest possible number if left out.
    tolerance : float, optional
        Farthest an answer may be from the population value, in the metric's unit; the smallest possible one if left
        out.
    threshold : float, optional
        Deviation T that is always charged, in the metric's unit. By default it is as large as the tolerance allows,
        and shrinks with the charges; a stated one stays as it is, and the tolerance follows from it.
    noise_scale : float, optional
        Thresholdout's s, in the metric's unit: threshold noise Lap(2s), comparison noise Lap(4s), answer noise
        Lap(s); :class:`~reusable_holdout.mechanisms.Calibration` says what it means for other mechanisms. By default
        the comparison's noise reaches a tenth of the tolerance. Zero is allowed: the intervals do not need noise,
        differential privacy does.
    mechanism : {"numeric-sparse", "noiseless"}
        What the guard runs on. Ledgers of version 0.2 may name "standard-svt" or "target-charging"; they still verify.
    policy : {"thresholdout", "ladder", "guess-and-check", "gate", "parameter-free-ladder", "claims"}
        What a question is compared with; see :class:`ReusableHoldout`. A gate has no threshold. Claims need rows and
        queries, and no tolerance, for their intervals grow: it says what an honest board keeps; `charges`, 2 if left
        out, are those of each series. A parameter-free ladder
        has no noise and a threshold of 1/sqrt(rows), in units of the range; it is for plain means.
    prior_error : float, optional
        Standard deviation of an honest prior's own error, in the metric's unit; by default one public standard error of
        the metric at `estimate`. Charges and tolerance are chosen so that a search with such priors is answered to its
        last question with probability 0.95, if rows and tolerance allow it.
    reveals : int, optional
        Reveals whose dearest outcomes are set aside beside the charges, at least 0. Beyond them, reveals are answered
        as long as the promises allow.
    choices : sequence of int, optional
        The same for choices: the number of candidates of each. If neither is stated and the charges are derived, one
        choice among 100 (or as many as there are queries) is set aside where the tolerance leaves a charge beside it.
    final_noise : float, optional
        Scale of Laplace noise on each value of a final, in the metric's unit. By default it has none, and `epsilon`
        excludes it; with noise `epsilon` includes a final of one model, and its interval is wider by the noise's reach.
    confidence : float
        1 - beta, in [0.5, 1).
    estimate : float
        Value of the metric near which the plan must hold, in its unit. For 0/1 losses 0.5 is the worst case;
        a plan for accuracies near 0.9 affords twice the charges.
    delta : float, optional
        Of (epsilon, delta)-differential privacy, in [0, 1); by default ``1 / rows**2``.
    bounds : tuple of float
        Lower and upper bound of the metric.
    family : {"binomial", "mean", "bounded", "bounded-difference", "paired", "ratio"}
        Mean of 0/1 losses; mean of losses within the bounds, whose rows decide by their evidence; statistic with the
        exponential moments of such a mean; bounded differences; the difference of two models' mean losses on the
        same rows, with bounds symmetrical about 0, decided by evidence, too; or a ratio of means, such as an F, decided
        by evidence and without noise: `rows` are then those that count in it.
    influence, variation : float
        ``rows * max c_r`` and ``rows * sum c_r**2``, with c_r the largest change from replacing row r, as a fraction
        of the range; both 1 for a mean.
    spread : float, optional
        Of families "mean", "paired" and "ratio": a guess of the standard deviation of a row's loss, or of the
        difference of two on a row, in the metric's unit, at most half of what lies between the bounds; by default the
        largest there is at `estimate`. The numbers of the plan follow from it. No interval rests on it: rows that
        spread more are charged more often.
    comparison_tolerance : float, optional
        Farthest an agreed difference of two models may be from the population's, in the metric's unit; by default
        `tolerance`.
    comparison_noise : float, optional
        Scale of the noise when two models are compared, in the metric's unit: twice the noise scale, or 0, and then
        `epsilon` excludes comparisons. By default 0, unless `noise_scale` is stated or evidence decides of scores, too.
    shared : SharedBudget
        Promises that a plan of another metric of the same rows must keep to; see :meth:`Rules.budget_of_view`.

    Attributes
    ----------
    stated : tuple of str
        Which numbers were stated; others were derived, and a later version may derive others.
    stated_prior_error : float or None
        `prior_error`, if it was stated.
    epsilon : float
        Differential privacy of the holdout at `delta`; without the final, unless it has noise, and without comparisons,
        unless theirs is twice the scores'.

    Raises
    ------
    PlanError
        If no plan meets the wish; `nearest` says which numbers would.
    InputError
        If a number is out of its range, or too few are given.

    Notes
    -----
    After j charges the threshold at prior a is the largest T with ``[lower(a - T - t), upper(a + T + t)]`` inside
    ``a +- tolerance``, t being the reach of the comparison's noise; the plan affords C charges when the last threshold,
    at j = C - 1 and with charges that were all of the dearest, is at least one standard deviation of an honest
    deviation, ``sqrt(a (1 - a) / n + prior_error**2)``. So many charges it keeps in every state.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "Generalization in Adaptive Data Analysis and Holdout
       Reuse", sections 3 and 4.

    Examples
    --------
    >>> plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, confidence=0.95)
    >>> plan.charges, plan.choices
    (1, (100,))
    >>> plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, estimate=0.9)
    >>> plan.charges, round(plan.final_half_width() / plan.one_look, 2)
    (9, 1.4)
    """

    @checked_call
    def __init__(
        self,
        *,
        rows: int | None = None,
        queries: int | None = None,
        tolerance: float | None = None,
        charges: int | None = None,
        threshold: float | None = None,
        noise_scale: float | None = None,
        confidence: float = 0.95,
        estimate: float | None = None,
        prior_error: float | None = None,
        reveals: int | None = None,
        choices: Sequence[int] | None = None,
        final_noise: float | None = None,
        delta: float | None = None,
        mechanism: GuardMechanism = "numeric-sparse",
        policy: Policy = "thresholdout",
        bounds: tuple[float, float] = (0.0, 1.0),
        family: Family = "binomial",
        influence: float = 1.0,
        variation: float = 1.0,
        spread: float | None = None,
        comparison_tolerance: float | None = None,
        comparison_noise: float | None = None,
        shared: SharedBudget = OWN_BUDGET,
    ) -> None:
        self.stated = stated_of(locals())
        self.lower, self.upper = lower, upper = checked_bounds(bounds)
        span = self.span = upper - lower
        mechanism = checked_manner(
            family, mechanism, policy, threshold, noise_scale, comparison_noise, spread, kept=self._is_kept
        )
        self.confidence = checked_confidence(confidence, kept=self._is_kept or bool(shared.view))
        self.family, self.policy, self.shared = family, policy, shared
        self._expect(estimate, influence, variation, spread, prior_error)
        self.stated_threshold = 0.0 if policy == "gate" else real_or_none("threshold", threshold, above=0.0)
        self._reserve(reveals, choices, final_noise)
        stated_rows = whole_or_none("rows", rows, MOST_ROWS)
        stated_tolerance = real_or_none("tolerance", tolerance, above=0.0, most=MOST_TOLERANCE * span)
        grows = policy == "claims" and not self._is_kept  # then the tolerance follows from the rest
        charges = ALLOWANCE if policy == "claims" and charges is None else charges
        self._wish = Wish(
            rows=stated_rows,
            queries=whole_or_none("queries", queries, MOST_QUERIES),
            charges=whole_or_none("charges", charges, MOST_QUERIES),
            tolerance=None if grows else _divided(stated_tolerance, span),
            threshold=_divided(self.stated_threshold, span),
            noise_scale=_divided(real_or_none("noise_scale", noise_scale, least=0.0), span),
            beta=1.0 - self.confidence,
            estimate=(self.estimate - lower) / span,
            family=family,
            influence=self.influence,
            variation=self.variation,
            spread=_divided(self.stated_spread, span),
            prior_error=_divided(self.stated_prior_error, span),
            reserved_nats=self._reserved_nats(),
            mechanism=mechanism,
            policy=policy,
            shared=shared,
        )
        if reveals is None and choices is None and charges is None:
            self._set_a_choice_aside()
        self._settle(mechanism, stated_tolerance, real_or_none("delta", delta, least=0.0, below=1.0))
        self._settle_comparisons(comparison_tolerance, comparison_noise, stated=noise_scale is not None)

    def _reserve(self, reveals: int | None, choices: Sequence[int] | None, final_noise: float | None) -> None:
        """Take what is set aside for what is asked for, and the noise of what ends it."""
        self.reveals = whole_or_none("reveals", reveals, MOST_QUERIES, least=0) or 0
        self.choices = wholes("choices", choices)
        self.final_noise = real_or_none("final_noise", final_noise, least=0.0, most=self.span) or 0.0
        if self.final_noise and self.family == "ratio":
            raise InputError(f"the final of a ratio has no noise; got {final_noise=!r}; leave it out")

    def _expect(
        self,
        estimate: float | None,
        influence: float,
        variation: float,
        spread: float | None,
        prior_error: float | None,
    ) -> None:
        """Take what is expected of scores, their rows and priors."""
        at = (self.lower + self.upper) / 2.0 if estimate is None else estimate
        self.estimate = real("estimate", at, least=self.lower, most=self.upper)
        self.influence = real("influence", influence, above=0.0)
        self.variation = real("variation", variation, above=0.0)
        kept = self._is_kept or self.shared.view  # by a ledger, which an earlier version may have begun
        limits = math.inf if kept or self.family == "ratio" else self.span
        self.stated_spread = checked_spread(spread, limits)
        self.stated_prior_error = real_or_none("prior_error", prior_error, above=0.0)

    def _settle(
        self, mechanism: GuardMechanism, stated_tolerance: float | None, stated_delta: float | None
    ) -> None:
        """Derive what was not stated."""
        self._solve(stated_tolerance)
        self.delta = 1.0 / self.rows**2 if stated_delta is None else stated_delta
        self._check_budget()

    def _check_budget(self) -> None:
        """Refuse a view whose charges cost more than its budget reckons with."""
        own, shared = self._wish.code(self.rows).charge_nats, self.shared
        if shared.view and not self._is_kept and own > shared.charge_nats + _ROUNDING:
            raise PlanError(
                f"a charge of another metric of these rows may cost {shared.charge_nats:.2f} nats, as the guard's plan "
                f"reckons with; one of policy {self.policy!r} costs up to {own:.2f}; nothing was made; make the guard "
                "with this policy, and ask for the others with on()",
                {},
            )

    def _reserved_nats(self) -> float:
        theory = edition(self.shared.theory)
        told = theory.reveal.worst + (theory.widths.worst if self.family in BY_ROWS else 0.0)
        return (self.reveals + len(self.choices)) * told + sum(map(worst_choice_nats, self.choices))

    def _set_a_choice_aside(self) -> None:
        """Keep room for one choice, where the other numbers leave a charge beside it."""
        wish = self._wish
        if not (wish.policy == "thresholdout" and wish.rows and wish.queries and wish.tolerance):
            return
        self.choices = (min(_CANDIDATES, wish.queries),)
        more = replace(wish, reserved_nats=self._reserved_nats())
        if more.holds(Numbers(wish.rows, wish.queries, 1, wish.tolerance)):
            self._wish = more
        else:
            self.choices = ()

    def _solve(self, stated_tolerance: float | None) -> None:
        numbers = solved(self._wish, span=self.span, kept=self._is_kept)
        self.rows, self.queries, self.charges, _ = numbers
        derived = round_up(numbers.tolerance * self.span)
        self.tolerance = stated_tolerance or derived
        if self._wish.tolerance is None and self.tolerance != derived:
            raise InputError(
                "claims have no tolerance, for their intervals grow with what is told; got "
                f"tolerance={self.tolerance!r}, and {derived:g} is what a board of honest claims keeps; leave it out"
            )
        self.mechanism = self._wish.mechanism
        self.noise_scale = self._wish.scale(self._numbers) * self.span

    def __repr__(self) -> str:
        return (
            f"<Plan: {self.rows:,} rows, {self.queries:,} queries, {self.charges} charge{'s' * (self.charges != 1)}, "
            f"tolerance {self.tolerance:g}, confidence {self.confidence:g}>"
        )

    def __str__(self) -> str:
        return report.report(self)

    def _repr_html_(self) -> str:
        return report.promise_table(self)


def _divided(value: float | None, span: float) -> float | None:
    return None if value is None else value / span
