"""Where the holdout's value can lie when an outcome is told: every score, every prior, noise at the ends of its reach.

The confidence bound is replaced by one that adds nothing, so an interval is the reach itself.
"""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from cases import for_each
from long_tests import VALIDITY
from reusable_holdout.guard.kinds.check import Compare
from reusable_holdout.guard.kinds.gate import GateCompare
from reusable_holdout.guard.kinds.table import POLICIES

from reusable_holdout.certainty import Certificate, ConfidenceBound, policy_code
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.ways import State, Terms
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.reveal import Choose, Reveal

MECHANISMS = ["numeric-sparse", "standard-svt", "target-charging", "noiseless"]
THRESHOLDS = [0.004, 0.07, 0.3, 1.0, 2.5]
KINDS = {
    "check": POLICIES["thresholdout"],
    "compare": Compare,
    "guess-and-check": POLICIES["guess-and-check"],
    "ladder": POLICIES["ladder"],
    "gate": POLICIES["gate"],
    "gate-compare": GateCompare,
    "reveal": Reveal,
}


@dataclass(frozen=True)
class Nothing:
    """A bound of the population value by the holdout's that are the same."""

    def lower(self, value, *, log_level):
        return np.clip(value, 0.0, 1.0)

    upper = lower


@dataclass
class Scripted:
    """A mechanism whose noise is given, in grid units; it decides as the real ones do."""

    comparison: int
    answer: int
    direction: int
    spent: int = 0

    def deviates(self, score, prior, threshold, question):
        deviation = score - prior
        distance = self.direction * deviation if self.direction else abs(deviation)
        return distance + self.comparison >= threshold

    def query_noise(self, questions):
        return np.array(
            [self.comparison if place % 2 else -self.comparison for place in range(len(questions))]
        )

    def charge(self, value, question):
        return value + self.answer


def certificate(mechanism, threshold, *, bounds, better, policy="thresholdout", scale=0.004):
    span = bounds[1] - bounds[0]
    code = policy_code(policy, places=1.0 / threshold)
    return Certificate(
        bound=ConfidenceBound("binomial", rows=10, sum_of_squares=0.1),
        queries=10,
        charges=3,
        beta=0.05,
        noise=0.0 if mechanism == "noiseless" else scale * span,
        lower=bounds[0],
        upper=bounds[1],
        tolerance=span,
        fixed_threshold=0.0 if policy == "gate" else threshold * span,
        least_threshold=threshold * span,
        charge_nats=code.charge_nats,
        shares=code.shares,
        greater_is_better=better,
        mechanism=mechanism,
    )


def kind_of(name, mechanism, threshold, *, bounds=(0.0, 1.0), better=True):
    policy = name if name in POLICIES else "gate" if name.startswith("gate") else "thresholdout"
    numbers = certificate(mechanism, threshold, bounds=bounds, better=better, policy=policy)
    return KINDS[name](replace(numbers, bound=Nothing()), KeyedNoise(bytes(32)))


def reaches(kind):
    """Largest noise of a comparison and of an answer, in grid units, rounding left out."""
    unit, tails = kind.certificate.noise / kind.certificate.span * GRID, kind.certificate.tails
    return math.floor(tails.comparison * unit), math.floor(tails.answer * unit)


@pytest.mark.long(*VALIDITY, "reusable_holdout/guard/kinds")
@for_each(("bounds", "better"), [((0.0, 1.0), True), ((0.0, 1.3), False)])
@for_each("mechanism", ["numeric-sparse", "target-charging", "noiseless"])
@for_each("name", KINDS)
def test_an_interval_reaches_whatever_may_have_led_to_its_outcome(name, mechanism, better, bounds):
    lower, span = bounds[0], bounds[1] - bounds[0]
    for threshold in THRESHOLDS:
        kind = kind_of(name, mechanism, threshold, bounds=bounds, better=better)
        comparison, answer = reaches(kind)
        direction = kind.certificate.better if kind.one_sided else 0
        same = kind._calibration.releases_the_comparison
        noises = [(n, n if same else m) for n in {-comparison, 0, comparison} for m in {-answer, 0, answer}]
        priors = [0.0, threshold / 3.0, 0.31, 0.5, 0.98, 1.0, 1.0 - threshold, threshold, 8.0 * threshold]
        for prior in [lower + span * prior for prior in priors if 0.0 <= prior <= 1.0]:
            terms = Terms(prior, kind.threshold(prior, State(), None))
            near = [
                prior + sign * cells * terms.threshold for cells in (0.5, 1, 1.5, 2, 8) for sign in (1, -1)
            ]
            values = [*np.linspace(lower, lower + span, 14), *near, prior]
            for value, (n, m) in itertools.product(values, noises):
                score = math.floor((value - lower) / span * GRID)
                if not 0 <= score <= GRID:
                    continue
                kind._at = kind._resumed = lambda _, n=n, m=m, to=direction: Scripted(n, m, to)
                outcome = kind.decide(score, terms, b"", State())
                low, high = kind.interval(outcome, terms, 1.0)
                held = lower + score / GRID * span
                assert low - 1e-15 <= held <= high + 1e-15, (threshold, prior, value, n, m, outcome.told)


