"""The certificate: which interval an answer may carry, and how far a prior may stray before it is corrected.

Everything here is a function of public numbers: the plan's, the prior's and the released transcript's. Anyone who holds
the ledger can recompute it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import adaptive_code
from reusable_holdout.certainty import evidence as _evidence
from reusable_holdout.certainty import evidence_set as _evidence_set
from reusable_holdout.certainty.bound import ConfidenceBound, Interval, Numbers
from reusable_holdout.certainty.theory import THEORY, Shares, Theory
from reusable_holdout.certainty.transcript_code import NoiseTails, TranscriptCode
from reusable_holdout.noise.calibration import Calibration, GuardMechanism

__all__ = ["GRID_SLACK", "Certificate", "ThresholdTable"]

GRID_SLACK = 8.0 * 2.0**-32
"""Bounds all rounding to the noise grid (statistic, losses, prior, threshold, tails); fraction of the range."""

_LOG_HALF = math.log(0.5)  # no side of an interval is certified at less
_AFFORDED = 1e-9  # nats: rounding of sums that were added up in another order


@dataclass(frozen=True)
class Certificate:
    """Intervals and thresholds of one plan, valid for all adaptively chosen questions at once.

    With probability at least ``1 - beta`` every interval returned for an answer contains the population value.

    Parameters
    ----------
    bound : ConfidenceBound
        The confidence bound of the statistic, normalised to [0, 1].
    queries, charges : int
        Declared questions K and affordable charges C.
    beta : float
        Failure probability of everything together, in (0, 1).
    noise_scale : float
        The plan's, in the metric's unit.
    lower, upper : float
        Bounds of the metric.
    tolerance : float
        In the metric's unit; thresholds are as large as it allows.
    fixed_threshold : float or None
        A threshold stated by the user instead, in the metric's unit.
    least_threshold : float
        No derived threshold goes below this, in the metric's unit.
    charge_nats, reserved_nats : float
        What the dearest charge costs, and what is set aside for reveals and choices.
    shares : Shares
        How the sides of an interval divide a question's failure probability, and why they may.
    greater_is_better : bool
        Whether a larger metric is better.
    mechanism : {"numeric-sparse", "standard-svt", "target-charging", "noiseless"}
        What the guard runs on.
    final_noise : float
        Scale of the Laplace noise of a final, in the metric's unit; 0 for none.
    exam_rows : int
        Rows that a guard of version 0.2.0 kept for its final, beside those of `bound`: only its ledger says so.
    sensitivity : float
        Largest change of the statistic, normalised, when one row changes.
    estimate : float
        Value near which the plan holds: no interval rests on it.
    spread : float or None
        Of a mean of graded losses: a public guess of their standard deviation over the rows, in the metric's unit. No
        interval rests on it. None of other metrics.
    by_evidence : bool
        Whether the rows' evidence decides if an answer is agreed, not a distance; not without a spread.
    noisy : bool
        Whether other questions about the rows have noise: a share of the failure probability pays for it, also here.
    adaptive : bool
        Whether every outcome is priced by what was public before it: then intervals grow, and nothing is promised of
        how many charges there can be.
    of_ratio : bool
        Whether the value is a ratio, of which `bound` says nothing: intervals come from samples of the rows alone.
    """

    bound: ConfidenceBound
    queries: int
    charges: int
    beta: float
    noise_scale: float
    lower: float
    upper: float
    tolerance: float
    fixed_threshold: float | None
    least_threshold: float
    charge_nats: float
    reserved_nats: float = 0.0
    shares: Shares = THEORY.scores
    greater_is_better: bool = True
    mechanism: GuardMechanism = "numeric-sparse"
    view: int = 0
    told_before: float = 0.0
    final_noise: float = 0.0
    exam_rows: int = 0
    sensitivity: float = 0.0
    estimate: float = 0.5
    spread: float | None = None
    by_evidence: bool = False
    noisy: bool = False
    of_ratio: bool = False
    adaptive: bool = False
    theory: Theory = THEORY

    @property
    def span(self) -> float:
        """Range of the metric."""
        return self.upper - self.lower

    @property
    def better(self) -> int:
        """1 if a larger score is better, else -1."""
        return 1 if self.greater_is_better else -1

    @cached_property
    def code(self) -> TranscriptCode | adaptive_code.AdaptiveCode:
        """The transcript code of the declared numbers of questions and charges."""
        if self.adaptive:
            return adaptive_code.AdaptiveCode(self.queries, self.theory)
        return TranscriptCode(queries=self.queries, charges=max(1, self.charges), theory=self.theory)

    @cached_property
    def tails(self) -> NoiseTails:
        """Reach of the mechanism's noise."""
        return NoiseTails(self.queries, self.charges, self.beta, self.mechanism, self.view, self.theory)

    @property
    def grid_slack(self) -> float:
        """Bounds all rounding to the noise grid, in the metric's unit."""
        return GRID_SLACK * self.span

    @cached_property
    def comparison_tail(self) -> float:
        """Reach of the comparison's noise and rounding, in the metric's unit."""
        return self.tails.comparison * self.noise_scale + self.grid_slack

    @property
    def comparison_sd(self) -> float:
        """Standard deviation of the comparison's noise, in the metric's unit."""
        threshold, query, _ = Calibration(self.mechanism, self.charges).scales
        return math.sqrt(2.0) * math.hypot(threshold, query) * self.noise_scale

    @cached_property
    def answer_tail(self) -> float:
        """Reach of a charged value's noise and rounding, in the metric's unit."""
        return self.tails.answer * self.noise_scale + self.grid_slack

    # ---- description lengths

    def length(self, *, charges: int, nats: float) -> float:
        """Description length of a question in this state; the same for all that are declared."""
        made, told = min(charges, self.queries - 1), nats + self.told_before
        return self.code.length(query=self.queries, charges=made, nats=told)

    def final_length(
        self, *, charges: int, nats: float, answers: int = 1, last_charge: int | None = None
    ) -> float:
        """Description length of a final of so many answers, in this state."""
        told = nats + self.told_before
        return self.code.final_length(charges=charges, nats=told, answers=answers, last_charge=last_charge)

    @cached_property
    def affordable_length(self) -> float:
        """Description length at which the plan's promise ends: the dearest state before the last charge."""
        return self._dearest(charges=0, nats=self.reserved_nats)

    def room(self, *, charges: int, nats: float) -> float:
        """Nats that reveals and choices may still cost, so that every charge and the tolerance remain."""
        if self.adaptive:
            return math.inf
        return self.affordable_length - self._dearest(charges=charges, nats=nats) + _AFFORDED

    def _dearest(self, *, charges: int, nats: float) -> float:
        """Largest length of a question from this state on, if all charges are made and each is of the dearest."""
        ahead = range(max(1, min(self.charges, self.queries) - charges))
        return max(self.length(charges=charges + more, nats=nats + self.charge_nats * more) for more in ahead)

    def log_level(self, length: Numbers, share: float) -> Numbers:
        """Log failure probability of one side of an interval, at a node of the given description length."""
        noise = self.theory.noise_share if self.noise_scale or self.noisy else 0.0
        level = math.log((1.0 - noise) * self.beta * share) - length
        return np.minimum(level, _LOG_HALF) if isinstance(level, np.ndarray) else min(level, _LOG_HALF)

    def final_reach(self, answers: int = 1) -> float:
        """Reach of the noise of all answers of a final together, in the metric's unit.

        None is farther off with probability at least 1 - 0.02 of the final's own share of the failure probability.
        """
        if not self.final_noise:
            return 0.0
        own = math.exp(self.log_level(0.0, self.theory.final_share * self.theory.final_noise_share))
        return self.final_noise * math.log(answers / own)

    # ---- intervals

    def around(self, low: Numbers, high: Numbers, *, length: Numbers, share: float) -> Interval:
        """Where the population value is if the holdout's is in [low, high]; `length` in nats, `share` of a side."""
        level = self.log_level(length, share)
        lowest = self.lower + self.bound.lower(self._unit(low), log_level=level) * self.span
        highest = self.lower + self.bound.upper(self._unit(high), log_level=level) * self.span
        return Interval(lowest, highest)

    def final_interval(self, value: float, *, reach: float, length: float) -> Interval:
        """Interval of the population value, if a final says that the holdout's is within reach of this value."""
        told = 1.0 - self.theory.final_noise_share if self.final_noise else 1.0
        return self.around(value - reach, value + reach, length=length, share=0.5 * told)

    @property
    def final_by_evidence(self) -> bool:
        """Whether a final shows the set that the rows' evidence leaves: of graded losses or a ratio, without noise."""
        return self.spread is not None and not self.final_noise

    def final_set(self, length: float, guess: float | None = None) -> _evidence_set.EvidenceSet:
        """Set that a final by evidence shows at a description length; `guess` is the plan's estimate by default."""
        at = self.estimate if guess is None else guess
        return self.evidence_set(-float(self.log_level(length, 0.5)), at)

    def evidence_set(self, nats: float, guess: float) -> _evidence_set.EvidenceSet:
        """Set that the rows' evidence leaves, each end at so many nats, if their mean is as guessed."""
        mean, spread = (guess - self.lower) / self.span, cast("float", self.spread) / self.span
        return _evidence_set.EvidenceSet(nats, self.bound.rows, mean, spread, self.theory)

    def left_by(self, ends: tuple[float, float]) -> Interval:
        """Ends of a set, normalised, rounded outwards, within the bounds; the metric's unit."""
        low, high = (self.lower + end * self.span for end in ends)
        return Interval(max(low - self.grid_slack, self.lower), min(high + self.grid_slack, self.upper))

    def likely_half_width(self, nats: float, estimate: float) -> float:
        """Half-width of the set that rows of the guessed spread leave, each end at so many nats; the metric's unit."""
        least, most = self.evidence_set(nats, estimate).likely
        return (most - least) / 2.0 * self.span

    def of_rows(self, rows: int) -> Certificate:
        """Certificate of other rows of the same kind."""
        return replace(self, bound=self.bound.of_rows(rows))

    def half_width(self, *, charges: int, nats: float, estimate: float) -> float:
        """Half-width of an agreed answer's confidence bound alone around ``estimate``, in the metric's unit."""
        length = self.code.length(query=self.queries, charges=charges, nats=nats + self.told_before)
        if self.by_evidence:
            return self.likely_half_width(-float(self.log_level(length, self.shares.agreed)), estimate)
        low, high = self.around(estimate, estimate, length=length, share=self.shares.agreed)
        return float(high - low) / 2.0

    def final_half_width(self, *, length: float, estimate: float, answers: int = 1) -> float:
        """Half-width of a final's interval around ``estimate`` at a description length, in the metric's unit."""
        if self.final_by_evidence:
            return self.likely_half_width(-float(self.log_level(length, 0.5)), estimate)
        low, high = self.final_interval(estimate, reach=self.final_reach(answers), length=length)
        return float(high - low) / 2.0

    # ---- thresholds, and evidence that decides in their place

    def evidence(
        self, named: float, tolerance: float, sides: Literal["both", "low", "high"] = "both"
    ) -> _evidence.Evidence:
        """Evidence that the population value is within a tolerance of what was named; both in the metric's unit."""
        least = max(tolerance / self.span - GRID_SLACK, GRID_SLACK)  # terms and what is named are rounded
        return _evidence.Evidence((named - self.lower) / self.span, least, sides, self.theory.check_bets)

    def evidence_needed(self, evidence: _evidence.Evidence, length: float) -> float:
        """Nats that make an answer certain enough at a description length, the noise's reach included."""
        return -float(self.log_level(length, self.shares.agreed)) + self.evidence_tail(evidence)

    def evidence_tail(self, evidence: _evidence.Evidence) -> float:
        """Reach of the comparison's noise and rounding, in nats."""
        return self.comparison_tail / self.span / self.sensitivity * evidence.sensitivity

    def threshold(self, prior: Numbers, *, charges: int, nats: float) -> Numbers:
        """Largest deviation that may go uncorrected at this prior, in the metric's unit.

        The largest T such that ``[lower(a - T - t), upper(a + T + t)]`` stays within ``a +- tolerance``, up to the
        plan's ``estimate``: an agreed answer is that near the population value. It changes only when something is told.
        """
        if self.fixed_threshold is not None:
            fixed = self.fixed_threshold
            return np.full_like(prior, fixed) if isinstance(prior, np.ndarray) else fixed
        return self.threshold_of_length(prior, self.length(charges=charges, nats=nats))

    def threshold_of_length(
        self, prior: Numbers, length: float, *, tolerance: float | None = None, least: float | None = None
    ) -> Numbers:
        """Largest deviation that may go uncorrected at a description length; see :meth:`threshold`.

        Another tolerance and another least threshold may be named than the plan's. Where evidence decides, rows whose
        spread is as guessed are agreed up to it, and none deviates less than the least one.
        """
        limit = self.tolerance if tolerance is None else tolerance
        if self.by_evidence:
            each = [self._likely_threshold(one, length, limit) for one in np.atleast_1d(prior).tolist()]
            return np.array(each) if isinstance(prior, np.ndarray) else each[0]
        level, value, unit = self.log_level(length, self.shares.agreed), self._unit(prior), limit / self.span
        below = value - self.bound.reach_low(value - unit, log_level=level)
        above = self.bound.reach_high(value + unit, log_level=level) - value
        room = np.minimum(np.minimum(below, above), 1.0) * self.span - self.comparison_tail
        threshold = np.maximum(room, self.least_threshold if least is None else least)
        return threshold if isinstance(prior, np.ndarray) else float(threshold)

    def _likely_threshold(self, prior: float, length: float, tolerance: float) -> float:
        evidence, spread = self.evidence(prior, tolerance), cast("float", self.spread) / self.span
        needed = self.evidence_needed(evidence, length)
        return self.span * evidence.likely_reach(needed, spread, self.bound.rows)

    def tidy(self, value: float) -> float:
        """Hide what lies below the noise grid, and stay within the bounds."""
        digits = math.ceil(8.5 - math.log10(self.span))  # coarser than the grid, within its slack
        return min(max(round(value, digits), self.lower), self.upper)

    def _unit(self, value: Numbers) -> Numbers:
        return (value - self.lower) / self.span


