"""One-sided confidence bounds whose levels are logarithms: ``exp(-2000)`` is as good a level as 0.05.

Three families, one per kind of query: exact binomial (Clopper-Pearson) for means of 0/1 losses, kl-Chernoff
for means of losses in [0, 1], McDiarmid for bounded differences. ``*_lower`` and ``*_upper`` bound the
population value from an observed one; ``*_reach_low`` and ``*_reach_high`` go back, from a bound to the
observation it needs.

Every equation is ``g(position) = log_level`` with ``g`` increasing and **concave**: the log of a binomial
tail (or of Chernoff's bound on it), seen in the log-odds of ``p`` or in the number of failures. There
Newton's method falls short of the root from wherever it starts, which is the conservative side, and needs no
bracket. The tail is ``P(X = x) x (1 - p) / s`` with a continued fraction ``s`` that is also the derivative of
the log tail in the log-odds: one fraction pays for value, slope and curvature. The same lines serve floats
and arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ConfidenceBound",
    "binomial_lower",
    "binomial_reach_high",
    "binomial_reach_low",
    "binomial_upper",
    "chernoff_lower",
    "chernoff_reach_high",
    "chernoff_reach_low",
    "chernoff_upper",
    "log_binomial_tail",
    "mcdiarmid_width",
]

_Real = TypeVar("_Real", float, npt.NDArray[np.float64])
_Number: TypeAlias = Any  # a float, or an array of floats; no line below depends on which

_Family: TypeAlias = Literal["binomial", "bounded", "bounded-difference"]

_EPS = 2.0**-52
_LOG_HALF = math.log(0.5)
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_LONGEST_FRACTION = 10**6  # the worst case, the median of 10**8 rows, takes 2,100 terms


# What differs between a float and an array; a standard Gaussian exceeds ``deviations`` at a log level.
_FLOATS = SimpleNamespace(
    exp=math.exp,
    log=math.log,
    log1p=math.log1p,
    sqrt=math.sqrt,
    ceil=math.ceil,
    lgamma=math.lgamma,
    deviations=lambda level: -float(special.ndtri_exp(level)),
    least=lambda a, b: a if a < b else b,
    most=lambda a, b: a if a > b else b,
    where=lambda condition, a, b: a if condition else b,
    every=bool,
)
_ARRAYS = SimpleNamespace(
    exp=np.exp,
    log=np.log,
    log1p=np.log1p,
    sqrt=np.sqrt,
    ceil=np.ceil,
    lgamma=special.gammaln,
    deviations=lambda level: -special.ndtri_exp(level),
    least=np.minimum,
    most=np.maximum,
    where=np.where,
    every=np.all,
)


def _functions(x: _Number) -> SimpleNamespace:
    return _FLOATS if isinstance(x, float) else _ARRAYS


def _solve_where(
    wanted: _Number, solve: Callable[..., _Number], otherwise: _Number, *arguments: _Number
) -> _Number:
    """Solve where wanted and answer otherwise elsewhere, so that solvers never meet a degenerate case."""
    if not isinstance(wanted, np.ndarray):
        return solve(*arguments) if wanted else otherwise
    result = np.array(np.broadcast_to(otherwise, wanted.shape), dtype=np.float64)
    if wanted.any():
        result[wanted] = solve(*(argument[wanted] for argument in arguments))
    return result


# ---- log tails and their derivatives


def _climb(
    evaluate: Callable[..., tuple[_Number, _Number, _Number]],
    position: _Number,
    level: _Number,
    *parameters: _Number,
    bottom: float = -math.inf,
    tolerance: float = 1e-5,
) -> _Number:
    """Root of an increasing concave function by Newton's method with its curvature (Halley).

    Concavity brings Newton's step to the lower side of the root, and upwards from there on; the curvature
    shortens or at most doubles it. After a gap of ``tolerance`` the step is exact to rounding. Where the
    domain ends at a ``bottom`` of 0, a step goes at most seven eighths of the way there. Should 100 steps not
    do, the answer is the bottom, which makes bounds vacuous, never wrong.
    """
    f = _functions(position)
    for _ in range(100):
        value, slope, curvature = evaluate(position, *parameters)
        gap = level - value
        step = gap / slope
        moved = position + step / f.most(1.0 + 0.5 * curvature * step / slope, 0.5)
        position = moved if bottom < 0.0 else f.most(moved, 0.125 * position)
        settled = (abs(gap) <= tolerance) | (abs(step) <= 4.0 * _EPS * abs(position))
        if f.every(settled):
            return position
        if isinstance(settled, np.ndarray) and 2 * np.count_nonzero(settled) > settled.size:
            left = ~settled
            rest = (array[left] for array in (position, level, *parameters))
            position[left] = _climb(evaluate, *rest, bottom=bottom, tolerance=tolerance)
            return position
    return f.least(position, bottom)


def _fraction(a: _Number, b: _Number, p: _Number, q: _Number) -> _Number:
    """``p^a q^b / (B(a, b) I_p(a, b))`` for ``a q >= b p - 1``; more terms only where they are needed."""
    if isinstance(p, float):
        return _fraction_terms(a, b, p, q, _LONGEST_FRACTION)[0]
    terms = 12
    result, delta = _fraction_terms(a, b, p, q, terms)
    left = np.flatnonzero(abs(delta) > _EPS * result)
    while left.size and terms < _LONGEST_FRACTION:
        terms *= 3
        result[left], delta = _fraction_terms(a[left], b[left], p[left], q[left], terms)
        left = left[abs(delta) > _EPS * result[left]]
    return result


def _fraction_terms(a: _Number, b: _Number, p: _Number, q: _Number, terms: int) -> tuple[_Number, _Number]:
    """Steed's sum of the fraction and its last term; up to term b everything under a bar is positive."""
    every = _functions(p).every
    drift = a * q - b * p + 1.0
    ab = a + b
    q1 = q + 1.0
    total = a * drift / (a + 1.0)
    inverse = 0.0 * p
    delta = -1.0 + inverse
    for m in range(1, terms + 1):
        k = a + (2 * m - 1)
        t = m * p / k * (b - m)
        alpha = t * p / k * (a + (m - 1)) * (ab + (m - 1))
        beta = t + m + (a + m) * (drift + m * q1) / (k + 2.0)
        inverse = 1.0 / (beta + alpha * inverse)
        # the first correction is alpha / beta, every later one (beta * inverse - 1) times the one before
        delta = alpha * inverse if m == 1 else delta * (beta * inverse - 1.0)
        total = total + delta
        if every(abs(delta) <= _EPS * total):
            break
    return total, delta


