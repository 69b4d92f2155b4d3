"""Plan: solve for what was not stated, round towards more protection."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, get_args

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import Calibration, GuardMechanism
from reusable_holdout.plan.numbers import checked_bounds, choice, real, real_or_none, whole_or_none
from reusable_holdout.plan.otherwise import other_half_widths
from reusable_holdout.plan.report import report
from reusable_holdout.plan.solution import solved
from reusable_holdout.plan.wish import MOST_QUERIES, MOST_ROWS, Family, MechanismChoice, Wish, round_up
from reusable_holdout.validity import (
    PLANNED_NATS_PER_CHARGE,
    Certificate,
    PairedBound,
    Policy,
    certificate_of,
    nice_step,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reusable_holdout.mechanisms import MechanismNoise

__all__ = ["Plan"]


class Plan:
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
    mechanism : {"numeric-sparse", "standard-svt", "target-charging", "noiseless", "tightest"}
        What the guard runs on. "tightest" stands for the one with the smallest epsilon.
    policy : {"thresholdout", "ladder", "guess-and-check", "gate", "parameter-free-ladder"}
        What a question is compared with; see :class:`ReusableHoldout`. A gate has no threshold. A parameter-free ladder
        has no noise, a threshold of 1/sqrt(rows) and a grid of 1/rows, in units of the range; it is for plain means.
    resolution : float, optional
        Step g of the grid that charged answers are rounded to, in the metric's unit. By default about as coarse as the
        threshold in force, at which an answer costs least.
    confidence : float
        1 - beta, in (0, 1).
    estimate : float
        Value of the metric near which the plan must hold, in its unit. For 0/1 losses 0.5 is the worst case;
        a plan for accuracies near 0.9 affords twice the charges.
    delta : float, optional
        Of (epsilon, delta)-differential privacy, in [0, 1); by default ``1 / rows**2``.
    bounds : tuple of float
        Lower and upper bound of the metric.
    family : {"binomial", "bounded", "bounded-difference", "paired"}
        Mean of 0/1 losses, mean of losses within the bounds, bounded differences, or the difference of two models' mean
        losses on the same rows, with bounds symmetrical about 0.
    influence, variation : float
        ``rows * max c_r`` and ``rows * sum c_r**2``, with c_r the largest change from replacing row r, as a fraction
        of the range; both 1 for a mean.
    disagreement : float
        Bound on the probability that the losses of two compared models differ on a row, in (0, 1]; known without the
        holdout, for instance from unlabelled rows. The smaller, the narrower their difference's interval.

    Attributes
    ----------
    epsilon : float
        Differential privacy of the holdout at `delta`.
    epsilons : dict of str to float
        The same for each mechanism that adds noise, at the stated noise scale, or at noise of the same reach.

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
    at j = C - 1, is at least ``sqrt(2 a (1 - a) / n)``, one standard deviation of an honest deviation.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "Generalization in Adaptive Data Analysis and Holdout
       Reuse", sections 3 and 4.

    Examples
    --------
    >>> plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, confidence=0.95)
    >>> plan.charges
    3
    >>> round(plan.half_width(query=1_000, charges=10, estimate=0.9), 4)
    0.0363
    >>> Plan(rows=10_000, queries=1_000, tolerance=plan.tolerance, estimate=0.9).charges
    10
    """

    rows: int
    queries: int
    charges: int
    tolerance: float

    def __init__(
        self,
        *,
        rows: int | None = None,
        queries: int | None = None,
        tolerance: float | None = None,
        charges: int | None = None,
        threshold: float | None = None,
        noise_scale: float | None = None,
        resolution: float | None = None,
        confidence: float = 0.95,
        estimate: float | None = None,
        delta: float | None = None,
        mechanism: MechanismChoice = "numeric-sparse",
        policy: Policy = "thresholdout",
        bounds: tuple[float, float] = (0.0, 1.0),
        family: Family = "binomial",
        influence: float = 1.0,
        variation: float = 1.0,
        disagreement: float = 1.0,
    ) -> None:
        self.lower, self.upper = checked_bounds(bounds)
        lower, upper, span = self.lower, self.upper, self.span
        choice("family", family, get_args(Family))
        choice("mechanism", mechanism, get_args(MechanismChoice))
        choice("policy", policy, get_args(Policy))
        middle = (lower + upper) / 2.0
        self.confidence = real("confidence", confidence, above=0.0, below=1.0)
        self.estimate = real("estimate", middle if estimate is None else estimate, least=lower, most=upper)
        self.influence = real("influence", influence, above=0.0)
        self.variation = real("variation", variation, above=0.0)
        self.disagreement = real("disagreement", disagreement, above=0.0, most=1.0)
        self.family: Family = family
        stated_noise = real_or_none("noise_scale", noise_scale, least=0.0)
        if policy == "parameter-free-ladder":
            mechanism = _without_noise(mechanism, family, threshold=threshold, resolution=resolution)
        if mechanism == "noiseless" and stated_noise:
            raise InputError(f"without noise its scale is 0 or left out; got {noise_scale!r}; leave it out")
        if policy == "gate" and threshold is not None:
            raise InputError(f"a gate has no threshold, but names a score; got {threshold!r}; leave it out")
        self.policy: Policy = policy
        self._stated_threshold = 0.0 if policy == "gate" else real_or_none("threshold", threshold, above=0.0)
        stated_resolution = real_or_none("resolution", resolution, above=0.0)
        if stated_resolution is None and self._stated_threshold and policy != "ladder":
            stated_resolution = nice_step(self._stated_threshold / 4.0)
        stated_tolerance = real_or_none("tolerance", tolerance, above=0.0)
        stated_delta = real_or_none("delta", delta, least=0.0, below=1.0)
        self._wish = Wish(
            rows=whole_or_none("rows", rows, MOST_ROWS),
            queries=whole_or_none("queries", queries, MOST_QUERIES),
            charges=whole_or_none("charges", charges, MOST_QUERIES),
            tolerance=_divided(stated_tolerance, span),
            threshold=_divided(self._stated_threshold, span),
            noise_scale=_divided(stated_noise, span),
            resolution=_divided(stated_resolution, span),
            beta=1.0 - self.confidence,
            estimate=(self.estimate - lower) / span,
            family=family,
            influence=self.influence,
            variation=self.variation,
            disagreement=self.disagreement,
            mechanism="numeric-sparse" if mechanism == "tightest" else mechanism,
            policy=policy,
        )
        self._solve(stated_tolerance)
        self.delta = 1.0 / self.rows**2 if stated_delta is None else stated_delta
        if mechanism == "tightest":
            self._wish = replace(self._wish, mechanism=min(self.epsilons, key=self.epsilons.__getitem__))
            self._solve(stated_tolerance)
        wish = self._wish
        self.mechanism: GuardMechanism = wish.mechanism
        scale = wish.scale(tolerance=self.tolerance / span, queries=self.queries, charges=self.charges)
        self.noise_scale = scale * span
        self._least_threshold = min(wish.deviation_sd(self.rows), 1.0) * span
        self._stated_resolution = stated_resolution

    def _solve(self, stated_tolerance: float | None) -> None:
        numbers = solved(self._wish, span=self.span)
        self.rows, self.queries, self.charges = numbers.rows, numbers.queries, numbers.charges
        self.tolerance = stated_tolerance or round_up(numbers.tolerance * self.span)

    # ---- what follows

    @property
    def span(self) -> float:
        """Range of the metric."""
        return self.upper - self.lower

    def certificate(self, *, greater_is_better: bool = True) -> Certificate:
        """Intervals and thresholds of this plan, in the metric's unit."""
        wish = self._wish
        normalised = wish.certificate(
            rows=self.rows, queries=self.queries, charges=self.charges, tolerance=self.tolerance / self.span
        )
        certificate = Certificate(
            bound=normalised.bound,
            queries=self.queries,
            charges=self.charges,
            beta=wish.beta,
            noise_scale=self.noise_scale,
            resolution=self._stated_resolution,
            lower=self.lower,
            upper=self.upper,
            tolerance=self.tolerance,
            fixed_threshold=self._stated_threshold,
            least_threshold=self._least_threshold,
            greater_is_better=greater_is_better,
            mechanism=self.mechanism,
        )
        return certificate_of(self.policy, certificate)

    def paired_certificate(self, *, greater_is_better: bool = True) -> Certificate:
        """Intervals and thresholds of differences of two models, on the same budget.

        The noise is twice as large as a score's, for one row can change a difference by twice as much.
        """
        wish = replace(self._wish, family="paired")
        span = self.span
        return replace(
            self.certificate(greater_is_better=greater_is_better),
            bound=PairedBound(rows=self.rows, disagreement=self.disagreement),
            noise_scale=2.0 * self.noise_scale,
            lower=-span,
            upper=span,
            least_threshold=min(wish.deviation_sd(self.rows), 1.0) * 2.0 * span,
        )

    @cached_property
    def _certificate(self) -> Certificate:
        return self.certificate()

    def threshold_at(self, *, charges: int, estimate: float | None = None) -> float:
        """Threshold in force after so many charges, at a prior near `estimate`."""
        if not 0 <= charges < self.charges:
            raise InputError(
                f"charges must lie in [0, {self.charges}): after the last the guard halts; got {charges}"
            )
        at = self.estimate if estimate is None else estimate
        at = real("estimate", at, least=self.lower, most=self.upper)
        return float(self._certificate.threshold(at, charges=charges, nats=PLANNED_NATS_PER_CHARGE * charges))

    @property
    def resolution(self) -> float:
        """Step of the grid that charged answers are rounded to, before the first charge at `estimate`."""
        return self._certificate.resolution_at(self.threshold)

    @property
    def threshold(self) -> float:
        """Threshold T before the first charge, at `estimate`."""
        return self.threshold_at(charges=0)

    def half_width(self, *, query: int, charges: int, estimate: float | None = None) -> float:
        """Half-width of the confidence bound alone, at one question.

        The released interval adds the threshold (agreed) or half the answer grid (charged), and the noise's reach.

        Parameters
        ----------
        query : int
            Number of the question, from 1 to `queries`.
        charges : int
            Charges made before it; fewer than `query`. It may exceed the plan's, to see what they would cost.
        estimate : float, optional
            Observed value; the plan's by default.

        Raises
        ------
        InputError
            If a number is out of its range.
        """
        at = self.estimate if estimate is None else estimate
        at = real("estimate", at, least=self.lower, most=self.upper)
        return self._certificate.half_width(query=query, charges=charges, estimate=at)

    @property
    def epsilon_each(self) -> float:
        """Sensitivity of a score over the noise scale."""
        if self.noise_scale == 0.0:
            return math.inf
        return self.influence / self.rows / (self.noise_scale / self.span)

    @cached_property
    def epsilon(self) -> float:
        """Differential privacy of everything released, at `delta`."""
        return Calibration(self.mechanism, self.charges).epsilon(each=self.epsilon_each, delta=self.delta)

    @cached_property
    def epsilons(self) -> dict[GuardMechanism, float]:
        """Epsilon of each mechanism that adds noise, at the stated noise scale or at noise of the same reach."""
        epsilons: dict[GuardMechanism, float] = {}
        for mechanism in get_args(GuardMechanism):
            if mechanism == "noiseless":
                continue
            scale = replace(self._wish, mechanism=mechanism).scale(
                tolerance=self.tolerance / self.span, queries=self.queries, charges=self.charges
            )
            each = self.influence / self.rows / scale if scale else math.inf
            epsilons[mechanism] = Calibration(mechanism, self.charges).epsilon(each=each, delta=self.delta)
        return epsilons

    def compare_mechanisms(self) -> tuple[MechanismNoise, ...]:
        """Noise that every mechanism of the library would need for this plan's guarantee, in the metric's unit.

        Raises
        ------
        InputError
            If the plan has no noise, hence no guarantee.
        """
        from reusable_holdout.mechanisms import compare_mechanisms  # noqa: PLC0415 - only this needs them all

        return compare_mechanisms(
            epsilon=self.epsilon,
            delta=self.delta,
            charges=self.charges,
            sensitivity=self.influence / self.rows * self.span,
        )

    @cached_property
    def other_half_widths(self) -> dict[str, float]:
        """Half-widths that others give for as many adaptive queries on as many rows, in the metric's unit.

        A fresh share of the rows per query; Gaussian noise on every answer, by the best analysis, by the transfer
        theorem of Jung et al. (2020) and by that of Bassily et al. (2016). The last three are known for means only.
        """
        return other_half_widths(
            self.certificate().bound,
            queries=self.queries,
            beta=self._wish.beta,
            estimate=(self.estimate - self.lower) / self.span,
            span=self.span,
        )

    @property
    def privacy_is_vacuous(self) -> bool:
        """Whether ``exp(epsilon) - 1``, what privacy alone would say about the error, is half the range or more."""
        return self.epsilon >= math.log(1.5)

    @property
    def vacuous(self) -> bool:
        """Whether the tolerance is half the range or more: then the promise says nothing."""
        return self.tolerance >= self.span / 2.0

    @property
    def deviation_sd(self) -> float:
        """Standard deviation of holdout value minus an honest prior from as many rows; the metric's unit."""
        return self._wish.deviation_sd(self.rows) * self.span

    @cached_property
    def expected_null_charges(self) -> float:
        """Charges that chance alone will make, over all queries, if every prior is honest."""
        from reusable_holdout.mechanisms import expected_charges_of_stages  # noqa: PLC0415 - only reports need it

        shown = min(self.charges, 200)  # beyond, the chain's last stage is never reached by chance
        return expected_charges_of_stages(
            [self.threshold_at(charges=charges) for charges in range(shown)],
            deviation_sd=self.deviation_sd,
            queries=self.queries,
            noise_scale=self.noise_scale,
            mechanism=self.mechanism,
        )

    # ---- records

    def record(self) -> dict[str, Any]:
        """Everything the plan rests on, as JSON can write it; :meth:`from_record` gives the same plan."""
        return {
            "rows": self.rows,
            "queries": self.queries,
            "tolerance": self.tolerance,
            "charges": self.charges,
            "threshold": self._stated_threshold or None,
            "noise_scale": self.noise_scale,
            "resolution": self._stated_resolution,
            "confidence": self.confidence,
            "estimate": self.estimate,
            "delta": self.delta,
            "mechanism": self.mechanism,
            "policy": self.policy,
            "bounds": [self.lower, self.upper],
            "family": self.family,
            "influence": self.influence,
            "variation": self.variation,
            "disagreement": self.disagreement,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Plan of a :meth:`record`."""
        return cls(**{**record, "bounds": tuple(record["bounds"])})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.record() == other.record()

    def __hash__(self) -> int:
        return hash((self.rows, self.queries, self.charges, self.tolerance))

    def __repr__(self) -> str:
        return (
            f"<Plan: {self.rows:,} rows, {self.queries:,} queries, {self.charges} charges, "
            f"tolerance {self.tolerance:g}, confidence {self.confidence:g}>"
        )

    def __str__(self) -> str:
        return report(self)


def _without_noise(mechanism: MechanismChoice, family: Family, **own: float | None) -> MechanismChoice:
    """Mechanism of a parameter-free ladder, which leaves no choice: its step is a standard error of the rows."""
    stated = ", ".join(name for name, value in own.items() if value is not None)
    if stated:
        raise InputError(f"a parameter-free ladder chooses its own step and grid; got {stated}; leave it out")
    if mechanism not in {"numeric-sparse", "noiseless"}:  # the default, or what it is
        raise InputError(f"a parameter-free ladder has no noise; got mechanism {mechanism!r}; leave it out")
    if family not in {"binomial", "bounded"}:
        raise InputError(
            "a parameter-free ladder compares losses row by row, of a metric that is a plain mean over rows; got "
            f'family {family!r}; use accuracy or a mean loss, or policy="ladder"'
        )
    return "noiseless"


def _divided(value: float | None, span: float) -> float | None:
    return None if value is None else value / span
