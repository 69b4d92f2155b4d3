"""The stated numbers of a plan, which of their combinations can be kept, and the search for the missing one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from reusable_holdout.plan.claims import honest_nats
from reusable_holdout.plan.honest_search import charges_of_a_search
from reusable_holdout.plan.numbers import exam_count, largest, round_up
from reusable_holdout.plan.shared import OWN_BUDGET, SharedBudget
from reusable_holdout.validity import (
    BY_DISTANCE,
    Certificate,
    ConfidenceBound,
    Evidence,
    NoiseTails,
    Policy,
    PolicyCode,
    Theory,
    edition,
    parameter_free_step,
    policy_code,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.mechanisms.calibration import GuardMechanism

__all__ = [
    "BY_ROWS",
    "MOST_QUERIES",
    "MOST_ROWS",
    "MOST_TOLERANCE",
    "Family",
    "MechanismChoice",
    "Wish",
]

MOST_ROWS = 10**12
MOST_QUERIES = 10**12
MOST_TOLERANCE = 2.0  # of the range

_NOISE_SHARE = 0.04  # of the tolerance: the reach of the comparison's noise, when the scale is derived
_NOISE_NATS = 0.3  # reach of the comparison's noise, when evidence is compared and the scale is derived
_FIXED_NOISE_SHARE = 0.25  # of the threshold, when the threshold is stated
_HONEST = 0.95  # probability that an honest search is answered to its last question
_COMMON = (1.0, 0.5)  # shares of the holdout's error that the models of one search may have in common
_MOST_STATES = (
    64  # charges: with more thresholds of at least a standard deviation, no honest search spends them
)
_MOST_SPARE = 1024.0  # nats; more would not be told by a thousand reveals
_SPARE_ACCURACY = 0.01  # nats
_SLACK = 1e-9  # a tolerance that was derived must pass when it is stated

Family: TypeAlias = Literal["binomial", "mean", "bounded", "bounded-difference", "paired", "ratio"]
BY_ROWS: frozenset[Family] = frozenset({"mean", "paired", "ratio"})
"""Families whose rows decide, by their evidence."""

_WITH_PRIORS = frozenset({"thresholdout", "guess-and-check"})

MechanismChoice: TypeAlias = Literal[
    "numeric-sparse", "standard-svt", "target-charging", "noiseless", "tightest"
]


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Numbers of a plan in units of the metric's range; what was not stated is None.

    A wish *holds* when, up to the state before the last charge, every agreed answer at `estimate` is within the
    tolerance of the population value, with a threshold that is not below one standard deviation of an honest
    deviation (a smaller one would charge every third honest question). It *serves* when, besides, an honest search is
    answered to its last question with probability 0.95; a number that is derived serves if any does.
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
    policy: Policy
    exam: float = 0.0
    shared: SharedBudget = OWN_BUDGET

    @property
    def theory(self) -> Theory:
        """Edition that it is certified by."""
        return edition(self.shared.theory)

    def exam_rows(self, rows: int) -> int:
        """How many of the rows are kept for the final: a share of them, or a stated number."""
        return exam_count(self.exam, rows)

    def asked(self, rows: int) -> int:
        """How many of the rows are asked before the final."""
        return max(1, rows - self.exam_rows(rows))

    def deviation_sd(self, rows: int) -> float:
        """Standard deviation of holdout value minus an honest prior."""
        return math.hypot(self.standard_error(rows), self.honest_error(rows))

    @property
    def by_evidence(self) -> bool:
        """Whether the rows' evidence decides, not a distance.

        Target charging's noise is that of the value it tells, so it decides by that value.
        """
        if self.family not in BY_ROWS or self.mechanism == "target-charging":
            return False
        return self.policy == "gate" or (self.policy in _WITH_PRIORS and self.threshold is None)

    @property
    def row_spread(self) -> float:
        """Standard deviation of a row's term: the stated guess, or the largest there is at `estimate`."""
        most = math.sqrt(self.estimate * (1.0 - self.estimate))
        return most if self.spread is None else min(self.spread, most)

    def standard_error(self, rows: int) -> float:
        """Public standard deviation of the holdout's value."""
        asked = self.asked(rows)
        if (
            self.family == "bounded-difference"
        ):  # Efron and Stein: a quarter of the sum of squared differences
            variance = self.variation / 4.0
        else:
            variance = min(self.row_spread**2, self.variation / 4.0)
        return math.sqrt(max(variance, 1.0 / asked) / asked)

    def honest_error(self, rows: int) -> float:
        """Standard deviation of an honest prior's own error: the stated one, or one public standard error."""
        return self.standard_error(rows) if self.prior_error is None else self.prior_error

    def fixed_threshold(self, rows: int) -> float | None:
        """Threshold that does not follow from the tolerance: a stated one, or that of a policy which has its own."""
        if self.policy == "claims":
            return self.theory.claims.reach * self.deviation_sd(rows)
        return (
            parameter_free_step(self.asked(rows))
            if self.policy == "parameter-free-ladder"
            else self.threshold
        )

    def scale(self, *, rows: int, tolerance: float, queries: int, charges: int) -> float:
        """Noise scale: the stated one, or one whose reach is a small share of what it disturbs."""
        if self.mechanism == "noiseless" or self.family == "ratio":
            return 0.0
        if self.noise_scale is not None:
            return self.noise_scale
        tails = NoiseTails(
            queries=queries,
            charges=charges,
            beta=self.beta,
            mechanism=self.mechanism,
            view=self.shared.view,
            theory=self.theory,
        )
        if self.by_evidence:
            evidence = Evidence(self.estimate, tolerance, sizes=self.theory.check_bets)
            return (
                _NOISE_NATS
                / max(evidence.sensitivity, 1.0)
                * self.influence
                / self.asked(rows)
                / tails.comparison
            )
        room = _FIXED_NOISE_SHARE * self.threshold if self.threshold else _NOISE_SHARE * tolerance
        return room / tails.comparison

    def certificate(
        self, *, rows: int, queries: int, charges: int, tolerance: float, least_threshold: float = -math.inf
    ) -> Certificate:
        """Certificate of a metric with bounds 0 and 1."""
        fixed = self.fixed_threshold(rows)
        charge_nats, shares = self._policy_code(rows)
        return Certificate(
            bound=self._bound(rows),
            queries=queries,
            charges=charges,
            beta=self.beta,
            noise_scale=self.scale(rows=rows, tolerance=tolerance, queries=queries, charges=charges),
            lower=0.0,
            upper=1.0,
            tolerance=tolerance,
            fixed_threshold=fixed,
            least_threshold=least_threshold,
            charge_nats=self.shared.charge_nats or charge_nats,
            reserved_nats=self.shared.told_nats or self.reserved_nats,
            shares=shares,
            mechanism=self.mechanism,
            view=self.shared.view,
            told_before=self.shared.told_before,
            exam_rows=self.exam_rows(rows),
            sensitivity=self.influence / self.asked(rows),
            estimate=self.estimate,
            spread=self.row_spread if self.family in BY_ROWS else None,
            by_evidence=self.by_evidence,
            noisy=self.shared.noisy,
            of_ratio=self.family == "ratio",
            adaptive=self.policy == "claims",
            theory=self.theory,
        )

    def own_charge_nats(self, rows: int) -> float:
        """What the dearest charge of the policy costs."""
        return self._policy_code(rows).charge_nats

    def _policy_code(self, rows: int) -> PolicyCode:
        if self.policy == "claims":
            places = float(self.queries or 1)
        elif self.policy == "parameter-free-ladder":
            places = float(self.asked(rows))
        else:
            places = 1.0 / (self.fixed_threshold(rows) or self.deviation_sd(rows))
        return policy_code(self.policy, places=places, by_evidence=self.by_evidence, theory=self.theory)

    def _bound(self, rows: int) -> ConfidenceBound:
        asked = self.asked(rows)
        family: Any = "bounded" if self.family in BY_ROWS else self.family
        return ConfidenceBound(family, rows=asked, sum_of_squares=self.variation / asked)

    def reach(self, *, rows: int, queries: int, charges: int, tolerance: float) -> float:
        """Farthest end of an agreed answer's interval at `estimate`, under a threshold that stays as it is."""
        certificate = self.certificate(rows=rows, queries=queries, charges=charges, tolerance=tolerance)
        # both ends, also of a policy that leaves one open: which one depends on the metric
        reach = (certificate.fixed_threshold or 0.0) + certificate.comparison_tail
        length = certificate.affordable_length
        if certificate.adaptive:
            length = certificate.length(charges=0, nats=honest_nats(queries, self.theory))
        low, high = certificate.around(
            self.estimate - reach,
            self.estimate + reach,
            length=length,
            share=certificate.shares.agreed,
        )
        return float(max(self.estimate - low, high - self.estimate))

    def holds(self, *, rows: int, queries: int, charges: int, tolerance: float) -> bool:
        """Whether these four numbers can be kept together."""
        return _holds(self, rows, queries, charges, tolerance)

    def spare_nats(self, *, rows: int, queries: int, charges: int, tolerance: float) -> float:
        """Nats that may be told beside the charges and what is set aside, while these four numbers hold."""
        if self.policy == "claims":
            return 0.0  # whose intervals grow with all that is told
        kept, refused = 0.0, _MOST_SPARE
        while refused - kept > _SPARE_ACCURACY:
            middle = (kept + refused) / 2.0
            more = replace(self, reserved_nats=self.reserved_nats + middle)
            if more.holds(rows=rows, queries=queries, charges=charges, tolerance=tolerance):
                kept = middle
            else:
                refused = middle
        return kept

    def serves(self, *, rows: int, queries: int, charges: int, tolerance: float) -> bool:
        """Whether these four numbers can be kept, and keep an honest search going to its last question."""
        numbers = {"rows": rows, "queries": queries, "charges": charges, "tolerance": tolerance}
        if not self.holds(**numbers):  # type: ignore[arg-type]
            return False
        if self.policy in BY_DISTANCE or self.policy == "gate" or self.fixed_threshold(rows) is not None:
            return True  # whose charges are not deviations of priors, or whose threshold is the user's choice
        return self.honest(**numbers) >= _HONEST  # type: ignore[arg-type]

    def honest(self, *, rows: int, queries: int, charges: int, tolerance: float) -> float:
        """Probability that an honest search is answered to its last question."""
        return float(self.search(rows=rows, queries=queries, charges=charges, tolerance=tolerance)[:-1].sum())

    def search(
        self, *, rows: int, queries: int, charges: int, tolerance: float, asked: int | None = None
    ) -> NDArray[np.float64]:
        """Distribution of the charges before the last declared question of an honest search, or after so many."""
        return _search(self, rows, queries, charges, tolerance, queries - 1 if asked is None else asked)

    def most_kept_charges(self, *, rows: int, queries: int, tolerance: float) -> int | None:
        """Largest number of charges that holds, or None."""
        return largest(
            lambda charges: self.holds(rows=rows, queries=queries, charges=charges, tolerance=tolerance),
            queries,
        )

    def most_charges(self, *, rows: int, queries: int, tolerance: float) -> int | None:
        """Largest number of charges that serves; if none does, the one of those that hold that comes nearest."""
        most = self.most_kept_charges(rows=rows, queries=queries, tolerance=tolerance)
        if most is None:
            return None

        def serves(charges: int) -> bool:
            return self.serves(rows=rows, queries=queries, charges=charges, tolerance=tolerance)

        fewer = [most, *range(min(most - 1, _MOST_STATES), 0, -1)]

        def honest(charges: int) -> float:
            return self.honest(rows=rows, queries=queries, charges=charges, tolerance=tolerance)

        return int(next((charges for charges in fewer if serves(charges)), 0) or max(fewer, key=honest))

    def most_queries(self, *, rows: int, charges: int, tolerance: float) -> int | None:
        """Largest number of queries that serves, or None."""
        return largest(
            lambda queries: self.serves(rows=rows, queries=queries, charges=charges, tolerance=tolerance),
            MOST_QUERIES,
            least=charges,
        )

    def least_rows(self, *, queries: int, charges: int, tolerance: float) -> int | None:
        """Smallest number of rows that serves, or None."""
        refused = largest(
            lambda rows: not self.serves(rows=rows, queries=queries, charges=charges, tolerance=tolerance),
            MOST_ROWS,
        )
        if refused is None:
            return 1
        return refused + 1 if refused < MOST_ROWS else None

    def least_tolerance(self, *, rows: int, queries: int, charges: int) -> float | None:
        """Smallest tolerance that serves, rounded up to three digits, or None if not even the whole range does."""
        if charges > queries:
            return None
        if not self.serves(rows=rows, queries=queries, charges=charges, tolerance=MOST_TOLERANCE):
            return None
        refused, kept = 0.0, MOST_TOLERANCE
        while kept - refused > 1e-5 * kept:
            middle = (refused + kept) / 2.0
            if self.serves(rows=rows, queries=queries, charges=charges, tolerance=middle):
                kept = middle
            else:
                refused = middle
        while not self.serves(rows=rows, queries=queries, charges=charges, tolerance=round_up(kept)):
            kept = round_up(kept) * (1.0 + 1e-4)  # noise follows the tolerance, and counts of rows are whole
        return round_up(kept)


