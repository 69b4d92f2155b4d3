"""The accountant: theories agree, each is its formula, and no cost is below the truth."""

import itertools
import math

import numpy as np
import pytest
from cases import for_each
from long_tests import ACCOUNTING
from mechanisms.accounting.test_events import EVENTS, deltas

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    GaussianEvent,
    PrivacyAccountant,
    PrivacyEvent,
    PureEvent,
    SubsampledEvent,
    TargetChargingEvent,
    bounded_range_composition,
    gaussian_delta,
    optimal_composition,
    optimal_delta,
    subsampled_epsilon,
    target_charging,
)
from reusable_holdout.mechanisms.accounting.accountant import _convex
from reusable_holdout.mechanisms.accounting.losses import composed_delta, composed_epsilon
from reusable_holdout.mechanisms.accounting.renyi import renyi_deltas, renyi_epsilon

LOSSES = "privacy-loss distributions"
ORDERS = [1 + 0.01 * 10 ** (6 * place / 239) for place in range(240)]  # from 1.01 to 10,001


def noted(*events, count=1):
    accountant = PrivacyAccountant()
    for event in events:
        accountant.add(event, count=count)
    return accountant


def by(theory, found):
    """Return the number that one theory gives; later theories are not asked."""
    return next(value for value, route in found if route == theory)


def profile_of(event):
    return lambda at: np.asarray(event.delta(at))


def true_delta(pairs, epsilon):
    """Add up the excess of every outcome of independent releases with these laws."""
    total = 0.0
    for outcome in itertools.product(*(range(len(first)) for first, _ in pairs)):
        chances = [(first[i], second[i]) for (first, second), i in zip(pairs, outcome, strict=True)]
        here, there = (math.prod(column) for column in zip(*chances, strict=True))
        total += max(0.0, here - math.exp(epsilon) * there)
    return total


def response(epsilon, failing=0.0):
    """Return the laws of randomized response that tells everything with probability `failing`."""
    yes = (1 - failing) / (1 + math.exp(-epsilon))
    no = (1 - failing) - yes
    return [yes, no, failing, 0.0], [no, yes, 0.0, failing]


@for_each("epsilons", [(0.1, 0.5, 0.5, 1.0), (0.03, 0.7), (2.0, 0.2, 0.2, 0.2, 0.2)])
@for_each("failing", [0.0, 1e-3])
def test_unlike_responses_cost_what_their_outcomes_say(epsilons, failing):
    accountant = noted(*(ApproximateEvent(e, failing) for e in epsilons))
    for total in (0.0, 0.2, 0.77, 1.3):
        exact = true_delta([response(e, failing) for e in epsilons], total)
        found = accountant.delta(total).delta
        assert exact * (1 - 1e-12) <= found <= exact * 1.01 + 1e-9


@for_each(("epsilon", "count"), [(0.1, 100), (1.0, 3), (0.01, 3000)])
def test_alike_responses_cost_the_optimal_composition_by_two_theories(epsilon, count):
    known = optimal_composition(epsilon=epsilon, count=count, delta=1e-6)
    assert noted(PureEvent(epsilon), count=count).epsilon(1e-6).epsilon == pytest.approx(known, rel=1e-8)
    parts = [(profile_of(PureEvent(epsilon)), count)]
    assert known * (1 - 1e-6) <= composed_epsilon(parts, 1e-6) <= known * 1.001
    exact = optimal_delta(total=known * 0.9, epsilon=epsilon, count=count)
    assert exact <= composed_delta(parts, known * 0.9) <= exact * 1.01


def test_normal_noises_have_the_delta_and_the_epsilon_of_their_sum():
    together = 1 / math.sqrt(2 / 9 + 2 / 16)
    cost = noted(GaussianEvent(3.0), GaussianEvent(4.0), count=2).delta(0.7)
    assert cost.route == "Gaussian"
    wanted = gaussian_delta(epsilon=0.7, deviation=together) * (1 + 1e-9)
    assert cost.delta == pytest.approx(wanted, rel=1e-12)
    alone = noted(GaussianEvent(2.0))
    for exact in (0.3, 1.0, 1.4, 2.0, 5.1):
        found = alone.epsilon(gaussian_delta(epsilon=exact, deviation=2.0)).epsilon
        assert exact < found <= exact * (1 + 1e-9)
    assert alone.epsilon(0.9).epsilon == 0.0
    assert alone.epsilon(0.0) == (math.inf, 0.0, "none")


def test_a_mixture_costs_no_less_than_its_parts_and_no_more_than_their_sum():
    mixture = noted(PureEvent(0.1), GaussianEvent(5.0), BoundedRangeEvent(0.2))
    cost = mixture.epsilon(1e-6)
    assert cost.route == LOSSES
    alone = noted(GaussianEvent(5.0)).epsilon(1e-6).epsilon
    assert alone < cost.epsilon < alone + 0.1 + 0.2
    assert mixture.delta(cost.epsilon).delta == pytest.approx(1e-6, rel=1e-2)


