"""Each event by itself: its costs by the formulas of the theories that know it."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from cases import for_each

from reusable_holdout.mechanisms.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    GaussianEvent,
    PureEvent,
    SubsampledEvent,
    TargetChargingEvent,
    charging_profile,
    optimal_composition,
    target_charging_delta,
)

EVENTS = [
    PureEvent(0.3),
    ApproximateEvent(0.3, 1e-5),
    ConcentratedEvent(0.02),
    BoundedRangeEvent(0.3),
    GaussianEvent(4.0),
    TargetChargingEvent(0.05, charges=3, q=0.4),
    SubsampledEvent(GaussianEvent(2.0), rate=0.1),
]
ORDERS = np.array([1.01, 1.5, 2.0, 8.0, 300.0])


def deltas(event, epsilons):
    """Return an event's deltas at epsilons, which its profile must know."""
    found = event.delta(np.array(epsilons))
    assert found is not None
    return [float(delta) for delta in found]


@for_each("event", EVENTS)
def test_the_divergence_of_an_event_is_true_of_its_profile(event):
    """No law with this profile has a delta above the divergence's bound, if both are tight."""
    orders, points = 1 + np.geomspace(0.05, 500, 60), np.linspace(0.0, 0.5, 11)
    costs, profile = event.renyi(orders), event.delta(points)
    if np.isinf(costs).all() or profile is None:
        assert isinstance(event, ConcentratedEvent | TargetChargingEvent | SubsampledEvent)
        return
    for at, delta in zip(points, profile - event.failure(), strict=True):
        logs = (orders - 1) * (costs - at + np.log1p(-1 / orders)) - np.log(orders)
        assert delta <= math.exp(min(logs.min(), 0.0)) + 1e-12


@for_each("event", EVENTS)
def test_events_are_frozen_values(event):
    with pytest.raises((AttributeError, TypeError)):
        event.epsilon = 3.0
    assert len({event, type(event)(*(getattr(event, name) for name in type(event).__slots__))}) == 1


@for_each("failing", [0.0, 0.1])
@for_each("epsilon", [0.0, 0.3, 2.0])
def test_the_profile_of_a_response_that_may_fail_is_that_of_its_outcomes(epsilon, failing):
    for total in (0.0, 0.1, 0.3, 1.9, 5.0):
        yes, no = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
        exact = failing + (1 - failing) * max(0.0, yes - math.exp(total) * no)
        [found] = deltas(ApproximateEvent(epsilon, failing), [total])
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-15)


def test_the_divergences_are_the_formulas():
    assert ConcentratedEvent(0.02).renyi(ORDERS).tolist() == (0.02 * ORDERS).tolist()
    assert GaussianEvent(3.0).renyi(ORDERS) == pytest.approx(ORDERS / 18, rel=1e-14)
    assert BoundedRangeEvent(0.4).renyi(ORDERS[:4]) == pytest.approx(ORDERS[:4] * 0.02, rel=1e-12)
    assert BoundedRangeEvent(0.4).renyi(ORDERS[4:])[0] == PureEvent(0.4).renyi(ORDERS[4:])[0] < 0.4
    assert PureEvent(0.4).renyi(np.array([1e9])) == pytest.approx([0.4], rel=1e-8)


@for_each("epsilon", [10.0**-place for place in (-0.3, 0, 1, 3, 6, 8, 9, 12, 16, 50, 100)])
def test_the_divergence_of_a_pure_release_is_never_below_the_truth(epsilon):
    """A divergence of 0 for a small epsilon would give a filter such releases for nothing."""
    orders = (1.01, 2.0, 50.0)
    found = PureEvent(epsilon).renyi(np.array(orders))
    with mpmath.workdps(260):
        e = mpmath.mpf(epsilon)
        for order, divergence in zip(orders, found.tolist(), strict=True):
            a = mpmath.mpf(order)
            truth = mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2)) / (a - 1)
            assert truth <= divergence <= truth * (1 + 1e-11)


def test_the_formula_for_equal_events_is_rounded_up_and_at_most_the_sum():
    alone = optimal_composition(epsilon=0.1, count=7, delta=1e-3)
    assert PureEvent(0.1).repeated_epsilon(7, 1e-3) == (alone * (1 + 1e-9), "optimal composition")
    assert PureEvent(0.1).repeated_epsilon(7, 1e-30) == (7 * 0.1, "optimal composition")
    assert GaussianEvent(1.0).repeated_epsilon(3, 1e-3) is None