@lru_cache(maxsize=4096)
def _holds(wish: Wish, rows: int, queries: int, charges: int, tolerance: float) -> bool:
    if not 1 <= charges <= queries or tolerance <= 0.0:
        return False
    if wish.fixed_threshold(rows) is not None and not wish.by_evidence:
        reach = wish.reach(rows=rows, queries=queries, charges=charges, tolerance=tolerance)
        return reach <= tolerance + _SLACK
    certificate = wish.certificate(rows=rows, queries=queries, charges=charges, tolerance=tolerance)
    threshold = certificate.threshold_of_length(wish.estimate, certificate.affordable_length)
    return bool(threshold >= (0.0 if wish.policy == "gate" else wish.deviation_sd(rows)))


@lru_cache(maxsize=4096)
def _search(
    wish: Wish, rows: int, queries: int, charges: int, tolerance: float, asked: int
) -> NDArray[np.float64]:
    certificate = wish.certificate(rows=rows, queries=queries, charges=charges, tolerance=tolerance)
    shown = min(charges, _MOST_STATES)
    thresholds = [
        max(
            0.0,
            float(certificate.threshold(wish.estimate, charges=made, nats=certificate.charge_nats * made)),
        )
        for made in range(shown)
    ]
    laws = [
        charges_of_a_search(
            thresholds,
            prior_error=wish.honest_error(rows),
            standard_error=wish.standard_error(rows),
            noise_sd=certificate.comparison_sd,
            queries=asked,
            common=common,
        )
        for common in _COMMON
    ]
    halted_most = max(laws, key=lambda law: float(law[-1]))
    return np.concatenate([halted_most, np.zeros(charges - shown)])  # beyond those shown none is made
