"""Filters and odometers against every adaptive strategy of a few steps, and their sums against exact ones."""

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import ACCOUNTING
from scipy import optimize, special

from reusable_holdout.errors import BudgetError
from reusable_holdout.mechanisms import accounting

CHOICES = (0.2, 0.5, 1.1)  # epsilons of randomized response that the adversary chooses among, in whole tenths


def admitted(counts, choice, *, epsilon, delta):
    """Return True if a filter that admitted so many of each choice admits one more."""
    budget = accounting.PrivacyFilter(epsilon=epsilon, delta=delta)
    for place, count in enumerate(counts):
        for _ in range(count):
            budget.admit(accounting.PureEvent(CHOICES[place]))
    return budget.affords(accounting.PureEvent(CHOICES[choice]))


def worst_delta(*, epsilon, delta, steps, ignore=1.0):
    """Find the largest delta of all strategies that a filter lets through, one of `ignore` times the epsilon."""
    allowed = cache(lambda counts, choice: admitted(counts, choice, epsilon=ignore * epsilon, delta=delta))

    @cache
    def value(counts, tenths, left):
        """Return the largest mean, given the data, of max(0, 1 - exp(epsilon - loss)) from here on."""
        best = max(0.0, -math.expm1(epsilon - tenths / 10))
        if left == 0:
            return best
        for choice, each in enumerate(CHOICES):
            after = tuple(count + (place == choice) for place, count in enumerate(counts))
            if allowed(counts, choice):
                likely = 1 / (1 + math.exp(-each))
                move = round(10 * each)
                up, down = value(after, tenths + move, left - 1), value(after, tenths - move, left - 1)
                best = max(best, likely * up + (1 - likely) * down)
        return best

    return value((0,) * len(CHOICES), 0, steps)


@for_each(("epsilon", "delta"), [(1.5, 0.05), (3.0, 0.01), (0.7, 0.2)])
def test_no_adaptive_strategy_gets_past_a_filter(epsilon, delta):
    assert 0 < worst_delta(epsilon=epsilon, delta=delta, steps=9) <= delta
    wrong = worst_delta(epsilon=epsilon, delta=delta, steps=9, ignore=3.0)
    assert wrong > delta  # the same adversary against a wrong filter


@pytest.mark.long(*ACCOUNTING)
@for_each("delta", [0.3, 0.05])
def test_no_adaptive_strategy_gets_past_an_odometer(delta):
    @cache
    def reading(counts):
        odometer = accounting.PrivacyOdometer(delta=delta)
        for place, count in enumerate(counts):
            for _ in range(count):
                odometer.add(accounting.PureEvent(CHOICES[place]))
        return odometer.epsilon

    @cache
    def chance(counts, tenths, left, scale):
        """Return the largest chance, given the data, that the loss is ever above the reading."""
        if tenths / 10 > scale * reading(counts) + 1e-9:
            return 1.0
        if left == 0:
            return 0.0
        best = 0.0
        for choice, each in enumerate(CHOICES):
            after = tuple(count + (place == choice) for place, count in enumerate(counts))
            likely, move = 1 / (1 + math.exp(-each)), round(10 * each)
            up, down = (chance(after, tenths + step, left - 1, scale) for step in (move, -move))
            best = max(best, likely * up + (1 - likely) * down)
        return best

    start = (0,) * len(CHOICES)
    assert chance(start, 0, 10, 1.0) <= delta
    assert chance(start, 0, 10, 0.5) > delta  # half the reading would be wrong


@for_each("each", [0.01, 0.1])
def test_a_filter_affords_nearly_as_much_as_composition_without_adaptivity(each):
    budget = accounting.PrivacyFilter(epsilon=1.0, delta=1e-6)
    while budget.affords(accounting.PureEvent(each)):
        budget.admit(accounting.PureEvent(each))
    spent = accounting.optimal_composition(epsilon=each, count=budget.events, delta=1e-6)
    assert 0.85 <= spent <= 1.0


