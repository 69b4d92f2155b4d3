"""Composition of mechanisms of bounded range: closed forms, the literature's lower bound, and the search."""

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from cases import for_each
from long_tests import ACCOUNTING

from reusable_holdout.mechanisms.accounting import (
    BoundedRangeEvent,
    PrivacyAccountant,
    bounded_range,
    bounded_range_composition,
    bounded_range_epsilon_each,
    optimal_composition,
)
from reusable_holdout.mechanisms.accounting.composition import even_share


def one_round(total, each):
    """Compute the delta of one mechanism of a range; the derivative is zero at its worst coin."""
    total = np.clip(total, -np.inf, each)
    inside = np.square(np.expm1((total - each) / 2)) / -math.expm1(-each)
    return np.where(total <= -each, -np.expm1(total), inside)


def upper_side(high, each):
    """Return the probability of the loss `high` of the coin whose other loss is `high - each`."""
    return np.asarray(-np.expm1(high - each) / -math.expm1(-each))


def two_rounds(total, each):
    """Compute the delta of two adaptive mechanisms: the best of 20,001 first coins, then the best second coins."""
    high = np.linspace(0, each, 20_001)
    share = upper_side(high, each)
    return float(
        (share * one_round(total - high, each) + (1 - share) * one_round(total - high + each, each)).max()
    )


def fixed_rounds(total, each, count):
    """Compute the delta of the worst fixed coin, a lower bound: the optimum of Dong, Durfee and Rogers."""
    low_sides = np.arange(count + 1)
    choose = np.array([math.comb(count, int(side)) for side in low_sides], dtype=float)
    worst = 0.0
    for high in np.clip((total + (low_sides + 1) * each) / (count + 1), 0.0, each):
        share = float(upper_side(high, each))
        law = choose * share ** (count - low_sides) * (1 - share) ** low_sides
        losses = count * high - low_sides * each
        worst = max(worst, float((law * np.maximum(-np.expm1(total - losses), 0.0)).sum()))
    return worst


@for_each("each", [0.01, 0.3, 2.0])
@for_each("share", [0.3, 0.9, 0.99])
def test_one_round_is_the_worst_coin(each, share):
    delta = float(one_round(share * each, each))
    total = bounded_range_composition(epsilon=each, count=1, delta=delta)
    assert share * each - 1e-12 <= total <= share * each + 0.004 * each


@for_each("each", [0.01, 0.3, 2.0])
@for_each("total", [0.2, 0.8, 1.5, 1.95])
def test_two_rounds_are_those_of_an_adversary_that_sees_the_first_outcome(each, total):
    delta = two_rounds(total * each, each)
    found = bounded_range_composition(epsilon=each, count=2, delta=delta)
    assert total * each - 1e-9 <= found <= (total + 0.005) * each


@pytest.mark.long(*ACCOUNTING)
@for_each("delta", [1e-3, 1e-8])
@for_each(
    ("count", "epsilon", "slack"), [(10, 1.0, 0.03), (40, 0.1, 0.01), (40, 3.0, 0.01), (120, 1.0, 0.01)]
)
def test_many_rounds_lie_above_the_worst_fixed_coin_and_hardly_above_it(count, epsilon, slack, delta):
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    assert fixed_rounds(epsilon, each, count) <= delta
    assert fixed_rounds(epsilon, (1 + slack) * each, count) > delta


def test_the_fixed_coin_promises_too_little_for_adaptive_rounds():
    """The published optimum without adaptivity, used for rounds that choose: the adversary's delta is larger."""
    each, excess = 1.0, 0.0
    for total in np.linspace(0.1, 1.9, 19):
        fixed, adaptive = fixed_rounds(total, each, 2), two_rounds(total, each)
        assert fixed <= adaptive * (1 + 1e-6)
        excess = max(excess, adaptive / fixed)
        found = bounded_range_composition(epsilon=each, count=2, delta=fixed)
        assert two_rounds(found, each) <= fixed * (1 + 1e-6)
    assert excess > 1.01


@for_each("delta", [1e-3, 1e-9])
@for_each("each", [0.003, 0.2])
@for_each("count", [1, 2, 10, 100])
def test_never_above_what_is_known_of_private_or_concentrated_releases(count, each, delta):
    total = bounded_range_composition(epsilon=each, count=count, delta=delta)
    rho = count * each**2 / 8
    assert total <= count * each
    assert total <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-12
    assert total <= optimal_composition(epsilon=each, count=count, delta=delta) + 0.004 * each