def _excess(x: _Number) -> _Number:
    """``log(x!) - x log x + x``, 0 at 0: half the log of 2 pi x and Stirling's error, not cancelled."""
    f = _functions(x)
    big, small = f.most(x, 16.0), f.least(x, 16.0)
    i = 1.0 / (big * big)
    series = (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i / 1188)))) / big
    far = _HALF_LOG_TWO_PI + 0.5 * f.log(big) + series
    near = f.lgamma(small + 1.0) - small * f.log(f.most(small, 1e-300)) + small
    return f.where(x < 16.0, near, far)


def _divergence(x: _Number, y: _Number, p: _Number, q: _Number) -> _Number:
    """``n kl(x/n, p)`` for x successes and y failures; no digits are lost where its two terms cancel."""
    log1p, most = _functions(p).log1p, _functions(p).most
    n, d = x + y, x * q - y * p
    return x * log1p(most(d / (n * p), -1.0 + _EPS)) + y * log1p(most(-d / (n * q), -1.0 + _EPS))


def _log_tail(x: _Number, y: _Number, p: _Number, q: _Number, constant: _Number) -> tuple[_Number, _Number]:
    """Log of ``I_p(x, y + 1)`` and its derivative in the log-odds, from the median of the tail outwards."""
    slope = _fraction(x, y + 1.0, p, q)
    return constant - _divergence(x, y, p, q) + _functions(p).log(x * q / slope), slope


def _tail_in_odds(
    log_odds: _Number, x: _Number, y: _Number, constant: _Number
) -> tuple[_Number, _Number, _Number]:
    held, p, q = _probabilities(log_odds)
    value, slope = _log_tail(x, y, p, q, constant)
    return value + x * (log_odds - held), slope, slope * (x * q - y * p - p - slope)