@pytest.mark.long(*ACCOUNTING)
@for_each("event", EVENTS)
def test_delta_falls_and_returns_epsilon(event):
    accountant = noted(event, event)
    assert accountant.events == ((event, 2),)
    for delta in (1e-4, 1e-8):
        cost = accountant.epsilon(delta)
        if math.isinf(cost.epsilon):
            assert event.failure() > delta / 2
            continue
        assert accountant.delta(cost.epsilon).delta <= delta * 1.02
        assert accountant.delta(cost.epsilon * 1.05).delta <= delta
        assert noted(event, count=3).epsilon(delta).epsilon >= cost.epsilon * 0.999


def test_a_bounded_range_costs_the_worst_of_its_pairs():
    for total in (0.0, 0.3, 0.6):
        worst = 0.0
        for t in np.linspace(0.01, 0.79, 400):
            x = (math.exp(-t) - math.exp(-0.8)) / -math.expm1(-0.8)
            worst = max(worst, true_delta([([x * math.exp(t), 1 - x * math.exp(t)], [x, 1 - x])], total))
        [found] = deltas(BoundedRangeEvent(0.8), [total])
        assert found * 0.999 <= worst <= found + 1e-12
    many = noted(BoundedRangeEvent(0.2), count=30)
    known = bounded_range_composition(epsilon=0.2, count=30, delta=1e-6)
    assert many.epsilon(1e-6) == (known, 1e-6, "bounded range")
    cost = many.delta(known)
    assert cost.route == "bounded range"
    assert bounded_range_composition(epsilon=0.2, count=30, delta=cost.delta) <= known
    assert bounded_range_composition(epsilon=0.2, count=30, delta=cost.delta * 0.9996) > known


def test_a_sampled_response_costs_what_its_law_says():
    """The law of the answer is a mixture of what a row says that is in the sample and one that is not."""
    rate, inside = 0.2, 1.5
    first, second = (np.array(law[:2]) for law in response(inside))
    mixed = rate * first + (1 - rate) * second
    event = SubsampledEvent(PureEvent(inside), rate)
    assert event.pure() == subsampled_epsilon(inside, rate=rate)
    for total in (0.0, 0.1, 0.4):
        exact = np.maximum(0.0, mixed - math.exp(total) * second).sum()
        assert deltas(event, [total]) == pytest.approx([exact], rel=1e-9)


@for_each(("charges", "each"), [(20, 0.05), (10**5, 0.1 / math.sqrt(10**5))])
def test_target_charging_alone_costs_its_promise(charges, each):
    mean = {"q": 0.45, "mean": 0.5}
    known = target_charging(epsilon=each, charges=charges, delta=1e-6, **mean).epsilon
    cost = noted(TargetChargingEvent(each, charges=charges, **mean)).epsilon(1e-6)
    assert known * (1 - 1e-6) <= cost.epsilon <= known * 1.02


@for_each("count", [10**9, 10**12, 10**15])
def test_any_number_of_pure_releases_costs_what_normal_noise_does_in_the_limit(count):
    accountant, normal = noted(PureEvent(1 / math.sqrt(count)), count=count), noted(GaussianEvent(1.0))
    for delta in (1e-3, 1e-6):
        limit = normal.epsilon(delta).epsilon
        assert limit * (1 - 1e-6) <= accountant.epsilon(delta).epsilon <= limit * 1.2


def by_renyi(cost, epsilon):
    """Return the least delta over the orders, by Canonne, Kamath and Steinke's Proposition 12."""
    logs = [(a - 1) * (cost(a) - epsilon + math.log(1 - 1 / a)) - math.log(a) for a in ORDERS]
    return math.exp(min(0.0, *logs))


