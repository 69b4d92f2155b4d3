"""Where a log tail meets its level: Newton's method from the safe side, and rounding that keeps to it.

Every equation is ``g(position) = log_level`` with ``g`` increasing and **concave**. There Newton's method falls short
of the root from wherever it starts, which is the conservative side, and needs no bracket. A start within 1e-5 of its
level, which saddlepoints give from some thousand rows on, needs one look at the tail.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.validity.floats_and_arrays import EPS, Number, functions
from reusable_holdout.validity.log_tails import (
    chernoff_in_failures,
    chernoff_in_odds,
    excess,
    tail_in_failures,
    tail_in_odds,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "climb",
    "inflated",
    "margin",
    "mirrored",
    "mirrored_target",
    "solve_binomial",
    "solve_binomial_reach",
    "solve_chernoff",
    "solve_chernoff_reach",
]


def climb(
    evaluate: Callable[..., tuple[Number, Number, Number]],
    position: Number,
    level: Number,
    *parameters: Number,
    bottom: float = -math.inf,
    tolerance: float = 1e-5,
) -> Number:
    """Root of an increasing concave function by Newton's method with its curvature (Halley).

    Concavity brings Newton's step to the lower side of the root, and upwards from there on; the curvature
    shortens or at most doubles it. After a gap of ``tolerance`` the step is exact to rounding. Where the
    domain ends at a ``bottom`` of 0, a step goes at most seven eighths of the way there. Should 100 steps not
    do, the answer is the bottom, which makes bounds vacuous, never wrong.
    """
    f = functions(position)
    for _ in range(100):
        value, slope, curvature = evaluate(position, *parameters)
        gap = level - value
        step = gap / slope
        moved = position + step / f.most(1.0 + 0.5 * curvature * step / slope, 0.5)
        position = moved if bottom < 0.0 else f.most(moved, 0.125 * position)
        settled = (abs(gap) <= tolerance) | (abs(step) <= 4.0 * EPS * abs(position))
        if f.every(settled):
            return position
        if isinstance(settled, np.ndarray) and 2 * np.count_nonzero(settled) > settled.size:
            left = ~settled
            rest = (array[left] for array in (position, level, *parameters))
            position[left] = climb(evaluate, *rest, bottom=bottom, tolerance=tolerance)
            return position
    return f.least(position, bottom)


def solve_binomial(x: Number, y: Number, level: Number) -> Number:
    """Probability at which x or more of x + y are as unlikely as the level; x >= 1, never above the solution."""
    level = level - margin(x + y, level)
    constant = excess(x + y) - excess(x) - excess(y)
    return _deflated(climb(tail_in_odds, _near_log_odds(x - 0.5, y + 0.5, level), level, x, y, constant))


def solve_chernoff(x: Number, y: Number, level: Number) -> Number:
    """Probability at which Chernoff's bound on x or more of x + y is at the level; never above the solution."""
    level = level - margin(x + y, level)
    return _deflated(climb(chernoff_in_odds, _score_log_odds(x, y, -level), level, x, y))


def solve_chernoff_reach(p: Number, rows: Number, level: Number, half: float = 0.0) -> Number:
    """Failures at which Chernoff's bound is at its level; half a row is the continuity correction."""
    f = functions(p)
    q = 1.0 - p
    # at levels up to a half the root leaves more than 1e-3 successes for every probability a float can hold
    start = f.most(rows * q - f.sqrt(-2.0 * rows * level * p * q), 0.125 * rows * q)
    start = f.least(start, rows - 1e-3)
    failures = climb(chernoff_in_failures, start, level, rows, p, q, bottom=0.0, tolerance=1e-7)
    return f.most(failures - half, 0.2 * half)


def solve_binomial_reach(p: Number, rows: Number, level: Number) -> Number:
    """Failures, a real number, that are as unlikely to be so few as the level."""
    return climb(
        tail_in_failures, _near_failures(p, rows, level), level, rows, p, 1.0 - p, bottom=0.0, tolerance=1e-6
    )