@for_each("better", [True, False])
@for_each("mechanism", MECHANISMS)
def test_no_other_candidate_is_better_than_a_choice_says(mechanism, better):
    for threshold in THRESHOLDS:
        numbers = certificate(mechanism, threshold, bounds=(0.0, 1.0), better=better)
        kind = Choose(replace(numbers, bound=Nothing()), KeyedNoise(bytes(32)))
        comparison, answer = reaches(kind)
        scores = np.linspace(0.0, 1.0, 5)
        for mine, theirs, third in itertools.product(scores, scores, (0.0, 0.52)):
            values = [mine, theirs, third]
            for priors, n, m in itertools.product(
                ([0.5, 0.5, 0.5], [0.0, 1.0, 0.2]), {-comparison, comparison}, {-answer, answer}
            ):
                if kind._calibration.releases_the_comparison:
                    m = n if n * m > 0 else -n  # noqa: PLW2901
                kind._resumed = lambda _, n=n, m=m: Scripted(n, m, 0)
                grid = [math.floor(value * GRID) for value in values]
                terms, outcome = kind.choose(grid, np.array(priors), [b"1", b"2", b"3"], State())
                winner = int(outcome.told.split()[1])
                others = kind.others(outcome, terms, 1.0)
                low, high = kind.interval(outcome, terms, 1.0)
                assert low <= grid[winner] / GRID <= high
                for place, score in enumerate(grid):
                    if place != winner:
                        assert (others - score / GRID) * kind.certificate.better >= 0.0


@for_each("span", [0.2, 0.5, 1.0, 1.3, 2.0, 4.0, 9.99, 10.0, 31.0])
def test_a_final_holds_the_value_that_it_rounds(span):
    numbers = certificate("noiseless", 0.1, bounds=(0.0, span), better=True)
    kind = Final(replace(numbers, bound=Nothing()), KeyedNoise(bytes(32)))
    for score in (0, GRID, *(GRID * k // 997 for k in range(1, 997))):
        outcome = kind.decide(score, b"")
        low, high = kind.interval(outcome, kind.terms(outcome), 1.0)
        assert low <= score / GRID * span <= (score + 1) / GRID * span <= high or score == GRID


def test_candidates_with_equal_priors_have_ranks_of_their_own():
    kind = Choose(certificate("noiseless", 0.07, bounds=(0.0, 1.0), better=True), KeyedNoise(bytes(32)))
    ranks = []
    for winner in range(4):
        grid = [GRID // 2 if place == winner else 0 for place in range(4)]
        _, outcome = kind.choose(grid, np.full(4, 0.5), [b"1", b"2", b"3", b"4"], State())
        ranks.append(outcome.told.split(", ")[1])
    assert ranks == ["rank 1", "rank 2", "rank 3", "rank 4"]


@for_each("name", KINDS)
@for_each("threshold", THRESHOLDS)
def test_the_weights_of_all_outcomes_that_cost_something_sum_to_one_at_most(name, threshold):
    kind = kind_of(name, "noiseless", threshold)
    for prior in (0.0, 0.4, 1.0):
        terms = Terms(prior, kind.threshold(prior, State(), None))
        told = ["failed", *(f"cell {k}" for k in range(20)), *(f"steps {k}" for k in range(1, 300))]
        weights = [math.exp(-kind.outcome(one, terms).nats) for one in told if is_outcome(kind, one, terms)]
        assert 0.5 <= math.fsum(weights) <= 1.0 + 1e-12


def is_outcome(kind, told, terms):
    try:
        kind.outcome(told, terms)
    except InputError:
        return False
    return True
