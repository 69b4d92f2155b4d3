"""What filters and odometers add up is never below the truth, and what they set aside is what was asked for."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    ApproximateEvent,
    ConcentratedEvent,
    PrivacyFilter,
    PrivacyOdometer,
)


def test_sums_are_rounded_up_but_hardly() -> None:
    budget = PrivacyFilter(epsilon=200.0, delta=0.9, failures=0.8)
    assert budget.events == PrivacyOdometer(delta=0.5).events == 0
    for _ in range(300):
        budget.admit(ConcentratedEvent(0.1))
        budget.admit(ApproximateEvent(0.0, 1e-3))
    spent = budget._spent
    assert budget.events == 600
    for order, renyi in zip(spent.orders, spent.renyi, strict=True):
        exact = 300 * Fraction(0.1) * Fraction(float(order))
        assert exact <= Fraction(float(renyi)) <= exact * Fraction(1 + 1e-9)
    failed = 300 * Fraction(1e-3)
    assert failed <= Fraction(spent.failure) <= failed * Fraction(1 + 1e-9)
    budget.admit(ApproximateEvent(0.0, 0.4999))
    assert not budget.affords(ApproximateEvent(0.0, 2e-4))


@for_each("failures", [0.0, 3e-7])
def test_what_failures_leave_of_delta_is_rounded_down_but_hardly(failures: float) -> None:
    left = Fraction(1e-6) - Fraction(failures)
    for one in (
        PrivacyFilter(epsilon=1.0, delta=1e-6, failures=failures),
        PrivacyOdometer(delta=1e-6, failures=failures),
    ):
        assert left * Fraction(1 - 1e-11) < Fraction(one._slack) < left


@for_each("delta", [0.0, 1.0, -0.1, 1.5])
def test_a_delta_out_of_range_is_refused(delta: float) -> None:
    with pytest.raises(InputError, match=r"needs a delta in \(0, 1\)"):
        PrivacyFilter(epsilon=1.0, delta=delta)
    with pytest.raises(InputError, match=r"needs a delta in \(0, 1\)"):
        PrivacyOdometer(delta=delta)


@for_each("failures", [-1e-9, 1e-6, 2e-6])
def test_failures_out_of_range_are_refused(failures: float) -> None:
    with pytest.raises(InputError, match="failures are at least 0"):
        PrivacyFilter(epsilon=1.0, delta=1e-6, failures=failures)
    with pytest.raises(InputError, match="failures are at least 0"):
        PrivacyOdometer(delta=1e-6, failures=failures)