def test_an_event_that_cannot_be_paid_costs_nothing():
    budget = accounting.PrivacyFilter(epsilon=1.0, delta=1e-6)
    budget.admit(accounting.PureEvent(0.9))
    refuses(BudgetError, "nothing was spent", budget.admit, accounting.PureEvent(0.5))
    assert budget.events == 1
    budget.admit(accounting.PureEvent(0.1))  # 0.9 and 0.1 are 1
    assert not budget.affords(accounting.PureEvent(0.05))
    assert budget.affords(accounting.PureEvent(0.0))


def test_deltas_of_events_are_paid_from_what_is_set_aside():
    budget = accounting.PrivacyFilter(epsilon=1.0, delta=1e-6, failures=2e-7)
    budget.admit(accounting.ApproximateEvent(0.1, 1e-7))
    assert budget.affords(accounting.ApproximateEvent(0.1, 0.9e-7))
    assert not budget.affords(accounting.ApproximateEvent(0.1, 1.1e-7))
    odometer = accounting.PrivacyOdometer(delta=1e-6, failures=1e-7)
    odometer.add(accounting.ApproximateEvent(0.1, 0.9e-7))
    refuses(BudgetError, "nothing was noted", odometer.add, accounting.ApproximateEvent(0.1, 0.9e-7))
    assert odometer.events == 1


def test_an_event_that_no_divergence_bounds_is_not_affordable():
    assert not accounting.PrivacyFilter(epsilon=9.0, delta=1e-6).affords(
        accounting.TargetChargingEvent(0.1, 1, 0.4)
    )
    odometer = accounting.PrivacyOdometer(delta=1e-6)
    odometer.add(accounting.TargetChargingEvent(0.1, 1, 0.4))
    assert odometer.epsilon == math.inf


def test_a_reading_never_falls_and_starts_as_a_sum():
    odometer = accounting.PrivacyOdometer(delta=1e-6)
    readings = [odometer.epsilon]
    for event in (
        [accounting.PureEvent(0.05)] * 4
        + [accounting.GaussianEvent(20.0)] * 4
        + [accounting.ConcentratedEvent(0.001)] * 4
    ):
        odometer.add(event)
        readings.append(odometer.epsilon)
    assert readings[:5] == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])
    assert readings == sorted(readings)
    assert "epsilon=" in repr(odometer)


def log_loss_factor(order):
    """Return the log of ``c_a``, the least for which ``max(0, 1 - exp(-x)) <= c_a exp((a-1) x)``."""
    found = optimize.minimize_scalar(
        lambda x: -math.log(-math.expm1(-x)) + (order - 1) * x,
        bounds=(1e-9, 60.0),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return float(-found.fun)


GRID = [1 + 0.05 * 40_000 ** (place / 39) for place in range(40)]  # from 1.05 to 2001


@for_each(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (4.0, 0.01), (30.0, 1e-9)])
def test_a_filter_affords_what_its_mixture_does(epsilon, delta):
    """Nine tenths on the order at which the largest concentrated event is affordable, the rest on a grid."""

    def affordable(order):
        return (epsilon - (log_loss_factor(order) - math.log(0.9 * delta)) / (order - 1)) / order

    found = optimize.minimize_scalar(
        lambda log: -affordable(1 + math.exp(log)), bounds=(-3.0, 12.0), method="bounded"
    )
    main = 1 + math.exp(found.x)
    assert accounting.filters._main_order(epsilon, delta) == pytest.approx(main, rel=3e-3)
    orders, weights = [*GRID, main], [0.1 / 40] * 40 + [0.9]
    costs = [math.log(weight) - log_loss_factor(order) for order, weight in zip(orders, weights, strict=True)]

    def excess(rho):
        terms = [
            cost + (order - 1) * (epsilon - order * rho) for cost, order in zip(costs, orders, strict=True)
        ]
        return float(special.logsumexp(terms)) + math.log(delta)

    most = optimize.brentq(excess, 0.0, epsilon, xtol=1e-12)
    budget = accounting.PrivacyFilter(epsilon=epsilon, delta=delta)
    assert budget.affords(accounting.ConcentratedEvent(most * (1 - 1e-4)))
    assert not budget.affords(accounting.ConcentratedEvent(most * (1 + 1e-4)))


