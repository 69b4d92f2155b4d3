"""The accountant: two theories agree, nothing is below the truth, and events are values."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each
from long_tests import ACCOUNTING
from scipy import integrate, stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    GaussianEvent,
    GaussianSparseVectorEvent,
    PrivacyAccountant,
    PrivacyEvent,
    PureEvent,
    RepeatedEvent,
    SubsampledEvent,
    TargetChargingEvent,
    bounded_range_composition,
    gaussian_delta,
    gaussian_sparse_vector_rdp,
    optimal_composition,
    optimal_delta,
    subsampled_epsilon,
    target_charging,
)
from reusable_holdout.mechanisms.accounting.losses import composed_delta, composed_epsilon

if TYPE_CHECKING:
    import numpy.typing as npt

EVENTS = [
    PureEvent(0.3),
    ApproximateEvent(0.3, 1e-5),
    ConcentratedEvent(0.02),
    BoundedRangeEvent(0.3),
    GaussianEvent(4.0),
    GaussianSparseVectorEvent(20.0, 30.0, charges=2, queries=100),
    TargetChargingEvent(0.05, charges=3, q=0.4),
    SubsampledEvent(GaussianEvent(2.0), rate=0.1),
    RepeatedEvent(PureEvent(0.1), count=3),
]


def told(*events: PrivacyEvent, count: int = 1) -> PrivacyAccountant:
    accountant = PrivacyAccountant()
    for event in events:
        accountant.add(event, count=count)
    return accountant


def true_delta(pairs: list[tuple[list[float], list[float]]], epsilon: float) -> float:
    """Delta of independent releases with these laws, outcome by outcome."""
    total = 0.0
    for outcome in itertools.product(*(range(len(first)) for first, _ in pairs)):
        chances = [(first[i], second[i]) for (first, second), i in zip(pairs, outcome, strict=True)]
        here, there = (math.prod(column) for column in zip(*chances, strict=True))
        total += max(0.0, here - math.exp(epsilon) * there)
    return total


def response(epsilon: float, failing: float = 0.0) -> tuple[list[float], list[float]]:
    """Randomized response that tells everything with probability `failing`."""
    yes = (1 - failing) / (1 + math.exp(-epsilon))
    no = (1 - failing) - yes
    return [yes, no, failing, 0.0], [no, yes, 0.0, failing]


@for_each("epsilons", [(0.1, 0.5, 0.5, 1.0), (0.03, 0.7), (2.0, 0.2, 0.2, 0.2, 0.2)])
@for_each("failing", [0.0, 1e-3])
def test_unlike_responses_cost_what_their_outcomes_say(epsilons: tuple[float, ...], failing: float) -> None:
    accountant = told(*(ApproximateEvent(e, failing) for e in set(epsilons)))
    for e in set(epsilons):
        if epsilons.count(e) > 1:
            accountant.add(ApproximateEvent(e, failing), count=epsilons.count(e) - 1)
    for total in (0.0, 0.2, 0.77, 1.3):
        exact = true_delta([response(e, failing) for e in epsilons], total)
        found = accountant.delta(total).delta
        assert exact * (1 - 1e-12) <= found <= exact * 1.01 + 1e-9


@for_each(("epsilon", "count"), [(0.1, 100), (1.0, 3), (0.01, 3000)])
def test_alike_responses_cost_the_optimal_composition_by_either_way(epsilon: float, count: int) -> None:
    known = optimal_composition(epsilon=epsilon, count=count, delta=1e-6)
    cost = told(PureEvent(epsilon), count=count).epsilon(1e-6)
    assert cost.epsilon == pytest.approx(known, rel=1e-8)
    profile = lambda at: np.asarray(PureEvent(epsilon).delta(at))  # noqa: E731
    assert known * (1 - 1e-6) <= composed_epsilon([(profile, count)], 1e-6) <= known * 1.001
    exact = optimal_delta(total=known * 0.9, epsilon=epsilon, count=count)
    assert exact <= composed_delta([(profile, count)], known * 0.9) <= exact * 1.01


@pytest.mark.long(*ACCOUNTING)
@for_each("deviation", [1.0, 5.0, 60.0])
@for_each("count", [1, 20])
def test_normal_noise_costs_what_is_known_by_either_way(deviation: float, count: int) -> None:
    profile = lambda at: np.asarray(GaussianEvent(deviation).delta(at))  # noqa: E731
    together = deviation / math.sqrt(count)
    for delta in (1e-3, 1e-9):
        total = told(GaussianEvent(deviation), count=count).epsilon(delta).epsilon
        exact = gaussian_delta(epsilon=total, deviation=together)
        assert exact <= delta <= exact * (1 + 1e-6)
        assert exact * (1 - 1e-6) <= composed_delta([(profile, count)], total) <= exact * 1.01


def test_two_kinds_of_normal_noise_add_up() -> None:
    cost = told(GaussianEvent(3.0), GaussianEvent(4.0)).epsilon(1e-5)
    assert cost.route == "Gaussian"
    exact = gaussian_delta(epsilon=cost.epsilon, deviation=1 / math.sqrt(1 / 9 + 1 / 16))
    assert exact == pytest.approx(1e-5, rel=1e-6)


def test_a_mixture_costs_no_less_than_its_parts_and_no_more_than_their_sum() -> None:
    mixture = told(PureEvent(0.1), GaussianEvent(5.0), BoundedRangeEvent(0.2))
    cost = mixture.epsilon(1e-6)
    assert cost.route == "privacy-loss distributions"
    alone = told(GaussianEvent(5.0)).epsilon(1e-6).epsilon
    assert alone < cost.epsilon < alone + 0.1 + 0.2
    assert mixture.delta(cost.epsilon).delta == pytest.approx(1e-6, rel=1e-2)


@pytest.mark.long(*ACCOUNTING)
@for_each("event", EVENTS)
def test_delta_falls_and_returns_epsilon(event: PrivacyEvent) -> None:
    accountant = told(event, count=2)
    for delta in (1e-4, 1e-8):
        cost = accountant.epsilon(delta)
        if math.isinf(cost.epsilon):
            assert event.failure() > delta / 2
            continue
        assert accountant.delta(cost.epsilon).delta <= delta * 1.02
        assert accountant.delta(cost.epsilon * 1.05).delta <= delta
        assert told(event, count=3).epsilon(delta).epsilon >= cost.epsilon * 0.999


@for_each("event", [e for e in EVENTS if not isinstance(e, RepeatedEvent)])
def test_the_divergence_of_an_event_is_true_of_its_profile(event: PrivacyEvent) -> None:
    """What a divergence says of delta is never below a law's with this profile, where both are tight."""
    orders = 1 + np.geomspace(0.05, 500, 60)
    costs = event.renyi(orders)
    profile = event.delta(np.linspace(0.0, 0.5, 11))
    if np.isinf(costs).all() or profile is None:
        return
    for at, delta in zip(np.linspace(0.0, 0.5, 11), profile - event.failure(), strict=True):
        logs = (orders - 1) * (costs - at + np.log1p(-1 / orders)) - np.log(orders)
        assert delta <= math.exp(min(logs.min(), 0.0)) + 1e-12


