"""Logs of binomial tails and of Chernoff's bound, and the points at which they reach a level; for floats and arrays.

The tail is ``P(X = x) x (1 - p) / s`` with a continued fraction ``s`` that is also the derivative of the log tail in
the log-odds: one fraction gives value, slope and curvature. Seen in the log-odds of ``p``, or in the number of
failures, every function here is increasing and **concave**.

So every equation is ``g(position) = log_level`` with an increasing concave ``g``. From any start Newton's method ends
below the root, on the conservative side, and needs no bracket. From some thousand rows on, saddlepoint approximations
give a start within 1e-5 of the level; then the tail is evaluated only once.

References
----------
.. [1] Didonato and Morris (1992), Algorithm 708, the continued fraction.
.. [2] Loader (2000), Fast and accurate computation of binomial probabilities, the prefactor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import special
from reusable_holdout.errors import InputError

Real = TypeVar("Real", float, npt.NDArray[np.float64])
Number: TypeAlias = Any  # a float, or an array of floats; no line below depends on which

EPS = 2.0**-52

# Functions that differ for floats and arrays; ``deviations`` is what a standard Gaussian exceeds at a log level.
_FLOATS = SimpleNamespace(
    exp=math.exp,
    log=math.log,
    log1p=math.log1p,
    sqrt=math.sqrt,
    ceil=lambda x: float(math.ceil(x)),
    lgamma=math.lgamma,
    deviations=lambda level: -float(special.ndtri_exp(level)),
    least=lambda a, b: min(b, a),  # b, if a is not a number
    most=lambda a, b: max(b, a),
    where=lambda condition, a, b: a if condition else b,
    every=bool,
)
_ARRAYS = SimpleNamespace(
    exp=np.exp,
    log=np.log,
    log1p=np.log1p,
    sqrt=np.sqrt,
    ceil=np.ceil,
    lgamma=lambda x: special.gammaln(x),  # noqa: PLW0108 - SciPy is imported when it is called
    deviations=lambda level: -special.ndtri_exp(level),
    least=np.minimum,
    most=np.maximum,
    where=np.where,
    every=np.all,
)

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_STIRLING_FROM = 16.0  # from there on five terms of the series have all digits that a float has
_STIRLING_SERIES = (1 / 12, 1 / 360, 1 / 1260, 1 / 1680, 1 / 1188)
_LONGEST_FRACTION = 10**6  # the worst case, the median of 10**8 rows, takes 2,100 terms
# 32 terms are enough at levels below exp(-10), and a fraction that settles earlier stops earlier
_LENGTHS_OF_FRACTIONS = (33, 97, 289, 865, 2_593, _LONGEST_FRACTION)


def check_rows(rows: int) -> None:
    """Refuse a number of rows that no bound is defined for."""
    if rows < 1:
        raise InputError(f"rows must be at least 1; got {rows}; give the number of holdout rows")


def functions(x: Number) -> SimpleNamespace:
    """Return the mathematical functions for floats, or for arrays."""
    return _FLOATS if isinstance(x, float) else _ARRAYS


def solve_where(
    wanted: Number, solve: Callable[..., Number], otherwise: Number, *arguments: Number
) -> Number:
    """Solve the entries that are `wanted`, and return `otherwise` for the rest, which are degenerate cases."""
    if not isinstance(wanted, np.ndarray):
        return solve(*arguments) if wanted else otherwise
    result = np.array(np.broadcast_to(otherwise, wanted.shape), dtype=np.float64)
    if wanted.any():
        result[wanted] = solve(*(argument[wanted] for argument in arguments))
    return result


def pair(first: Number, second: Number) -> tuple[Number, Number]:
    """Return two floats, or two arrays of one shape."""
    if np.ndim(first) == 0 and np.ndim(second) == 0:
        return float(first), float(second)
    first, second = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    return first, second


# ---- tails and bounds on them


def tail_in_odds(log_odds: Number, x: Number, y: Number, constant: Number) -> tuple[Number, Number, Number]:
    """Return the log of ``P(X >= x)`` with its slope and curvature in the log-odds.

    The constant is ``excess(x + y) - excess(x) - excess(y)``.
    """
    held, p, q = _probabilities(log_odds)
    value, slope = _log_tail(x, y, p, q, constant)
    return value + x * (log_odds - held), slope, slope * (x * q - y * p - p - slope)


def chernoff_in_odds(log_odds: Number, x: Number, y: Number) -> tuple[Number, Number, Number]:
    """Return Chernoff's bound on the log of ``P(X >= x)``, with its slope and curvature in the log-odds."""
    held, p, q = _probabilities(log_odds)
    return x * (log_odds - held) - _divergence(x, y, p, q), x * q - y * p, -(x + y) * p * q