@pytest.mark.long(*ACCOUNTING)
@for_each("delta", [0.0, 1e-9, 0.3])
@for_each("epsilon", [1e-3, 1.0, 20.0])
@for_each("count", [1, 2, 20])
def test_the_inverse_stays_within_the_budget_and_uses_it(count, epsilon, delta):
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    assert each >= epsilon / count * (1 - 1e-15)
    total = bounded_range_composition(epsilon=each, count=count, delta=delta)
    assert total <= epsilon * (1 + 1e-12)
    more = bounded_range_composition(epsilon=each * 1.01, count=count, delta=delta)
    assert more > epsilon


@for_each(("epsilon", "count", "delta"), [(1e-20, 3, 1e-6), (4e-6, 1, 1.0000000011e-6), (1e-12, 10, 1e-11)])
def test_delta_pays_for_the_total_variation_of_rounds(epsilon, count, delta):
    assert bounded_range_composition(epsilon=epsilon, count=count, delta=delta) == 0.0


@for_each("epsilon", [1.1e-13, 3e-11, 9.9e-9])
def test_a_round_too_fine_for_a_lattice_costs_what_is_known_without_one(epsilon):
    # One round is a coin: its exact delta is tanh(epsilon / 4) at 0, and falls to 0 at epsilon.
    assert bounded_range_composition(epsilon=epsilon, count=1, delta=epsilon / 4000) == epsilon
    accountant = PrivacyAccountant()
    accountant.add(BoundedRangeEvent(epsilon), count=3)
    assert 0.0 < accountant.epsilon(epsilon / 4000).epsilon <= 3 * epsilon


ROOT, DELTA = 0.5, 1e-6
COSTS = {  # delta of rounds of so much range
    "straight": lambda each: DELTA * each / ROOT,
    "steep": lambda each: DELTA * (each / ROOT) ** 40,
    "flat, then steep": lambda each: DELTA * (0.0 if each < 0.4 else math.exp(90 * (each - ROOT))),
    "a step": lambda each: DELTA if each <= ROOT else 2 * DELTA,
    "a step from nothing": lambda each: 0.0 if each <= ROOT else 2 * DELTA,
    "a step from just below": lambda each: DELTA * (1 - 1e-9) if each <= ROOT else 1.0,
    "a step beyond all floats": lambda each: DELTA / 2 if each <= ROOT else math.inf,
}


@for_each("name", COSTS)
@for_each("low", [0.01, 0.2, 0.34, 0.49, ROOT, 0.51])
def test_the_search_ends_just_below_the_root_after_few_looks(monkeypatch, name, low):
    looks = []

    def worst(each, count, epsilon):
        assert (count, epsilon) == (3, 7.0)
        looks.append(each)
        return SimpleNamespace(delta=lambda _: COSTS[name](each))

    monkeypatch.setattr(bounded_range, "_worst", worst)
    each = bounded_range._largest(low, 7.0, 3, DELTA)
    if low > ROOT:  # a start that is too large already is kept
        assert (each, len(looks)) == (low, 1)
    else:
        assert ROOT / (1 + 3e-4) - 1e-12 <= each <= ROOT
        assert len(looks) <= (44 if name in ("a step", "a step from just below") else 22)


# Recorded from versions that passed the tests above.
TOTALS = [
    (0.3, 1, 1e-09, 0.2999975825217713),
    (2.0, 1, 0.2, 0.9248024014660897),
    (1.0, 3, 1e-06, 2.90952688575568),
    (0.05, 100, 1e-06, 1.060691099669439),
    (3.0, 9, 1e-08, 25.361812127374016),
    (0.1, 30, 0.05, 0.16840671151669573),
    (20.0, 50, 1e-6, 1000.0),
    (5.0, 150, 1e-6, 629.697451971701),
]
EACH = [
    (1.0, 1, 0.001, 1.051654945165904),
    (0.1, 40, 0.001, 0.018025200341306558),
    (5.0, 10, 0.2, 1.682087985873771),
]


def test_the_lattice_and_its_inverse_give_the_recorded_numbers():
    for each, count, delta, total in TOTALS:
        found = bounded_range_composition(epsilon=each, count=count, delta=delta)
        assert found == pytest.approx(total, rel=1e-9)
    for epsilon, count, delta, each in EACH:
        found = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
        assert found == pytest.approx(each, rel=1e-9)