def _chernoff_in_odds(log_odds: _Number, x: _Number, y: _Number) -> tuple[_Number, _Number, _Number]:
    held, p, q = _probabilities(log_odds)
    return x * (log_odds - held) - _divergence(x, y, p, q), x * q - y * p, -(x + y) * p * q


def _tail_in_failures(y: _Number, rows: _Number, p: _Number, q: _Number) -> tuple[_Number, _Number, _Number]:
    # The derivative in the number of failures has no closed form; a difference is within about 1e-3 of it.
    h = _functions(y).least(1e-3, 0.1 * (rows - y))
    here, there = (
        _log_tail(rows - z, z, p, q, _excess(rows) - _excess(rows - z) - _excess(z))[0] for z in (y, y + h)
    )
    return here, (there - here) / h, 0.0 * y


def _chernoff_in_failures(
    y: _Number, rows: _Number, p: _Number, q: _Number
) -> tuple[_Number, _Number, _Number]:
    x = rows - y
    return -_divergence(x, y, p, q), _functions(y).log(x * q / (y * p)), 0.0 * y


def _either_tail(x: _Number, y: _Number, p: _Number) -> _Number:
    """Log of the tail from whichever of the two tails is the smaller."""
    f = _functions(p)
    q, held = 1.0 - p, f.most(p, 1e-250)  # below, the tail is a power of p to more digits than a float has
    upper = x * q >= (y + 1.0) * p
    a, b = f.where(upper, x, y + 1.0), f.where(upper, y + 1.0, x)
    fraction = _fraction(a, b, f.where(upper, held, q), f.where(upper, q, held))
    log_density = _excess(x + y) - _excess(x) - _excess(y) - _divergence(x, y, held, q)
    tail = log_density + f.log(x * q / fraction) + x * (f.log(p) - f.log(held))
    return f.where(upper, tail, f.log1p(-f.exp(f.least(tail, -1e-300))))


def _probabilities(log_odds: _Number) -> tuple[_Number, _Number, _Number]:
    """Log-odds held within +-600, where nothing underflows, and the two probabilities."""
    f = _functions(log_odds)
    held = f.most(f.least(log_odds, 600.0), -600.0)
    odds = f.exp(held)
    return held, odds / (1.0 + odds), 1.0 / (1.0 + odds)


# ---- checks and rounding


def _checked(value: _Number, log_level: _Number, rows: int) -> tuple[_Number, _Number]:
    """Two floats, or two arrays of one shape; refuses what no bound is defined for."""
    _check_rows(rows)
    value, level = _pair(value, log_level)
    every = _functions(level).every
    if not every((level > -1e100) & (level <= _LOG_HALF)):
        msg = "log_level must be the natural log of a level in (0, 0.5]; give log(0.05), not 0.05"
        raise InputError(msg)
    if not every(value == value):  # noqa: PLR0124 - NaN alone differs from itself
        msg = "observed values and targets must be numbers, NaN came; leave them out"
        raise InputError(msg)
    return value, level


def _pair(first: _Number, second: _Number) -> tuple[_Number, _Number]:
    if np.ndim(first) == 0 and np.ndim(second) == 0:
        return float(first), float(second)
    first, second = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    return first, second


def _check_rows(rows: int) -> None:
    if rows < 1:
        msg = f"rows must be at least 1, {rows} came; give the number of holdout rows"
        raise InputError(msg)


def _margin(rows: _Number, level: _Number) -> _Number:
    """How far rounding can carry a computed log tail; equations are solved for a level lower by this much."""
    return 2e-15 * (8.0 - level + _functions(level).sqrt(-rows * level))


def _counting_slack(rows: float) -> float:
    """How far ``rows * value`` can lie above the whole number it stands for."""
    return 1e-9 + 2.0 * _EPS * rows


def _deflated(log_odds: _Number) -> _Number:
    """Probability of these log-odds, never above it by rounding."""
    f = _functions(log_odds)
    odds = f.exp(-abs(log_odds))
    rounding = _EPS * (4.0 + 2.0 * f.least(f.most(-log_odds, 0.0), 1000.0))
    return f.where(log_odds < 0.0, odds, 1.0) / (1.0 + odds) * (1.0 - rounding)


