"""Interactions at the ends of what they accept, with what is left out, and with the very noise that a seed names."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from cases import for_each

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import (
    IndividualCharging,
    MixedInteraction,
    TargetCharging,
    TargetInteraction,
    exponential_weights,
)
from reusable_holdout.mechanisms.accounting import not_prior_mean, not_prior_q
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.targets import charging, interaction, mixed
from reusable_holdout.noise import KeyedNoise, key_from_seed
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3}


def numbered(number: int) -> bytes:
    return number.to_bytes(8, "big")


def coarse(monkeypatch: pytest.MonkeyPatch, *noise: int, **wish: Any) -> TargetCharging:
    """Two steps to the sensitivity, and listed noise."""
    monkeypatch.setattr(Grid, "of", staticmethod(lambda _: Grid(step=0.5, sensitivity=2)))
    listed = iter(noise)
    monkeypatch.setattr(TargetCharging, "_draw", lambda *_: next(listed))
    return TargetCharging(**{"charges": 9, "epsilon": 30.0, "delta": 0.2} | wish)


# Target charging with noisy numbers.


def test_an_interaction_without_options_is_of_sensitivity_1_and_one_target() -> None:
    plain = TargetCharging(charges=2, **BUDGET)
    spelt = TargetCharging(
        charges=2, sensitivity=1.0, targets=1, q=not_prior_q, mean=None, gap=None, **BUDGET
    )
    assert plain.hits == spelt.hits == (0,)
    assert plain._law == spelt._law == DiscreteLaplace(2**16 / Fraction(plain.epsilon_each))
    assert plain._law != TargetCharging(charges=2, sensitivity=1.5, **BUDGET)._law
    assert plain.epsilon_each == TargetInteraction(charges=2, **BUDGET).epsilon_each
    own = TargetInteraction(charges=2, **BUDGET)
    assert (own.hits, own.delta_left, own.q) == ((0,), 0.0, not_prior_q(own.epsilon_each))


def test_a_call_draws_the_noise_of_its_number_under_its_label() -> None:
    calls, noise = TargetCharging(charges=9, seed=3, **BUDGET), KeyedNoise(key_from_seed(3))
    for number in range(3):
        value = noise.draw(calls._law, label="value", question=numbered(number))
        assert calls.conditional_release(10.0) == 10.0 + value * calls.step
    kept = noise.draw(calls._revisable, label="revisable", question=numbered(3))
    assert calls.conditional_release(10.0, name="a") == 10.0 + kept * calls.step
    assert calls.not_prior(10.0, 1e9) == 10.0 + calls.step * noise.draw(
        calls._law, label="value", question=numbered(4)
    )


def test_without_a_tolerance_only_the_prior_itself_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = coarse(monkeypatch, 0, 1)
    assert calls.not_prior(3.0, 3.0) == 3.0
    assert calls.hits == (0,)
    assert calls.not_prior(3.0, 3.0) == 3.5
    assert calls.hits == (1,)


@for_each("priors", [(0.0, math.nan), (math.inf, 0.0)])
def test_every_prior_is_finite(priors: tuple[float, float]) -> None:
    calls = TargetCharging(charges=1, targets=2, **BUDGET)
    with pytest.raises(InputError, match="one finite prior for each of 2 targets"):
        calls.not_prior(0.0, *priors)
    assert calls.hits == (0, 0)


@for_each(("low", "high", "points"), [(0.0, 9.0, 19), (0.25, 9.25, 18), (0.0, 8.75, 18), (-9.0, 9.0, 37)])
def test_the_q_of_two_thresholds_is_that_of_the_grid_points_between_them(
    low: float, high: float, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = coarse(monkeypatch, 0, gap=2.0)
    asked: list[tuple[float, float]] = []
    monkeypatch.setattr(charging, "between_thresholds_q", lambda *of: asked.append(of) or 1.0)
    calls.between(0.0, low, high)
    assert asked == [(calls.epsilon_each, points / 2)]


@for_each(
    ("gap", "width"), [(0.1, 0.5), (0.5, 0.5), (1.0, 0.5), (1.5, 1.0), (1.9, 1.0), (2.0, 1.5), (9.0, 8.5)]
)
def test_a_gap_is_as_wide_as_the_points_it_holds_less_one(
    gap: float, width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In sensitivities of two steps; a single point is left whatever the gap."""
    assert coarse(monkeypatch)._width(gap) == width