def test_the_epsilon_at_the_delta_of_a_number_is_no_larger():
    curve = bounded_range._worst(0.3, 2, 0.5)
    for epsilon in (0.1, 0.2, 0.31, 0.35, 0.44, 0.5, 0.52):
        assert curve.epsilon(curve.delta(epsilon)) <= epsilon
    assert bounded_range._worst(0.3, 200, 0.5).epsilon(1e-300) == math.inf


def test_more_rounds_than_a_lattice_holds_are_concentrated(monkeypatch):
    monkeypatch.setattr(bounded_range, "_MOST_ROUNDS", 10)
    log = math.log(1e5)

    def concentrated(count):
        rho = count * 0.0625 / 8
        return rho + 2 * math.sqrt(rho * log)

    wish = {"epsilon": 0.25, "delta": 1e-5}
    assert bounded_range_composition(count=10, **wish) < concentrated(10) * 0.99
    assert bounded_range_composition(count=11, **wish) == pytest.approx(concentrated(11), rel=1e-12)
    assert bounded_range_composition(epsilon=3.0, count=11, delta=1e-5) == 33.0
    beyond = bounded_range_epsilon_each(epsilon=1.0, count=11, delta=1e-5)
    exact = math.sqrt(8 / 11) * (math.sqrt(log + 1) - math.sqrt(log))
    assert exact * (1 - 2e-9) < beyond < exact * (1 - 0.5e-9)
    assert bounded_range_epsilon_each(epsilon=1.0, count=10, delta=1e-5) > exact * math.sqrt(11 / 10) * 1.01


def test_a_lattice_is_used_as_long_as_floats_hold_it():
    """Three and a half deviations of 3 beyond what is asked about, a range of 2 more, and a delta of exp(-5)."""
    most = 700 - 3.5 * 3 - 2 - 5
    for epsilon, fits in ((most - 0.01, True), (most + 0.01, False)):
        assert bounded_range._fits(2.0, 9, epsilon, math.exp(-5)) == fits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = bounded_range._Curve(np.array([-600.0, -590.0]), np.array([1e300, 1e301]))
        assert curve.delta(595.0) == math.inf


@for_each("delta", [0.0, 1e-6, 0.5, 1e-300])
def test_ranges_add_up_without_slack_and_beyond_what_floats_hold(delta):
    for each, count in ((300.0, 3), (1000.0, 1), (210.0, 4), (1e308, 1)):
        assert bounded_range_composition(epsilon=each, count=count, delta=delta) == each * count
        assert bounded_range_epsilon_each(epsilon=each, count=count, delta=delta) == even_share(each, count)
    assert bounded_range_composition(epsilon=1e308, count=2, delta=delta) == math.inf


@for_each("count", [1, 3])
@for_each("epsilon", [5e-324, 1e-17, 1e-10])
def test_an_epsilon_near_zero_leaves_delta(epsilon, count):
    """The total variation of a round of range e is tanh(e / 4); that of several is at most the sum."""
    for delta in (1e-6, 0.01):
        each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
        assert each >= 4 * delta / count * (1 - 2e-9)
        assert bounded_range_composition(epsilon=each, count=count, delta=delta) <= epsilon + 2e-5 * each
        assert bounded_range_composition(epsilon=each * 1.01, count=count, delta=delta) > epsilon or count > 1
    least = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=1e-12)
    assert least == max(even_share(epsilon, count), 4e-12 / count * (1 - 1e-9))


def test_a_share_of_a_hundred_millionth_is_looked_up_in_the_lattice_and_a_smaller_one_is_kept():
    assert bounded_range_epsilon_each(epsilon=1e-8, count=1, delta=1e-9) > 1.8e-8
    less = math.nextafter(1e-8, 0)
    assert bounded_range_epsilon_each(epsilon=less, count=1, delta=1e-9) == less


@for_each("room", [0.2, 0.5])
def test_what_lies_left_of_the_lattice_counts_as_its_first_point(monkeypatch, room):
    monkeypatch.setattr(bounded_range, "_REACH", room)
    curve = bounded_range._worst(0.4, 1, 0.05)
    step = curve.logs[1] - curve.logs[0]
    start, fine = np.maximum(np.expm1(curve.logs), 0.0), round(0.4 / step)
    padded = np.concatenate([np.zeros(fine), start, np.expm1(curve.logs[-1] + np.arange(1, fine + 1) * step)])
    assert curve.means == pytest.approx(bounded_range._round(padded, step, fine), rel=1e-9, abs=1e-15)
    assert len(curve.means) == len(start)
