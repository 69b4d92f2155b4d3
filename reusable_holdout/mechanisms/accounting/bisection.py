"""Bisection down to two numbers between which there is no other."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["largest_between", "smallest", "smallest_between"]


def smallest(holds: Callable[[float], bool]) -> float:
    """Smallest number of at least 0 at which holds what holds at all larger ones.

    Parameters
    ----------
    holds : Callable[[float], bool]
        Whether it does at a number; true of large ones.
    """
    if holds(0.0):
        return 0.0
    start = 1.0
    low, high = 0.0, start
    while not holds(high):
        low, high = high, high + high
    return smallest_between(holds, low, high)


def smallest_between(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Smallest number above `low`, where it does not hold, at which holds what holds at `high`."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def largest_between(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Largest number below `high`, where it does not hold, at which holds what holds at `low`."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
