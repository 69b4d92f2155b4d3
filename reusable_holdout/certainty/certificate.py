"""Certificates: the confidence interval of an answer, and the largest deviation of a prior that is not corrected.

Everything here is a function of public numbers: the plan, the prior and the released transcript. Anyone who holds the
ledger can recompute it. All values lie in [0, 1], and greater is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty.adaptive_code import AdaptiveCode
from reusable_holdout.certainty.bound import ConfidenceBound, Interval, Numbers
from reusable_holdout.certainty.evidence import Evidence, Sides, SuitedNull
from reusable_holdout.certainty.evidence_set import EvidenceSet
from reusable_holdout.certainty.theory import THEORY, Shares, Theory
from reusable_holdout.certainty.transcript_code import NoiseTails, TranscriptCode
from reusable_holdout.noise import Calibration, GuardMechanism

Decides: TypeAlias = Literal["distance", "evidence", "sets"]
"""The rule that picks an outcome: the score's distance from the prior, the rows' evidence, or their confidence set."""

GRID_SLACK = 8.0 * 2.0**-32
"""Bound of all rounding to the noise grid: of statistic, losses, prior, threshold and tails."""

_LOG_HALF = math.log(0.5)  # the largest log failure probability of a side
_TOLERANCE_GRID = 2.0**-20  # of the range
_AFFORDED = 1e-9  # nats: rounding of sums that were added up in another order


@dataclass(frozen=True)
class Certificate:
    """Intervals and thresholds of one plan, valid for all adaptively chosen questions at once.

    With probability at least ``1 - beta`` every interval returned for an answer contains the population value.

    Parameters
    ----------
    bound : ConfidenceBound
        The confidence bound of the statistic.
    queries, charges : int
        Declared questions K and affordable charges C.
    beta : float
        Failure probability of everything together, in (0, 1).
    noise_scale : float
        The plan's noise scale; 0 for none.
    tolerance : float
        Largest deviation of an agreed answer from the population value; thresholds are as large as it allows.
    least_threshold : float
        Lower limit of derived thresholds.
    charge_nats, reserved_nats : float
        Cost of the most expensive charge, and nats that may be released in addition to the charges.
    decides : {"distance", "evidence", "sets"}
        Rule that picks an outcome. For "sets" the value is a ratio, and `bound` does not apply to it.
    shares : Shares
        Shares of the sides of an interval in a question's failure probability.
    fixed_threshold : float, optional
        A threshold that a user has stated, or a board's. It is the same at every prior.
    threshold_sds : float
        Threshold in standard deviations of an honest deviation, each `least_threshold` at `estimate`. Then charges do
        not depend on earlier answers; the intervals widen instead. 0 if thresholds follow from the tolerance.
    prior_error : float
        Stated standard deviation of an honest prior's own error, the same at every prior; 0 if none was stated.
    mechanism : str
        Name of the mechanism that adds the noise.
    view : int
        Number of this metric among all metrics of the rows.
    told_before : float
        Nats released about the rows before the first question.
    sensitivity : float
        Largest change of the statistic when one row changes.
    estimate : float
        Value near which the plan holds. No interval rests on it.
    spread : float, optional
        For a mean of graded losses: a public guess of their standard deviation over the rows. No interval rests on it.
    noisy : bool
        True if other questions about the rows have noise: a share of the failure probability pays for it here, too.
    adaptive : bool
        True if every outcome is priced by the public history before it. Then intervals grow, and no number of charges
        is promised.
    final_share : float
        Share of the failure probability that is kept for the final.
    first_share : float
        Share of the questions' weight for histories without a charge; 0 for the transcript code's default.
    theory : Theory
        Edition of the constants.
    """

    bound: ConfidenceBound
    queries: int
    charges: int
    beta: float
    noise_scale: float
    tolerance: float
    least_threshold: float
    charge_nats: float
    reserved_nats: float = 0.0
    decides: Decides = "distance"
    shares: Shares = THEORY.scores
    fixed_threshold: float | None = None
    threshold_sds: float = 0.0
    prior_error: float = 0.0
    mechanism: GuardMechanism = "numeric-sparse"
    view: int = 0
    told_before: float = 0.0
    sensitivity: float = 0.0
    estimate: float = 0.5
    spread: float | None = None
    noisy: bool = False
    adaptive: bool = False
    final_share: float = THEORY.final_share
    first_share: float = 0.0
    theory: Theory = THEORY

    @cached_property
    def code(self) -> TranscriptCode | AdaptiveCode:
        """The transcript code of the declared numbers of questions and charges."""
        if self.adaptive:
            return AdaptiveCode(self.queries, self.final_share)
        numbers = self.queries, max(1, self.charges)
        return TranscriptCode(*numbers, self.final_share, self.theory, self.first_share)

    @cached_property
    def tails(self) -> NoiseTails:
        """The reach of the mechanism's noise: the largest noise that intervals allow for."""
        return NoiseTails(self.queries, self.charges, self.beta, self.mechanism, self.view, self.theory)

    @cached_property
    def comparison_tail(self) -> float:
        """The largest noise and rounding of a comparison that intervals allow for."""
        return self.tails.comparison * self.noise_scale + GRID_SLACK

    @property
    def comparison_sd(self) -> float:
        """Standard deviation of a comparison's noise."""
        threshold, query, _ = Calibration(self.mechanism, self.charges).scales
        return math.sqrt(2.0) * math.hypot(threshold, query) * self.noise_scale

    @cached_property
    def answer_tail(self) -> float:
        """The largest noise and rounding of a charged value that intervals allow for."""
        return self.tails.answer * self.noise_scale + GRID_SLACK

    # ---- description lengths

    def length(self, *, charges: int, nats: float) -> float:
        """Return the description length of a question: minus the logarithm of its weight, in nats.

        It depends on the charges and nats before the question, and is the same for all declared questions.
        """
        made, told = min(charges, self.queries - 1), nats + self.told_before
        return self.code.length(query=self.queries, charges=made, nats=told)

    def final_length(self, *, charges: int, nats: float, last_charge: int | None = None) -> float:
        """Return the description length of a final in this state, if it has one answer; several share the weight."""
        return self.code.final_length(charges=charges, nats=nats + self.told_before, last_charge=last_charge)

    @cached_property
    def affordable_length(self) -> float:
        """The largest description length of a question before the last charge; the plan's promise ends there."""
        return self._dearest(charges=0, nats=self.reserved_nats)

    def room(self, *, charges: int, nats: float) -> float:
        """Return the nats that reveals and choices may still cost, so that charges can be paid and the tolerance holds.

        `charges` and `nats` are those spent so far.
        """
        if self.adaptive:
            return math.inf
        return self.affordable_length - self._dearest(charges=charges, nats=nats) + _AFFORDED

    def _dearest(self, *, charges: int, nats: float) -> float:
        """Return the largest length of a later question, if all charges are made at their largest cost."""
        ahead = range(max(1, min(self.charges, self.queries) - charges))
        return max(self.length(charges=charges + more, nats=nats + self.charge_nats * more) for more in ahead)

    def log_level(self, length: Numbers, share: float) -> Numbers:
        """Return the log failure probability of one side of an interval, at a node of this description length."""
        noise = self.theory.noise_share if self.noise_scale or self.noisy else 0.0
        level = math.log((1.0 - noise) * self.beta * share) - length
        return np.minimum(level, _LOG_HALF) if isinstance(level, np.ndarray) else min(level, _LOG_HALF)

    def needed(self, length: float, share: float) -> float:
        """Return the nats of evidence that one side of an interval needs at a description length."""
        return -float(self.log_level(length, share))

    # ---- intervals

    def around(self, low: Numbers, high: Numbers, *, length: Numbers, share: float) -> Interval:
        """Return the interval of the population value if the holdout value lies in [low, high].

        `share` is the share of the failure probability that one side may spend.
        """
        level = self.log_level(length, share)
        return Interval(self.bound.lower(low, log_level=level), self.bound.upper(high, log_level=level))

    def final_set(self, length: float, guess: float | None = None) -> EvidenceSet:
        """Return the confidence set of a final that evidence decides; `guess` is the plan's estimate by default."""
        return self.evidence_set(self.needed(length, 0.5), self.estimate if guess is None else guess)

    def evidence_set(self, nats: float, guess: float) -> EvidenceSet:
        """Return the confidence set that needs evidence of `nats` for each end; `guess` is a guess of the mean."""
        return EvidenceSet(nats, self.bound.rows, guess, cast("float", self.spread), self.theory)

    def likely_half_width(self, nats: float, estimate: float) -> float:
        """Return the half-width of the confidence set for rows of guessed spread; each end needs `nats`."""
        least, most = self.evidence_set(nats, estimate).likely
        return (most - least) / 2.0

    def agreed_around(self, length: float) -> Interval:
        """Return the interval of an agreed answer at `estimate`, if the threshold is constant."""
        at = self.estimate
        if self.decides != "distance":
            reach = self.tolerance_at(length)
            return Interval(max(at - reach, 0.0), min(at + reach, 1.0))
        reach = float(self.constant_threshold(at)) + self.comparison_tail
        return self.around(at - reach, at + reach, length=length, share=self.shares.agreed)

    def agreed_reach(self, length: float) -> float:
        """Return the distance from `estimate` to the farther end of `agreed_around`; a gate leaves one end open."""
        if self.decides != "distance":
            return self.tolerance_at(length)
        low, high = self.agreed_around(length)
        return max(self.estimate - float(low), float(high) - self.estimate)

    def half_width(self, *, charges: int, nats: float, estimate: float) -> float:
        """Return the half-width of an agreed answer's confidence bound at ``estimate``, without threshold and noise."""
        length = self.code.length(query=self.queries, charges=charges, nats=nats + self.told_before)
        return self._half_width(length, self.shares.agreed, estimate, self.decides != "distance")

    def final_half_width(self, *, length: float, estimate: float) -> float:
        """Return the half-width of a final's interval around ``estimate``; infinite at an infinite length."""
        if math.isinf(length):
            return math.inf
        return self._half_width(length, 0.5, estimate, self.spread is not None)

    def _half_width(self, length: float, share: float, estimate: float, by_rows: object) -> float:
        if by_rows:
            return self.likely_half_width(self.needed(length, share), estimate)
        low, high = self.around(estimate, estimate, length=length, share=share)
        return float(high - low) / 2.0

    # ---- thresholds, and evidence that decides in their place

    def evidence(self, named: float, tolerance: float, sides: Sides = "both") -> Evidence:
        """Return the test that the population value is within a tolerance of a named value."""
        least = max(tolerance - GRID_SLACK, GRID_SLACK)  # terms and the named value are rounded
        return Evidence(named, least, sides, self.theory.check_bets)

    def named_evidence(self, named: float, nats: float) -> SuitedNull:
        """Return the test that the population value is at least the named value; its bets suit evidence of `nats`."""
        spread = max(cast("float", self.spread), GRID_SLACK)
        best = math.sqrt(2.0 * (nats + self.theory.gate_bets_lose) / self.bound.rows) / spread
        return SuitedNull(named + GRID_SLACK, spread, self.theory.check_bets, best, self.theory.gate_bets)

    def evidence_needed(self, evidence: Evidence, length: float) -> float:
        """Return the nats that certify an answer at a description length, including the reach of the noise."""
        return self.needed(length, self.shares.agreed) + self.evidence_tail(evidence)

    def evidence_tail(self, evidence: Evidence) -> float:
        """Return the reach of the comparison's noise and rounding, in nats."""
        return self.comparison_tail / self.sensitivity * evidence.sensitivity

    def threshold(self, prior: Numbers, *, charges: int, nats: float) -> Numbers:
        """Return the largest deviation from this prior that is not corrected.

        It is a number of standard deviations of an honest deviation from this prior, whatever was released. In editions
        before the fourth it changes with each release: with prior a and noise reach t, it is the largest T such that
        ``[lower(a - T - t), upper(a + T + t)]`` stays within ``a +- tolerance``.
        """
        if self.is_constant:
            return self.constant_threshold(prior)
        return self.threshold_of_length(prior, self.length(charges=charges, nats=nats))

    @property
    def is_constant(self) -> bool:
        """True if the threshold does not depend on what was released before."""
        return self.fixed_threshold is not None or self.threshold_sds > 0.0

    @property
    def threshold_at_estimate(self) -> float:
        """The threshold at `estimate` if it is stated in standard deviations, else 0."""
        return 0.0 if self.fixed_threshold is not None else self.threshold_sds * self.least_threshold

    def constant_threshold(self, prior: Numbers, beyond: Numbers = 0.0) -> Numbers:
        """Return the threshold at a prior, which is the fixed one, or a number of standard deviations.

        The standard deviation of a mean of losses in [0, 1] is at most ``sqrt(b (1 - b) / n)``, with b the prior after
        four more rows, two of them right. `beyond` is the further standard deviation of a question's prior.
        """
        if self.fixed_threshold is not None:
            return prior * 0.0 + self.fixed_threshold
        stated = (self.threshold_sds * self.prior_error) ** 2
        scaled = max(self.threshold_at_estimate**2 - stated, 0.0) * self.sd_ratio(prior) ** 2
        return cast("Numbers", (scaled + stated + (self.threshold_sds * beyond) ** 2) ** 0.5)

    def sd_ratio(self, prior: Numbers) -> Numbers:
        """Return the standard deviation of an honest deviation at a prior, as a multiple of that at `estimate`."""
        if self.bound.family == "bounded-difference" or self.spread is not None:
            return prior * 0.0 + 1.0
        at, here = ((self.bound.rows * one + 2.0) / (self.bound.rows + 4.0) for one in (self.estimate, prior))
        return cast("Numbers", (here * (1.0 - here)) ** 0.5 / (at * (1.0 - at)) ** 0.5)

    def tolerance_at(self, length: float, beyond: float = 0.0) -> float:
        """Return how far the population value may be from an agreed prior if evidence decides: the plan's tolerance.

        For a constant threshold it is the least one at which rows of the guessed spread agree up to the threshold.
        """
        return _tolerance_at(self, length, beyond) if self.threshold_sds else self.tolerance

    def threshold_of_length(
        self, prior: Numbers, length: float, *, tolerance: float | None = None, least: float | None = None
    ) -> Numbers:
        """Return the largest deviation that is not corrected, at a description length; see :meth:`threshold`.

        `tolerance` and `least`, below which it never lies, replace those of the plan. If evidence decides, rows of the
        guessed spread agree with a prior up to this deviation.
        """
        limit = self.tolerance if tolerance is None else tolerance
        if self.decides != "distance":
            each = [self._likely_threshold(one, length, limit) for one in np.atleast_1d(prior).tolist()]
            return np.array(each) if isinstance(prior, np.ndarray) else each[0]
        level = self.log_level(length, self.shares.agreed)
        below = prior - self.bound.reach_low(prior - limit, log_level=level)
        above = self.bound.reach_high(prior + limit, log_level=level) - prior
        room = np.minimum(np.minimum(below, above), 1.0) - self.comparison_tail
        threshold = np.maximum(room, self.least_threshold if least is None else least)
        return threshold if isinstance(prior, np.ndarray) else float(threshold)

    def _likely_threshold(self, prior: float, length: float, tolerance: float) -> float:
        test, spread = self.evidence(prior, tolerance), cast("float", self.spread)
        return test.likely_reach(self.evidence_needed(test, length), spread, self.bound.rows)