def test_a_bounded_range_costs_the_worst_of_its_pairs() -> None:
    event = BoundedRangeEvent(0.8)
    for total in (0.0, 0.3, 0.6):
        worst = 0.0
        for t in np.linspace(0.01, 0.79, 400):
            x = (math.exp(-t) - math.exp(-0.8)) / -math.expm1(-0.8)
            pair = ([x * math.exp(t), 1 - x * math.exp(t)], [x, 1 - x])
            worst = max(worst, true_delta([pair], total))
        found = event.delta(np.array([total]))
        assert found is not None
        assert worst <= found[0] + 1e-12
        assert worst == pytest.approx(found[0], rel=1e-3)
    known = bounded_range_composition(epsilon=0.2, count=30, delta=1e-6)
    assert told(BoundedRangeEvent(0.2), count=30).epsilon(1e-6) == (known, 1e-6, "bounded range")


def test_a_sampled_response_costs_what_its_law_says() -> None:
    """A row in the sample with this rate, replaced or not there: the law of the answer is a mixture."""
    rate, inside = 0.2, 1.5
    first, second = (np.array(law[:2]) for law in response(inside))
    mixed = rate * first + (1 - rate) * second
    event = SubsampledEvent(PureEvent(inside), rate)
    assert event.pure() == subsampled_epsilon(inside, rate=rate)
    for total in (0.0, 0.1, 0.4):
        found = event.delta(np.array([total]))
        assert found is not None
        exact = np.maximum(0.0, mixed - math.exp(total) * second).sum()
        assert exact == pytest.approx(found[0], rel=1e-9)