def tail_in_failures(y: Number, rows: Number, p: Number, q: Number) -> tuple[Number, Number, Number]:
    """Return the log of ``P(X >= rows - y)`` and its slope in the number of failures y; the curvature is set to 0."""
    # The derivative in the number of failures has no closed form; a difference is within about 1e-3 of it.
    h = functions(y).least(1e-3, 0.1 * (rows - y))
    whole = excess(rows)
    here, there = (_log_tail(rows - z, z, p, q, whole - excess(rows - z) - excess(z))[0] for z in (y, y + h))
    return here, (there - here) / h, y - y


def chernoff_in_failures(y: Number, rows: Number, p: Number, q: Number) -> tuple[Number, Number, Number]:
    """Return Chernoff's bound on the log of ``P(X >= rows - y)``, and its slope in the failures y."""
    x = rows - y
    return -_divergence(x, y, p, q), functions(y).log(x * q / (y * p)), y - y


def excess(x: Number) -> Number:
    """Return ``log(x!) - x log x + x``, 0 at 0: half the log of 2 pi x plus Stirling's error, without cancellation."""
    f = functions(x)
    big, small = f.most(x, _STIRLING_FROM), f.least(x, _STIRLING_FROM)
    i = 1.0 / (big * big)
    first, second, third, fourth, fifth = _STIRLING_SERIES
    series = (first - i * (second - i * (third - i * (fourth - i * fifth)))) / big
    far = _HALF_LOG_TWO_PI + 0.5 * f.log(big) + series
    near = f.lgamma(small + 1.0) - small * f.log(f.most(small, 1e-300)) + small
    return f.where(x < _STIRLING_FROM, near, far)


def _log_tail(x: Number, y: Number, p: Number, q: Number, constant: Number) -> tuple[Number, Number]:
    """Return the log of ``I_p(x, y + 1)`` and its derivative in the log-odds; valid from the tail's median outwards."""
    slope = _fraction(x, y + 1.0, p, q)
    return constant - _divergence(x, y, p, q) + functions(p).log(x * q / slope), slope


def _probabilities(log_odds: Number) -> tuple[Number, Number, Number]:
    """Return the log-odds clipped to +-600, where nothing underflows, and the two probabilities."""
    f = functions(log_odds)
    held = f.most(f.least(log_odds, 600.0), -600.0)
    odds = f.exp(held)
    return held, odds / (1.0 + odds), 1.0 / (1.0 + odds)


def _divergence(x: Number, y: Number, p: Number, q: Number) -> Number:
    """Return ``n kl(x/n, p)`` for x successes and y failures; no digits are lost where its two terms cancel."""
    log1p, most = functions(p).log1p, functions(p).most
    n, d = x + y, x * q - y * p
    return x * log1p(most(d / (n * p), -1.0 + EPS)) + y * log1p(most(-d / (n * q), -1.0 + EPS))


def _fraction(a: Number, b: Number, p: Number, q: Number) -> Number:
    """Return ``p^a q^b / (B(a, b) I_p(a, b))`` for ``a q >= b p - 1``; it uses more terms only if needed."""
    if isinstance(p, float):
        return _fraction_terms(a, b, p, q, _LONGEST_FRACTION)[0]
    result, left = np.empty_like(p), np.arange(p.size)
    for length in _LENGTHS_OF_FRACTIONS:
        result[left], settled = _fraction_terms(a[left], b[left], p[left], q[left], length)
        left = left[~settled]
        if not left.size:
            break
    return result