def _near_log_odds(x: Number, y: Number, level: Number) -> Number:
    """Log-odds whose log tail is about 1/n from its level: Wilson's, then Chernoff's, then Lugannani and Rice's."""
    f = functions(level)
    deviations = f.deviations(level)
    exponent = f.most(0.5 * deviations * deviations, 1e-4)
    start = climb(chernoff_in_odds, _score_log_odds(x, y, exponent), -exponent, x, y, tolerance=1.0)
    value, slope, curvature = chernoff_in_odds(start, x, y)
    wanted = _saddlepoint_exponent(value, f.log(x / y) - start, x, y, deviations)
    step = (-wanted - value) / slope
    return start + step / f.most(1.0 + 0.5 * curvature * step / slope, 0.5)


def _near_failures(p: Number, rows: Number, level: Number) -> Number:
    """Failures whose log tail is about 1/n from its level, along the same way."""
    f = functions(p)
    deviations = f.deviations(level)
    exponent = f.least(f.most(0.5 * deviations * deviations, 1e-4), -0.9 * rows * f.log(p))
    start = solve_chernoff_reach(p, rows, -exponent, half=0.5)
    y = start + 0.5
    value, tilt, _ = chernoff_in_failures(y, rows, p, 1.0 - p)
    wanted = _saddlepoint_exponent(value, tilt, rows - y, y, deviations)
    step = (-wanted - value) / tilt
    moved = start + step / f.most(1.0 - 0.5 * rows / (y * (rows - y)) * step / tilt, 0.5)
    return f.least(f.most(moved, 0.125 * start), 0.5 * (start + rows))


def _saddlepoint_exponent(value: Number, tilt: Number, x: Number, y: Number, deviations: Number) -> Number:
    """Exponent of Chernoff's bound where the tail itself is at its level, seen from a position nearby.

    With w the signed root of twice the exponent and u the tilt in standard deviations, a standard Gaussian exceeds
    ``w + log(u / w) / w`` about as often as the tail (Lugannani and Rice 1980, the form for whole numbers).
    """
    f = functions(value)
    w = f.sqrt(f.most(-2.0 * value, 2e-4))
    tilt = f.most(tilt, 1e-9)
    log_u = 0.5 * (tilt + f.log(x * y / (x + y))) + f.log1p(-f.exp(-tilt))
    w = f.most(deviations - (log_u - f.log(w)) / w, 0.014)
    return 0.5 * w * w


def _score_log_odds(x: Number, y: Number, exponent: Number) -> Number:
    """Log-odds of Wilson's lower score bound, a place to start; the exponent is half a squared z."""
    f = functions(x)
    v, t = x / (x + y), exponent / (x + y)
    p = v * v / (v + t + f.sqrt(2.0 * t * v * (1.0 - v) + t * t))
    return f.log(p / f.most(1.0 - p, 1e-16))


def margin(rows: Number, level: Number) -> Number:
    """How far rounding can carry a computed log tail; equations are solved for a level lower by this much."""
    return 2e-15 * (8.0 - level + functions(level).sqrt(-rows * level))


def _deflated(log_odds: Number) -> Number:
    """Probability of these log-odds, never above it by rounding."""
    f = functions(log_odds)
    odds = f.exp(-abs(log_odds))
    rounding = EPS * (4.0 + 2.0 * f.least(f.most(-log_odds, 0.0), 1000.0))
    return f.where(log_odds < 0.0, odds, 1.0) / (1.0 + odds) * (1.0 - rounding)


def inflated(target: Number) -> Number:
    """Target raised by more than ``_deflated`` takes away."""
    return target * (1.0 + EPS * (8.0 - 4.0 * functions(target).log(target)))


def mirrored(bound: Number) -> Number:
    """``1 - bound``, never below it by rounding."""
    return functions(bound).least((1.0 - bound) * (1.0 + 2.0 * EPS), 1.0)


def mirrored_target(target: Number) -> Number:
    """``1 - target`` raised by more than ``mirrored`` gives; every value still reaches 1."""
    return functions(target).where(target >= 1.0, 0.0, 1.0 - target + 4.0 * EPS)