class Charged:
    """A target-charging event, with its true delta at whole numbers of steps."""

    def __init__(self, epsilon):
        charging_profile.charging_profile.cache_clear()
        self.epsilon, self.event = epsilon, TargetChargingEvent(epsilon, charges=2, q=0.4)

    def at(self, steps):
        return target_charging_delta(total=steps * self.epsilon, epsilon=self.epsilon, charges=2, q=0.4)


@for_each(
    ("epsilon", "farthest", "asked"),
    [
        (2**-10, 6, [0, 1, 3, 6]),  # far from negligible: every step as far as is asked
        (0.5, 9000, [0, 1, 7, 60]),  # negligible long before
    ],
)
def test_the_profile_of_target_charging_is_true_at_its_steps(epsilon, farthest, asked):
    charged = Charged(epsilon)
    found = deltas(charged.event, [steps * epsilon for steps in [*asked, farthest]])
    assert found[:-1] == pytest.approx([charged.at(steps) for steps in asked], rel=1e-12)


def test_between_steps_the_profile_of_target_charging_is_a_chord_and_beyond_them_flat():
    charged = Charged(0.5)
    for epsilon, found in zip((0.2, 3.7), deltas(charged.event, [0.2, 3.7]), strict=True):
        step = int(epsilon / 0.5)
        low, high = math.exp(step * 0.5), math.exp(step * 0.5 + 0.5)
        share = (math.exp(epsilon) - low) / (high - low)
        chord = (1 - share) * charged.at(step) + share * charged.at(step + 1)
        assert found == pytest.approx(chord, rel=1e-12)
    last = next(2**k for k in range(20) if charged.at(2**k) <= 1e-30)
    assert deltas(charged.event, [199.0, 150.0]) == [charged.at(last)] * 2
    assert deltas(charged.event, [(last - 0.5) * 0.5, 150.0])[0] < charged.at(last - 1)


def test_a_profile_has_few_points_up_to_the_first_power_of_two_that_is_far_enough(monkeypatch):
    monkeypatch.setattr(charging_profile, "_MOST_POINTS", 8)
    charged = Charged(2**-9)
    assert charged.at(64) > charging_profile._LEAST_CHARGING  # so the last is the first that reaches 32
    asked = range(0, 33, 4)
    found = deltas(charged.event, [steps * 2**-9 for steps in asked])
    assert found == pytest.approx([charged.at(steps) for steps in asked], rel=1e-12)
    between = deltas(charged.event, [2 * 2**-9, 32 * 2**-9])[0]
    assert charged.at(2) * 1.01 < between < charged.at(0)


@for_each(("epsilon", "last", "asked"), [(0.5, 1, [1.0, 5.0]), (2**-9, 256, [4.0, 5.0])])
def test_a_profile_ends_where_delta_is_exactly_negligible(monkeypatch, epsilon, last, asked):
    charged = Charged(epsilon)
    monkeypatch.setattr(charging_profile, "_LEAST_CHARGING", charged.at(last))
    assert deltas(charged.event, asked) == [charged.at(last)] * 2
    if last > 3:
        assert deltas(charged.event, [3 * epsilon, 5.0])[0] == pytest.approx(charged.at(3), rel=1e-12)


def test_the_curve_of_target_charging_is_computed_once(monkeypatch):
    asked = []

    def counted(**wish):
        asked.append(wish["total"])
        return target_charging_delta(**wish)

    monkeypatch.setattr(charging_profile, "target_charging_delta", counted)
    event = TargetChargingEvent(0.1 / math.sqrt(10**5), 10**5, 0.49, 0.5)
    for _, epsilon in itertools.product(range(50), (0.01, 0.2, 0.9)):
        deltas(event, [epsilon, 1.0])
    assert 0 < len(asked) < 100


def test_a_sampled_event_fails_as_seldom_as_its_rate():
    assert SubsampledEvent(ApproximateEvent(0.2, 0.01), 0.25).failure() == 0.0025
    assert SubsampledEvent(GaussianEvent(2.0), 0.25).pure() == math.inf
    assert SubsampledEvent(PureEvent(0.3), 1.0).pure() == 0.3
    assert deltas(SubsampledEvent(PureEvent(0.3), 1.0), [0.1]) == pytest.approx(deltas(PureEvent(0.3), [0.1]))