def _fraction_terms(a: Number, b: Number, p: Number, q: Number, length: int) -> tuple[Number, Number]:
    """Return Steed's sum of fewer than `length` terms, and True for each that has converged.

    Up to term b all denominators are positive.
    """
    every = functions(p).every
    drift = a * q - b * p + 1.0
    ab = a + b
    q1 = q + 1.0
    total = a * drift / (a + 1.0)
    inverse = delta = p - p
    for m in range(1, length):
        k = a + (2 * m - 1)
        t = m * p / k * (b - m)
        alpha = t * p / k * (a + (m - 1)) * (ab + (m - 1))
        beta = t + m + (a + m) * (drift + m * q1) / (k + 2.0)
        inverse = 1.0 / (beta + alpha * inverse)
        # the first correction is alpha / beta, every later one (beta * inverse - 1) times the one before
        delta = alpha * inverse if m == 1 else delta * (beta * inverse - 1.0)
        total = total + delta
        settled = abs(delta) <= EPS * total
        if every(settled):
            break
    return total, settled


# ---- where a log tail meets its level


def climb(
    evaluate: Callable[..., tuple[Number, Number, Number]],
    position: Number,
    level: Number,
    *parameters: Number,
    positive: bool = False,
    tolerance: float = 1e-5,
) -> Number:
    """Return the root of an increasing concave function by Newton's method with its curvature (Halley).

    Because of concavity Newton's first step ends below the root, and later steps go upwards; the curvature
    shortens a step or at most doubles it. From a gap of at most ``tolerance`` a step is exact to rounding. If
    positions must be ``positive``, a step goes at most seven eighths of the way to 0. If 100 steps are not
    enough, the result is the smallest possible position: then a bound is vacuous, but never wrong.
    """
    f = functions(position)
    for _ in range(100):
        value, slope, curvature = evaluate(position, *parameters)
        gap = level - value
        step = gap / slope
        moved = position + step / f.most(1.0 + 0.5 * curvature * step / slope, 0.5)
        position = f.most(moved, 0.125 * position) if positive else moved
        # a step that was cut short has not come to the lower side
        near = (abs(gap) <= tolerance) & (position == moved)
        settled = near | (abs(step) <= 4.0 * EPS * abs(position))
        if f.every(settled):
            return position
        if isinstance(settled, np.ndarray) and 2 * np.count_nonzero(settled) > settled.size:
            left = ~settled
            rest = (array[left] for array in (position, level, *parameters))
            position[left] = climb(evaluate, *rest, positive=positive, tolerance=tolerance)
            return position
    return f.least(position, 0.0 if positive else -math.inf)


def solve_binomial(x: Number, y: Number, level: Number) -> Number:
    """Return the probability p at which P(X >= x) of x + y trials equals the level; x >= 1, rounded down."""
    level = level - margin(x + y, level)
    constant = excess(x + y) - excess(x) - excess(y)
    return _deflated(climb(tail_in_odds, _near_log_odds(x - 0.5, y + 0.5, level), level, x, y, constant))


def solve_chernoff(x: Number, y: Number, level: Number) -> Number:
    """Return the probability at which Chernoff's bound on P(X >= x) of x + y trials equals the level, rounded down."""
    level = level - margin(x + y, level)
    return _deflated(climb(chernoff_in_odds, _score_log_odds(x, y, -level), level, x, y))


def solve_chernoff_reach(p: Number, rows: Number, level: Number) -> Number:
    """Return the number of failures, not always whole, at which Chernoff's bound equals the level."""
    f = functions(p)
    q = 1.0 - p
    # at levels up to a half the root leaves more than 1e-3 successes for every probability a float can hold
    start = f.most(rows * q - f.sqrt(-2.0 * rows * level * p * q), 0.125 * rows * q)
    start = f.least(start, rows - 1e-3)
    return climb(chernoff_in_failures, start, level, rows, p, q, positive=True, tolerance=1e-7)


