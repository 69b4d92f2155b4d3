"""Privacy-loss distributions: sums against closed forms, and the grid: its reach, its step and what is infinite."""

import functools
import math

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.mechanisms import accounting
from reusable_holdout.mechanisms.accounting.losses import (
    composed_delta,
    composed_epsilon,
    pure_profile,
    pure_renyi,
)


def pure(epsilon):
    return functools.partial(pure_profile, epsilon)


def failing(epsilon, failure):
    return lambda at: np.asarray(accounting.ApproximateEvent(epsilon, failure).delta(at))


def ranged(epsilon):
    return lambda at: np.asarray(accounting.BoundedRangeEvent(epsilon).delta(at))


@for_each(("epsilon", "count"), [(1e-3, 10), (0.1, 1000), (3.0, 50), (20.0, 30)])
@for_each("delta", [1e-9, 0.1])
def test_randomized_response_costs_its_optimal_composition(epsilon, count, delta):
    """The tilt that a convolution needs goes from thousands to a hundredth."""
    found = composed_epsilon([(pure(epsilon), count)], delta)
    exact = accounting.optimal_composition(epsilon=epsilon, count=count, delta=delta)
    assert exact * (1 - 1e-9) <= found <= exact * 1.001


# Parts, an epsilon and a delta; delta there, and at a third of it where only what is likelier than 1e-6 matters, and
# epsilon: recorded from a version that agreed with Google's accountant and the other theories. Two with a rounding of
# 1e-9 of an operation.
SUMS = [
    (4e-16, [(pure(0.3), 10)], 0.5, 1e-6, (0.21818196064948628, 0.31731379920366953, 2.999746092009328)),
    (1e-9, [(pure(0.3), 10)], 0.5, 1e-6, (0.21831423997134108, 0.3175149215763613, 2.999746092009328)),
    (4e-16, [(pure(0.1), 50), (ranged(0.4), 8)], 1.2, 1e-4,
     (0.08218847377913306, 0.25081069404880596, 3.5323295280883653)),
    (4e-16, [(failing(0.2, 1e-6), 30), (pure(1.5), 1)], 2.5, 1e-3,
     (0.13391949774844256, 0.5003837381042384, 4.855363859953659)),
    (1e-9, [(pure(1e-3), 5), (pure(0.9), 1)], 0.3, 0.1,
     (0.3227104247720277, 0.39343804907237073, 0.7486519081416514)),
]  # fmt: skip


@for_each(("rounding", "parts", "epsilon", "delta", "wanted"), SUMS)
def test_sums_are_the_recorded_ones(monkeypatch, rounding, parts, epsilon, delta, wanted):
    monkeypatch.setattr(accounting.losses, "_ROUNDING", rounding)
    there, nearer = composed_delta(parts, epsilon), composed_delta(parts, epsilon / 3, smallest=1e-6)
    assert (there, nearer, composed_epsilon(parts, delta)) == pytest.approx(wanted, rel=1e-10)


@for_each("points", [64, 128, 4096])  # the first are too few
@for_each("epsilon", [0.0, 0.7, 1.03])
def test_delta_is_that_of_the_sum_and_the_best_tail_beyond_its_grid(monkeypatch, points, epsilon):
    """Mass beyond half the grid counts as infinite, by the best of all exponential bounds of it."""
    monkeypatch.setattr(accounting.losses, "_MOST_POINTS", points)
    monkeypatch.setattr(accounting.losses, "_ROUNDING", 0.0)
    step, masses = 0.05, np.array([0.2, 0.1, 0.1, 0.05, 0.05, 0.45])
    loss = accounting.losses._Loss(-2, masses, 0.05, 40)
    whole = functools.reduce(np.convolve, [masses] * 40)
    places = np.arange(len(whole)) - 80
    end = round(epsilon / step) + points // 2
    sums = places * step
    within = (sums > epsilon) & (places < end)
    inside = float(whole[within] @ -np.expm1(epsilon - sums[within]))
    slopes = np.linspace(0.0, 40.0, 200_001)
    moments = np.log(np.exp(np.outer(slopes, step * (np.arange(6) - 2))) @ masses)
    above = math.exp((40 * moments - slopes * end * step).min())
    wanted = min(1.0, 1 - 0.95**40 + inside + above)
    found = accounting.losses._delta([loss], step, epsilon)
    if points > 64:
        assert found == pytest.approx(wanted, rel=3e-7)
    else:  # what lies beyond the grid is wrapped round it, too
        assert wanted * (1 - 1e-9) <= found


@for_each("epsilon", [0.01, 0.3, 7.0, 150.0, 190.0])
@for_each("failure", [0.0, 1e-9, 0.01, 0.9])
def test_a_loss_reaches_as_far_as_its_profile_falls(epsilon, failure):
    assert accounting.losses._reach(failing(epsilon, failure), 0.0) == pytest.approx(epsilon, rel=1e-5)


