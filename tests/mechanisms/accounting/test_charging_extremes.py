"""Target charging of the smallest and largest epsilons, deltas and charges there are, and where delta is used up."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    TargetChargingEvent,
    boundary_q,
    not_prior_mean,
    not_prior_q,
    target_charging,
    target_charging_delta,
    target_charging_epsilon_each,
)

if TYPE_CHECKING:
    from collections.abc import Callable

module = sys.modules[
    "reusable_holdout.mechanisms.accounting.target_charging"
]  # whose name its function has, too


@for_each(
    ("epsilon", "delta", "charges"),
    [
        (5e-324, 0.99, 1),
        (5e-324, 1e-6, 1000),
        (1e-290, 1e-6, 1),
        (1e-217, 1e-6, 3),
        (1e-9, 0.9999, 3),
        (1.0, 1e-300, 3),
        (1.0, 1e-310, 1),
        (0.3, math.nextafter(1, 0), 2),
        (1e5, 1e-6, 2),
        (1e300, 1e-6, 2),
        (1.7e308, 0.5, 1),
    ],
)
def test_extreme_wishes_have_a_largest_epsilon_of_a_call(epsilon: float, delta: float, charges: int) -> None:
    wish: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "charges": charges}
    each = target_charging_epsilon_each(q=not_prior_q, mean=not_prior_mean, **wish)
    for more, within in ((1.0, True), (1.0001, False)):
        told: dict[str, Any] = {"q": not_prior_q(each * more), "mean": 0.5, "epsilon": each * more}
        found = target_charging_delta(total=epsilon, charges=charges, **told)
        assert (found <= delta) == within


def test_the_epsilon_of_a_call_against_nothing_is_the_delta_of_a_response() -> None:
    """A charge at epsilon 0: delta 2/3 of the epsilon of one call, where that is small."""
    each = target_charging_epsilon_each(
        epsilon=5e-324, delta=1e-6, charges=1, q=not_prior_q, mean=not_prior_mean
    )
    assert each == pytest.approx(1.5e-6, rel=1e-5)


@for_each("q", [boundary_q, lambda _: 1.0])
@for_each("wish", [(1e300, 1e-6), (1e308, 1e-6)])
def test_wishes_beyond_all_numbers_are_refused_or_met(
    q: Callable[[float], float], wish: tuple[float, float]
) -> None:
    with pytest.raises(InputError):
        target_charging_epsilon_each(epsilon=wish[0], delta=wish[1], charges=2, q=q)


def test_a_delta_below_all_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="less extreme"):
        target_charging_epsilon_each(epsilon=1.0, delta=5e-324, charges=3, q=not_prior_q, mean=not_prior_mean)


def test_charges_are_taken_up_to_their_limit() -> None:
    told: dict[str, Any] = {"total": 1e6, "epsilon": 1.0}
    assert target_charging_delta(charges=10**9, q=0.5, **told) == 1.0
    for charges in (10**9 + 1, 10**30, 10**400):
        with pytest.raises(InputError, match="at most 1,000,000,000"):
            target_charging_delta(charges=charges, q=0.5, **told)
        with pytest.raises(InputError, match="at most 1,000,000,000"):
            target_charging_epsilon_each(epsilon=1.0, delta=1e-6, charges=charges, q=not_prior_q)
        with pytest.raises(InputError, match="at most 1,000,000,000"):
            target_charging(epsilon=1.0, delta=1e-6, charges=charges, q=0.5)


def test_chances_of_a_hit_are_taken_down_to_their_limit() -> None:
    told: dict[str, Any] = {"total": 10.0, "epsilon": 3.0, "charges": 500}
    assert target_charging_delta(q=1e-300, mean=500 / 10**12, **told) == 1.0
    assert target_charging_delta(total=10.0, epsilon=3.0, charges=5**12, q=2.0**-12) == 1.0
    for q, mean in ((499.9 / 10**12, None), (1e-300, None), (1e-300, 499.9 / 10**12)):
        with pytest.raises(InputError, match="charges over the mean chance"):
            target_charging_delta(q=q, mean=mean, **told)
        with pytest.raises(InputError, match="charges over the mean chance"):
            target_charging(epsilon=3.0, charges=500, delta=1e-6, q=q, mean=mean)


def test_deltas_are_taken_up_to_their_limits() -> None:
    for bad in (0.0, 1.0, -0.1, 1.4, math.nan):
        with pytest.raises(InputError, match="needs a delta"):
            target_charging(epsilon=1.0, charges=1, delta=bad, q=0.5)
        with pytest.raises(InputError, match="needs a delta"):
            target_charging_epsilon_each(epsilon=1.0, charges=1, delta=bad, q=not_prior_q)
    assert 0 < target_charging(epsilon=0.1, charges=1, delta=1e-300, q=0.5).epsilon < 100


def test_a_delta_that_is_exactly_the_slack_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of calls that are counted, and of the epsilon of each."""
    monkeypatch.setattr(module, "_delta_by_calls", lambda **told: 1e-5 if told["total"] >= 0.3 else 1.0)
    found = target_charging(epsilon=0.5, charges=3, delta=1e-5, q=0.3).epsilon
    assert found == pytest.approx(0.3, rel=1e-9)
    monkeypatch.setattr(
        module, "target_charging_delta", lambda **told: 1e-6 if told["epsilon"] < 0.1 else 1.0
    )
    each = target_charging_epsilon_each(epsilon=1.0, delta=1e-6, charges=3, q=not_prior_q)
    assert 0.02 < each < 0.1


def test_calls_are_counted_on_both_sides_of_where_both_parts_are_as_large() -> None:
    # Recorded; a bound of any number of calls is true, and more numbers looked at give smaller ones.
    wish: dict[str, Any] = {
        "total": 0.2197881021039301,
        "epsilon": 0.0018888058315218723,
        "charges": 700,
        "q": 0.6104323462588578,
    }
    assert target_charging_delta(**wish) == pytest.approx(1.5168966300068042e-05, rel=1e-9)


@for_each(("charges", "q"), [(10**10, 0.5), (3, 1e-13)])
def test_an_event_is_refused_for_what_no_accountant_could_sum_up(charges: int, q: float) -> None:
    with pytest.raises(InputError, match=r"^charges"):
        TargetChargingEvent(0.1, charges, q)
