"""Each theory of the accountant by itself, against its formula, and where they take over from each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    GaussianEvent,
    PrivacyAccountant,
    PrivacyEvent,
    PureEvent,
    bounded_range_composition,
    gaussian_delta,
    optimal_delta,
)
from reusable_holdout.mechanisms.accounting.accountant import (
    _convex,
    renyi_delta,
    renyi_deltas,
    renyi_epsilon,
)
from reusable_holdout.mechanisms.accounting.losses import composed_delta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ORDERS = [1 + 0.01 * 10 ** (6 * place / 239) for place in range(240)]  # from 1.01 to 10,001


def told(*events: PrivacyEvent, count: int = 1) -> PrivacyAccountant:
    accountant = PrivacyAccountant()
    for event in events:
        accountant.add(event, count=count)
    return accountant


def of(theory: str, found: Iterator[tuple[float, str]]) -> float:
    """What one theory says; those after it are not asked."""
    return next(value for value, route in found if route == theory)


def by_renyi(cost: Callable[[float], float], epsilon: float) -> float:
    """Delta at an epsilon: the least, over the orders, of Canonne, Kamath and Steinke's Proposition 12."""
    logs = [(a - 1) * (cost(a) - epsilon + math.log(1 - 1 / a)) - math.log(a) for a in ORDERS]
    return math.exp(min(0.0, *logs))


# Whose best order is the smallest, the largest, and between.
RHOS = [(1e5, 1e-6), (1e-9, 1e-6), (0.02, 1e-6), (1.0, 0.01), (0.3, 0.9)]