class ThresholdTable:
    """Thresholds after so many charges, rounded down to a table over the priors.

    An agreed answer keeps the certificate's tolerance as with the exact threshold, which is at most 2e-4 of the range
    larger. The state changes only at charges, so a question costs a look-up instead of two inversions.

    Parameters
    ----------
    certificate : Certificate
        Of the plan.
    charges, nats : int, float
        Charges made, and the description length of their values.

    Notes
    -----
    The exact threshold is the smaller of two smooth functions of the prior, each without a dip inside a cell of
    1/2,048 of the range, so the smaller of a cell's two ends is a lower bound on it (tested).
    """

    def __init__(self, certificate: Certificate, *, charges: int, nats: float) -> None:
        self.charges, self.nats = charges, nats
        count = certificate.theory.threshold_cells
        self._lower, self._last, self._cell = certificate.lower, count - 1, certificate.span / count
        self._cells = _cells(certificate, charges, nats)

    def at(self, prior: float) -> float:
        """Threshold at one prior, in the metric's unit."""
        cell = min(max(int((prior - self._lower) / self._cell), 0), self._last)
        return float(self._cells[cell])

    def at_each(self, priors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Thresholds at many priors; the same numbers as :meth:`at`."""
        cells = ((priors - self._lower) / self._cell).astype(np.int64)
        return self._cells[np.clip(cells, 0, self._last)]


@lru_cache(maxsize=64)
def _cells(certificate: Certificate, charges: int, nats: float) -> NDArray[np.float64]:
    """Threshold of each cell; a process that opens or verifies a ledger again finds it here."""
    nodes = np.linspace(certificate.lower, certificate.upper, certificate.theory.threshold_cells + 1)
    exact = np.asarray(certificate.threshold(nodes, charges=charges, nats=nats))
    cells: NDArray[np.float64] = np.minimum(exact[:-1], exact[1:])
    if certificate.fixed_threshold is None:
        slack = certificate.theory.threshold_slack * certificate.span
        cells = np.maximum(cells - slack, certificate.least_threshold)
    cells.flags.writeable = False
    return cells