def _inflated(target: _Number) -> _Number:
    """Target raised by more than ``_deflated`` takes away."""
    return target * (1.0 + _EPS * (8.0 - 4.0 * _functions(target).log(target)))


def _mirrored(bound: _Number) -> _Number:
    """``1 - bound``, never below it by rounding."""
    return _functions(bound).least((1.0 - bound) * (1.0 + 2.0 * _EPS), 1.0)


def _mirrored_target(target: _Number) -> _Number:
    """``1 - target`` raised by more than ``_mirrored`` gives; every value still reaches 1."""
    return _functions(target).where(target >= 1.0, 0.0, 1.0 - target + 4.0 * _EPS)


def _score_log_odds(x: _Number, y: _Number, exponent: _Number) -> _Number:
    """Log-odds of Wilson's lower score bound, a place to start; the exponent is half a squared z."""
    f = _functions(x)
    v, t = x / (x + y), exponent / (x + y)
    p = v * v / (v + t + f.sqrt(2.0 * t * v * (1.0 - v) + t * t))
    return f.log(p / f.most(1.0 - p, 1e-16))


def _solve_binomial(x: _Number, y: _Number, level: _Number) -> _Number:
    f = _functions(level)
    level = level - _margin(x + y, level)
    exponent = f.most(0.5 * f.deviations(level) ** 2, 1e-4)
    start = _score_log_odds(x - 0.5, y + 0.5, exponent)
    start = _climb(_chernoff_in_odds, start, -exponent, x - 0.5, y + 0.5, tolerance=0.1)
    return _deflated(_climb(_tail_in_odds, start, level, x, y, _excess(x + y) - _excess(x) - _excess(y)))


def _solve_chernoff(x: _Number, y: _Number, level: _Number) -> _Number:
    level = level - _margin(x + y, level)
    return _deflated(_climb(_chernoff_in_odds, _score_log_odds(x, y, -level), level, x, y))


def _solve_reach(p: _Number, rows: _Number, level: _Number, half: float = 0.0) -> _Number:
    """Failures at which Chernoff's bound is at its level; half a row is the continuity correction."""
    f = _functions(p)
    q = 1.0 - p
    # at levels up to a half the root leaves more than 1e-3 successes for every probability a float can hold
    start = f.most(rows * q - f.sqrt(-2.0 * rows * level * p * q), 0.125 * rows * q)
    start = f.least(start, rows - 1e-3)
    failures = _climb(_chernoff_in_failures, start, level, rows, p, q, bottom=0.0, tolerance=1e-7)
    return f.most(failures - half, 0.2 * half)


def _solve_binomial_reach(p: _Number, rows: _Number, level: _Number) -> _Number:
    f = _functions(p)
    exponent = f.least(f.most(0.5 * f.deviations(level) ** 2, 1e-4), -0.9 * rows * f.log(p))
    start = _solve_reach(p, rows, -exponent, half=0.5)
    return _climb(_tail_in_failures, start, level, rows, p, 1.0 - p, bottom=0.0, tolerance=1e-6)


def _reach_low(
    solve: Callable[..., _Number],
    target: _Number,
    rows: int,
    log_level: _Number,
    *,
    accuracy: float,
    slack: float,
) -> _Number:
    """Value whose lower bound is the target; infinite where none is, or where every one is."""
    target, level = _checked(target, log_level, rows)
    f = _functions(target)
    level = level - 2.0 * _margin(float(rows), level) - accuracy
    inside = f.least(f.most(target, 1e-300), 1.0)
    p = _inflated(inside)
    possible = (p < 1.0) & (rows * f.log(p) <= level)
    otherwise = f.where(target <= 0.0, -math.inf, math.inf)
    failures = _solve_where((target > 0.0) & possible, solve, -otherwise, p, 0.0 * p + rows, level)
    return f.where(abs(failures) < math.inf, f.least((rows - failures) / rows + slack, 1.0), -failures)


# ---- what is public


