"""Each event by itself: its costs by the formulas of the theories that know it, and the parameters it takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    GaussianEvent,
    GaussianSparseVectorEvent,
    PrivacyAccountant,
    PrivacyEvent,
    PrivacyFilter,
    PrivacyOdometer,
    PureEvent,
    RepeatedEvent,
    SubsampledEvent,
    TargetChargingEvent,
    gaussian_delta,
    gaussian_sparse_vector,
    gaussian_sparse_vector_rdp,
    optimal_composition,
    optimal_delta,
    repeated,
    target_charging,
    target_charging_delta,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ORDERS = np.array([1.01, 1.5, 2.0, 8.0, 300.0])


def deltas(event: PrivacyEvent, epsilons: list[float]) -> list[float]:
    found = event.delta(np.array(epsilons))
    assert found is not None
    return [float(delta) for delta in found]


def response_renyi(epsilon: float, order: float) -> float:
    """Divergence of randomized response, from its two outcomes."""
    yes, no = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return math.log(yes**order * no ** (1 - order) + no**order * yes ** (1 - order)) / (order - 1)


@for_each("failing", [0.0, 0.1])
@for_each("epsilon", [0.0, 0.3, 2.0])
def test_the_profile_of_a_response_that_may_fail_is_that_of_its_outcomes(
    epsilon: float, failing: float
) -> None:
    for total in (0.0, 0.1, 0.3, 1.9, 5.0):
        yes, no = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
        exact = failing + (1 - failing) * max(0.0, yes - math.exp(total) * no)
        found = deltas(ApproximateEvent(epsilon, failing), [total])[0]
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-15)


def test_the_divergences_are_the_formulas() -> None:
    assert PureEvent(0.4).renyi(ORDERS[:4]) == pytest.approx(
        [response_renyi(0.4, order) for order in ORDERS[:4]], rel=1e-9
    )
    assert PureEvent(0.4).renyi(np.array([1e9])) == pytest.approx([0.4], rel=1e-8)
    assert ConcentratedEvent(0.02).renyi(ORDERS).tolist() == (0.02 * ORDERS).tolist()
    assert GaussianEvent(3.0).renyi(ORDERS) == pytest.approx(ORDERS / 18, rel=1e-14)
    assert BoundedRangeEvent(0.4).renyi(ORDERS[:4]) == pytest.approx(ORDERS[:4] * 0.02, rel=1e-12)
    assert BoundedRangeEvent(0.4).renyi(ORDERS[4:])[0] == PureEvent(0.4).renyi(ORDERS[4:])[0] < 0.4


@for_each("monotonic", [False, True])
def test_a_sparse_vector_event_costs_what_its_theorem_says(monotonic: bool) -> None:
    found = GaussianSparseVectorEvent(9.0, 5.0, 2, 30, monotonic).renyi(np.array([4.0]))[0]
    stream = {"queries": 30, "charges": 2, "threshold": 9.0, "query": 5.0}
    assert found == gaussian_sparse_vector_rdp(4.0, monotonic=monotonic, **stream)  # type: ignore[arg-type]
    assert not GaussianSparseVectorEvent(9.0, 5.0, 2, 30).monotonic


def test_the_formulas_for_repetitions_are_rounded_up_and_at_most_the_sum() -> None:
    alone = optimal_composition(epsilon=0.1, count=7, delta=1e-3)
    assert PureEvent(0.1).repeated_epsilon(7, 1e-3) == (alone * (1 + 1e-9), "optimal composition")
    assert PureEvent(0.1).repeated_epsilon(7, 1e-30) == (7 * 0.1, "optimal composition")
    assert RepeatedEvent(PureEvent(0.1), 7).repeated_epsilon(3, 1e-3) == PureEvent(0.1).repeated_epsilon(
        21, 1e-3
    )
    assert GaussianEvent(1.0).repeated_epsilon(3, 1e-3) is None


def test_a_repeated_event_costs_so_many_times_as_much() -> None:
    thrice = RepeatedEvent(ApproximateEvent(0.2, 0.01), 3)
    assert thrice.failure() == pytest.approx(0.03)
    assert RepeatedEvent(ApproximateEvent(0.2, 0.6), 2).failure() == 1.0
    assert thrice.pure() == pytest.approx(0.6)
    twice = RepeatedEvent(GaussianEvent(2.0), 2)
    assert twice.renyi(ORDERS) == pytest.approx(ORDERS / 4)
    assert twice.squared_shift() == 0.5
    assert thrice.squared_shift() is None
    assert RepeatedEvent(ConcentratedEvent(0.1), 2).delta(np.array([0.1])) is None


@for_each("count", [6, 1_000, 10**9, 10**12])
def test_a_sample_of_a_repeated_event_is_never_below_the_truth_and_takes_little_work(count: int) -> None:
    """Its profile was composed anew at every point that was asked for, which did not return."""
    each = 0.6 / math.sqrt(count)
    sampled = SubsampledEvent(RepeatedEvent(PureEvent(each), count), 0.5)
    for point in (0.05, 0.25, 0.4):
        inside = math.log1p(math.expm1(point) / 0.5)
        least = 0.5 * optimal_delta(total=inside, epsilon=each, count=min(count, 10**9))
        if count > 10**9:
            least = 0.5 * gaussian_delta(epsilon=inside, deviation=1 / 0.6) * 0.999
        (found,) = deltas(sampled, [point])
        assert least * (1 - 1e-9) <= found <= least * (1.02 if count <= 1_000 else 8)
    accountant = PrivacyAccountant()
    accountant.add(sampled, count=3)
    accountant.add(RepeatedEvent(SubsampledEvent(RepeatedEvent(sampled, 10), 0.1), 10))
    assert 0 < accountant.epsilon(1e-6).epsilon < 12


@for_each("count", [10**9, 10**12, 10**15])
def test_any_number_of_pure_releases_costs_what_normal_noise_does_in_the_limit(count: int) -> None:
    accountant, normal = PrivacyAccountant(), PrivacyAccountant()
    accountant.add(PureEvent(1 / math.sqrt(count)), count=count)
    normal.add(GaussianEvent(1.0))
    for delta in (1e-3, 1e-6):
        limit = normal.epsilon(delta).epsilon
        assert limit * (1 - 1e-6) <= accountant.epsilon(delta).epsilon <= limit * 1.2


@for_each("epsilon", [10.0**-place for place in (0, 1, 3, 6, 8, 9, 12, 16, 50, 100)])
def test_the_divergence_of_a_pure_release_is_never_below_the_truth(epsilon: float) -> None:
    """Below 1e-8 it was nothing, and a filter had such releases for nothing."""
    found = PureEvent(epsilon).renyi(np.array([1.01, 2.0, 50.0]))
    with mpmath.workdps(260):
        e = mpmath.mpf(epsilon)
        for order, divergence in zip((1.01, 2.0, 50.0), found.tolist(), strict=True):
            a = mpmath.mpf(order)
            truth = mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2)) / (a - 1)
            assert truth <= divergence <= truth * (1 + 1e-11)


class Charged:
    """A target-charging event, and what is true of it at whole numbers of steps."""

    def __init__(self, epsilon: float) -> None:
        repeated.charging_profile.cache_clear()
        self.epsilon = epsilon
        self.event = TargetChargingEvent(epsilon, charges=2, q=0.4)

    def at(self, steps: int) -> float:
        return target_charging_delta(total=steps * self.epsilon, epsilon=self.epsilon, charges=2, q=0.4)


@for_each(
    ("epsilon", "farthest", "asked"),
    [
        (2**-10, 6, [0, 1, 3, 6]),  # far from negligible: as far as is asked, every step
        (0.5, 9000, [0, 1, 7, 60]),  # negligible long before
    ],
)
def test_the_profile_of_target_charging_is_true_at_its_steps(
    epsilon: float, farthest: int, asked: list[int]
) -> None:
    charged = Charged(epsilon)
    found = deltas(charged.event, [steps * epsilon for steps in [*asked, farthest]])
    assert found[:-1] == pytest.approx([charged.at(steps) for steps in asked], rel=1e-12)


def test_between_steps_the_profile_of_target_charging_is_a_chord_and_beyond_them_flat() -> None:
    charged = Charged(0.5)
    inside = deltas(charged.event, [0.2, 3.7])
    for epsilon, found in zip((0.2, 3.7), inside, strict=True):
        step = int(epsilon / 0.5)
        low, high = math.exp(step * 0.5), math.exp(step * 0.5 + 0.5)
        share = (math.exp(epsilon) - low) / (high - low)
        chord = (1 - share) * charged.at(step) + share * charged.at(step + 1)
        assert found == pytest.approx(chord, rel=1e-12)
    last = next(2**k for k in range(20) if charged.at(2**k) <= 1e-30)
    assert deltas(charged.event, [199.0, 150.0]) == [charged.at(last)] * 2
    assert deltas(charged.event, [(last - 0.5) * 0.5, 150.0])[0] < charged.at(last - 1)


def test_a_profile_has_so_many_points_up_to_the_first_power_of_two_that_is_far_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repeated, "_MOST_POINTS", 8)
    charged = Charged(2**-9)
    assert charged.at(64) > repeated._LEAST_CHARGING  # so the last is the first that reaches 32
    asked = range(0, 33, 4)
    found = deltas(charged.event, [steps * 2**-9 for steps in asked])
    assert found == pytest.approx([charged.at(steps) for steps in asked], rel=1e-12)
    between = deltas(charged.event, [2 * 2**-9, 32 * 2**-9])[0]
    assert charged.at(2) * 1.01 < between < charged.at(0)


def test_a_profile_that_is_negligible_after_one_step_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    charged = Charged(0.5)
    monkeypatch.setattr(repeated, "_LEAST_CHARGING", charged.at(1))
    assert deltas(charged.event, [1.0, 5.0]) == [charged.at(1)] * 2


def test_a_delta_of_exactly_what_is_negligible_is(monkeypatch: pytest.MonkeyPatch) -> None:
    charged = Charged(2**-9)
    monkeypatch.setattr(repeated, "_LEAST_CHARGING", charged.at(256))
    assert deltas(charged.event, [3 * 2**-9, 5.0])[0] == pytest.approx(charged.at(3), rel=1e-12)
    assert deltas(charged.event, [4.0, 5.0]) == [charged.at(256)] * 2


def test_a_sampled_event_fails_as_seldom_as_its_rate() -> None:
    assert SubsampledEvent(ApproximateEvent(0.2, 0.01), 0.25).failure() == 0.0025
    assert SubsampledEvent(GaussianEvent(2.0), 0.25).pure() == math.inf
    assert SubsampledEvent(PureEvent(0.3), 1.0).pure() == 0.3
    assert deltas(SubsampledEvent(PureEvent(0.3), 1.0), [0.1]) == pytest.approx(deltas(PureEvent(0.3), [0.1]))


LIMITS: list[tuple[Any, list[Any], list[Any]]] = [
    (PureEvent, [0.0, 1e300], [-1e-9, math.inf, math.nan]),
    (lambda epsilon: ApproximateEvent(epsilon, 0.1), [0.0, 1e300], [-1e-9, math.inf, math.nan]),
    (lambda failing: ApproximateEvent(0.1, failing), [0.0, 0.99], [-1e-9, 1.0, 1.5, math.nan]),
    (ConcentratedEvent, [1e-9, 1e300], [0.0, math.inf, math.nan]),
    (BoundedRangeEvent, [1e-9, 9.0], [0.0, -1.0, math.inf]),
    (GaussianEvent, [1e-9, 1e300], [0.0, -1.0, math.inf]),
    (lambda each: GaussianSparseVectorEvent(each, 1.0, 1, 1), [0.1], [0.0, math.inf, math.nan]),
    (lambda each: GaussianSparseVectorEvent(1.0, each, 1, 1), [0.1], [0.0, math.inf, math.nan]),
    (lambda count: GaussianSparseVectorEvent(1.0, 1.0, count, 1), [1, np.int64(2)], [0, -1, 1.5, 2.0]),
    (lambda count: GaussianSparseVectorEvent(1.0, 1.0, 1, count), [1, np.int64(2)], [0, -1, 1.5, 2.0]),
    (lambda count: RepeatedEvent(PureEvent(0.1), count), [1, np.int64(2)], [0, -1, 1.5, 2.0]),
    (lambda rate: SubsampledEvent(PureEvent(0.1), rate), [1e-9, 1.0], [0.0, -0.1, 1.01, 1.5, math.nan]),
    (lambda epsilon: TargetChargingEvent(epsilon, 1, 0.4), [1e-300, 1e300], [0.0, -0.1, math.inf, math.nan]),
    (
        lambda charges: TargetChargingEvent(0.1, charges, 0.4),
        [1, np.int64(3), 10**6],
        [0, -1, 1.5, 10**7 + 1],
    ),
    (lambda q: TargetChargingEvent(0.1, 1, q), [1e-3, 1.0], [0.0, 1.01, math.nan]),
    (lambda mean: TargetChargingEvent(0.1, 1, 0.4, mean), [None, 0.4, 0.5, 1.0], [0.39, 1.01, 1.5, math.nan]),
]


@for_each(("make", "taken", "refused"), LIMITS)
def test_parameters_are_taken_up_to_their_limits(
    make: Callable[[Any], PrivacyEvent], taken: list[Any], refused: list[Any]
) -> None:
    for value in taken:
        make(value)
    for value in refused:
        with pytest.raises(InputError):
            make(value)


def test_a_billion_charges_of_a_sparse_vector_cost_a_bounded_amount_of_work() -> None:
    """Each possible number of charges was a term of a sum: a billion of them took all memory."""
    many = 10**9
    for charges in (many // 4, many // 2, many):
        event = GaussianSparseVectorEvent(20.0, 4e9, charges, many)
        budget = PrivacyFilter(epsilon=2.0, delta=1e-6)
        budget.admit(event)
        odometer = PrivacyOdometer(delta=1e-6)
        odometer.add(event)
        accountant = PrivacyAccountant()
        accountant.add(event)
        assert 0 < accountant.epsilon(1e-6).epsilon < odometer.epsilon < 2.0


@for_each(("charges", "queries"), [(1, 5), (3, 8), (8, 8), (9, 8), (40, 200), (100, 200), (199, 200)])
def test_the_closed_bound_of_the_number_of_transcripts_is_no_less_than_the_number(
    charges: int, queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = gaussian_sparse_vector._log_transcripts(queries, charges)
    with monkeypatch.context() as patched:
        patched.setattr(gaussian_sparse_vector, "_MOST_TERMS", -1)
        closed = gaussian_sparse_vector._log_transcripts(queries, charges)
    number = sum(math.comb(queries - 1, above) for above in range(min(charges, queries - 1) + 1))
    assert exact == pytest.approx(math.log(number), rel=1e-12)
    assert math.log(number) <= closed <= math.log(number) + math.log(2 * queries)


@for_each("count", [10**15 + 1, 10**400])
def test_counts_beyond_what_floats_tell_apart_are_refused_and_nothing_is_noted(count: int) -> None:
    accountant = PrivacyAccountant()
    accountant.add(PureEvent(0.1), count=10)
    with pytest.raises(InputError, match=r"at most 1,000,000,000,000,000 times; got .*nothing was noted"):
        accountant.add(PureEvent(0.1), count=count)
    with pytest.raises(InputError, match="between 1 and 1,000,000,000,000,000"):
        RepeatedEvent(PureEvent(0.1), count)
    with pytest.raises(InputError, match="between 1 and 1,000,000,000,000,000"):
        GaussianSparseVectorEvent(20.0, 40.0, 1, count)
    assert accountant.events == ((PureEvent(0.1), 10),)


def test_the_curve_of_target_charging_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at it computed all of its points again: an accountant took minutes for 100,000 charges."""
    asked: list[float] = []

    def counted(**wish: float) -> float:
        asked.append(wish["total"])
        return target_charging_delta(**wish)  # type: ignore[arg-type]

    monkeypatch.setattr(repeated, "target_charging_delta", counted)
    accountant = PrivacyAccountant()
    accountant.add(TargetChargingEvent(0.1 / math.sqrt(10**5), 10**5, 0.49, 0.5))
    bound = target_charging(epsilon=0.1 / math.sqrt(10**5), charges=10**5, delta=1e-6, q=0.49, mean=0.5)
    assert bound.epsilon < accountant.epsilon(1e-6).epsilon < 1.02 * bound.epsilon
    assert 0 < len(asked) < 500  # a look took fifty or more, and there are hundreds of looks
