"""Evidence from its formula, factor by factor; its bets, its rounding and its reach as their words have them."""

import math
from collections import Counter

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.certainty import THEORY, gains_of_rows
from reusable_holdout.certainty.evidence import (
    MANY,
    Evidence,
    EvidenceRows,
    Null,
    likely_rows,
    mixed,
    rounded,
    worst_rows,
)
from reusable_holdout.certainty.theory import BetSizes

RNG = np.random.default_rng(11)


def log_gains(terms, mean, bet, weights=None):
    """Factor by factor."""
    weights = np.ones(len(terms)) if weights is None else weights
    return math.fsum(math.log1p(bet * u * (x - mean)) for x, u in zip(terms, weights, strict=True))


@for_each("count", [0, 1, 15, 16, 17, 100, (1 << 14) - 1, (1 << 14) + 1])
@for_each("weighted", [False, True])
def test_gains_are_those_of_all_factors_however_many(count, weighted):
    terms, weights = RNG.random(count), RNG.random(count) if weighted else None
    bets = np.array([0.01, 1.7])
    expected = [log_gains(terms, 0.4, bet, weights) for bet in bets]
    assert gains_of_rows(terms, 0.4, bets, weights) == pytest.approx(expected, rel=1e-10, abs=1e-11)


def test_gains_of_the_largest_bets_and_the_worst_losses_are_finite():
    least = Null(1e-12, 0.1)
    assert least.bets[-1] == pytest.approx(0.95e12)
    won = gains_of_rows(np.ones(64), 1e-12, least.bets[-1:])
    assert won == pytest.approx(64 * math.log1p(0.95e12), rel=1e-12)
    lost = gains_of_rows(np.zeros(64), 0.99, np.array([(1 - 1e-5) / 0.99]))
    assert lost == pytest.approx(64 * math.log(1e-5), rel=1e-9)


@for_each(("mean", "tolerance"), [(0.3, 0.01), (0.95, 0.2), (1e-5, 1e-6), (1e-13, 0.05), (0.4, 1.0)])
@for_each("sizes", [THEORY.check_bets, BetSizes(ratio=1.3, smallest=0.2, largest=0.8)])
def test_bets_are_spaced_from_the_smallest_to_the_largest_as_closely_as_is_needed(mean, tolerance, sizes):
    m, bets = max(mean, 1e-12), Null(mean, tolerance, sizes).bets
    least, most = sizes.smallest * tolerance / (m * (1 - m)), sizes.largest / m
    assert bets[-1] == pytest.approx(most, rel=1e-12)
    assert bets[0] == pytest.approx(min(least, most), rel=1e-12)
    steps = np.diff(np.log(bets)) / math.log(sizes.ratio)
    assert (steps <= 1 + 1e-9).all()
    if least < most:
        assert steps == pytest.approx(steps[0])
        assert len(steps) == math.ceil(math.log(most / least) / math.log(sizes.ratio))
    else:
        assert len(bets) == 1


def test_the_bets_of_editions_are_the_default():
    assert Null(0.3, 0.1).sizes == Evidence(0.3, 0.1).sizes == THEORY.check_bets
    assert Evidence(0.3, 0.1).sides == "both"


@for_each("weighted", [False, True])
@for_each("mean", [0.2, 0.7])
def test_evidence_is_the_average_over_the_bets(weighted, mean):
    terms, weights = RNG.random(50), RNG.random(50) if weighted else None
    null = Null(mean, 0.1)
    gained = [math.exp(log_gains(terms, mean, bet, weights)) for bet in null.bets]
    expected = math.log(math.fsum(gained) / len(gained))
    assert null.log_evidence(terms, weights) == pytest.approx(expected, abs=1e-10)
    rows = EvidenceRows(terms, np.ones(50), weights)
    assert null.log_evidence_of(rows) == pytest.approx(expected, abs=1e-10)
    twice = Null(mean, 0.1).log_evidence_of(EvidenceRows(terms, np.full(50, 2.0), weights))
    expected = math.log(math.fsum(each**2 for each in gained) / len(gained))
    assert twice == pytest.approx(expected, abs=1e-10)


def test_the_logarithm_of_an_average_is_that_far_beyond_what_a_float_holds():
    assert mixed(np.array([-3000.0, -3000.0])) == -3000.0
    assert mixed(np.array([3000.0, -3000.0])) == pytest.approx(3000.0 - math.log(2))
    assert mixed(np.log([1.0, 2.0, 6.0])) == pytest.approx(math.log(3.0))


@for_each(("mean", "evidence"), [(0.0, math.inf), (-0.2, math.inf), (1.0, 0.0), (1.3, 0.0)])
def test_of_a_mean_at_a_bound_or_beyond_it_evidence_is_all_or_none(mean, evidence):
    null = Null(mean, 0.1)
    assert null.log_evidence(np.array([0.2, 0.9])) == evidence
    assert null.log_evidence_of(EvidenceRows(np.array([0.2]), np.array([3.0]))) == evidence
    assert null.sensitivity == 0.0


