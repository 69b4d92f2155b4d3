"""The stated numbers of a plan and its facts, and the combinations that can be promised."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import (
    Certificate,
    ConfidenceBound,
    Decides,
    Evidence,
    NoiseTails,
    Shares,
    Theory,
    edition,
)
from reusable_holdout.noise import Calibration, GuardMechanism
from reusable_holdout.plan.honest import charges_of_a_search, honest_nats
from reusable_holdout.plan.numbers import BY_ROWS, OWN_BUDGET, Family, SharedBudget, bisected, largest
from reusable_holdout.plan.shown import shown_difference

MOST_ROWS = 10**12
MOST_QUERIES = 10**12
MOST_TOLERANCE = 2.0  # of the range

ALLOWANCE = 2
"""Charges of each series of claims, if no other number is stated."""

_NOISE_SHARE = 0.04  # of the tolerance: the reach of the comparison's noise, when the scale is derived
_NOISE_SHARE_OF_THRESHOLD = 0.08  # likewise, of a threshold in standard deviations
_NOISE_NATS = 0.3  # reach of the comparison's noise, when evidence is compared and the scale is derived
_FIXED_NOISE_SHARE = 0.25  # of the threshold, when the threshold is stated
_FINAL_SHARE_OF_BOARDS = 0.25
_HONEST = 0.95  # probability that an honest search is answered to its last question
_COMMON = (1.0, 0.5)  # shares of the holdout's error that the models of one search may have in common
_MOST_STATES = 64  # charges; honest searches spend fewer: thresholds are at least one standard deviation
_MOST_SPARE = 1024.0  # nats; more would not be told by a thousand reveals
_SPARE_ACCURACY = 0.01  # nats
_SLACK = 1e-9  # a tolerance that was derived must pass when it is stated

Asks = Literal["all", "gates", "claims"]
"""The purpose of a plan: all ways to ask, gates alone, or a board of claims."""


class Numbers(NamedTuple):
    """Four numbers that a plan must keep together; the tolerance is a fraction of the metric's range."""

    rows: int
    queries: int
    charges: int
    tolerance: float


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The numbers of a plan in units of the metric's range; a number that was not stated is None.

    A wish *holds* when, up to the state before the last charge, every agreed answer at `estimate` is within the
    tolerance of the population value. It *serves* when an honest search is also answered to its last question
    with probability 0.95; a derived number is one that serves, if there is one.

    A threshold is a number of standard deviations of an honest deviation: as many as the tolerance allows, at least
    one (less would charge every third honest question), and at most so many that chance charges one of all honest
    questions with probability 0.05 (Bonferroni). A wish is *ample* if its threshold has that many. A derived
    tolerance is ample, and leaves room for `room_nats` in addition to the charges.
    """

    rows: int | None
    queries: int | None
    charges: int | None
    tolerance: float | None
    threshold: float | None
    noise_scale: float | None
    beta: float
    estimate: float
    family: Family
    influence: float
    variation: float
    spread: float | None
    prior_error: float | None
    reserved_nats: float
    mechanism: GuardMechanism
    asks: Asks
    shared: SharedBudget = OWN_BUDGET
    stated_final_share: float | None = None
    pair_spread: float | None = None
    kept_sds: float | None = None  # of a ledger's plan
    room_nats: float = 0.0  # for which a derived tolerance leaves room

    @property
    def theory(self) -> Theory:
        """Edition of the theory that certifies the plan."""
        return edition(self.shared.theory)

    @property
    def certifies(self) -> bool:
        """True if only gates are asked and they certify the named value; the tolerance is the difference they show."""
        return self.asks == "gates" and self.theory.gates_certify

    @property
    def final_share(self) -> float:
        """Share of the failure probability for the final."""
        stated = self.stated_final_share
        return usual_final_share(self.theory, self.asks) if stated is None else stated

    def most_sds(self, queries: int) -> float:
        """Return the largest threshold in standard deviations of an honest deviation; 0 if it is not set in these."""
        level = self.theory.threshold_level
        if not level or self.asks != "all" or self.threshold is not None or self.final_share == 1.0:
            return 0.0
        return -NormalDist().inv_cdf(level / (2.0 * queries))

    @lru_cache(maxsize=4096)  # noqa: B019 - a wish is small, and equal ones share what was found
    def threshold_sds(self, numbers: Numbers) -> float:
        """Return the threshold that the tolerance allows, in standard deviations; 0 if it is not set in these."""
        most = self.most_sds(numbers.queries)
        if self.kept_sds is not None or not most:
            return self.kept_sds or 0.0
        certificate = self._certificate(numbers, most)
        length, limit = certificate.affordable_length, numbers.tolerance
        allowed = certificate.threshold_of_length(self.estimate, length, tolerance=limit, least=-math.inf)
        return min(most, float(allowed) / certificate.least_threshold)

    def deviation_sd(self, rows: int) -> float:
        """Return the standard deviation of the holdout value minus an honest prior."""
        return math.hypot(self.standard_error(rows), self.honest_error(rows))

    @property
    def decides(self) -> Decides:
        """The rule that picks an outcome."""
        if self.family == "ratio":
            return "sets"
        by_evidence = self.family in BY_ROWS and self.asks != "claims" and self.threshold is None
        return "evidence" if by_evidence else "distance"

    @property
    def row_spread(self) -> float:
        """Standard deviation of a row's term: the stated guess, or the largest possible one at `estimate`."""
        most = math.sqrt(self.estimate * (1.0 - self.estimate))
        return most if self.spread is None else min(self.spread, most)

    def standard_error(self, rows: int) -> float:
        """Return the public standard deviation of the holdout value."""
        variance = self.variation / 4.0  # Efron and Stein: a quarter of the sum of squared differences
        if self.family != "bounded-difference":
            variance = min(self.row_spread**2, variance)
        return math.sqrt(max(variance, 1.0 / rows) / rows)

    def honest_error(self, rows: int) -> float:
        """Return the standard deviation of an honest prior's own error.

        It is the stated one; by default one public standard error.
        """
        return self.standard_error(rows) if self.prior_error is None else self.prior_error

    def fixed_threshold(self, rows: int) -> float | None:
        """Return the threshold if it does not follow from the tolerance: a stated one, or a board's."""
        if self.asks == "claims":
            return self.theory.claims.reach * self.deviation_sd(rows)
        return 0.0 if self.asks == "gates" else self.threshold

    def scale(self, numbers: Numbers) -> float:
        """Return the noise scale.

        It is the stated one; by default one whose reach is a small share of the quantity it disturbs.
        """
        if self.mechanism == "noiseless" or self.family == "ratio":
            return 0.0
        if self.noise_scale is not None or self.certifies:
            return self.noise_scale or 0.0
        declared, view = (numbers.queries, numbers.charges), self.shared.view
        tails = NoiseTails(*declared, self.beta, self.mechanism, view, self.theory)
        widest = self.most_sds(numbers.queries) * self.deviation_sd(numbers.rows)
        threshold = min(widest, numbers.tolerance / 2.0)
        if self.decides == "evidence":
            tolerance = 2.0 * threshold or numbers.tolerance
            evidence = Evidence(self.estimate, tolerance, sizes=self.theory.check_bets)
            share = _NOISE_NATS / max(evidence.sensitivity, 1.0) * self.influence
            return share / numbers.rows / tails.comparison
        room = _NOISE_SHARE * numbers.tolerance
        if threshold or self.threshold:
            room = _NOISE_SHARE_OF_THRESHOLD * threshold or _FIXED_NOISE_SHARE * (self.threshold or 0.0)
        return room / tails.comparison

    def certificate(self, numbers: Numbers) -> Certificate:
        """Return the certificate of the questions that the plan is for: checks, gates or claims."""
        return self._certificate(numbers, self.threshold_sds(numbers))

    def _certificate(self, numbers: Numbers, sds: float) -> Certificate:
        rows, by_rows = numbers.rows, self.family in BY_ROWS
        family: Any = "bounded" if by_rows else self.family
        return Certificate(
            bound=ConfidenceBound(
                "odds" if self.theory.odds else family,
                rows=rows,
                sum_of_squares=self.variation / rows,
                odds=self.theory.odds,
                estimate=self.estimate,
            ),
            queries=numbers.queries,
            charges=numbers.charges,
            beta=self.beta,
            noise_scale=self.scale(numbers),
            tolerance=numbers.tolerance,
            least_threshold=self.least_threshold(numbers) if sds else -math.inf,
            charge_nats=self.shared.charge_nats or self.charge_nats,
            reserved_nats=self.shared.told_nats or self.reserved_nats,
            decides=self.decides,
            shares=self._shares,
            fixed_threshold=self.fixed_threshold(rows),
            threshold_sds=sds,
            prior_error=self.prior_error or 0.0,
            mechanism=self.mechanism,
            view=self.shared.view,
            told_before=self.shared.told_before,
            sensitivity=self.influence / rows,
            estimate=self.estimate,
            spread=self.row_spread if by_rows else None,
            noisy=self.shared.noisy,
            adaptive=self.asks == "claims",
            final_share=self.final_share,
            first_share=self.theory.first_share_of_gates if self.asks == "gates" else 0.0,
            theory=self.theory,
        )

    @property
    def charge_nats(self) -> float:
        """The cost of the most expensive charge, for the purpose of the plan."""
        theory = self.theory
        if self.asks == "gates":
            return theory.gate.worst
        if self.asks == "all":  # of any metric of the rows
            return max(theory.charge.worst, theory.spans.worst, theory.gate.worst)
        code, cells = theory.claims, len(theory.charge.cells)
        begun = code.stands + cells * code.charge + code.failed + 2.0 * sum(code.measured)
        return math.log((float(self.queries or 1) + begun) / code.failed)

    @property
    def _shares(self) -> Shares:
        """The shares of the failure probability for the sides of an interval."""
        if self.asks == "claims":
            return Shares(0.5, 0.5)
        if self.asks == "gates":
            return Shares(1.0, 1.0)
        return self.theory.scores if self.decides == "distance" else self.theory.by_evidence

    def reach(self, numbers: Numbers) -> float:
        """Return the distance to the farther end of an agreed answer's interval at `estimate`, at a fixed threshold."""
        certificate = self.certificate(numbers)
        if not certificate.adaptive:
            return certificate.agreed_reach(certificate.affordable_length)
        told = honest_nats(numbers.queries, self.theory)
        return certificate.agreed_reach(certificate.length(charges=0, nats=told))

    @lru_cache(maxsize=4096)  # noqa: B019 - a wish is small, and equal ones share what was found
    def holds(self, numbers: Numbers) -> bool:
        """Return True if these four numbers can be promised together."""
        if not 1 <= numbers.charges <= numbers.queries or numbers.tolerance <= 0.0:
            return False
        if self.final_share == 1.0:
            return self.final_half_width(numbers) <= numbers.tolerance + _SLACK
        if self.certifies:
            certificate = self.certificate(numbers)
            return self.shown(certificate, certificate.affordable_length) <= numbers.tolerance + _SLACK
        if self.most_sds(numbers.queries):
            return self.threshold_sds(numbers) >= 1.0
        if self.fixed_threshold(numbers.rows) is not None and self.decides == "distance":
            return self.reach(numbers) <= numbers.tolerance + _SLACK
        certificate = self.certificate(numbers)
        threshold = certificate.threshold_of_length(self.estimate, certificate.affordable_length)
        return bool(threshold >= (0.0 if self.asks == "gates" else self.deviation_sd(numbers.rows)))

    def shown(self, certificate: Certificate, length: float, *, signs: bool = False) -> float:
        """Return the difference that a gate shows nine times in ten at a description length."""
        error, pairs = self.standard_error(certificate.bound.rows), self.family == "paired"
        any_tolerance = replace(certificate, tolerance=1.0)  # the result is the same for all, and cached once
        return shown_difference(any_tolerance, length, error, pairs=pairs, signs=signs)

    @lru_cache(maxsize=1024)  # noqa: B019 - likewise
    def spare_nats(self, numbers: Numbers) -> float:
        """Return the nats that reveals and choices may cost in addition to all charges if a plan keeps its numbers."""
        if self.asks == "claims" or self.final_share == 1.0:
            return 0.0  # the intervals of claims grow with all that is told; and a final alone leaves nothing to tell

        sds = self.threshold_sds(numbers)

        def holds(nats: float) -> bool:
            more = replace(self, reserved_nats=self.reserved_nats + nats, kept_sds=sds or None)
            return more.reach(numbers) <= numbers.tolerance + _SLACK if sds else more.holds(numbers)

        return bisected(holds, kept=0.0, refused=_MOST_SPARE, accuracy=_SPARE_ACCURACY)

    def least_threshold(self, numbers: Numbers) -> float:
        """Return the standard deviation of an honest deviation, with the noise that it is compared with."""
        honest = self.deviation_sd(numbers.rows)
        if self.theory.threshold_level:
            threshold, query, _ = Calibration(self.mechanism, numbers.charges).scales
            honest = math.hypot(honest, math.sqrt(2.0) * math.hypot(threshold, query) * self.scale(numbers))
        return min(honest, 1.0)

    def final_half_width(self, numbers: Numbers) -> float:
        """Return the half-width of a final of one model if nothing was charged."""
        certificate = self._certificate(numbers, 0.0)
        length = certificate.final_length(charges=0, nats=0.0)
        return certificate.final_half_width(length=length, estimate=self.estimate)

    def ample(self, numbers: Numbers) -> bool:
        """Return True if these numbers serve (see :meth:`serves`) with the largest threshold that a plan uses."""
        return self.threshold_sds(numbers) >= self.most_sds(numbers.queries) and self.serves(numbers)

    def serves(self, numbers: Numbers) -> bool:
        """Return True if these numbers can be promised, and an honest search gets to its last question."""
        if not self.holds(numbers):
            return False
        # gates and claims are not charged for a prior's deviation; a fixed threshold is the user's choice
        is_free = self.asks != "all" or self.final_share == 1.0
        is_free = is_free or self.fixed_threshold(numbers.rows) is not None
        return is_free or self.honest(numbers) >= _HONEST

    def honest(self, numbers: Numbers) -> float:
        """Return the probability that an honest search is answered to its last question."""
        return float(self.search(numbers)[:-1].sum())

    @lru_cache(maxsize=4096)  # noqa: B019 - likewise
    def search(self, numbers: Numbers, asked: int | None = None) -> NDArray[np.float64]:
        """Return the distribution of an honest search's charges after `asked` questions, by default before the last."""
        certificate, shown = self.certificate(numbers), min(numbers.charges, _MOST_STATES)
        at, each = self.estimate, certificate.charge_nats
        told = (certificate.threshold(at, charges=made, nats=each * made) for made in range(shown))
        thresholds = [max(0.0, float(threshold)) for threshold in told]
        deviations = {
            "prior_error": self.honest_error(numbers.rows),
            "standard_error": self.standard_error(numbers.rows),
            "noise_sd": certificate.comparison_sd,
        }
        asked = numbers.queries - 1 if asked is None else asked
        laws = [charges_of_a_search(thresholds, queries=asked, common=one, **deviations) for one in _COMMON]
        halted_most = max(laws, key=lambda law: float(law[-1]))
        none = np.zeros(numbers.charges - shown)  # the probability of still more charges
        return np.concatenate([halted_most, none])

    def most_charges(self, rows: int, queries: int, tolerance: float) -> int | None:
        """Return the most charges that serve; if none do, the number that holds and is best for an honest search."""

        def of(charges: int) -> Numbers:
            return Numbers(rows, queries, charges, tolerance)

        most = largest(lambda charges: self.holds(of(charges)), queries)
        if most is None:
            return None
        fewer = [of(most), *map(of, range(min(most - 1, _MOST_STATES), 0, -1))]
        served = next(filter(self.serves, fewer), None) or max(fewer, key=self.honest)
        return served.charges


def usual_final_share(theory: Theory, asks: Asks) -> float:
    """Return the share of the failure probability for the final, if none is stated; gates alone keep none."""
    if not theory.threshold_level or asks == "all":
        return theory.final_share
    return 0.0 if asks == "gates" else _FINAL_SHARE_OF_BOARDS
