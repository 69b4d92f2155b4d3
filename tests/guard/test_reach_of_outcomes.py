"""Where the holdout's value can lie when an outcome is told: every score, every prior, noise at the ends of its reach.

The confidence bound is replaced by one that adds nothing, so an interval is the reach itself.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from cases import for_each
from long_tests import VALIDITY

from reusable_holdout.certainty import THEORY, Certificate, Shares
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.rules import Distance
from reusable_holdout.ways import State, Terms
from reusable_holdout.ways.check import Asked, Check
from reusable_holdout.ways.gate import Gate
from reusable_holdout.ways.reveal import Choose, Reveal

MECHANISMS = ["numeric-sparse", "noiseless"]
THRESHOLDS = [0.004, 0.07, 0.3, 1.0, 2.5]
NOBODYS = KeyedNoise(bytes(32))


@dataclass(frozen=True)
class Nothing:
    """A bound of the population value by the holdout's that are the same."""

    def lower(self, value, *, log_level):
        return np.clip(value, 0.0, 1.0)

    upper = reach_low = lower


@dataclass
class Scripted:
    """A mechanism whose noise is given, in grid units; it decides as the real one does."""

    comparison: int
    answer: int
    spent: int = 0
    last_charged: bytes | None = None

    def first_above(self, deviations, limits, digests, *, query_noise=None):
        found = np.flatnonzero(deviations + self.comparison >= limits)
        return int(found[0]) if len(found) else None

    def is_above(self, deviation, limit, question):
        return self.first_above(np.array([deviation]), np.array([limit]), [question]) is not None

    def query_noise(self, questions):
        return np.array(
            [self.comparison if place % 2 else -self.comparison for place in range(len(questions))]
        )

    def charge(self, value, question):
        return value + self.answer


def certificate(mechanism, threshold, *, gate=False, scale=0.004):
    return Certificate(
        bound=Nothing(),
        queries=10,
        charges=3,
        beta=0.05,
        noise_scale=0.0 if mechanism == "noiseless" else scale,
        tolerance=1.0,
        fixed_threshold=0.0 if gate else threshold,
        least_threshold=threshold,
        charge_nats=THEORY.gate.worst if gate else THEORY.charge.worst,
        shares=Shares(1.0, 1.0) if gate else THEORY.scores,
        mechanism=mechanism,
    )


def made(name, mechanism, threshold):
    gate = name == "gate"
    numbers = certificate(mechanism, threshold, gate=gate)
    if name == "reveal":
        return Reveal(numbers, name, NOBODYS, by_rows=False)
    return (Gate if gate else Check)(numbers, name, NOBODYS, Distance(numbers, gate=gate))


def scripted(way, comparison, answer):
    """The same way with noise that is given."""
    way._core = None
    way.core = lambda _: Scripted(comparison, answer)


def decided(way, score, prior):
    if isinstance(way, Reveal):
        return way.decide(score, prior, b"", State())
    asked = Asked([b""], np.array([prior]), None, np.array([[score]]), np.zeros(1, dtype=bool), np.zeros(1))
    units, outcomes = way.decide(asked, State())
    terms = Terms(prior, float(units[0]))
    return terms, outcomes[0] or way.outcome(way.calm, terms)


def reaches(way):
    """Largest noise of a comparison and of an answer, in grid units, rounding left out."""
    unit, tails = way.certificate.noise_scale * GRID, way.certificate.tails
    return math.floor(tails.comparison * unit), math.floor(tails.answer * unit)


@pytest.mark.long(*VALIDITY, "reusable_holdout/ways", "reusable_holdout/rules")
@for_each("mechanism", MECHANISMS)
@for_each("name", ["check", "gate", "reveal"])
def test_an_interval_reaches_whatever_may_have_led_to_its_outcome(name, mechanism):
    for threshold in THRESHOLDS:
        way = made(name, mechanism, threshold)
        comparison, answer = reaches(way)
        noises = [(n, m) for n in {-comparison, 0, comparison} for m in {-answer, 0, answer}]
        priors = [0.0, threshold / 3.0, 0.31, 0.5, 0.98, 1.0, 1.0 - threshold, threshold, 8.0 * threshold]
        for prior in [prior for prior in priors if 0.0 <= prior <= 1.0]:
            unit = way.unit(prior, State(), None)
            near = [prior + sign * cells * unit for cells in (0.5, 1, 1.5, 2, 8) for sign in (1, -1)]
            values = [*np.linspace(0.0, 1.0, 14), *near, prior]
            for value, (n, m) in itertools.product(values, noises):
                score = math.floor(value * GRID)
                if not 0 <= score <= GRID:
                    continue
                scripted(way, n, m)
                terms, outcome = decided(way, score, prior)
                low, high = way.interval(outcome.told, terms, 1.0)
                held = score / GRID
                assert low - 1e-15 <= held <= high + 1e-15, (threshold, prior, value, n, m, outcome.told)


@for_each("mechanism", MECHANISMS)
def test_no_other_candidate_is_better_than_a_choice_says(mechanism):
    for threshold in THRESHOLDS:
        way = Choose(certificate(mechanism, threshold), "choose", NOBODYS, by_rows=False)
        comparison, answer = reaches(way)
        scores = np.linspace(0.0, 1.0, 5)
        for mine, theirs, third in itertools.product(scores, scores, (0.0, 0.52)):
            grid = [math.floor(value * GRID) for value in (mine, theirs, third)]
            for priors, n, m in itertools.product(
                ([0.5, 0.5, 0.5], [0.0, 1.0, 0.2]), {-comparison, comparison}, {-answer, answer}
            ):
                scripted(way, n, m)
                terms, outcome = way.choose(grid, np.array(priors), [b"1", b"2", b"3"], State())
                winner = outcome.told.winner.candidate
                others = way.others(outcome.told, terms, 1.0)
                low, high = way.interval(outcome.told, terms, 1.0)
                assert low <= grid[winner] / GRID <= high
                assert all(others >= score / GRID for place, score in enumerate(grid) if place != winner)