class Bounded(accounting.PrivacyEvent):
    """Known by its divergences alone, and by those of small orders only."""

    def __init__(self, divergence, largest_order=math.inf):
        self.divergence, self.largest_order = divergence, largest_order

    def renyi(self, orders):
        return np.where(orders <= self.largest_order, self.divergence, math.inf)


def test_a_sum_that_just_attains_the_bound_is_affordable():
    """One order, at which the exponent is 0 and the weight's log is what is needed."""
    budget = accounting.PrivacyFilter(epsilon=1.0, delta=0.1)
    budget._log_weights = np.array([-math.log(budget._slack)])
    spent = accounting.filters._Spent(np.array([2.0])).with_event(Bounded(1.0))
    spent.renyi = np.array([1.0])
    assert budget._holds(spent)
    spent.renyi = np.array([1 + 1e-9])
    assert not budget._holds(spent)


@for_each("divergence", [0.0, 0.003, 1.7])
@for_each("delta", [1e-6, 0.3])
def test_a_reading_is_rounded_up_but_hardly(divergence, delta):
    odometer = accounting.PrivacyOdometer(delta=delta)
    odometer.add(Bounded(divergence))
    with mpmath.workdps(30):
        least = mpmath.log(40 / mpmath.mpf(delta))
        mixture = lambda x: mpmath.log(sum(mpmath.exp((a - 1) * (x - divergence)) for a in GRID))  # noqa: E731
        exact = mpmath.findroot(lambda x: mixture(x) - least, (divergence, divergence + 1), solver="anderson")
        assert exact < odometer.epsilon < exact * (1 + 1e-11) + 1e-14


def test_a_reading_needs_no_order_but_one():
    odometer = accounting.PrivacyOdometer(delta=1e-6)
    odometer.add(Bounded(0.1, largest_order=1.06))
    assert odometer.epsilon == pytest.approx(0.1 + math.log(40e6) / 0.05, rel=1e-9)


def test_sums_beyond_all_floats_are_infinite():
    odometer = accounting.PrivacyOdometer(delta=1e-6)
    odometer.add(accounting.PureEvent(1e308))
    assert odometer.epsilon == 1e308
    odometer.add(accounting.PureEvent(1e308))
    assert odometer.epsilon == math.inf
    assert not accounting.PrivacyFilter(epsilon=1e3, delta=1e-6).affords(accounting.PureEvent(1e308))
    assert accounting.PrivacyFilter(epsilon=1.5e308, delta=1e-6).affords(accounting.PureEvent(1e308))
    once = accounting.PrivacyOdometer(delta=1e-6)
    once.add(accounting.ConcentratedEvent(1e306))
    assert once.epsilon == pytest.approx(1.05e306, rel=1e-9)


def test_sums_are_rounded_up_but_hardly():
    budget = accounting.PrivacyFilter(epsilon=200.0, delta=0.9, failures=0.8)
    assert budget.events == accounting.PrivacyOdometer(delta=0.5).events == 0
    for _ in range(300):
        budget.admit(accounting.ConcentratedEvent(0.1))
        budget.admit(accounting.ApproximateEvent(0.0, 1e-3))
    spent = budget._spent
    assert budget.events == 600
    for order, renyi in zip(spent.orders, spent.renyi, strict=True):
        exact = 300 * Fraction(0.1) * Fraction(float(order))
        assert exact <= Fraction(float(renyi)) <= exact * Fraction(1 + 1e-9)
    failed = 300 * Fraction(1e-3)
    assert failed <= Fraction(spent.failure) <= failed * Fraction(1 + 1e-9)
    budget.admit(accounting.ApproximateEvent(0.0, 0.4999))
    assert not budget.affords(accounting.ApproximateEvent(0.0, 2e-4))


@for_each("failures", [0.0, 3e-7])
def test_the_delta_that_failures_leave_is_rounded_down_but_hardly(failures):
    left = Fraction(1e-6) - Fraction(failures)
    wish = {"delta": 1e-6, "failures": failures}
    for one in (accounting.PrivacyFilter(epsilon=1.0, **wish), accounting.PrivacyOdometer(**wish)):
        assert left * Fraction(1 - 1e-11) < Fraction(one._slack) < left