def solve_binomial_reach(p: Number, rows: Number, level: Number) -> Number:
    """Return the real number y for which the probability of at most y failures equals the level."""
    start = _near_failures(p, rows, level)
    return climb(tail_in_failures, start, level, rows, p, 1.0 - p, positive=True, tolerance=1e-6)


def _near_log_odds(x: Number, y: Number, level: Number) -> Number:
    """Return log-odds whose log tail is within about 1/n of its level.

    They begin as Wilson's bound, and are improved by Chernoff's, then by Lugannani and Rice's formula.
    """
    f = functions(level)
    deviations = f.deviations(level)
    exponent = f.most(0.5 * deviations * deviations, 1e-4)
    start = climb(chernoff_in_odds, _score_log_odds(x, y, exponent), -exponent, x, y, tolerance=1.0)
    value, slope, curvature = chernoff_in_odds(start, x, y)
    wanted = _saddlepoint_exponent(value, f.log(x / y) - start, x, y, deviations)
    step = (-wanted - value) / slope
    return start + step / f.most(1.0 + 0.5 * curvature * step / slope, 0.5)


def _near_failures(p: Number, rows: Number, level: Number) -> Number:
    """Return failures whose log tail is within about 1/n of its level, as :func:`_near_log_odds` does."""
    f = functions(p)
    deviations = f.deviations(level)
    exponent = f.least(f.most(0.5 * deviations * deviations, 1e-4), -0.9 * rows * f.log(p))
    start = f.most(solve_chernoff_reach(p, rows, -exponent) - 0.5, 0.1)  # less the continuity correction
    y = start + 0.5
    value, tilt, _ = chernoff_in_failures(y, rows, p, 1.0 - p)
    wanted = _saddlepoint_exponent(value, tilt, rows - y, y, deviations)
    step = (-wanted - value) / tilt
    moved = start + step / f.most(1.0 - 0.5 * rows / (y * (rows - y)) * step / tilt, 0.5)
    return f.least(f.most(moved, 0.125 * start), 0.5 * (start + rows))


def _saddlepoint_exponent(value: Number, tilt: Number, x: Number, y: Number, deviations: Number) -> Number:
    """Return the exponent of Chernoff's bound at which the tail itself is at its level, from a point nearby.

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
    """Return the log-odds of Wilson's lower score bound, a starting point; `exponent` is half a squared z."""
    f = functions(x)
    v, t = x / (x + y), exponent / (x + y)
    p = v * v / (v + t + f.sqrt(2.0 * t * v * (1.0 - v) + t * t))
    return f.log(p / f.most(1.0 - p, 1e-16))


def margin(rows: Number, level: Number) -> Number:
    """Return the largest rounding error of a computed log tail; equations are solved for a level lower by this much."""
    return 2e-15 * (8.0 - level + functions(level).sqrt(-rows * level))


def _deflated(log_odds: Number) -> Number:
    """Return the probability of these log-odds; rounding never raises it."""
    f = functions(log_odds)
    odds = f.exp(-abs(log_odds))
    rounding = EPS * (4.0 + 2.0 * f.least(f.most(-log_odds, 0.0), 1000.0))
    return f.exp(f.least(log_odds, 0.0)) / (1.0 + odds) * (1.0 - rounding)


def inflated(target: Number) -> Number:
    """Return the target raised by more than ``_deflated`` lowers it."""
    return target * (1.0 + EPS * (8.0 - 4.0 * functions(target).log(target)))


def mirrored(bound: Number) -> Number:
    """Return ``1 - bound``; rounding never lowers it."""
    return functions(bound).least((1.0 - bound) * (1.0 + 2.0 * EPS), 1.0)


def mirrored_target(target: Number) -> Number:
    """Return ``1 - target``, raised by more than the rounding of ``mirrored``; every value still reaches 1."""
    return functions(target).where(target >= 1.0, 0.0, 1.0 - target + 4.0 * EPS)