def test_target_charging_alone_costs_its_promise() -> None:
    event = TargetChargingEvent(0.05, charges=20, q=0.45, mean=0.5)
    known = target_charging(epsilon=0.05, charges=20, delta=1e-6, q=0.45, mean=0.5).epsilon
    cost = told(event).epsilon(1e-6)
    assert known * (1 - 1e-6) <= cost.epsilon <= known * 1.01


def moment(
    order: float, deviations: tuple[float, float], moves: list[float], thresholds: list[float]
) -> float:
    """Renyi divergence of a sparse vector with normal noise, by integrals: queries at 0 here, at `moves` there."""
    threshold, query = deviations

    def chances(values: list[float]) -> npt.NDArray[np.float64]:
        found = []
        for stop in range(len(values) + 1):

            def inside(z: float, stop: int = stop) -> float:
                below = [stats.norm.cdf((t + z - v) / query) for t, v in zip(thresholds, values, strict=True)]
                above = 1 - below[stop] if stop < len(values) else 1.0
                return float(stats.norm.pdf(z / threshold) / threshold * math.prod(below[:stop]) * above)

            found.append(integrate.quad(inside, -9 * threshold, 9 * threshold, limit=200)[0])
        return np.array(found)

    here, there = chances([0.0] * len(moves)), chances(moves)
    return float(np.log(np.sum(here**order * there ** (1 - order))) / (order - 1))


@pytest.mark.long(*ACCOUNTING)
@for_each("order", [1.5, 2.0, 8.0])
@for_each("moves", [[1.0], [-1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0], [1.0, -1.0]])
def test_a_sparse_vector_with_normal_noise_costs_no_more_than_promised(
    order: float, moves: list[float]
) -> None:
    deviations = (2.0, 3.0)
    cost = functools.partial(
        gaussian_sparse_vector_rdp, order, queries=len(moves), charges=1, threshold=2.0, query=3.0
    )
    promised = cost()
    for level in (-3.0, 0.0, 2.0, 5.0):
        exact = moment(order, deviations, moves, [level] * len(moves))
        assert exact <= promised
        if set(moves) in ({1.0}, {-1.0}):
            monotonic = cost(monotonic=True)
            assert exact <= monotonic <= promised


def test_without_threshold_noise_to_speak_of_two_queries_cost_their_worst() -> None:
    """One query, a threshold that is nearly known: the divergence is that of one normal test."""
    promised = gaussian_sparse_vector_rdp(2.0, queries=1, charges=1, threshold=1e6, query=3.0, monotonic=True)
    shift = 1 / 3
    worst = max(
        math.log(b2**2 / b + (1 - b2) ** 2 / (1 - b))
        for u in np.linspace(-6, 6, 2001)
        for b, b2 in [(stats.norm.cdf(u), stats.norm.cdf(u + shift))]
    )
    assert worst <= promised <= worst * 1.011
    more = [
        gaussian_sparse_vector_rdp(2.0, queries=queries, charges=1, threshold=9.0, query=9.0)
        for queries in (1, 2, 10, 1000)
    ]
    assert more == sorted(more)


