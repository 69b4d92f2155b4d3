"""Each number of a certificate, from its definition in plain words: levels, lengths, reaches, what evidence needs."""

import dataclasses
import math
from dataclasses import replace

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.certainty import (
    THEORY,
    AdaptiveCode,
    Certificate,
    ConfidenceBound,
    Evidence,
    EvidenceSet,
    NoiseTails,
    Shares,
    TranscriptCode,
    likely_rows,
)
from reusable_holdout.certainty.certificate import GRID_SLACK
from reusable_holdout.noise import Calibration
from reusable_holdout.rules.sets import left_by
from reusable_holdout.ways import tidy
from reusable_holdout.ways.final import Final

STATED = {
    "bound": ConfidenceBound("bounded", rows=2000, sum_of_squares=1 / 2000),
    "queries": 100,
    "charges": 5,
    "beta": 0.05,
    "noise_scale": 2.5e-6,
    "tolerance": 0.05,
    "least_threshold": 0.001,
    "charge_nats": 2.0,
}
GUARD = Certificate(**STATED)
SPREADING = replace(GUARD, spread=0.1, decides="evidence", sensitivity=1 / 2000, shares=THEORY.by_evidence)
SLACK = 2.0**-29
EXACTLY = {"rel": 1e-13, "abs": 0.0}


def test_what_is_not_stated_is_the_plainest_plan():
    plain = {
        "reserved_nats": 0.0,
        "decides": "distance",
        "shares": Shares(0.8, 0.2),
        "fixed_threshold": None,
        "mechanism": "numeric-sparse",
        "view": 0,
        "told_before": 0.0,
        "sensitivity": 0.0,
        "estimate": 0.5,
        "spread": None,
        "noisy": False,
        "adaptive": False,
        "threshold_sds": 0.0,
        "prior_error": 0.0,
        "final_share": 0.75,
        "first_share": 0.0,
        "theory": THEORY,
    }
    names = [field.name for field in dataclasses.fields(Certificate)]
    assert {name: getattr(GUARD, name) for name in names} == {**STATED, **plain}
    assert {name: type(getattr(GUARD, name)) for name in plain} == {name: type(plain[name]) for name in plain}


def test_its_parts_are_those_of_its_plan():
    assert GUARD.code == TranscriptCode(queries=100, charges=5)
    assert replace(GUARD, charges=0).code == TranscriptCode(queries=100, charges=1)
    assert replace(GUARD, charges=1).code == TranscriptCode(queries=100, charges=1)
    assert replace(GUARD, adaptive=True, final_share=0.5).code == AdaptiveCode(100, 0.5)
    assert replace(GUARD, final_share=0.5).code == TranscriptCode(100, 5, 0.5)
    told = replace(GUARD, view=3, mechanism="standard-svt")
    assert told.tails == NoiseTails(100, 5, 0.05, "standard-svt", 3)


@for_each("mechanism", ["numeric-sparse", "standard-svt"])
def test_reaches_are_noise_and_rounding(mechanism):
    guard = replace(GUARD, noise_scale=1e-9, mechanism=mechanism)  # so that rounding counts
    assert GRID_SLACK == SLACK
    assert guard.comparison_tail == pytest.approx(1e-9 * guard.tails.comparison + SLACK, **EXACTLY)
    assert guard.answer_tail == pytest.approx(1e-9 * guard.tails.answer + SLACK, **EXACTLY)
    threshold, query, _ = Calibration(mechanism, 5).scales  # a Laplace of scale b has variance 2 b^2
    assert guard.comparison_sd == pytest.approx(1e-9 * math.sqrt(2 * (threshold**2 + query**2)), **EXACTLY)


# ---- lengths and levels


def test_lengths_are_the_codes_with_what_was_told_before():
    guard, code = replace(GUARD, told_before=2.5), GUARD.code
    assert guard.length(charges=3, nats=1.25) == code.length(query=100, charges=3, nats=3.75)
    few = replace(guard, queries=3)
    assert few.length(charges=2, nats=1.25) == few.length(charges=4, nats=1.25)
    assert few.length(charges=4, nats=1.25) == few.code.length(query=3, charges=2, nats=3.75)
    asked = {"charges": 3, "last_charge": 40}
    assert guard.final_length(nats=1.25, **asked) == code.final_length(nats=3.75, **asked)
    assert guard.final_length(charges=3, nats=1.25) == code.final_length(charges=3, nats=3.75)


