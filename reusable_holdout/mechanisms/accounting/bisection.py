"""Bisection down to two neighbouring floats, or to a relative distance."""

from __future__ import annotations

from collections.abc import Callable


def smallest_from_zero(holds: Callable[[float], bool], *, start: float = 1.0, close: float = 0.0) -> float:
    """Find the smallest number, at least 0, from which on a condition holds.

    Parameters
    ----------
    holds : Callable[[float], bool]
        The condition; if it holds at a number, it holds at all larger numbers.
    start : float
        First number tried after 0; it is doubled as long as the condition fails.
    close : float
        Allowed relative distance of the result from the smallest such number.
    """
    if holds(0.0):
        return 0.0
    low, high = 0.0, start
    while not holds(high):
        low, high = high, high + high
    return smallest_between(holds, low, high, close=close)


def smallest_between(holds: Callable[[float], bool], low: float, high: float, *, close: float = 0.0) -> float:
    """Find the smallest number at which a condition holds, given that it fails at `low` and holds at `high`."""
    while high - low > close * high and low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def largest_between(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Find the largest number at which a condition holds, given that it holds at `low` and fails at `high`."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