@for_each("event", EVENTS)
def test_events_are_values(event: PrivacyEvent) -> None:
    accountant = told(event, event)
    assert len(accountant.events) == 1
    with pytest.raises((AttributeError, TypeError)):
        event.epsilon = 3.0  # type: ignore[attr-defined]
    assert "Event(" in repr(accountant)


def test_a_repetition_is_its_parts() -> None:
    one = told(RepeatedEvent(RepeatedEvent(PureEvent(0.1), 2), 3))
    assert one.events == ((PureEvent(0.1), 6),)
    sampled = SubsampledEvent(RepeatedEvent(PureEvent(0.1), 6), 0.5)
    whole = sampled.delta(np.array([0.05]))
    assert whole is not None
    inside = math.log1p(math.expm1(0.05) / 0.5)
    exact = 0.5 * optimal_delta(total=inside, epsilon=0.1, count=6)
    assert exact * (1 - 1e-9) <= whole[0] <= exact * 1.02


def test_nothing_costs_nothing_and_a_failure_costs_its_delta() -> None:
    assert PrivacyAccountant().epsilon(0.0) == (0.0, 0.0, "nothing happened")
    assert PrivacyAccountant().delta(0.5).delta == 0.0
    accountant = told(ApproximateEvent(0.5, 1e-3))
    assert accountant.epsilon(1e-4).epsilon == math.inf
    assert accountant.epsilon(1e-3) == (0.5, 1e-3, "basic composition")
    assert told(ApproximateEvent(0.0, 1e-3)).epsilon(1e-3).epsilon == 0.0
    assert told(PureEvent(0.02), count=50).epsilon(0.0) == (1.0, 0.0, "basic composition")


@for_each(
    "make",
    [
        lambda: PureEvent(-1.0),
        lambda: PureEvent(math.nan),
        lambda: ApproximateEvent(0.1, 1.0),
        lambda: ApproximateEvent(math.inf, 0.1),
        lambda: ConcentratedEvent(0.0),
        lambda: BoundedRangeEvent(math.inf),
        lambda: GaussianEvent(0.0),
        lambda: GaussianSparseVectorEvent(1.0, 0.0, 1, 1),
        lambda: GaussianSparseVectorEvent(1.0, 1.0, 0, 1),
        lambda: GaussianSparseVectorEvent(1.0, 1.0, 1, 0),
        lambda: TargetChargingEvent(0.1, 0, 0.4),
        lambda: TargetChargingEvent(0.1, 1, 0.0),
        lambda: SubsampledEvent(PureEvent(0.1), 0.0),
        lambda: SubsampledEvent(ConcentratedEvent(0.1), 0.5),
        lambda: RepeatedEvent(PureEvent(0.1), 0),
        lambda: told(PureEvent(0.1), count=0),
        lambda: told(PureEvent(0.1)).epsilon(1.0),
        lambda: told(PureEvent(0.1)).delta(-1.0),
        lambda: told(PureEvent(0.1)).delta(math.inf),
        lambda: told(PureEvent(0.1)).delta(math.nan),
    ],
)
def test_what_cannot_have_happened_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_an_independent_accountant_agrees() -> None:
    """Google's, whose privacy-loss distributions are rounded up, too."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    theirs = pld.from_gaussian_mechanism(5.0, value_discretization_interval=1e-4)
    theirs = theirs.self_compose(10).compose(
        pld.from_randomized_response(
            2 / (1 + math.e**0.1), 2, value_discretization_interval=1e-4
        ).self_compose(50)
    )
    ours = PrivacyAccountant()
    ours.add(GaussianEvent(5.0), count=10)
    ours.add(PureEvent(0.1), count=50)
    assert ours.epsilon(1e-6).epsilon == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)