@for_each(
    ("noise", "side"),
    [
        (-9, "below"),
        (-1, "below"),
        (0, "between"),
        (1, "between"),
        (4, "between"),
        (5, "above"),
        (9, "above"),
    ],
)
def test_a_side_is_told_and_only_the_middle_is_a_hit(
    noise: int, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = coarse(monkeypatch, noise, gap=2.0)
    assert calls.between(0.0, 0.0, 2.0) == side
    assert calls.hits == (int(side == "between"),)


def test_a_region_may_be_one_point_and_a_revision_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = coarse(monkeypatch, 0, 1, 5)
    assert calls.conditional_release(1.0, low=1.0, high=1.0) == 1.0
    assert calls.conditional_release(1.0, low=1.0, high=1.0) is None
    assert calls.conditional_release(1.0, low=1.0, high=2.0, name="a") is None
    assert calls.revise("a", low=1.0, high=2.0) is None
    for low, high in ((1.5, 2.0), (1.0, 1.5), (1.5, 9.0), (-9.0, 1.5)):
        with pytest.raises(InputError, match="contains the one before"):
            calls.revise("a", low=low, high=high)
    assert calls.revise("a", low=1.0, high=3.5) == 3.5
    assert calls.hits == (2,)


# Records that pay for themselves.


def test_a_count_has_the_noise_of_its_number() -> None:
    counts, noise = IndividualCharging(7, charges=99, seed=4, **BUDGET), KeyedNoise(key_from_seed(4))
    for number in range(4):
        wanted = 3 + noise.draw(counts._law, label="count", question=numbered(number))
        assert counts.ask([True] * 3 + [False] * 4, -1e9) == wanted
    assert counts._law == DiscreteLaplace(1 / Fraction(counts.epsilon_each))


def test_one_record_and_one_charge_are_accepted() -> None:
    counts = IndividualCharging(1, charges=1, **BUDGET)
    assert counts.ask([True], -1e9) is not None
    with pytest.raises(InputError, match="records is at least 1; got 0"):
        IndividualCharging(0, charges=1, **BUDGET)
    with pytest.raises(InputError, match="one boolean for each record"):
        counts.ask([[True], [True, False]], 0.0)  # type: ignore[list-item]


# Algorithms of one's own.


@for_each(("calls_delta", "targets"), [(0.0, 1), (0.0, 3), (2.0**-12, 1), (2.0**-12, 3), (1e-4, 2)])
def test_target_charging_has_what_calls_leave_of_delta_rounded_down(
    calls_delta: float, targets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(
        interaction, "target_charging_epsilon_each", lambda **how: asked.append(how["delta"]) or 0.1
    )
    TargetInteraction(charges=1, epsilon=1.0, delta=2.0**-8, targets=targets, calls_delta=calls_delta)
    (left,) = asked
    exact = Fraction(2.0**-8) - targets * Fraction(calls_delta)
    assert left == (math.nextafter(float(exact), 0.0) if calls_delta else 2.0**-8)
    assert Fraction(left) <= exact


def test_a_delta_that_is_left_is_told_rounded_down() -> None:
    calls = TargetInteraction(charges=1, epsilon=1.0, delta=0.5, calls_delta=0.1)
    each = calls.epsilon_each
    assert calls.delta_left == 0.1
    calls.run(lambda: 0, hit=lambda _: False, epsilon=each, q=not_prior_q(each), delta=1e-30)
    assert calls.delta_left == math.nextafter(0.1, 0.0)


def test_what_lies_on_a_limit_is_run() -> None:
    calls = TargetInteraction(charges=9, epsilon=1.0, delta=0.5, calls_delta=0.1)
    each = calls.epsilon_each
    for q, mean in [(calls.q, None), (1.0, None), (calls.q, 1.0), (1.0, 1.0), (calls.q, calls.q)]:
        assert calls.run(lambda: 7, hit=lambda _: True, epsilon=each, q=q, mean=mean) == 7
    assert calls.hits == (5,)
    assert calls.run(lambda: 7, hit=lambda _: False, epsilon=each, q=1.0, delta=0.1) == 7
    assert calls.release_if(lambda: 7, lambda _: False, epsilon=each / 2, name="a") is None
    with pytest.raises(InputError, match=r"at most .*-private, for a revision costs twice that"):
        calls.release_if(lambda: 7, lambda _: False, epsilon=math.nextafter(each / 2, 1.0), name="b")
    assert calls.twice(lambda: 7, epsilon=each / 2) == (7, 7)
    assert calls.hits == (5,)


def test_a_mean_at_its_limit_is_admitted_and_one_below_it_is_not() -> None:
    calls = TargetInteraction(charges=9, mean=not_prior_mean, **BUDGET)
    each = calls.epsilon_each
    q, least = calls.q, not_prior_mean(each)
    assert calls.run(lambda: 7, hit=lambda _: True, epsilon=each, q=q, mean=least) == 7
    with pytest.raises(InputError, match="a mean of at least"):
        calls.run(lambda: 7, hit=lambda _: True, epsilon=each, q=q, mean=math.nextafter(least, 0.0))
    with pytest.raises(InputError, match="a q of at least"):
        calls.run(lambda: 7, hit=lambda _: True, epsilon=each, q=math.nextafter(q, 0.0), mean=least)
    assert calls.hits == (1,)


# Calls of different weights.


@for_each("calls_delta", [0.0, 2.0**-12])
@for_each("smallest_q", [None, 0.25])
def test_the_weight_is_that_of_what_calls_leave_of_delta(
    calls_delta: float, smallest_q: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, float]] = []
    monkeypatch.setattr(mixed, "mixed_charging_weight", lambda **how: asked.append(how) or 5.0)
    calls = MixedInteraction(
        epsilon=2.0, delta=2.0**-8, largest_epsilon=0.5, smallest_q=smallest_q, calls_delta=calls_delta
    )
    left = math.nextafter(2.0**-8 - calls_delta, 0.0) if calls_delta else 2.0**-8
    q = not_prior_q(0.5) if smallest_q is None else smallest_q
    assert asked == [{"epsilon": 2.0, "delta": left, "largest_epsilon": 0.5, "smallest_q": q}]
    assert (calls.weight, calls.weight_left) == (5.0, 5.0)


@for_each("calls_delta", [0.5, 0.75, -0.125, math.nan])
def test_what_is_set_aside_is_less_than_delta(calls_delta: float) -> None:
    with pytest.raises(InputError, match=r"^calls_delta is at least 0 and less than delta, 0.5; got"):
        MixedInteraction(epsilon=8.0, delta=0.5, largest_epsilon=0.1, calls_delta=calls_delta)


def test_the_last_hit_that_can_be_paid_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    wish: dict[str, float] = {"epsilon": 2.0, "delta": 0.5, "largest_epsilon": 0.5, "smallest_q": 0.25}
    monkeypatch.setattr(mixed, "mixed_charging_weight", lambda **_: 2.0)
    calls = MixedInteraction(**wish)
    assert calls.run(lambda: 7, hit=lambda _: True, epsilon=0.5, q=0.5) == 7
    assert calls.run(lambda: 7, hit=lambda _: True, epsilon=0.25, q=0.25) == 7
    assert calls.weight_left == 0.0
    with pytest.raises(BudgetError, match=r"weighs 0.5, 0 is left of 2; nothing was run"):
        calls.run(lambda: 7, hit=lambda _: False, epsilon=0.5, q=1.0)
    monkeypatch.setattr(mixed, "mixed_charging_weight", lambda **_: math.nextafter(2.0, 0.0))
    with pytest.raises(InputError, match="cannot pay for one hit of weight 2;"):
        MixedInteraction(**wish)


@for_each(
    ("call", "refused"),
    [
        ({"epsilon": 0.5, "q": 0.25}, None),
        ({"epsilon": 1e-9, "q": 1.0, "delta": 0.125}, None),
        ({"epsilon": math.nextafter(0.5, 1.0), "q": 0.25}, InputError),
        ({"epsilon": 0.0, "q": 0.25}, InputError),
        ({"epsilon": 0.5, "q": math.nextafter(0.25, 0.0)}, InputError),
        ({"epsilon": 0.5, "q": math.nextafter(1.0, 2.0)}, InputError),
        ({"epsilon": 0.5, "q": 1.0, "delta": -0.125}, InputError),
        ({"epsilon": 0.5, "q": 1.0, "delta": 1.0}, InputError),
        ({"epsilon": 0.5, "q": 1.0, "delta": 1.25}, InputError),
        ({"epsilon": 0.5, "q": 1.0, "delta": math.nextafter(0.125, 1.0)}, BudgetError),
    ],
)
def test_a_call_on_a_limit_is_run_and_beyond_it_refused(
    call: dict[str, float], refused: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixed, "mixed_charging_weight", lambda **_: 2.0)
    calls = MixedInteraction(epsilon=2.0, delta=0.5, largest_epsilon=0.5, smallest_q=0.25, calls_delta=0.125)
    ran: list[int] = []
    if refused is None:
        calls.run(lambda: ran.append(1), hit=lambda _: True, **call)
        assert ran == [1]
        assert calls.weight_left == 2.0 - call["epsilon"] / call["q"]
    else:
        with pytest.raises(refused, match="nothing was run"):
            calls.run(lambda: ran.append(1), hit=lambda _: True, **call)
        assert (ran, calls.weight_left) == ([], 2.0)


# Weights of the exponential mechanism.


@for_each("epsilon", [0.05, 0.25, 1.0, 3.0])
def test_the_ratio_of_weights_is_the_next_of_64_digits(epsilon: float) -> None:
    low, high = exponential_weights([0, 1], epsilon=epsilon)
    with mpmath.workdps(60):
        assert (
            Fraction(low, high) * 2**64 == int(mpmath.floor(mpmath.exp(-mpmath.mpf(epsilon) / 2) * 2**64)) + 1
        )


@for_each("scores", [[1, 0.5], [0.5, 1], [2, math.nan, 1]])
def test_every_score_is_an_integer(scores: list[float]) -> None:
    with pytest.raises(InputError, match="scores are integers"):
        exponential_weights(scores, epsilon=1.0)  # type: ignore[arg-type]