def test_a_loss_that_does_not_matter_or_is_not_looked_for_is_infinite():
    least = 0.25  # where the profile of randomized response has it, in closed form
    reach = accounting.losses._reach(pure(2.0), least)
    assert reach == pytest.approx(2.0 + math.log1p(-least * (1 + math.exp(-2.0))), rel=1e-9)
    assert accounting.losses._reach(pure(250.0), 0.0) < 1e-9
    assert accounting.losses._reach(pure(0.0), 0.0) < 1e-9


def test_no_grid_has_more_points_than_it_may(monkeypatch):
    """One large loss lies among many small ones, which would have a finer grid."""
    parts = [(pure(4.0), 1), (pure(0.001), 10_000)]
    step = accounting.losses._discretised(parts, 1e-12)[1]
    wished = math.sqrt(0.0005 * 16 / 10_001)
    assert step == pytest.approx(
        0.001 / math.ceil(0.001 / wished), rel=1e-9
    )  # the commonest loss is on the grid
    assert accounting.losses._MOST_POINTS == 2**22
    monkeypatch.setattr(accounting.losses, "_MOST_POINTS", 2**12)
    found, step = accounting.losses._discretised(parts, 1e-12)
    assert step == pytest.approx(4.0 / 2**10, rel=1e-9)
    assert [-loss.first for loss in found] == [2**10, 1]
    assert composed_delta(parts, 3.0) >= accounting.optimal_delta(total=3.0, epsilon=4.0, count=1)
    monkeypatch.setattr(accounting.losses, "_MOST_POINTS", 128)
    assert (
        accounting.losses._span([accounting.losses._Loss(-1, np.array([0.5, 0.0, 0.5]), 0.0, 100)], 0.01, 0.0)
        == 128
    )


def test_delta_of_what_fails_alone_is_attained_and_below_it_nothing_is_enough():
    failure = 0.01
    parts = [(failing(0.0, failure), 3)]
    whole = composed_delta(parts, 0.0)
    assert composed_epsilon(parts, whole) == composed_epsilon(parts, math.nextafter(whole, 1.0)) == 0.0
    least = -math.expm1(3 * math.log1p(-failure))
    assert least * (1 + 0.9e-7) < whole < least * (1 + 1.1e-7)
    assert composed_epsilon(parts, least * (1 + 0.9e-7)) == math.inf
    assert composed_epsilon([(failing(0.1, 0.01), 1)], 0.0099) == math.inf
    assert composed_epsilon([(failing(0.1, 0.01), 1)], 0.0101) < 0.1
    once = accounting.losses._discretised([(failing(0.0, 0.5), 1)], 1e-15)[0]
    assert composed_epsilon([(failing(0.0, 0.5), 1)], accounting.losses._infinite(once) * (1 + 1e-7)) == 0.0


def test_an_epsilon_of_a_few_grid_steps_and_one_beyond_a_million_are_found():
    for epsilon in (1e-4, 0.01, 0.09, 0.2):
        found = composed_epsilon([(pure(0.3), 1)], composed_delta([(pure(0.3), 1)], epsilon))
        assert found == pytest.approx(epsilon, rel=0.03)
    assert composed_epsilon([(pure(100.0), 20_000)], 1e-6) == pytest.approx(2e6, rel=1e-3)


def test_a_profile_above_one_or_rising_is_not_believed():
    loss = accounting.losses._on_grid(lambda at: np.array([1.4, 0.5, 0.6, 0.2])[: len(at)], 0.1, 3, 1)
    again = accounting.losses._on_grid(lambda at: np.array([1.0, 0.5, 0.5, 0.2])[: len(at)], 0.1, 3, 1)
    assert loss.masses.tolist() == again.masses.tolist()
    assert loss.masses[3] == loss.masses.min() == 0.0
    assert loss.infinite == 0.2


@for_each("order", [1.0 + 1e-6, 1.5, 7.0, 1e5])
@for_each("epsilon", [0.0, 1e-3, 1.0, 300.0])
def test_the_divergence_of_a_response_is_between_nothing_and_its_epsilon(epsilon, order):
    found = pure_renyi(epsilon, np.array([order]))[0]
    assert 0.0 <= found <= epsilon
    if order < 1.1:
        assert found == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-3)
    assert pure_renyi(math.inf, np.array([order, order])).tolist() == [math.inf] * 2
    assert pure_profile(math.inf, np.array([order, 2.0])).tolist() == [1.0, 1.0]


def test_a_delta_is_at_most_one(monkeypatch):
    """For millions of releases even the smallest tilt that is looked for is too large for a float."""
    assert composed_delta([(failing(0.0, 1 - 1e-9), 2)], 0.0) == 1.0
    assert composed_delta([(failing(0.1, 0.999), 50)], 0.3) == 1.0
    monkeypatch.setattr(accounting.losses, "_MOST_POINTS", 2**12)
    for count in (2 * 10**7, 10**9, 10**15):
        assert composed_delta([(pure(10.0), count)], 0.3) == 1.0