# The best order is the smallest, the largest, and between.
@for_each(("rho", "delta"), [(1e5, 1e-6), (1e-9, 1e-6), (0.02, 1e-6), (1.0, 0.01), (0.3, 0.9)])
def test_a_divergence_costs_the_least_over_all_orders(rho, delta):
    exact = min(a * rho + math.log(1 - 1 / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in ORDERS)
    failing = delta / 4
    found = by("Renyi", noted(ConcentratedEvent(rho / 2), count=2)._epsilons(delta))
    assert found == pytest.approx(max(0.0, exact), rel=1e-12)
    accountant = noted(ConcentratedEvent(rho), ApproximateEvent(0.0, failing))
    left = by("Renyi", accountant._epsilons(delta + failing))
    assert left == pytest.approx(max(0.0, exact), rel=1e-9)
    for epsilon in (0.0, 0.9 * found, 1.1 * found + 0.1):
        exact = failing + by_renyi(lambda a: a * rho, epsilon)
        assert by("Renyi", accountant._deltas(epsilon)) == pytest.approx(exact, rel=1e-9)


def test_a_divergence_that_no_order_has_says_nothing():
    orders, nothing = np.array([1.5, 2.0, 8.0]), np.full(3, math.inf)
    assert renyi_deltas(orders, nothing, np.array([0.0, 9.0])).tolist() == [1.0, 1.0]
    assert renyi_epsilon(orders, nothing, 0.5) == math.inf
    one = np.array([math.inf, 0.4, math.inf])
    assert renyi_deltas(orders, one, np.array([3.0]))[0] == pytest.approx(math.exp(0.4 - 3.0) / 4, rel=1e-14)
    assert renyi_epsilon(orders, one, 0.01) == pytest.approx(0.4 + math.log(25), rel=1e-14)
    assert renyi_epsilon(orders, one, 0.9) == 0.0


@for_each("seed", range(5))
@for_each("size", [1, 2, 3, 9])
def test_a_hull_is_the_lowest_of_all_chords(size, seed):
    """Chords join every pair of points over ``exp(epsilon)``, one on either side or the point itself."""
    generator = np.random.default_rng(seed)
    epsilons = generator.uniform(-1, 2) + np.cumsum(generator.uniform(0.1, 1.0, size))
    heights, start = np.exp(epsilons), np.sort(generator.uniform(size=size))[::-1] ** 2
    lowest = start.copy()
    for place, left, right in itertools.product(range(size), repeat=3):
        if left < place < right:
            share = (heights[place] - heights[left]) / (heights[right] - heights[left])
            lowest[place] = min(lowest[place], (1 - share) * start[left] + share * start[right])
    assert _convex(epsilons, start) == pytest.approx(lowest, rel=1e-12)


@for_each("total", [0.0, 0.6, 1.7, 2.4])
def test_events_known_by_divergences_alone_compose_as_the_profile_that_these_give(total):
    """Two randomized responses and a concentrated release: outcome by outcome of the responses."""
    rho, each = 0.02, 0.7
    chance = 1 / (1 + math.exp(-each))

    def profile(epsilon):
        if epsilon < 0:  # of either law at the negative epsilon
            return 1 - math.exp(epsilon) * (1 - profile(-epsilon))
        return by_renyi(lambda a: a * rho, epsilon)

    exact = sum(
        math.comb(2, up) * chance**up * (1 - chance) ** (2 - up) * profile(total - (2 * up - 2) * each)
        for up in range(3)
    )
    accountant = noted(PureEvent(each), PureEvent(each), ConcentratedEvent(rho))
    found = by(LOSSES, accountant._deltas(total))
    # The hull lies a little below; what falls too steeply at 0 to be a profile is rounded up.
    assert 0.97 * exact <= found <= exact * 1.2
    twice = noted(PureEvent(each), ConcentratedEvent(rho / 2), count=2)
    assert by(LOSSES, twice._deltas(total)) == pytest.approx(found, rel=1e-9)


@for_each("epsilon", [0.0, 1e-3, 1.1, 7.0])
@for_each("nothing", [PureEvent(0.0), ApproximateEvent(0.0, 1e-9)])
def test_releases_that_tell_nothing_unless_they_fail_cost_their_failures(nothing, epsilon):
    failed = 1 - (1 - 0.6) ** 2
    found = noted(ApproximateEvent(0.0, 0.6), count=2).delta(epsilon).delta
    assert failed <= found <= failed * (1 + 1e-6)
    alone, more = noted(PureEvent(0.3), PureEvent(1.0)), noted(PureEvent(0.3), PureEvent(1.0))
    more.add(nothing, count=3)  # the commonest
    cost = alone.delta(epsilon).delta + 3 * nothing.failure()
    assert cost * (1 - 2e-3) <= more.delta(epsilon).delta <= cost * (1 + 2e-3) + 1e-14


class Stepped(PrivacyEvent):
    """Randomized response of epsilon 1; a formula says 0.5 from a delta on, and 0.9 below it."""

    def __init__(self, least):
        self.least = least

    def pure(self):
        return 1.0

    def repeated_epsilon(self, count, delta):
        return (0.5 if delta >= self.least else 0.9), "a formula"


@for_each("share", [0.9, 0.5, 0.2, 0.06, 0.01])
def test_a_formula_is_searched_three_powers_of_e_below_the_other_theories(share):
    losses = composed_delta([(profile_of(PureEvent(1.0)), 1)], 0.5)
    found = noted(Stepped(share * losses)).delta(0.5)
    finest = 3 / 2**13
    steps = math.floor(min(-math.log(share), 3) / finest)  # the last that the formula allows
    wanted = math.exp(-finest * min(steps, 2**13 - 1))
    assert found.delta / losses == pytest.approx(wanted, rel=1e-6)
    assert found.route == "a formula"
    assert noted(Stepped(share * losses)).delta(0.4).route == LOSSES
    assert noted(Stepped(1.01 * losses)).delta(0.5).route == LOSSES
    assert noted(Stepped(2.0)).delta(0.7).route == LOSSES
    assert noted(Stepped(share * losses), PureEvent(0.0)).delta(0.5).route == LOSSES


def test_pure_epsilons_add_up_as_decimals_however_many_they_are():
    assert noted(PureEvent(0.02), count=50).epsilon(0.0) == (1.0, 0.0, "basic composition")
    assert noted(PureEvent(1e-6), count=10**6).epsilon(0.0).epsilon == 1.0
    assert noted(PureEvent(0.1), PureEvent(0.2)).epsilon(0.0).epsilon == 0.3
    assert noted(PureEvent(0.5)).delta(0.5) == (0.5, 0.0, "basic composition")
    assert noted(PureEvent(0.5)).delta(math.nextafter(0.5, 0)).delta > 0
    assert noted(PureEvent(1.0)).delta(1e6).delta == 0.0
    assert noted(PureEvent(0.5), PureEvent(0.1)).epsilon(1e-3).epsilon < 0.6


def test_nothing_costs_nothing_and_a_failure_costs_its_delta():
    assert PrivacyAccountant().epsilon(0.0) == (0.0, 0.0, "nothing happened")
    assert PrivacyAccountant().delta(0.3) == (0.3, 0.0, "nothing happened")
    accountant = noted(ApproximateEvent(0.5, 1e-3))
    assert accountant.epsilon(1e-4).epsilon == math.inf
    assert accountant.epsilon(1e-3) == (0.5, 1e-3, "basic composition")
    assert noted(ApproximateEvent(0.0, 1e-3)).epsilon(1e-3).epsilon == 0.0
    sure = noted(ApproximateEvent(0.0, 0.6), count=100)
    assert sure.delta(0.0) == (0.0, 1.0, "none")
    assert sure.epsilon(0.99).epsilon == math.inf


@for_each("kind", [PureEvent, lambda epsilon: ApproximateEvent(epsilon, 1e-9), BoundedRangeEvent])
@for_each("delta", [0.0, 1e-6, 0.5])
def test_epsilons_beyond_all_floats_are_infinite(kind, delta):
    assert noted(kind(1e308), count=10).epsilon(delta).epsilon == math.inf
    assert noted(kind(1e308), PureEvent(0.1), count=10).epsilon(delta).epsilon == math.inf
    assert noted(kind(1e307), count=10).epsilon(max(delta, 2e-8)).epsilon == pytest.approx(1e308, rel=1e-9)
    assert noted(kind(1e308), count=10).delta(1.0).delta == 1.0


@for_each("epsilon", [15.0, 20.0, 40.0, 300.0, 1e308])
def test_releases_that_surely_tell_have_delta_one(epsilon):
    """The two of 15 tell with all but a chance of 3e-7."""
    found = noted(PureEvent(epsilon), count=2).delta(1.0).delta
    assert found == pytest.approx(optimal_delta(total=1.0, epsilon=epsilon, count=2), abs=2e-7)
    assert found <= composed_delta([(profile_of(PureEvent(epsilon)), 2)], 1.0) <= 1.0


@for_each("delta", [0.0, 1.0])
def test_a_formula_is_not_asked_for_a_delta_that_none_has(monkeypatch, delta):
    monkeypatch.setattr("reusable_holdout.mechanisms.accounting.accountant.composed_delta", lambda *_: delta)
    assert noted(PureEvent(0.5)).delta(0.25).delta <= delta


def test_an_event_is_counted_up_to_what_floats_tell_apart():
    accountant = noted(PureEvent(0.1))
    accountant.add(PureEvent(0.2), count=np.int64(3))  # as good as an int
    for count in (10**15, 10**400):
        with pytest.raises(InputError, match=r"at most 1,000,000,000,000,000 times; got .*nothing was noted"):
            accountant.add(PureEvent(0.1), count=count)
    assert accountant.events == ((PureEvent(0.1), 1), (PureEvent(0.2), 3))
    assert "PureEvent(" in repr(accountant)


def test_googles_accountant_agrees():
    """Google rounds privacy-loss distributions up, too."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    fine = {"value_discretization_interval": 1e-4}
    theirs = pld.from_gaussian_mechanism(5.0, **fine).self_compose(10)
    theirs = theirs.compose(pld.from_randomized_response(2 / (1 + math.e**0.1), 2, **fine).self_compose(50))
    ours = noted(GaussianEvent(5.0), count=10)
    ours.add(PureEvent(0.1), count=50)
    assert ours.epsilon(1e-6).epsilon == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)
