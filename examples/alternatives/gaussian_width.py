"""The best half-widths for adaptively chosen means with Gaussian noise, for comparison with a plan.

Every query is a mean over the holdout's rows of values in [0, 1], chosen with all earlier answers in view. Widths are
fractions of the range, and hold for all queries at once with probability ``1 - beta``. A width of 1 says nothing.

There are four analyses of *Gaussian noise* of standard deviation s on every answer. Two use differential privacy
(:mod:`~alternatives.transfer`), one uses mutual information, and one uses the conditional distribution of the rows
given the answers. Each is minimised over s and over its own free numbers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from alternatives.transfer import bassily_error, transfer_error
from reusable_holdout.deferred import optimize, special
from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import gaussian_delta

__all__ = ["GaussianAnalysis", "GaussianWidth", "gaussian_width"]

GaussianAnalysis: TypeAlias = Literal["best", "bassily", "transfer", "information", "conditional"]

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class GaussianWidth(NamedTuple):
    """A half-width, the standard deviation of the noise that gives it (fractions of the range), and the analysis."""

    half_width: float
    noise: float
    analysis: GaussianAnalysis


@lru_cache(maxsize=1024)
def gaussian_width(
    *, rows: int, queries: int, beta: float, analysis: GaussianAnalysis = "best"
) -> GaussianWidth:
    """Compute the half-width of means answered with Gaussian noise, at the best noise.

    With probability at least ``1 - beta`` all answers are within it of the population values, however the queries
    were chosen.

    Parameters
    ----------
    rows : int
        Holdout rows n, >= 1, independent draws from the population.
    queries : int
        Adaptively chosen queries K, >= 1.
    beta : float
        Failure probability of everything together, in (0, 1).
    analysis : {"best", "bassily", "transfer", "information", "conditional"}
        The proof to use; "best" uses the one with the smallest width.

    Raises
    ------
    InputError
        If a number is out of its range, or the analysis is unknown.

    Notes
    -----
    With noise s all answers together are m-Gaussian-private, ``m = sqrt(K) / (n s)``, and ``z(p)`` is the normal
    distribution's upper quantile.

    *bassily*, *transfer*: sample error ``s z(b / 2K)`` with failure b, the exact delta(epsilon) of m-Gaussian privacy,
    into :func:`bassily_error` and :func:`transfer_error`. The article [1] has zCDP's delta instead, and prints .150,
    .281, .529 at n = 10,000 and K = 10, 100, 1,000.

    *information*: with row r's value replaced by 1/2 in the simulated answer, each answer's divergence is at most
    ``(1/2n)^2 / (2 s^2)``, so that the mutual information of rows and answers is at most ``I = K / (8 n s^2)``. Let the
    worst answer and its sign be picked from the answers; on fresh rows that query is off by t in this direction with
    probability at most ``p = exp(-2 n t^2)`` (Hoeffding), so on the holdout with b such that ``kl(b, p) <= I``. Half-
    width ``t + s z``, noise failing with ``beta - b``. The article [2] bounds the second moment instead, and prints
    .108, .182, .322.

    *conditional*: the argument of [1] with the trade-off of Gaussian privacy kept whole. Let ``G(p) = Phi(Phi^-1(p)
    + m)`` be the largest power of a test at level p. The conditional mean of a query given the answers is farther than
    ``G(p)/p - 1`` above its population value with probability at most p (below: likewise), because the power of "the
    answers are such, and the row has a large value" exceeds its level by that factor at most; and an answer is farther
    than ``2 K s phi(z) / b``, ``z = z(b / 2K)``, from the conditional mean with probability at most b (Markov, for
    the noise beyond z). ``2p + b = beta``.

    References
    ----------
    .. [1] Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi and Shenfeld (2020), "A New Analysis of Differential Privacy's
       Generalization Guarantees".
    .. [2] Rogers, Roth, Smith, Srebro, Thakkar and Woodworth (2020), "Guaranteed Validity for Empirical Approaches to
       Adaptive Data Analysis", Theorem 2.1, after Russo and Zou (2016).
    .. [3] Feldman and Steinke (2018), "Calibrating Noise to Variance in Adaptive Data Analysis" (the factor 1/4 in I).
    .. [4] Dong, Roth and Su (2022), "Gaussian Differential Privacy" (composition, delta, G).

    Examples
    --------
    >>> best = gaussian_width(rows=10_000, queries=1_000, beta=0.05)
    >>> round(best.half_width, 3), best.analysis
    (0.262, 'information')
    """
    _check(rows=rows, queries=queries, beta=beta)
    if analysis not in get_args(GaussianAnalysis):
        raise InputError(f"analysis is one of {', '.join(get_args(GaussianAnalysis))}; got {analysis!r}")
    if analysis == "best":
        ways: tuple[GaussianAnalysis, ...] = ("information", "conditional", "transfer", "bassily")
        return min(gaussian_width(rows=rows, queries=queries, beta=beta, analysis=way) for way in ways)
    width, log_noise = _ANALYSES[analysis](rows, queries, beta)
    return GaussianWidth(min(1.0, width), math.exp(log_noise), analysis)


def _quantile(log_p: float) -> float:
    """Return the upper normal quantile at ``exp(log_p)``."""
    return -float(special.ndtri_exp(log_p))


def _by_privacy(theorem: Callable[..., float], rows: int, queries: int, beta: float) -> tuple[float, float]:
    def error(at: np.ndarray) -> float:
        log_noise, ratio, log_odds = (float(number) for number in at)
        noise, log_failure = math.exp(log_noise), float(special.log_expit(log_odds))
        privacy = math.sqrt(queries) / (rows * noise)
        epsilon = privacy * ratio * ratio
        return theorem(
            sample_error=noise * _quantile(log_failure - math.log(2.0 * queries)),
            sample_beta=math.exp(log_failure),
            epsilon=epsilon,
            delta=gaussian_delta(epsilon=epsilon, deviation=1.0 / privacy),
            beta=beta,
        )

    start = 0.25 * math.log(queries) - 0.5 * math.log(rows)
    return _lowest(error, (start, 2.0, math.log(beta) - 8.0))


def _transfer(rows: int, queries: int, beta: float) -> tuple[float, float]:
    return _by_privacy(transfer_error, rows, queries, beta)


def _bassily(rows: int, queries: int, beta: float) -> tuple[float, float]:
    return _by_privacy(bassily_error, rows, queries, beta)


def _information(rows: int, queries: int, beta: float) -> tuple[float, float]:
    def error(at: np.ndarray) -> float:
        log_noise, log_odds = (float(number) for number in at)
        share = beta * float(special.expit(log_odds))
        information = queries / (8.0 * rows) * math.exp(-2.0 * log_noise)
        answer = math.log(beta / (2.0 * queries)) + float(special.log_expit(-log_odds))  # of beta - share
        sampled = math.sqrt(_exponent(information, share) / (2.0 * rows))
        return sampled + math.exp(log_noise) * _quantile(answer)

    start = 0.25 * math.log(queries / beta) - 0.5 * math.log(rows)
    return _lowest(error, (start - 1.0, 2.0))


def _exponent(information: float, share: float) -> float:
    """Find the largest L with ``kl(share, exp(-L)) <= information``, from above."""
    if share <= 0.0:
        return math.inf
    entropy = -share * math.log(share) - (1.0 - share) * math.log1p(-share)
    exponent = math.inf
    for _ in range(31):
        exponent = (information + entropy + (1.0 - share) * math.log1p(-math.exp(-exponent))) / share
    return exponent


def _conditional(rows: int, queries: int, beta: float) -> tuple[float, float]:
    def error(at: np.ndarray) -> float:
        log_noise, log_odds = (float(number) for number in at)
        side, failure = beta / 2.0 * float(special.expit(log_odds)), beta * float(special.expit(-log_odds))
        privacy = math.sqrt(queries) / (rows * math.exp(log_noise))
        z = _quantile(math.log(failure / (2.0 * queries)))
        density = math.exp(-z * z / 2.0 - _HALF_LOG_TWO_PI)
        return _gain(privacy, side) / side + math.exp(log_noise) * 2.0 * queries * density / failure

    start = 0.25 * math.log(queries) - 0.5 * math.log(rows)
    return _lowest(error, (start, 0.0))


def _gain(privacy: float, level: float) -> float:
    """Compute the largest excess of a test's power over its level, under Gaussian privacy, at levels up to this one."""
    quantile = min(float(special.ndtri(level)), -privacy / 2.0)  # beyond, a larger level gains no power
    return float(special.ndtr(quantile + privacy) - special.ndtr(quantile))


def _lowest(error: Callable[..., float], start: tuple[float, ...]) -> tuple[float, float]:
    """Return the smallest value found and its first coordinate; every value is a bound, the smallest or not."""

    def finite(at: np.ndarray) -> float:
        try:
            return min(error(at), sys.float_info.max)
        except (ArithmeticError, InputError):  # noise beyond all floats, a probability that rounds to 1
            return sys.float_info.max

    found = optimize.minimize(
        finite, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 2000}
    )
    return float(found.fun), float(found.x[0])


_ANALYSES: dict[str, Callable[[int, int, float], tuple[float, float]]] = {
    "bassily": _bassily,
    "transfer": _transfer,
    "information": _information,
    "conditional": _conditional,
}


def _check(*, rows: int, queries: int, beta: float) -> None:
    if rows < 1 or queries < 1:
        raise InputError(f"rows and queries are at least 1; got {rows} and {queries}")
    if not 0.0 < beta < 1.0:
        raise InputError(f"beta lies in (0, 1); got {beta}")
