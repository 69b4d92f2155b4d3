"""The search of bounded range on costs whose root is known, and values that the lattice gave when it was checked."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    bounded_range,
    bounded_range_composition,
    bounded_range_epsilon_each,
)
from reusable_holdout.mechanisms.accounting.composition import even_share

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT, DELTA = 0.5, 1e-6
COSTS: dict[str, Callable[[float], float]] = {
    "straight": lambda each: DELTA * each / ROOT,
    "steep": lambda each: DELTA * (each / ROOT) ** 40,
    "flat, then steep": lambda each: DELTA * (0.0 if each < 0.4 else math.exp(90 * (each - ROOT))),
    "a step": lambda each: DELTA if each <= ROOT else 2 * DELTA,
    "a step from nothing": lambda each: 0.0 if each <= ROOT else 2 * DELTA,
    "a step from just below": lambda each: DELTA * (1 - 1e-9) if each <= ROOT else 1.0,
    "a step to just above": lambda each: 0.0 if each <= ROOT else DELTA * (1 + 1e-9),
    "a step beyond all floats": lambda each: DELTA / 2 if each <= ROOT else math.inf,
}
LOOKS = {  # how many the search took when it was written, from four starts
    "straight": [18, 9, 7, 6],
    "steep": [18, 9, 7, 6],
    "flat, then steep": [15, 7, 6, 5],
    "a step": [44, 37, 35, 35],
    "a step from nothing": [22, 15, 13, 13],
    "a step from just below": [44, 37, 35, 35],
    "a step to just above": [22, 15, 13, 13],
    "a step beyond all floats": [22, 15, 13, 13],
}


class Known(NamedTuple):
    """In place of a lattice."""

    cost: float

    def delta(self, epsilon: float) -> float:
        assert epsilon == 7.0
        return self.cost


def found(monkeypatch: pytest.MonkeyPatch, name: str, low: float) -> tuple[float, int]:
    """What the search finds, and how often it looked."""
    looks = []

    def worst(each: float, count: int, epsilon: float) -> Known:
        assert (count, epsilon) == (3, 7.0)
        looks.append(each)
        return Known(COSTS[name](each))

    monkeypatch.setattr(bounded_range, "_worst", worst)
    return bounded_range._largest(low, 7.0, 3, DELTA), len(looks)


@for_each("name", COSTS)
@for_each("low", [0.01, 0.2, 0.34, 0.49, ROOT])
def test_the_search_ends_just_below_the_root(monkeypatch: pytest.MonkeyPatch, name: str, low: float) -> None:
    each, _ = found(monkeypatch, name, low)
    assert ROOT / (1 + 3e-4) - 1e-12 <= each <= ROOT


@for_each("name", COSTS)
def test_a_start_that_is_too_large_already_is_kept(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert found(monkeypatch, name, 0.51) == (0.51, 1)


def test_secants_look_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = {name: [found(monkeypatch, name, low)[1] for low in (0.01, 0.2, 0.34, 0.49)] for name in COSTS}
    assert looks == LOOKS


# Given by versions that the tests beside this file were run against: closed forms and the literature's lower bound.
TOTALS = [
    (0.3, 1, 0.01, 0.19549779668020617),
    (0.3, 1, 1e-09, 0.2999975825217713),
    (2.0, 1, 0.2, 0.9248024014660897),
    (0.2, 2, 0.001, 0.3023406266138455),
    (1.0, 3, 1e-06, 2.90952688575568),
    (0.05, 100, 1e-06, 1.060691099669439),
    (0.5, 40, 0.001, 5.5871270617871325),
    (3.0, 9, 1e-08, 25.361812127374016),
    (0.1, 30, 0.05, 0.16840671151669573),
]
EACH = [
    (1.0, 1, 0.001, 1.051654945165904),
    (1.0, 3, 1e-06, 0.3503274147471856),
    (0.1, 40, 0.001, 0.018025200341306558),
    (5.0, 10, 0.2, 1.682087985873771),
]


@for_each(("each", "count", "delta", "total"), TOTALS)
def test_the_lattice_gives_what_it_gave(each: float, count: int, delta: float, total: float) -> None:
    found = bounded_range_composition(epsilon=each, count=count, delta=delta)
    assert found == pytest.approx(total, rel=1e-10)


@for_each(("epsilon", "count", "delta", "each"), EACH)
def test_its_inverse_gives_what_it_gave(epsilon: float, count: int, delta: float, each: float) -> None:
    found = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    assert found == pytest.approx(each, rel=1e-10)


def test_rounds_that_tell_less_than_delta_cost_nothing() -> None:
    assert bounded_range_composition(epsilon=0.01, count=2, delta=0.3) == 0.0


def test_the_epsilon_at_a_delta_that_a_number_has_is_no_larger() -> None:
    curve = bounded_range._worst(0.3, 2, 0.5)
    for epsilon in (0.1, 0.2, 0.31, 0.35, 0.44, 0.5, 0.52):
        assert curve.epsilon(curve.delta(epsilon)) <= epsilon
    assert bounded_range._worst(0.3, 200, 0.5).epsilon(1e-300) == math.inf


@for_each(("count", "total"), [(1, 0.1), (1, 5.0), (3, 0.77), (200, 1.3)])
def test_a_lattice_reaches_as_far_as_losses_or_three_and_a_half_deviations(count: int, total: float) -> None:
    each = 0.3
    fine = round(350 / math.sqrt(count) + 350 / count)
    step = each / fine
    room = 3.5 * each * math.sqrt(count) / 2
    logs = bounded_range._worst(each, count, total).logs
    assert logs[0] == pytest.approx(
        -(min(count * fine, math.ceil((total + room) / step)) + 1) * step, rel=1e-12
    )
    assert logs[-1] == pytest.approx((min(count * fine, math.ceil(room / step)) + 1) * step, rel=1e-12)
    assert logs[1] - logs[0] == pytest.approx(step, rel=1e-9)


def test_a_lattice_has_at_least_six_points_in_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_range, "_FINE", 7)
    logs = bounded_range._worst(0.3, 4, 1.0).logs
    assert logs[1] - logs[0] == pytest.approx(0.05, rel=1e-9)


@for_each(("each", "count"), [(3.0, 2), (0.05, 60)])
def test_a_lattice_is_made_for_the_least_epsilon_that_is_known(
    monkeypatch: pytest.MonkeyPatch, each: float, count: int
) -> None:
    asked = []
    whole = bounded_range._worst

    def worst(each: float, count: int, epsilon: float) -> object:
        asked.append(epsilon)
        return whole(each, count, epsilon)

    monkeypatch.setattr(bounded_range, "_worst", worst)
    bounded_range_composition(epsilon=each, count=count, delta=1e-5)
    rho = count * each**2 / 8
    assert asked == [pytest.approx(min(count * each, rho + 2 * math.sqrt(rho * math.log(1e5))), rel=1e-12)]


def test_without_slack_ranges_add_up() -> None:
    assert bounded_range_composition(epsilon=0.25, count=8, delta=0.0) == 2.0
    assert bounded_range_composition(epsilon=0.25, count=30_000, delta=1e-300) <= 30_000 * 0.25


def test_more_rounds_than_a_lattice_is_used_for_are_concentrated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_range, "_MOST_ROUNDS", 10)

    def concentrated(count: int) -> float:
        rho = count * 0.0625 / 8
        return rho + 2 * math.sqrt(rho * math.log(1e5))

    wish = {"epsilon": 0.25, "delta": 1e-5}
    assert bounded_range_composition(count=10, **wish) < concentrated(10) * 0.99
    assert bounded_range_composition(count=11, **wish) == pytest.approx(concentrated(11), rel=1e-12)
    assert bounded_range_composition(epsilon=3.0, count=11, delta=1e-5) == 33.0
    beyond = bounded_range_epsilon_each(epsilon=1.0, count=11, delta=1e-5)
    log = math.log(1e5)
    exact = math.sqrt(8 / 11) * (math.sqrt(log + 1) - math.sqrt(log))
    assert exact * (1 - 2e-9) < beyond < exact * (1 - 0.5e-9)
    assert bounded_range_epsilon_each(epsilon=1.0, count=10, delta=1e-5) > exact * math.sqrt(11 / 10) * 1.01


@for_each(
    ("bad", "words"),
    [
        ({"epsilon": 0.0}, "epsilon is finite"),
        ({"epsilon": math.inf}, "epsilon is finite"),
        ({"count": 0}, "count is at least 1"),
        ({"delta": -1e-9}, "delta lies in"),
        ({"delta": 1.0}, "delta lies in"),
    ],
)
def test_what_is_just_out_of_range_is_refused(bad: dict[str, float], words: str) -> None:
    for function in (bounded_range_composition, bounded_range_epsilon_each):
        function(epsilon=5e-324, count=1, delta=0.0)
        with pytest.raises(InputError, match=words):
            function(**({"epsilon": 1.0, "count": 3, "delta": 1e-6} | bad))  # type: ignore[arg-type]


@for_each(
    ("epsilon", "count", "total"), [(20.0, 50, 1000.0), (5.0, 150, 629.697451971701), (8.0, 100, 800.0)]
)
def test_beyond_what_exp_can_say_it_is_what_it_is(epsilon: float, count: int, total: float) -> None:
    """The two round ones are what pure composition allows; the other was found on the logarithms of the deltas."""
    assert bounded_range_composition(epsilon=epsilon, count=count, delta=1e-6) == pytest.approx(
        total, rel=1e-9
    )


def test_a_lattice_is_used_as_long_as_floats_can_say_it() -> None:
    """Three and a half deviations of 3 beyond what is asked about, a range of 2 more, and a delta of exp(-5)."""
    most = 700 - 3.5 * 3 - 2 - 5
    for epsilon, fits in ((most - 0.01, True), (most + 0.01, False)):
        assert bounded_range._fits(2.0, 9, epsilon, math.exp(-5)) == fits


@for_each("delta", [1e-6, 0.5, 1e-300])
def test_beyond_what_floats_can_say_ranges_add_up(delta: float) -> None:
    for each, count in ((300.0, 3), (1000.0, 1), (210.0, 4), (1e308, 1)):
        assert bounded_range_composition(epsilon=each, count=count, delta=delta) == each * count
        assert bounded_range_epsilon_each(epsilon=each, count=count, delta=delta) == even_share(each, count)
    assert bounded_range_composition(epsilon=1e308, count=2, delta=delta) == math.inf


def test_a_lattice_whose_losses_are_beyond_all_floats_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = bounded_range._Curve(np.array([-600.0, -590.0]), np.array([1e300, 1e301]))
        assert curve.delta(595.0) == math.inf


@for_each("count", [1, 3])
@for_each("epsilon", [5e-324, 1e-17, 1e-10])
def test_of_nearly_no_epsilon_delta_is_left(epsilon: float, count: int) -> None:
    """The total variation of a round of range e is tanh(e / 4), and of all at most their sum."""
    for delta in (1e-6, 0.01):
        each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
        assert each >= 4 * delta / count * (1 - 2e-9)
        assert bounded_range_composition(epsilon=each, count=count, delta=delta) <= epsilon + 2e-5 * each
        assert bounded_range_composition(epsilon=each * 1.01, count=count, delta=delta) > epsilon or count > 1
    least = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=1e-12)
    assert least == max(even_share(epsilon, count), 4e-12 / count * (1 - 1e-9))


def test_a_share_of_a_hundred_millionth_is_looked_up_in_the_lattice_and_a_smaller_one_is_kept() -> None:
    assert bounded_range_epsilon_each(epsilon=1e-8, count=1, delta=1e-9) > 1.8e-8
    less = math.nextafter(1e-8, 0)
    assert bounded_range_epsilon_each(epsilon=less, count=1, delta=1e-9) == less


@for_each("room", [0.2, 0.5])
def test_left_of_the_lattice_is_what_its_first_point_has(
    monkeypatch: pytest.MonkeyPatch, room: float
) -> None:
    """One round over points that do not reach far: what is left of the first counts as the first."""
    monkeypatch.setattr(bounded_range, "_REACH", room)
    curve = bounded_range._worst(0.4, 1, 0.05)
    step = curve.logs[1] - curve.logs[0]
    start = np.maximum(np.expm1(curve.logs), 0.0)
    fine = round(0.4 / step)
    size = len(start)
    padded = np.concatenate([np.zeros(fine), start, np.expm1(curve.logs[-1] + np.arange(1, fine + 1) * step)])
    assert curve.means == pytest.approx(bounded_range._round(padded, step, fine), rel=1e-9, abs=1e-15)
    assert len(curve.means) == size