def log_binomial_tail(successes: _Real | float, *, rows: int, probability: _Real | float) -> _Real:
    """Natural log of ``P(Binomial(rows, probability) >= successes)``.

    Relative error below 1e-9 wherever the log is below -1e-3, also where the tail itself underflows.

    Parameters
    ----------
    successes : float or array
        Any real number; between whole numbers the regularised incomplete beta ``I_p(x, rows - x + 1)``.
    rows : int
        Number of trials, >= 1.
    probability : float or array
        Chance of one success, in [0, 1].

    Raises
    ------
    InputError
        If rows is below 1, a number is NaN, or a probability lies outside [0, 1].

    References
    ----------
    .. [1] Didonato and Morris (1992), Algorithm 708, the continued fraction.
    .. [2] Loader (2000), Fast and accurate computation of binomial probabilities, the prefactor.

    Examples
    --------
    >>> round(log_binomial_tail(990, rows=1000, probability=0.1), 6)
    -2226.683728
    """
    _check_rows(rows)
    x, p = _pair(successes, probability)
    f = _functions(p)
    if not (f.every((p >= 0.0) & (p <= 1.0)) and f.every(x == x)):  # noqa: PLR0124 - false for NaN
        msg = "successes must be numbers and probabilities must lie in [0, 1]; correct them"
        raise InputError(msg)
    inside = (x > 0.0) & (x <= rows) & (p > 0.0) & (p < 1.0)
    outside = f.where((x <= 0.0) | ((p >= 1.0) & (x <= rows)), 0.0, -math.inf)
    return cast("_Real", _solve_where(inside, _either_tail, outside, x, rows - x, p))


def binomial_lower(value: _Real | float, *, rows: int, log_level: _Real | float) -> _Real:
    """Exact (Clopper-Pearson) lower confidence bound for a mean of 0/1 losses.

    The population mean lies below it with probability at most ``exp(log_level)``; rounding only lowers it.

    Parameters
    ----------
    value : float or array
        What the observed mean is at least; rounded up to a multiple of 1/rows, and clipped to [0, 1].
    rows : int
        Number of losses, >= 1.
    log_level : float or array
        Natural log of the one-sided level; finite, at most log(0.5).

    Returns
    -------
    float or array
        In [0, 1], 0 if no loss is 1; an array, of the broadcast shape, if an argument is one.

    Raises
    ------
    InputError
        If rows is below 1, a level lies outside (0, 0.5], or a value is NaN.

    Notes
    -----
    With ``x = ceil(rows * value)`` less a slack of 1e-9 + 2^-51 rows for rounding, solves
    ``log P(Bin(rows, p) >= x) = log_level`` for p; falls short of the solution by less than 1e-12.

    References
    ----------
    .. [1] Clopper and Pearson (1934).

    Examples
    --------
    >>> round(binomial_lower(0.9, rows=100, log_level=math.log(0.025)), 6)
    0.823777
    """
    value, level = _checked(value, log_level, rows)
    f = _functions(value)
    value = f.least(f.most(value, 0.0), 1.0)
    x = f.ceil(rows * value - _counting_slack(rows)) + 0.0
    return cast("_Real", _solve_where(x > 0.0, _solve_binomial, 0.0, x, rows - x, level))


def binomial_upper(value: _Real | float, *, rows: int, log_level: _Real | float) -> _Real:
    """Exact (Clopper-Pearson) upper confidence bound, the mirror image of :func:`binomial_lower`.

    The population mean lies above it with probability at most ``exp(log_level)``; rounding only raises it.

    Examples
    --------
    >>> round(binomial_upper(0.9, rows=100, log_level=math.log(0.025)), 6)
    0.950995
    """
    return cast("_Real", _mirrored(binomial_lower(1.0 - value, rows=rows, log_level=log_level)))


def binomial_reach_low(target: _Real | float, *, rows: int, log_level: _Real | float) -> _Real:
    """Observed mean of 0/1 losses from which on :func:`binomial_lower` reaches a target.

    Every value from the result on has a lower bound of at least the target; the smallest such value lies less
    than 1/rows below.

    Parameters
    ----------
    target : float or array
        What the lower bound shall reach; 1e-300 if it is positive and less than that.
    rows, log_level
        As in :func:`binomial_lower`.

    Returns
    -------
    float or array
        In [0, 1]; -inf where every value will do (target <= 0), +inf where none will.

    Raises
    ------
    InputError
        As :func:`binomial_lower`.

    Notes
    -----
    Solves ``log I_target(x, rows - x + 1) = log_level`` for a real x; the result is ``x / rows``, rounded up.

    Examples
    --------
    >>> round(binomial_reach_low(0.823777, rows=100, log_level=math.log(0.025)), 6)
    0.9
    """
    slack = 2.0 * _counting_slack(rows) / rows
    return cast(
        "_Real", _reach_low(_solve_binomial_reach, target, rows, log_level, accuracy=2e-9, slack=slack)
    )