@for_each("mean", [0.3, 0.9, 1e-14])
def test_its_sensitivity_is_what_a_row_from_zero_to_one_changes_of_the_largest_bet(mean):
    null, m = Null(mean, 0.05), max(mean, 1e-12)
    expected = math.log((1 + null.bets[-1] * (1 - m)) / (1 - null.bets[-1] * m))
    assert null.sensitivity == pytest.approx(expected, rel=1e-9)


# ---- rows


def test_rows_have_a_weighted_mean_and_mirror_images():
    rows = EvidenceRows(np.array([0.25, 1.0]), np.array([3.0, 1.0]), np.array([0.5, 1.0]))
    assert rows.mean == (0.25 * 1.5 + 1.0) / 2.5
    assert rows._replace(weights=None).mean == (0.25 * 3 + 1.0) / 4
    assert rows._replace(weights=np.zeros(2)).mean == 0.5
    assert rows.gains(0.5).tolist() == [-0.125, 0.5]
    assert rows._replace(weights=None).gains(0.5).tolist() == [-0.25, 0.5]
    assert rows.mirrored.values.tolist() == [0.75, 0.0]
    assert rows.mirrored.counts is rows.counts
    assert rows.mirrored.weights is rows.weights


def counted(rows):
    return Counter(dict(zip(rows.values.tolist(), rows.counts.tolist(), strict=True)))


def test_rows_are_rounded_to_multiples_of_two_to_the_minus_sixteen():
    terms = np.array([0.0, 0.25, 0.25 + 2.0**-20, 0.25 + 2.0**-16, 1.0 - 2.0**-30, 1.0])
    down, up = (counted(rows) for rows in rounded(terms))
    step = 2.0**-16
    assert down == {0.0: 1.0, 0.25: 2.0, 0.25 + step: 1.0, 1.0 - step: 1.0, 1.0: 1.0}
    assert up == {0.0: 1.0, 0.25: 1.0, 0.25 + step: 2.0, 1.0: 2.0}


def test_rows_are_rounded_from_a_quarter_of_a_million_on():
    assert MANY == 262_144
    evidence, terms = Evidence(0.5, 0.01), RNG.random(MANY)
    assert evidence.of_rows(terms) == evidence.of(*rounded(terms)) != evidence.of_rows(terms, np.ones(MANY))
    fewer = terms[1:]
    assert evidence.of_rows(fewer) == pytest.approx(evidence.of_rows(fewer, np.ones(MANY - 1)), rel=1e-13)


@for_each(
    ("mean", "spread", "values", "share"),
    [
        *((0.5, 0.25, [0.75, 0.25], 0.5), (0.75, 0.375, [1.0, 0.1875], 0.692307692307692)),
        *((0.25, 0.375, [0.8125, 0.0], 0.307692307692308), (0.75, 0.25, [1.0, 0.5], 0.5)),
        *((0.25, 0.25, [0.5, 0.0], 0.5), (0.2, 0.4, [1.0, 0.0], 0.2), (0.2, 3.0, [1.0, 0.0], 0.2)),
    ],
)
def test_likely_rows_are_two_values_of_the_mean_and_the_spread(mean, spread, values, share):
    rows = likely_rows(mean, spread, 40.0)
    assert rows.values.tolist() == pytest.approx(values, abs=1e-12)
    assert rows.counts.tolist() == pytest.approx([40 * share, 40 * (1 - share)])
    assert rows.weights is None


@for_each(("mean", "spread"), [(0.0, 0.3), (1.0, 0.3), (0.4, 0.0)])
def test_likely_rows_without_spread_are_of_one_value(mean, spread):
    rows = likely_rows(mean, spread, 40.0)
    assert (rows.values.tolist(), rows.counts.tolist()) == ([mean], [40.0])


def test_the_worst_rows_are_zeros_and_ones():
    assert counted(worst_rows(0.25, 40.0)) == {1.0: 10.0, 0.0: 30.0}


# ---- two sides


@for_each("weighted", [False, True])
def test_each_side_has_its_own_evidence_and_both_have_the_lesser(weighted):
    terms, weights = RNG.random(60), RNG.random(60) if weighted else None
    low = Null(0.55 - 0.25, 0.25).log_evidence(terms, weights)
    high = Null(1 - 0.55 - 0.25, 0.25).log_evidence(1 - terms, weights)
    rows = EvidenceRows(terms, np.ones(60), weights)
    below, above = (Null(mean, 0.25) for mean in (0.55 - 0.25, 1 - 0.55 - 0.25))
    expected = {"low": (low, below.sensitivity), "high": (high, above.sensitivity)}
    expected["both"] = (min(low, high), max(below.sensitivity, above.sensitivity))
    for sides, (nats, sensitivity) in expected.items():
        evidence = Evidence(0.55, 0.25, sides)
        assert evidence.of_rows(terms, weights) == pytest.approx(nats, abs=1e-12)
        assert evidence.of(rows) == pytest.approx(nats, abs=1e-10)
        assert evidence.sensitivity == pytest.approx(sensitivity, rel=1e-12)
    other = EvidenceRows(terms / 2, np.ones(60), weights)
    assert Evidence(0.55, 0.25).of(rows, other) == pytest.approx(
        min(low, above.log_evidence_of(other.mirrored))
    )
    assert Evidence(0.55, 0.25, "high").of(rows, other) == above.log_evidence_of(other.mirrored)
    assert Evidence(0.55, 0.25, "low").of(rows, other) == pytest.approx(low)


