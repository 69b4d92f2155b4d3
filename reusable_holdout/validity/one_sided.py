"""Certificates of policies that look for improvements only: the Ladder and the one-bit gate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from reusable_holdout.validity.certificate import GRID_SLACK, Certificate, Interval
from reusable_holdout.validity.transcript_code import FAILURE_NATS

if TYPE_CHECKING:
    from reusable_holdout.validity.certificate import Numbers

__all__ = [
    "LADDERS",
    "GateCertificate",
    "LadderCertificate",
    "ParameterFreeLadderCertificate",
    "Policy",
    "certificate_of",
    "parameter_free_step",
]

Policy: TypeAlias = Literal["thresholdout", "ladder", "guess-and-check", "gate", "parameter-free-ladder"]

LADDERS: frozenset[Policy] = frozenset({"ladder", "parameter-free-ladder"})
"""Policies whose prior is the best score so far."""

_GRID_ROUNDING = 1e-6  # of a step: a score on the grid of scores may lie just below a whole number of steps
_NO_FAILURE_NATS = -math.log(-math.expm1(-FAILURE_NATS))  # of "it did not fail"


def certificate_of(policy: Policy, certificate: Certificate) -> Certificate:
    """Certificate of a policy, from that of its plan.

    Parameters
    ----------
    policy : {"thresholdout", "ladder", "guess-and-check", "gate", "parameter-free-ladder"}
    certificate : Certificate
        Of the plan.
    """
    if policy == "ladder":
        return LadderCertificate(**_fields(certificate))
    if policy == "parameter-free-ladder":
        rows, span = certificate.bound.rows, certificate.span
        own = replace(certificate, fixed_threshold=parameter_free_step(rows) * span, resolution=span / rows)
        return ParameterFreeLadderCertificate(**_fields(replace(own, noise_scale=0.0, mechanism="noiseless")))
    if policy == "gate":
        return GateCertificate(**_fields(replace(certificate, fixed_threshold=0.0)))
    return certificate


def parameter_free_step(rows: int) -> float:
    """Largest step that a parameter-free ladder can take, as a fraction of the metric's range: ``1/sqrt(rows)``.

    It is public: its own step, the standard error of a mean difference, depends on the rows and is never told.
    """
    return 1.0 / math.sqrt(rows)


def _fields(certificate: Certificate) -> dict[str, Any]:
    """Fields of a certificate, without what it has computed."""
    return {name: getattr(certificate, name) for name in certificate.__dataclass_fields__}


def _constant(like: Numbers, end: float) -> Numbers:
    return np.full_like(like, end) if isinstance(like, np.ndarray) else end


@dataclass(frozen=True)
class LadderCertificate(Certificate):
    """Certificate of the Ladder: an answer is the best score so far, unless the score improves on it by a step.

    With probability at least ``1 - beta``, at every submission: the interval of a new best contains its population
    value, and any other submission's population value is at most its interval's good end.

    Notes
    -----
    The prior is the best score so far, a function of the transcript. A submission that is not charged has a holdout
    score below ``best + T + t``, t the reach of the noise; how far below is not told, so its interval is open to the
    bad side. A charged answer is the best score and a whole number k >= 1 of steps; k costs ``ln k (k + 1)`` nats,
    whose weights sum to one. The first best costs the logarithm of the number of places it can have.

    References
    ----------
    .. [1] Blum and Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions", Theorem 3.1.
    """

    @property
    def direction(self) -> int:
        """1 if a larger score is better, else -1."""
        return 1 if self.greater_is_better else -1

    @cached_property
    def planned_nats(self) -> float:
        """Nats set aside for a new best: two thresholds, or three, in steps of the answers."""
        largest = self.tolerance if self.fixed_threshold is None else self.fixed_threshold
        steps = 2.5 if self.resolution is None else max(2.5, 2.0 * largest / self.resolution)
        return math.log(steps) + math.log(steps + 1.0) + _NO_FAILURE_NATS

    @cached_property
    def first_nats(self) -> float:
        """Nats of the first best, which may be any: all places of the answers' grid cost the same."""
        step = self.resolution_at(float(self.threshold(self.start, charges=0, nats=0.0)))
        return math.log(math.ceil(self.span / max(step, GRID_SLACK * self.span))) + _NO_FAILURE_NATS

    def planned(self, charges: int) -> float:
        """Nats set aside for so many new bests together."""
        return self.first_nats + self.planned_nats * (charges - 1) if charges else 0.0

    def resolution_at(self, threshold: float) -> float:
        """Step of the answers: the threshold, or a stated resolution that is finer."""
        return threshold if self.resolution is None else min(self.resolution, threshold)

    def agreed(self, prior: Numbers, threshold: Numbers, length: Numbers) -> Interval:
        """Interval of a submission that is no new best."""
        interval = super().agreed(prior, threshold, length)
        return self._open_to_worse(interval)

    def charged(self, value: Numbers, threshold: Numbers, length: Numbers) -> Interval:
        """Interval of a new best.

        It is rounded to the worse side, but told as one step at least, though the noise may have made it less.
        """
        step = self._steps(threshold) / self.span
        noise = self.tails.answer * self.noise_scale / self.span + GRID_SLACK
        worse, better = np.maximum(noise, self.comparison_tail), step + noise
        low, high = (worse, better) if self.greater_is_better else (better, worse)
        return Interval(self._around(value, low, length).low, self._around(value, high, length).high)

    def rounded(self, noisy: float, prior: float, threshold: float) -> float:
        """Value that is released for a noisy score: a whole number of steps better than the best."""
        step = self.resolution_at(threshold)
        improvement = self.direction * (noisy - prior)
        value = prior + self.direction * step * max(1, math.floor(improvement / step + _GRID_ROUNDING))
        return self._tidy(value)

    def is_answer(self, value: float, *, prior: float, threshold: float) -> bool:
        """Whether a charged value can have been released."""
        if value == (self.upper if self.greater_is_better else self.lower):
            return True
        steps = self.direction * (value - prior) / self.resolution_at(threshold)
        return steps > 0.5 and abs(steps - round(steps)) <= 1e-6 * max(1.0, steps)

    def value_nats(self, value: float, *, prior: float, threshold: float) -> float:
        """Description length of a new best."""
        if prior == self.start:
            return math.log(math.ceil(self.span / self.resolution_at(threshold))) + _NO_FAILURE_NATS
        steps = max(1, math.ceil(self.direction * (value - prior) / self.resolution_at(threshold) - 1e-6))
        return math.log(steps) + math.log(steps + 1) + _NO_FAILURE_NATS

    def failed_value(self, prior: float) -> float:
        """Value recorded for a submission that failed: the best stays."""
        return prior

    @property
    def start(self) -> float:
        """The best score before the first submission."""
        return self.lower if self.greater_is_better else self.upper

    def _open_to_worse(self, interval: Interval) -> Interval:
        low, high = interval
        if self.greater_is_better:
            return Interval(_constant(low, self.lower), high)
        return Interval(low, _constant(high, self.upper))


