"""The parts of a privacy-loss distribution by themselves, and the sums that they gave when they were checked."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.mechanisms.accounting import ApproximateEvent, BoundedRangeEvent, losses
from reusable_holdout.mechanisms.accounting.losses import (
    composed_delta,
    composed_epsilon,
    pure_profile,
    pure_renyi,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def pure(epsilon: float) -> losses.Profile:
    return functools.partial(pure_profile, epsilon)


def failing(epsilon: float, failure: float) -> losses.Profile:
    return lambda at: np.asarray(ApproximateEvent(epsilon, failure).delta(at))


def ranged(epsilon: float) -> losses.Profile:
    return lambda at: np.asarray(BoundedRangeEvent(epsilon).delta(at))


# Parts, an epsilon and a delta; delta there, and at a third of it where only what is likelier than 1e-6 matters, and
# epsilon: of a version that agreed with the optimal composition, Google's accountant and the other theories.
SUMS: list[tuple[list[tuple[losses.Profile, int]], float, float, tuple[float, float, float]]] = [
    ([(pure(0.3), 10)], 0.5, 1e-6, (0.21818196064948628, 0.31731379920366953, 2.999746092009328)),
    ([(pure(0.1), 50), (ranged(0.4), 8)], 1.2, 1e-4, (0.08218847377913306, 0.25081069404880596, 3.5323295280883653)),
    ([(failing(0.2, 1e-6), 30), (pure(1.5), 1)], 2.5, 1e-3,
     (0.13391949774844256, 0.5003837381042384, 4.855363859953659)),
    ([(ranged(3.0), 2)], 2.0, 1e-9, (0.48774989991458784, 0.6917993276076145, 5.999992011297946)),
    ([(pure(1e-3), 5), (pure(0.9), 1)], 0.3, 0.1, (0.3207721757630278, 0.3914998460833021, 0.7485357929261154)),
]  # fmt: skip
# The same with a rounding of 1e-9 of an operation.
ROUNDED = {
    0: (0.21831423997134108, 0.3175149215763613, 2.999746092009328),
    4: (0.3227104247720277, 0.39343804907237073, 0.7486519081416514),
}


def sums(
    parts: Sequence[tuple[losses.Profile, int]], epsilon: float, delta: float
) -> tuple[float, float, float]:
    there = composed_delta(parts, epsilon)
    return there, composed_delta(parts, epsilon / 3, smallest=1e-6), composed_epsilon(parts, delta)


@for_each("place", range(len(SUMS)))
def test_sums_are_what_they_were(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    parts, epsilon, delta, wanted = SUMS[place]
    monkeypatch.setattr(losses, "_ROUNDING", 4e-16)
    assert sums(parts, epsilon, delta) == pytest.approx(wanted, rel=1e-10)
    if place in ROUNDED:
        monkeypatch.setattr(losses, "_ROUNDING", 1e-9)
        assert sums(parts, epsilon, delta) == pytest.approx(ROUNDED[place], rel=1e-10)


@for_each(
    ("masses", "count", "points"),
    [
        ([0.5, 0.0, 0.5], 1, 64),  # at least
        ([0.5, 0.0, 0.5], 100, 256),  # 24 standard deviations of 10 steps
        ([0.5, *[0.0] * 101, 0.5], 1, 2048),  # 24 of 51
        ([1e-9, *[0.5] * 99, 0.0], 0, 256),  # twice as many as one loss has
        ([0.0, 1.0, 0.0], 10**6, 64),
    ],
)
def test_a_sum_has_as_many_points_as_hold_it(masses: list[float], count: int, points: int) -> None:
    loss = losses._Loss(-(len(masses) // 2), np.array(masses) / sum(masses), 0.0, count)
    assert losses._span([loss], 0.01, 0.0) == points


def test_a_sum_has_twice_the_points_of_its_longest_loss() -> None:
    short = losses._Loss(-1, np.array([0.0, 1.0, 0.0]), 0.0, 1)
    long = losses._Loss(-50, np.eye(101)[50], 0.0, 1)
    for both in ([short, long], [long, short]):
        assert losses._span(both, 0.01, 0.0) == 256


def test_a_sum_has_no_more_points_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    assert losses._MOST_POINTS == 2**22
    monkeypatch.setattr(losses, "_MOST_POINTS", 128)
    loss = losses._Loss(-1, np.array([0.5, 0.0, 0.5]), 0.0, 100)
    assert losses._span([loss], 0.01, 0.0) == 128


@for_each("infinite", [0.0, 1e-12, 0.1, 1.0])
def test_the_chance_of_an_infinite_sum(infinite: float) -> None:
    one = losses._Loss(0, np.array([1 - infinite]), infinite, 3)
    other = losses._Loss(0, np.array([0.8]), 0.2, 2)
    assert losses._infinite([one]) == pytest.approx(1 - (1 - infinite) ** 3, rel=1e-4)
    assert losses._infinite([one, other]) == pytest.approx(1 - (1 - infinite) ** 3 * 0.64, rel=1e-9)


def test_delta_of_what_fails_alone_is_attained_and_below_it_nothing_is_enough() -> None:
    failure = 0.01
    parts = [(failing(0.0, failure), 3)]
    whole = composed_delta(parts, 0.0)
    assert composed_epsilon(parts, whole) == 0.0
    least = -math.expm1(3 * math.log1p(-failure))
    assert least * (1 + 0.9e-7) < whole < least * (1 + 1.1e-7)
    assert composed_epsilon(parts, least * (1 + 0.9e-7)) == math.inf
    assert composed_epsilon(parts, least * (1 + 1.1e-7)) == 0.0
    assert composed_epsilon(parts, math.nextafter(whole, 1.0)) == 0.0
    once = losses._discretised([(failing(0.0, 0.5), 1)], 1e-15)[0]
    assert composed_epsilon([(failing(0.0, 0.5), 1)], losses._infinite(once) * (1 + 1e-7)) == 0.0


@for_each("epsilon", [1e-4, 0.01, 0.09, 0.2])
def test_an_epsilon_of_a_few_grid_steps_is_found(epsilon: float) -> None:
    parts = [(pure(0.3), 1)]
    found = composed_epsilon(parts, composed_delta(parts, epsilon))
    assert found == pytest.approx(epsilon, rel=0.03)


def test_a_loss_that_no_one_looks_for_is_infinite() -> None:
    assert losses._reach(pure(190.0), 0.0) == pytest.approx(190.0, rel=1e-5)
    assert losses._reach(pure(250.0), 0.0) < 1e-9
    assert losses._reach(pure(1e-9), 0.0) == pytest.approx(1e-9, rel=1e-5)
    assert losses._reach(pure(0.0), 0.0) < 1e-9


@for_each("epsilon", [1e-9, 0.2, 3.0, 40.0])
def test_a_response_on_a_grid_that_it_falls_on_is_itself(epsilon: float) -> None:
    for size in (1, 2, 7):
        loss = losses._on_grid(pure(epsilon), epsilon / size, size, 5)
        yes = 1 / (1 + math.exp(-epsilon))
        assert (loss.first, loss.count, len(loss.masses)) == (-size, 5, 2 * size + 1)
        assert loss.masses[[0, -1]] == pytest.approx([yes * math.exp(-epsilon), yes], rel=1e-6)
        assert loss.masses[1:-1] == pytest.approx(np.zeros(2 * size - 1), abs=1e-7)
        assert loss.infinite == 0.0
    half = losses._on_grid(failing(epsilon, 0.5), epsilon, 1, 1)
    assert half.infinite == 0.5
    assert half.masses.sum() == pytest.approx(0.5)


def test_what_a_profile_says_above_one_and_rising_is_not_believed() -> None:
    """Deltas 1.4, 0.5, 0.6, 0.2: as if they were 1, 0.5, 0.5, 0.2."""
    loss = losses._on_grid(lambda at: np.array([1.4, 0.5, 0.6, 0.2])[: len(at)], 0.1, 3, 1)
    again = losses._on_grid(lambda at: np.array([1.0, 0.5, 0.5, 0.2])[: len(at)], 0.1, 3, 1)
    assert loss.masses.tolist() == again.masses.tolist()
    assert loss.masses[3] == 0.0
    assert loss.masses.min() == 0.0
    assert loss.infinite == 0.2


@for_each("order", [1.0 + 1e-6, 1.5, 7.0, 1e5])
@for_each("epsilon", [0.0, 1e-3, 1.0, 300.0])
def test_the_divergence_of_a_response_is_between_nothing_and_its_epsilon(
    epsilon: float, order: float
) -> None:
    found = pure_renyi(epsilon, np.array([order]))[0]
    assert 0.0 <= found <= epsilon
    if epsilon and order < 2:
        exact = epsilon * math.tanh(epsilon / 2) if order < 1.1 else None
        assert exact is None or found == pytest.approx(exact, rel=1e-3)
    assert pure_renyi(math.inf, np.array([order, order])).tolist() == [math.inf] * 2
    assert pure_profile(math.inf, np.array([order, 2.0])).tolist() == [1.0, 1.0]


@for_each("points", [64, 128, 4096])  # of which the first are too few
@for_each("epsilon", [0.0, 0.7, 1.03])
def test_delta_is_that_of_the_sum_and_the_best_tail_beyond_its_grid(
    monkeypatch: pytest.MonkeyPatch, points: int, epsilon: float
) -> None:
    """Mass beyond half the grid counts as infinite, by the best of all exponential bounds of it."""
    monkeypatch.setattr(losses, "_MOST_POINTS", points)
    monkeypatch.setattr(losses, "_ROUNDING", 0.0)
    step, masses = 0.05, np.array([0.2, 0.1, 0.1, 0.05, 0.05, 0.45])
    loss = losses._Loss(-2, masses, 0.05, 40)
    whole = masses
    for _ in range(39):
        whole = np.convolve(whole, masses)
    places = np.arange(len(whole)) - 80
    end = round(epsilon / step) + points // 2
    sums = places * step
    within = (sums > epsilon) & (places < end)
    inside = float(whole[within] @ -np.expm1(epsilon - sums[within]))
    slopes = np.linspace(0.0, 40.0, 200_001)
    moments = np.log(np.exp(np.outer(slopes, step * (np.arange(6) - 2))) @ masses)
    above = math.exp((40 * moments - slopes * end * step).min())
    infinite = 1 - 0.95**40
    wanted = min(1.0, infinite + inside + above)
    found = losses._delta([loss], step, epsilon)
    if points > 64:
        assert found == pytest.approx(wanted, rel=3e-7)
    else:  # what is beyond the grid is wrapped round it, too
        assert wanted * (1 - 1e-9) <= found


def test_a_delta_is_at_most_one() -> None:
    assert composed_delta([(failing(0.0, 1 - 1e-9), 2)], 0.0) == 1.0
    assert composed_delta([(failing(0.1, 0.999), 50)], 0.3) == 1.0


def test_millions_of_releases_tell_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far below the mean of their sum a tilt as small as is looked for is too large for a float."""
    monkeypatch.setattr(losses, "_MOST_POINTS", 2**12)
    for count in (2 * 10**7, 10**9, 10**15):
        assert composed_delta([(pure(10.0), count)], 0.3) == 1.0


def test_what_is_either_nothing_or_infinite_has_no_say_in_the_grid() -> None:
    """However many there are: the commonest of those that have a loss falls on it."""
    nothing = (failing(0.0, 1e-9), 1000)
    step = losses._discretised([nothing, (pure(0.3), 3), (pure(0.5), 1)], 1e-15)[1]
    assert 0.3 / step == pytest.approx(round(0.3 / step), rel=1e-9)
    assert step > 1e-4
    assert losses._discretised([nothing], 1e-15)[1] == 1e-12