CASES = [  # named, tolerance, sides, spread, rows
    *((0.6, 0.05, "both", 0.2, 2000), (0.6, 0.05, "both", 0.2, 400), (0.5, 0.3, "low", 0.3, 60)),
    *((0.5, 0.1, "low", 0.3, 120), (0.5, 0.1, "high", 0.3, 120), (0.9, 0.3, "both", 0.05, 100)),
    *((0.1, 0.3, "both", 0.05, 100), (0.97, 0.05, "both", 0.02, 3000), (0.03, 0.05, "high", 0.02, 300)),
    *((0.4, 0.02, "low", 0.4, 50), (0.6, 0.02, "high", 0.4, 50), (0.5, 0.002, "both", 0.4, 50)),
]


@for_each(("named", "tolerance", "sides", "spread", "count"), CASES)
@for_each("above", [True, False])
def test_its_reach_is_the_farthest_mean_with_enough_on_a_fine_grid(
    named, tolerance, sides, spread, count, above
):
    evidence, sign = Evidence(named, tolerance, sides), 1 if above else -1

    def rows(mean):
        return likely_rows(mean, spread, count)

    reach = evidence.reach(8.0, rows, above=above)
    means = np.linspace(0.0, 1.0, 201)
    enough = np.array([sign * (mean - named) for mean in means if evidence.of(rows(mean)) >= 8.0])
    inside = enough[enough <= tolerance + 1e-12]
    if not inside.size:
        assert reach == -math.inf
    elif reach == tolerance:
        far = min(tolerance, 1 - named if above else named)
        assert evidence.of(rows(named + sign * far)) >= 8.0
    else:
        assert -1e-9 <= reach - inside.max() <= 5e-3 + 1e-9
        assert evidence.of(rows(named + sign * reach)) >= 8.0
        assert evidence.of(rows(named + sign * (reach + 1e-9))) < 8.0


def test_reaches_are_of_every_kind():
    found = {
        evidence.reach(8.0, lambda mean, case=case: likely_rows(mean, *case[3:]), above=above)
        for case in CASES
        for evidence in [Evidence(*case[:3])]
        for above in (True, False)
    }
    assert -math.inf in found
    assert 0.3 in found
    assert any(-1 < reach < -0.1 for reach in found)
    assert any(0 < reach < 0.05 for reach in found)


def test_a_reach_is_found_in_a_few_looks():
    """Up to seventeen distances in turn, then far fewer than the 48 that a bisection would take."""
    for case in CASES:
        for above in (True, False):
            looks = []

            def rows(mean, case=case, looks=looks):
                looks.append(mean)
                return likely_rows(mean, *case[3:])

            Evidence(*case[:3]).reach(8.0, rows, above=above)
            assert len(looks) <= 29


def test_no_rows_beyond_the_bounds_are_asked_for_and_as_much_as_is_needed_is_enough():
    for named, above in ((0.97, False), (0.03, True)):
        evidence = Evidence(named, 0.05)
        assert evidence.reach(900.0, lambda mean: likely_rows(mean, 0.02, 10), above=above) == -math.inf
    assert Evidence(0.05, 0.1, "low").reach(math.inf, lambda mean: worst_rows(mean, 9), above=False) == 0.1
    for named, above in ((0.97, True), (0.03, False)):
        evidence = Evidence(named, 0.05)
        assert evidence.reach(8.0, lambda mean: likely_rows(mean, 0.02, 3000), above=above) == 0.05


@for_each("side", ["both", "low", "high"])
def test_exactly_as_much_evidence_as_is_needed_is_enough_on_each_side(side):
    """The same rows whatever their mean is asked to be: they reach as far as they may, or nowhere."""
    for named, mean in ((0.4, 0.38), (0.4, 0.42)):
        evidence, rows = Evidence(named, 0.1, side), likely_rows(mean, 0.1, 300)
        nats = evidence.of(rows)
        for above in (True, False):
            assert evidence.reach(nats, lambda _, rows=rows: rows, above=above) == 0.1
            more = math.nextafter(nats, math.inf)
            assert evidence.reach(more, lambda _, rows=rows: rows, above=above) == -math.inf
