"""Logs of binomial tails and of Chernoff's bound on them, with their derivatives.

The tail is ``P(X = x) x (1 - p) / s`` with a continued fraction ``s`` that is also the derivative of the log tail in
the log-odds: one fraction pays for value, slope and curvature. Seen in the log-odds of ``p``, or in the number of
failures, every function here is increasing and **concave**.

References
----------
.. [1] Didonato and Morris (1992), Algorithm 708, the continued fraction.
.. [2] Loader (2000), Fast and accurate computation of binomial probabilities, the prefactor.
"""

from __future__ import annotations

import math

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.validity.floats_and_arrays import EPS, Number, functions

__all__ = [
    "check_rows",
    "chernoff_in_failures",
    "chernoff_in_odds",
    "excess",
    "tail_in_failures",
    "tail_in_odds",
]

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_STIRLING_FROM = 16.0  # from there on five terms of the series have all digits that a float has
_LONGEST_FRACTION = 10**6  # the worst case, the median of 10**8 rows, takes 2,100 terms


def check_rows(rows: int) -> None:
    """Refuse a number of rows that no bound is defined for."""
    if rows < 1:
        msg = f"rows must be at least 1, {rows} came; give the number of holdout rows"
        raise InputError(msg)


def tail_in_odds(log_odds: Number, x: Number, y: Number, constant: Number) -> tuple[Number, Number, Number]:
    """Log of ``P(X >= x)`` in the log-odds; the constant is ``excess(x + y) - excess(x) - excess(y)``."""
    held, p, q = _probabilities(log_odds)
    value, slope = _log_tail(x, y, p, q, constant)
    return value + x * (log_odds - held), slope, slope * (x * q - y * p - p - slope)


def chernoff_in_odds(log_odds: Number, x: Number, y: Number) -> tuple[Number, Number, Number]:
    """Chernoff's bound on the log of ``P(X >= x)``, in the log-odds."""
    held, p, q = _probabilities(log_odds)
    return x * (log_odds - held) - _divergence(x, y, p, q), x * q - y * p, -(x + y) * p * q


def tail_in_failures(y: Number, rows: Number, p: Number, q: Number) -> tuple[Number, Number, Number]:
    """Log of ``P(X >= rows - y)`` in the number of failures y; its curvature is not worth having."""
    # The derivative in the number of failures has no closed form; a difference is within about 1e-3 of it.
    h = functions(y).least(1e-3, 0.1 * (rows - y))
    whole = excess(rows)
    here, there = (_log_tail(rows - z, z, p, q, whole - excess(rows - z) - excess(z))[0] for z in (y, y + h))
    return here, (there - here) / h, 0.0 * y


def chernoff_in_failures(y: Number, rows: Number, p: Number, q: Number) -> tuple[Number, Number, Number]:
    """Chernoff's bound on the log of ``P(X >= rows - y)``, in the number of failures y."""
    x = rows - y
    return -_divergence(x, y, p, q), functions(y).log(x * q / (y * p)), 0.0 * y


def excess(x: Number) -> Number:
    """``log(x!) - x log x + x``, 0 at 0: half the log of 2 pi x and Stirling's error, not cancelled."""
    f = functions(x)
    big, small = f.most(x, _STIRLING_FROM), f.least(x, _STIRLING_FROM)
    i = 1.0 / (big * big)
    series = (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i / 1188)))) / big
    far = _HALF_LOG_TWO_PI + 0.5 * f.log(big) + series
    near = f.lgamma(small + 1.0) - small * f.log(f.most(small, 1e-300)) + small
    return f.where(x < _STIRLING_FROM, near, far)


def _log_tail(x: Number, y: Number, p: Number, q: Number, constant: Number) -> tuple[Number, Number]:
    """Log of ``I_p(x, y + 1)`` and its derivative in the log-odds, from the median of the tail outwards."""
    slope = _fraction(x, y + 1.0, p, q)
    return constant - _divergence(x, y, p, q) + functions(p).log(x * q / slope), slope


def _probabilities(log_odds: Number) -> tuple[Number, Number, Number]:
    """Log-odds held within +-600, where nothing underflows, and the two probabilities."""
    f = functions(log_odds)
    held = f.most(f.least(log_odds, 600.0), -600.0)
    odds = f.exp(held)
    return held, odds / (1.0 + odds), 1.0 / (1.0 + odds)


def _divergence(x: Number, y: Number, p: Number, q: Number) -> Number:
    """``n kl(x/n, p)`` for x successes and y failures; no digits are lost where its two terms cancel."""
    log1p, most = functions(p).log1p, functions(p).most
    n, d = x + y, x * q - y * p
    return x * log1p(most(d / (n * p), -1.0 + EPS)) + y * log1p(most(-d / (n * q), -1.0 + EPS))


def _fraction(a: Number, b: Number, p: Number, q: Number) -> Number:
    """``p^a q^b / (B(a, b) I_p(a, b))`` for ``a q >= b p - 1``; more terms only where they are needed."""
    if isinstance(p, float):
        return _fraction_terms(a, b, p, q, _LONGEST_FRACTION)[0]
    terms = 32  # enough at levels below exp(-10), and a fraction that settles earlier stops earlier
    result, delta = _fraction_terms(a, b, p, q, terms)
    left = np.flatnonzero(abs(delta) > EPS * result)
    while left.size and terms < _LONGEST_FRACTION:
        terms *= 3
        result[left], delta = _fraction_terms(a[left], b[left], p[left], q[left], terms)
        left = left[abs(delta) > EPS * result[left]]
    return result


def _fraction_terms(a: Number, b: Number, p: Number, q: Number, terms: int) -> tuple[Number, Number]:
    """Steed's sum of the fraction and its last term; up to term b everything under a bar is positive."""
    every = functions(p).every
    drift = a * q - b * p + 1.0
    ab = a + b
    q1 = q + 1.0
    total = a * drift / (a + 1.0)
    inverse = delta = 0.0 * p
    for m in range(1, terms + 1):
        k = a + (2 * m - 1)
        t = m * p / k * (b - m)
        alpha = t * p / k * (a + (m - 1)) * (ab + (m - 1))
        beta = t + m + (a + m) * (drift + m * q1) / (k + 2.0)
        inverse = 1.0 / (beta + alpha * inverse)
        # the first correction is alpha / beta, every later one (beta * inverse - 1) times the one before
        delta = alpha * inverse if m == 1 else delta * (beta * inverse - 1.0)
        total = total + delta
        if every(abs(delta) <= EPS * total):
            break
    return total, delta