@for_each(("queries", "charges"), [(100, 5), (3, 5), (1, 1), (1, 0), (100, 1)])
def test_the_promise_ends_at_the_dearest_state_before_the_last_charge(queries, charges):
    guard = replace(GUARD, queries=queries, charges=charges, reserved_nats=1.5)
    states = range(max(1, min(queries, charges)))
    lengths = [guard.length(charges=made, nats=1.5 + 2.0 * made) for made in states]
    assert guard.affordable_length == max(lengths)
    assert guard.room(charges=0, nats=1.5) == 1e-9
    for made in states:
        ahead = [guard.length(charges=made + k, nats=0.5 + 2.0 * k) for k in range(len(lengths) - made)]
        expected = max(lengths) - max(ahead) + 1e-9
        assert guard.room(charges=made, nats=0.5) == pytest.approx(expected, rel=1e-12)
    assert replace(guard, adaptive=True).room(charges=0, nats=1e9) == math.inf


@for_each(("noise_scale", "noisy", "noise"), [(0.0, False, 0.0), (1e-5, False, 0.05), (0.0, True, 0.05)])
def test_a_level_is_the_shares_part_of_what_noise_leaves_and_at_most_a_half(noise_scale, noisy, noise):
    guard = replace(GUARD, noise_scale=noise_scale, noisy=noisy)
    expected = math.log((1 - noise) * 0.05 * 0.2) - 7.0
    assert guard.log_level(7.0, 0.2) == pytest.approx(expected, **EXACTLY)
    assert guard.log_level(np.array([7.0, -90.0]), 0.2).tolist() == pytest.approx([expected, math.log(0.5)])
    assert guard.log_level(-90.0, 0.2) == math.log(0.5)
    assert guard.needed(7.0, 0.2) == pytest.approx(-expected, **EXACTLY)


# ---- intervals


def test_an_intervals_sides_are_the_bounds_of_its_ends_at_its_level():
    level = math.log(0.95 * 0.05 * 0.5) - 8.0
    low, high = GUARD.around(0.575, 0.725, length=8.0, share=0.5)
    assert low == pytest.approx(GUARD.bound.lower(0.575, log_level=level), rel=1e-12)
    assert high == pytest.approx(GUARD.bound.upper(0.725, log_level=level), rel=1e-12)


def test_ends_of_a_set_are_rounded_outwards_within_the_bounds():
    assert left_by((0.25, 0.625)) == (0.25 - SLACK, 0.625 + SLACK)
    assert left_by((0.0, 1.0)) == (0.0, 1.0)


def test_a_final_is_by_evidence_where_rows_spread():
    assert not Final(GUARD, "final").by_rows
    assert Final(SPREADING, "final").by_rows


def test_a_finals_set_is_that_of_its_level_and_of_the_guess():
    nats = -(math.log(0.95 * 0.05 * 0.5) - 8.0)
    at, default = SPREADING.final_set(8.0, 0.75), replace(SPREADING, estimate=0.625).final_set(8.0)
    assert (at.nats, at.mean, at.rows, at.spread) == (pytest.approx(nats, **EXACTLY), 0.75, 2000, 0.1)
    assert default == replace(at, mean=0.625)
    assert SPREADING.evidence_set(5.0, 0.75) == EvidenceSet(5.0, 2000, 0.75, 0.1)


def set_half_width(nats, mean):
    """Of 2,000 rows that spread by 0.1."""
    low, high = EvidenceSet(nats, 2000, mean, 0.1).of(likely_rows(mean, 0.1, 2000))
    return (high - low) / 2


@for_each("decides", ["evidence", "sets"])
def test_a_likely_half_width_is_that_of_the_set_of_likely_rows(decides):
    guard = replace(SPREADING, decides=decides)
    assert guard.likely_half_width(9.0, 0.75) == pytest.approx(set_half_width(9.0, 0.75), **EXACTLY)
    length = guard.code.length(query=100, charges=2, nats=4.5)
    width = replace(guard, told_before=0.5).half_width(charges=2, nats=4.0, estimate=0.75)
    expected = set_half_width(length - math.log(0.95 * 0.05 * 0.8), 0.75)
    assert width == pytest.approx(expected, rel=1e-12)


