"""Selections with an error that is easily made: what every privacy test of them must reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechanisms.selection.selection_laws import joint_law, unknown_domain_law

if TYPE_CHECKING:
    from collections.abc import Sequence


def joint_at_the_rate_of_one_candidate(
    scores: Sequence[int], count: int, *, epsilon: float
) -> dict[tuple[int, ...], float]:
    """Joint exponential mechanism on monotonic scores with ``e/D``: but one sequence rises while another falls."""
    return joint_law(scores, epsilon, count)


def domain_without_a_bottom(
    scores: dict[str, int], count: int, *, known: int, rate: float
) -> dict[tuple[str, ...], float]:
    """Exponential mechanism among the items that occur: an item can be chosen that only one row has."""
    return unknown_domain_law(scores, rate, count, known=known, margin=None)


def bottom_at_the_next_score(
    scores: dict[str, int], count: int, *, known: int, rate: float
) -> dict[tuple[str, ...], float]:
    """Limited domain whose bottom has the next score, with no margin above it."""
    return unknown_domain_law(scores, rate, count, known=known, margin=0)


def best_of_a_fixed_number(run: Sequence[float], runs: int) -> list[float]:
    """Best of a number of runs that is not random, outcomes listed worst first."""
    found, below = [], 0.0
    for chance in run:
        found.append((below + chance) ** runs - below**runs)
        below += chance
    return found