class ThresholdTable:
    """The thresholds after a number of charges, rounded down to a table over the priors.

    An agreed answer keeps the certificate's tolerance as with the exact threshold, which is at most 2e-4 larger. The
    table changes only at charges, so a question costs a look-up instead of two inversions.

    Parameters
    ----------
    certificate : Certificate
        The plan's certificate.
    charges, nats : int, float
        Charges made so far, and the nats that were spent.

    Notes
    -----
    The exact threshold is the smaller of two smooth functions of the prior, each without a dip inside a cell of
    1/2,048 of the range, so the smaller of its values at a cell's two ends is a lower bound on it (tested).
    """

    def __init__(self, certificate: Certificate, *, charges: int, nats: float) -> None:
        self._count = certificate.theory.threshold_cells
        self._cells = _cells(certificate, charges, nats)

    def at(self, prior: float) -> float:
        """Return the threshold at one prior."""
        return float(self._cells[min(int(prior * self._count), self._count - 1)])

    def at_each(self, priors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the thresholds at many priors; the same numbers as :meth:`at`."""
        return self._cells[np.minimum((priors * self._count).astype(np.int64), self._count - 1)]


@lru_cache(maxsize=64)
def _cells(certificate: Certificate, charges: int, nats: float) -> NDArray[np.float64]:
    """Return the threshold of each cell.

    The result is cached, so that a process that opens or verifies a ledger again computes it once.
    """
    nodes = np.linspace(0.0, 1.0, certificate.theory.threshold_cells + 1)
    exact = np.asarray(certificate.threshold(nodes, charges=charges, nats=nats))
    cells: NDArray[np.float64] = np.minimum(exact[:-1], exact[1:])
    if certificate.fixed_threshold is None:
        cells = np.maximum(cells - certificate.theory.threshold_slack, certificate.least_threshold)
    cells.flags.writeable = False
    return cells


@lru_cache(maxsize=1024)
def _tolerance_at(certificate: Certificate, length: float, beyond: float) -> float:
    """Return the smallest tolerance that keeps a constant threshold, on a grid coarser than any rounding."""
    at = certificate.estimate
    least = float(certificate.constant_threshold(at, beyond))
    kept, refused = 1.0, least
    while kept - refused > _TOLERANCE_GRID:
        middle = (kept + refused) / 2.0
        threshold = certificate.threshold_of_length(at, length, tolerance=middle, least=-math.inf)
        kept, refused = (middle, refused) if threshold >= least else (kept, middle)
    return math.ceil(kept / _TOLERANCE_GRID) * _TOLERANCE_GRID