@for_each("by_evidence", [False, True])
@for_each("length", [6.0, 30.0])
def test_a_finals_half_width_is_that_of_its_interval_around_the_estimate(by_evidence, length):
    nats = length - math.log(0.95 * 0.05 * 0.5)
    if by_evidence:
        expected = set_half_width(nats, 0.8)
    else:
        bound = ConfidenceBound("bounded", rows=2000, sum_of_squares=1 / 2000)
        expected = (bound.upper(0.8, log_level=-nats) - bound.lower(0.8, log_level=-nats)) / 2
    width = (SPREADING if by_evidence else GUARD).final_half_width(length=length, estimate=0.8)
    assert width == pytest.approx(expected, rel=1e-10)


# ---- evidence and thresholds


@for_each("sides", ["both", "low", "high"])
def test_evidence_is_of_what_was_named_within_a_tolerance_less_rounding(sides):
    found = SPREADING.evidence(0.5, 0.125, sides)
    assert found == Evidence(0.5, 0.125 - SLACK, sides, THEORY.check_bets)
    assert SPREADING.evidence(0.5, 1e-12).tolerance == SLACK
    assert SPREADING.evidence(0.5, 0.125) == SPREADING.evidence(0.5, 0.125, "both")


def test_evidence_must_outweigh_its_level_and_the_noise():
    guard = replace(SPREADING, noise_scale=1e-6)
    found = guard.evidence(0.5, 0.125)
    tail = (1e-6 * guard.tails.comparison + SLACK) * 2000 * found.sensitivity  # of so many rows' change
    assert guard.evidence_tail(found) == pytest.approx(tail, **EXACTLY)
    expected = 11.0 - math.log(0.95 * 0.05 * 0.8) + tail
    assert guard.evidence_needed(found, 11.0) == pytest.approx(expected, **EXACTLY)


def test_a_likely_threshold_is_the_nearer_side_that_likely_rows_reach():
    length = SPREADING.length(charges=2, nats=4.0)
    for prior in (0.075, 0.5, 0.95):
        for tolerance in (0.05, 0.025):
            found = SPREADING.evidence(prior, tolerance)
            needed = SPREADING.evidence_needed(found, length)
            reaches = [
                found.reach(needed, lambda mean: likely_rows(mean, 0.1, 2000), above=above)
                for above in (True, False)
            ]
            one = SPREADING.threshold_of_length(prior, length, tolerance=tolerance)
            assert one == pytest.approx(min(reaches), **EXACTLY)
            if tolerance == SPREADING.tolerance:
                assert one == SPREADING.threshold_of_length(prior, length)
                assert one == SPREADING.threshold(prior, charges=2, nats=4.0)
    several = SPREADING.threshold_of_length(np.array([0.075, 0.95]), length, tolerance=0.025)
    alone = [SPREADING.threshold_of_length(prior, length, tolerance=0.025) for prior in (0.075, 0.95)]
    assert several.tolist() == alone
    assert len({*alone, SPREADING.threshold_of_length(0.075, length)}) == 3


def test_nothing_goes_uncorrected_by_more_than_the_range():
    vague = replace(GUARD, tolerance=1.0, noise_scale=2.5e-5)
    threshold = vague.threshold(0.5, charges=0, nats=0.0)
    assert threshold == pytest.approx(1.0 - vague.comparison_tail, **EXACTLY)
    assert vague.threshold(np.array([0.5]), charges=0, nats=0.0).tolist() == [threshold]


def test_a_threshold_is_not_below_the_least_and_is_the_stated_one():
    assert replace(GUARD, tolerance=1e-6).threshold(0.5, charges=0, nats=0.0) == 0.001
    stated = replace(GUARD, fixed_threshold=0.07)
    assert stated.threshold(0.5, charges=0, nats=0.0) == 0.07
    assert stated.threshold(np.zeros(2), charges=0, nats=0.0).tolist() == [0.07, 0.07]


def test_a_value_is_told_to_nine_digits():
    values = [k / 97 for k in range(1, 97)]
    assert [tidy(value) for value in values] == [round(value, 9) for value in values]
    assert (tidy(-0.1), tidy(1.1)) == (0.0, 1.0)