def binomial_reach_high(target: _Real | float, *, rows: int, log_level: _Real | float) -> _Real:
    """Observed mean of 0/1 losses up to which :func:`binomial_upper` stays within a target.

    The mirror image of :func:`binomial_reach_low`: +inf where every value will do (target >= 1), -inf where
    none will.

    Examples
    --------
    >>> round(binomial_reach_high(0.950995, rows=100, log_level=math.log(0.025)), 6)
    0.9
    """
    return cast("_Real", 1.0 - binomial_reach_low(_mirrored_target(target), rows=rows, log_level=log_level))


def chernoff_lower(value: _Real | float, *, rows: int, log_level: _Real | float) -> _Real:
    """Lower confidence bound for a mean of independent losses in [0, 1], whatever their distribution.

    The population mean lies below it with probability at most ``exp(log_level)``; rounding only lowers it.

    Parameters
    ----------
    value, rows, log_level
        As in :func:`binomial_lower`, without rounding to multiples of 1/rows.

    Returns
    -------
    float or array
        In [0, 1], never above :func:`binomial_lower`.

    Raises
    ------
    InputError
        As :func:`binomial_lower`.

    Notes
    -----
    Solves ``rows * kl(value, u) = -log_level`` for ``u < value``.

    References
    ----------
    .. [1] Hoeffding (1963), Theorem 1, inequality (2.1).

    Examples
    --------
    >>> round(chernoff_lower(0.9, rows=100, log_level=math.log(0.025)), 6)
    0.799682
    """
    value, level = _checked(value, log_level, rows)
    f = _functions(value)
    value = f.least(f.most(value, 0.0), 1.0)
    return cast(
        "_Real", _solve_where(value > 1e-100, _solve_chernoff, 0.0, rows * value, rows * (1.0 - value), level)
    )


def chernoff_upper(value: _Real | float, *, rows: int, log_level: _Real | float) -> _Real:
    """Upper confidence bound for a mean of losses in [0, 1], the mirror image of :func:`chernoff_lower`.

    The population mean lies above it with probability at most ``exp(log_level)``; rounding only raises it.

    Examples
    --------
    >>> round(chernoff_upper(0.9, rows=100, log_level=math.log(0.025)), 6)
    0.962052
    """
    return cast("_Real", _mirrored(chernoff_lower(1.0 - value, rows=rows, log_level=log_level)))


def chernoff_reach_low(target: _Real | float, *, rows: int, log_level: _Real | float) -> _Real:
    """Smallest observed mean whose :func:`chernoff_lower` reaches a target.

    Rounded upwards; infinite as in :func:`binomial_reach_low`, whose parameters it has.

    Examples
    --------
    >>> round(chernoff_reach_low(0.799682, rows=100, log_level=math.log(0.025)), 6)
    0.9
    """
    return cast("_Real", _reach_low(_solve_reach, target, rows, log_level, accuracy=0.0, slack=4.0 * _EPS))


def chernoff_reach_high(target: _Real | float, *, rows: int, log_level: _Real | float) -> _Real:
    """Largest observed mean whose :func:`chernoff_upper` stays within a target.

    Rounded downwards; infinite as in :func:`binomial_reach_high`.

    Examples
    --------
    >>> round(chernoff_reach_high(0.962052, rows=100, log_level=math.log(0.025)), 6)
    0.9
    """
    return cast("_Real", 1.0 - chernoff_reach_low(_mirrored_target(target), rows=rows, log_level=log_level))