@for_each(("rho", "delta"), RHOS)
def test_a_divergence_costs_the_least_over_all_orders(rho: float, delta: float) -> None:
    exact = min(a * rho + math.log(1 - 1 / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in ORDERS)
    failing = delta / 4
    found = of("Renyi", told(ConcentratedEvent(rho / 2), count=2)._epsilons(delta))
    assert found == pytest.approx(max(0.0, exact), rel=1e-12)
    accountant = told(ConcentratedEvent(rho), ApproximateEvent(0.0, failing))
    left = of("Renyi", accountant._epsilons(delta + failing))
    assert left == pytest.approx(max(0.0, exact), rel=1e-9)
    for epsilon in (0.0, 0.9 * found, 1.1 * found + 0.1):
        exact = failing + by_renyi(lambda a: a * rho, epsilon)
        assert of("Renyi", accountant._deltas(epsilon)) == pytest.approx(exact, rel=1e-9)


def test_a_divergence_that_no_order_has_says_nothing() -> None:
    orders, nothing = np.array([1.5, 2.0, 8.0]), np.full(3, math.inf)
    assert renyi_deltas(orders, nothing, np.array([0.0, 9.0])).tolist() == [1.0, 1.0]
    assert renyi_epsilon(orders, nothing, 0.5) == math.inf
    one = np.array([math.inf, 0.4, math.inf])
    assert renyi_delta(orders, one, 3.0) == pytest.approx(math.exp(0.4 - 3.0) / 4, rel=1e-14)
    assert renyi_epsilon(orders, one, 0.01) == pytest.approx(0.4 + math.log(25), rel=1e-14)
    assert renyi_epsilon(orders, one, 0.9) == 0.0


@for_each("seed", range(5))
@for_each("size", [1, 2, 3, 9])
def test_a_hull_is_the_lowest_of_all_chords(size: int, seed: int) -> None:
    """Over ``exp(epsilon)``: every pair of points, one on either side or the point itself."""
    generator = np.random.default_rng(seed)
    epsilons = generator.uniform(-1, 2) + np.cumsum(generator.uniform(0.1, 1.0, size))
    deltas = np.sort(generator.uniform(size=size))[::-1] ** 2
    heights = np.exp(epsilons)
    lowest = deltas.copy()
    for place in range(size):
        for left in range(place):
            for right in range(place + 1, size):
                share = (heights[place] - heights[left]) / (heights[right] - heights[left])
                chord = (1 - share) * deltas[left] + share * deltas[right]
                lowest[place] = min(lowest[place], chord)
    assert _convex(epsilons, deltas) == pytest.approx(lowest, rel=1e-12)


@for_each("total", [0.0, 0.6, 1.7, 2.4])
def test_what_only_divergences_bound_composes_as_the_profile_that_they_give(total: float) -> None:
    """Two randomized responses and a concentrated release: outcome by outcome of the responses."""
    rho, each = 0.02, 0.7
    chance = 1 / (1 + math.exp(-each))

    def profile(epsilon: float) -> float:
        if epsilon < 0:  # of either law at the negative epsilon
            return 1 - math.exp(epsilon) * (1 - profile(-epsilon))
        return by_renyi(lambda a: a * rho, epsilon)

    exact = sum(
        math.comb(2, up) * chance**up * (1 - chance) ** (2 - up) * profile(total - (2 * up - 2) * each)
        for up in range(3)
    )
    accountant = told(PureEvent(each), count=2)
    accountant.add(ConcentratedEvent(rho))
    losses = "privacy-loss distributions"
    found = of(losses, accountant._deltas(total))
    # The hull lies a little below; what falls too steeply at 0 to be a profile is rounded up.
    assert 0.97 * exact <= found <= exact * 1.2
    twice = told(PureEvent(each), ConcentratedEvent(rho / 2), count=2)
    assert of(losses, twice._deltas(total)) == pytest.approx(found, rel=1e-9)


@for_each("epsilon", [0.0, 1e-3, 1.1, 7.0])
@for_each("nothing", [PureEvent(0.0), ApproximateEvent(0.0, 1e-9)])
def test_what_tells_nothing_unless_it_fails_costs_its_failures(nothing: PrivacyEvent, epsilon: float) -> None:
    failed = 1 - (1 - 0.6) ** 2
    found = told(ApproximateEvent(0.0, 0.6), count=2).delta(epsilon).delta
    assert failed <= found <= failed * (1 + 1e-6)
    alone, more = told(PureEvent(0.3), PureEvent(1.0)), told(PureEvent(0.3), PureEvent(1.0))
    more.add(nothing, count=3)  # the commonest
    cost = alone.delta(epsilon).delta + 3 * nothing.failure()
    assert cost * (1 - 2e-3) <= more.delta(epsilon).delta <= cost * (1 + 2e-3) + 1e-14


class Stepped(PrivacyEvent):
    """Randomized response of epsilon 1, whose formula says 0.5 from a delta on, and 0.9 below it."""

    def __init__(self, least: float) -> None:
        self.least = least

    def pure(self) -> float:
        return 1.0

    def repeated_epsilon(self, count: int, delta: float) -> tuple[float, str] | None:
        return (0.5 if delta >= self.least else 0.9), "a formula"


@for_each("share", [0.9, 0.5, 0.2, 0.06, 0.01])
def test_a_formula_is_searched_three_powers_of_e_below_the_other_theories(share: float) -> None:
    losses = composed_delta([(lambda at: np.asarray(PureEvent(1.0).delta(at)), 1)], 0.5)
    found = told(Stepped(share * losses)).delta(0.5)
    finest = 3 / 2**13
    steps = math.floor(min(-math.log(share), 3) / finest)  # the last that the formula allows
    wanted = math.exp(-finest * min(steps, 2**13 - 1))
    assert found.delta / losses == pytest.approx(wanted, rel=1e-6)
    assert found.route == "a formula"
    assert told(Stepped(share * losses)).delta(0.4).route == "privacy-loss distributions"
    assert told(Stepped(1.01 * losses)).delta(0.5).route == "privacy-loss distributions"
    assert told(Stepped(share * losses), PureEvent(0.0)).delta(0.5).route == "privacy-loss distributions"


def test_a_formula_that_says_no_more_than_the_others_is_not_named() -> None:
    for place in range(1, 12):
        assert told(Stepped(2.0)).delta(place / 15).route == "privacy-loss distributions"
    assert told(PureEvent(0.5), PureEvent(0.1)).epsilon(1e-3).epsilon < 0.6
    assert told(PureEvent(1.0)).delta(1e6).delta == 0.0


def test_a_bounded_range_has_the_delta_whose_epsilon_it_is() -> None:
    cost = told(BoundedRangeEvent(0.2), count=9).delta(0.7)
    assert cost.route == "bounded range"
    assert bounded_range_composition(epsilon=0.2, count=9, delta=cost.delta) <= 0.7
    assert bounded_range_composition(epsilon=0.2, count=9, delta=cost.delta * 0.9996) > 0.7


def test_normal_noises_have_the_delta_and_the_epsilon_of_their_sum() -> None:
    accountant = told(GaussianEvent(3.0), GaussianEvent(4.0), count=2)
    together = 1 / math.sqrt(2 / 9 + 2 / 16)
    cost = accountant.delta(0.7)
    assert cost.route == "Gaussian"
    assert cost.delta == pytest.approx(
        gaussian_delta(epsilon=0.7, deviation=together) * (1 + 1e-9), rel=1e-12
    )
    for exact in (0.3, 1.0, 1.4, 2.0, 5.1):
        alone = told(GaussianEvent(2.0))
        found = alone.epsilon(gaussian_delta(epsilon=exact, deviation=2.0)).epsilon
        assert exact < found <= exact * (1 + 1e-9)
    assert told(GaussianEvent(2.0)).epsilon(0.9).epsilon == 0.0


def test_pure_epsilons_add_up_as_decimals_however_many_they_are() -> None:
    assert told(PureEvent(0.01), count=100).epsilon(0.0).epsilon == 1.0
    assert told(PureEvent(1e-6), count=10**6).epsilon(0.0).epsilon == 1.0
    assert told(PureEvent(0.1), PureEvent(0.2)).epsilon(0.0).epsilon == 0.3
    assert told(PureEvent(0.5)).delta(0.5) == (0.5, 0.0, "basic composition")
    assert told(PureEvent(0.5)).delta(math.nextafter(0.5, 0)).delta > 0


def test_what_surely_fails_has_delta_one_by_no_theory() -> None:
    sure = told(ApproximateEvent(0.0, 0.6), count=100)
    assert sure.delta(0.0) == (0.0, 1.0, "none")
    assert sure.epsilon(0.99).epsilon == math.inf
    assert told(GaussianEvent(1.0)).epsilon(0.0) == (math.inf, 0.0, "none")
    assert PrivacyAccountant().delta(0.3) == (0.3, 0.0, "nothing happened")


def test_an_event_happens_once_unless_a_whole_number_says_otherwise() -> None:
    accountant = PrivacyAccountant()
    accountant.add(PureEvent(0.1))
    accountant.add(PureEvent(0.2), count=np.int64(3))  # type: ignore[arg-type]  # as good as an int
    assert accountant.events == ((PureEvent(0.1), 1), (PureEvent(0.2), 3))
    for count in (0, -1, 1.5, 2.0):
        with pytest.raises(InputError, match="nothing was noted"):
            accountant.add(PureEvent(0.1), count=count)  # type: ignore[arg-type]
    assert len(accountant.events) == 2


@for_each("delta", [-1e-9, 1.0, 1.2, math.nan])
def test_a_delta_out_of_range_is_refused_whatever_happened(delta: float) -> None:
    with pytest.raises(InputError, match="delta lies in"):
        PrivacyAccountant().epsilon(delta)


@for_each("epsilon", [-1e-9, math.inf, math.nan])
def test_an_epsilon_out_of_range_is_refused_whatever_happened(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon is finite"):
        PrivacyAccountant().delta(epsilon)


@for_each("delta", [0.0, 1e-6, 0.5])
@for_each("kind", [PureEvent, BoundedRangeEvent, lambda epsilon: ApproximateEvent(epsilon, 1e-9)])
def test_epsilons_beyond_all_floats_are_infinite(kind: Callable[[float], PrivacyEvent], delta: float) -> None:
    assert told(kind(1e308), count=10).epsilon(delta).epsilon == math.inf
    assert told(kind(1e308), PureEvent(0.1), count=10).epsilon(delta).epsilon == math.inf
    assert told(kind(1e307), count=10).epsilon(max(delta, 2e-8)).epsilon == pytest.approx(1e308, rel=1e-9)
    assert told(kind(1e308), count=10).delta(1.0).delta == 1.0


@for_each("epsilon", [15.0, 20.0, 40.0, 300.0, 1e308])
def test_what_surely_tells_has_delta_one(epsilon: float) -> None:
    """Up to rounding: the two of 15 tell with all but a chance of 3e-7."""
    found = told(PureEvent(epsilon), count=2).delta(1.0).delta
    assert found == pytest.approx(optimal_delta(total=1.0, epsilon=epsilon, count=2), abs=2e-7)
    assert found <= 1.0
    by_losses = composed_delta([(lambda at: np.asarray(PureEvent(epsilon).delta(at)), 2)], 1.0)
    assert found <= by_losses <= 1.0


@for_each("delta", [0.0, 1.0])
def test_a_formula_is_not_asked_for_a_delta_that_none_has(
    monkeypatch: pytest.MonkeyPatch, delta: float
) -> None:
    monkeypatch.setattr("reusable_holdout.mechanisms.accounting.accountant.composed_delta", lambda *_: delta)
    assert told(PureEvent(0.5)).delta(0.25).delta <= delta