@dataclass(frozen=True)
class ParameterFreeLadderCertificate(LadderCertificate):
    """Certificate of the parameter-free Ladder, whose step is a standard error that is never told.

    With probability at least ``1 - beta``, at every submission: the interval of a new best contains its population
    value, and any other submission's population value is at most its interval's good end.

    Notes
    -----
    Let x be the metric turned so that more is better, normalised to [0, 1], n the rows, R the best that was told, and s
    the sample standard deviation of the n differences of losses, submission minus best, cut off at 1. A submission is a
    new best if its mean on the holdout is above ``R + s/sqrt(n)`` and, rounded to the nearest whole number of 1/n,
    above R; then it is told so rounded.

    *What the analyst learns* is which submissions are new bests, and their rounded values: nothing else that she is
    told depends on the holdout, s included, for this certificate's threshold is ``1/sqrt(n)`` whatever s. So her next
    submission, and the best it is compared with, are functions of that transcript, and the transcript code covers it:
    the nodes of its tree are fixed before the holdout is drawn, positions of the new bests are paid for as always, and
    a new best k >= 1 places above the last one costs ``ln k (k + 1)`` nats, whose weights sum to one. The first costs
    the logarithm of the n places it can have. How the guard decides does not enter: the confidence set of each node
    holds for its one submission, whether or not the node is ever reached.

    *A new best* has a mean within half a place of its value, exactly the value if losses are 0 or 1.

    *Any other* has a mean of at most ``R + s/sqrt(n)``, or one that rounds to R or below and is at most ``R + 1/(2n)``.
    Both are at most ``R + 1/sqrt(n)``, since s <= 1. How far below is not told: its interval is open to the bad side.

    So pair flips, which pass the published rule with a gain of 2/n each, buy lower reported losses and pay for each
    with description length: the intervals grow past the population value, and never lose it.

    References
    ----------
    .. [1] Blum and Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions", Algorithm 2.
    """

    def charged(self, value: Numbers, threshold: Numbers, length: Numbers) -> Interval:
        """Interval of a new best: half a place of rounding, no noise."""
        return Certificate.charged(self, value, threshold, length)

    def rounded(self, noisy: float, prior: float, threshold: float) -> float:
        """Value that is released for a score: the nearest whole number of places."""
        return Certificate.rounded(self, noisy, prior, threshold)


@dataclass(frozen=True)
class GateCertificate(LadderCertificate):
    """Certificate of the one-bit gate, which says whether a score is at least what was named.

    With probability at least ``1 - beta``, at every question: the population value of what was accepted is at least its
    interval's bad end, that of what was rejected at most its good end.

    Notes
    -----
    "Yes" is charged, and which questions were charged is all that an answer tells.

    Both ends are functions of what was named, so at one question only one of them can miss: the population value lies
    above the good end of "no", or below the bad end of "yes", or between. So a side has all of the question's failure
    probability, not half of it.

    References
    ----------
    .. [1] Renggli et al. (2019), "Continuous integration of machine learning models with ease.ml/ci", MLSys.
    """

    def log_level(self, length: Numbers) -> Numbers:
        """Log failure probability spent at a node of the given description length."""
        return super().log_level(length) + math.log(2.0)

    @cached_property
    def planned_nats(self) -> float:
        """Nats of a "yes"; its place is paid for by the transcript code."""
        return _NO_FAILURE_NATS

    def planned(self, charges: int) -> float:
        """Nats set aside for so many times "yes"."""
        return self.planned_nats * charges

    def charged(self, value: Numbers, threshold: Numbers, length: Numbers) -> Interval:
        """Interval of what was accepted."""
        low, high = self._around(value, self.comparison_tail, length)
        if self.greater_is_better:
            return Interval(low, _constant(high, self.upper))
        return Interval(_constant(low, self.lower), high)

    def rounded(self, noisy: float, prior: float, threshold: float) -> float:
        """Give what was named: how far beyond it the score lies is not told."""
        return prior

    def is_answer(self, value: float, *, prior: float, threshold: float) -> bool:
        """Whether a charged value can have been released."""
        return value == prior

    def value_nats(self, value: float, *, prior: float, threshold: float) -> float:
        """Description length of a "yes"."""
        return _NO_FAILURE_NATS
