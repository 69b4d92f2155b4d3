"""The parameter-free ladder: whatever its secret step is, what it tells is certified and paid for."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from cases import for_each
from long_tests import GUARD
from within_reach import certificate_of, noisy

from reusable_holdout.certainty import parameter_free_step, policy_code
from reusable_holdout.errors import InputError
from reusable_holdout.guard.kinds import AGREED, FAILED, State, Terms
from reusable_holdout.guard.kinds.ladder import ParameterFreeLadder
from reusable_holdout.plan import Plan

GRID = 2**32


def ladder_of(rows, *, lower=0.0, upper=1.0, **changes):
    certificate = certificate_of(
        "parameter-free-ladder",
        rows=rows,
        mechanism="noiseless",
        lower=lower,
        upper=upper,
        fixed_threshold=parameter_free_step(rows) * (upper - lower),
        charge_nats=policy_code("parameter-free-ladder", places=float(rows)).charge_nats,
        **changes,
    )
    return noisy(ParameterFreeLadder, certificate, 0.0, 0.0)


def terms_of(kind, best):
    return Terms(best, kind.certificate.fixed_threshold)


def stepped(kind, score, best, step):
    """What it tells if the standard error were this."""
    certificate = kind.certificate
    gain = certificate.better * (score - best) / certificate.span
    rows = certificate.bound.rows
    places = certificate.better * (round(score * rows) - round(best * rows))
    return f"steps {places}" if places >= 1 and gain > step else AGREED


def assert_certified(kind, score, best, told, *, length=9.0):
    certificate, terms = kind.certificate, terms_of(kind, best)
    level = certificate.log_level(length, 0.5)
    interval = kind.interval(kind.outcome(told, terms), terms, length)
    assert interval.low <= certificate.bound.lower(score, log_level=level) + 1e-9
    assert interval.high >= certificate.bound.upper(score, log_level=level) - 1e-9


@pytest.mark.long(*GUARD)
@for_each("greater", [True, False])
@for_each("family", ["binomial", "bounded"])
def test_whatever_the_standard_error_is_the_interval_holds(family, greater):
    """All bests and, of a bounded loss, scores between the places too; all steps from none to 1/sqrt(rows)."""
    kind = ladder_of(30, family=family, greater_is_better=greater)
    places = 1 if family == "binomial" else 6
    scores, news = np.arange(30 * places + 1) / (30 * places), 0
    for best, share, score in product((np.arange(31) / 30).tolist(), (0.0, 0.3, 1.0), scores.tolist()):
        told = stepped(kind, score, best, share * parameter_free_step(30))
        assert_certified(kind, score, best, told)
        news += told != AGREED
    assert 0 < news < 3 * 31 * len(scores)


@for_each("greater", [True, False])
def test_a_step_beyond_the_public_one_would_not_be_certified(greater):
    """The twin: a standard error that is a third larger."""
    kind = ladder_of(400, greater_is_better=greater)
    step, better = parameter_free_step(400), kind.certificate.better
    score = 0.5 + better * 1.3 * step
    assert stepped(kind, score, 0.5, 1.35 * step) == AGREED
    with pytest.raises(AssertionError):
        assert_certified(kind, score, 0.5, AGREED)
    assert_certified(kind, 0.5 + better * step, 0.5, AGREED)


@for_each("greater", [True, False])
def test_every_pair_of_submissions_of_a_small_holdout_is_decided_within_the_public_step(greater):
    """All 64 x 64 pairs of rows of 0/1 losses: the second is compared with the first."""
    rows, told = 6, set()
    holdouts = np.array(list(product((0, 1), repeat=rows)), dtype=np.int64)
    for first in holdouts:
        kind = ladder_of(rows, greater_is_better=greater)
        before = kind.decide(first * GRID, terms_of(kind, kind.start), b"", State())
        state = State(charges=int(before.charged), value=before.value)
        for second in holdouts:
            outcome = kind.decide(second * GRID, terms_of(kind, before.value), b"", state)
            assert_certified(kind, float(second.mean()), before.value, outcome.told)
            if outcome.charged:
                assert outcome.value == pytest.approx(second.mean(), abs=1e-9)
            told.add(outcome.told)
    assert {AGREED, "steps 1", "steps 6"} <= told


@for_each("changes", [{}, {"family": "bounded", "lower": -1.0, "upper": 3.0}])
@for_each("greater", [True, False])
def test_the_weights_of_all_new_bests_and_of_a_failure_sum_to_at_most_one(changes, greater):
    kind = ladder_of(60, greater_is_better=greater, **changes)
    certificate = kind.certificate
    terms = terms_of(kind, kind.start)
    told = [kind.outcome(f"steps {places}", terms) for places in range(1, 61)]
    values = [certificate.better * (outcome.value - kind.start) for outcome in told]
    assert values == pytest.approx([certificate.span * places / 60 for places in range(1, 61)], abs=1e-8)
    told.append(kind.outcome(FAILED, terms))
    assert math.fsum(math.exp(-outcome.nats) for outcome in told) <= 1.0 + 1e-12
    assert max(outcome.nats for outcome in told) <= certificate.charge_nats + 1e-12
    for name in ("steps 0", "steps 61", "cell 0", "steps 0.5"):
        with pytest.raises(InputError, match="has no outcome"):
            kind.outcome(name, terms)


def test_a_pair_flip_costs_two_places():
    kind = ladder_of(1_000, greater_is_better=False)
    outcome = kind.outcome("steps 2", terms_of(kind, 0.5))
    assert outcome.value == pytest.approx(0.498)
    weight = 0.97 * (0.5 / 6.0 + 0.5 / 1_000)
    assert outcome.nats == pytest.approx(-math.log(weight))
    assert outcome.nats < kind.certificate.charge_nats


def test_a_plans_certificate_has_no_noise_and_the_step_of_its_rows():
    plan = Plan(
        rows=625, queries=50, charges=3, family="bounded", bounds=(-2.0, 3.0), policy="parameter-free-ladder"
    )
    certificate = plan.certificate()
    assert certificate.fixed_threshold == pytest.approx(5 / 25)
    assert (certificate.noise_scale, certificate.mechanism) == (0.0, "noiseless")
    assert certificate.threshold(0.1, charges=2, nats=100.0) == certificate.fixed_threshold


@for_each("greater", [True, False])
def test_a_failure_leaves_the_best_as_it_was(greater):
    kind = ladder_of(100, greater_is_better=greater)
    outcome = kind.fail(terms_of(kind, 0.3), State())
    assert (outcome.told, outcome.charged, outcome.value) == (FAILED, True, 0.3)
    assert kind.interval(outcome, terms_of(kind, 0.3), 5.0) == (0.0, 1.0)


@for_each(
    ("gains", "places"),
    [
        ((10, 1, 0), 1),  # 121 > 101: a standard error with 1/(n - 2) would be too large for it
        ((10, -1), 0),  # 81 < 101
        ((8, 8, 0), 1),
        ((12, -1, -1, -1), 0),
        ((16, 0, 0, 0), 0),  # equal: one row alone is one standard error
        ((16, 16, 0, 0), 2),
        ((64, -31, 0, 0), 2),  # more than the public step, the largest that a standard error can be
        ((64, -32, 0, 0), 0),
    ],
)
def test_a_gain_counts_if_it_exceeds_the_standard_error_of_its_rows(gains, places):
    """In sixteenths of a row's range: the sum of what rows gained, squared, must exceed the sum of the squares."""
    kind = ladder_of(len(gains))
    best = np.zeros(len(gains), dtype=np.int64)
    rows = best + np.array(gains) * (GRID // 16)
    assert kind._gained(rows, terms_of(kind, 0.0), best) == places