def mcdiarmid_width(*, sum_of_squares: _Real | float, log_level: _Real | float) -> _Real:
    """One-sided width of the bounded-difference confidence bound.

    A statistic whose row r moves it by at most c_r exceeds its mean by this much with probability at most
    ``exp(log_level)``.

    Parameters
    ----------
    sum_of_squares : float or array
        Sum over the rows of c_r squared, in the squared unit of the statistic; >= 0.
    log_level : float or array
        Natural log of the one-sided level; at most 0.

    References
    ----------
    .. [1] McDiarmid (1989), Lemma 1.2.

    Examples
    --------
    >>> round(mcdiarmid_width(sum_of_squares=0.01, log_level=math.log(0.025)), 6)
    0.13581
    """
    squares, level = _pair(sum_of_squares, log_level)
    f = _functions(level)
    if not (f.every(level <= 0.0) and f.every(squares >= 0.0)):
        msg = "sum_of_squares must be >= 0 and log_level the natural log of a level in (0, 1]; correct them"
        raise InputError(msg)
    return cast("_Real", f.sqrt(-0.5 * level * squares))


@dataclass(frozen=True, slots=True)
class ConfidenceBound:
    """The confidence bound of one query, for its statistic normalised to [0, 1].

    Each side misses the population value with probability at most ``exp(log_level)``.

    Parameters
    ----------
    family : {"binomial", "bounded", "bounded-difference"}
        Mean of 0/1 losses (exact binomial), mean of losses in [0, 1] (kl-Chernoff), bounded differences
        (McDiarmid).
    rows : int
        Number of holdout rows, >= 1.
    sum_of_squares : float
        Sum over the rows of the squared largest change of the normalised statistic when that row is replaced;
        only "bounded-difference" reads it.

    Raises
    ------
    InputError
        If the family is unknown, rows is below 1 or sum_of_squares is negative.

    Examples
    --------
    >>> bound = ConfidenceBound("bounded-difference", rows=100, sum_of_squares=0.01)
    >>> round(bound.lower(0.9, log_level=math.log(0.025)), 6)
    0.76419
    """

    family: _Family
    rows: int
    sum_of_squares: float

    def __post_init__(self) -> None:
        _check_rows(self.rows)
        if self.family not in get_args(_Family):
            msg = f"family must be one of {', '.join(get_args(_Family))}, {self.family!r} came; correct it"
            raise InputError(msg)
        mcdiarmid_width(sum_of_squares=self.sum_of_squares, log_level=0.0)

    def lower(self, value: _Real | float, *, log_level: _Real | float) -> _Real:
        """Lower bound for the population value, in [0, 1], when the observed one is at least this."""
        if self.family == "binomial":
            return binomial_lower(value, rows=self.rows, log_level=log_level)
        if self.family == "bounded":
            return chernoff_lower(value, rows=self.rows, log_level=log_level)
        value, level = _checked(value, log_level, self.rows)
        f = _functions(value)
        value = f.least(f.most(value, 0.0), 1.0)
        return cast("_Real", f.most(value - self._width(level), 0.0))

    def upper(self, value: _Real | float, *, log_level: _Real | float) -> _Real:
        """Upper bound for the population value, in [0, 1], when the observed one is at most this."""
        return cast("_Real", _mirrored(self.lower(1.0 - value, log_level=log_level)))

    def reach_low(self, target: _Real | float, *, log_level: _Real | float) -> _Real:
        """Observed value from which on ``lower`` reaches the target; -inf: always, +inf: never."""
        if self.family == "binomial":
            return binomial_reach_low(target, rows=self.rows, log_level=log_level)
        if self.family == "bounded":
            return chernoff_reach_low(target, rows=self.rows, log_level=log_level)
        target, level = _checked(target, log_level, self.rows)
        f = _functions(target)
        needed = target + self._width(level) + 2.0 * _EPS
        needed = f.where((needed > 1.0) | (target >= 1.0), math.inf, needed)
        return cast("_Real", f.where(target <= 0.0, -math.inf, needed))

    def reach_high(self, target: _Real | float, *, log_level: _Real | float) -> _Real:
        """Observed value up to which ``upper`` stays within the target; +inf: always, -inf: never."""
        return cast("_Real", 1.0 - self.reach_low(_mirrored_target(target), log_level=log_level))

    def _width(self, level: _Number) -> _Number:
        return mcdiarmid_width(sum_of_squares=self.sum_of_squares, log_level=level) * (1.0 + 4.0 * _EPS)
