"""One-sided confidence bounds. They take the logarithm of a level, so that even ``exp(-2000)`` is a usable level.

There are four families, one per kind of query: exact binomial (Clopper-Pearson) for means of 0/1 losses, kl-Chernoff
for means of losses in [0, 1], McDiarmid for bounded differences, and bets on the odds for rows in time order.
``*_lower`` bounds the population value from an observed value. ``*_reach_low`` is its inverse: it returns the observed
value a given bound needs. The upper side is the mirror image. Every function takes floats and arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty.log_tails import (
    EPS,
    Number,
    Real,
    check_rows,
    functions,
    inflated,
    margin,
    mirrored,
    mirrored_target,
    pair,
    solve_binomial,
    solve_binomial_reach,
    solve_chernoff,
    solve_chernoff_reach,
    solve_where,
)
from reusable_holdout.errors import InputError

_LOG_HALF = math.log(0.5)
_MOST_LOG_ODDS, _HALVINGS = 50.0, 52

Numbers: TypeAlias = float | NDArray[np.float64]

_Family: TypeAlias = Literal["binomial", "bounded", "bounded-difference", "odds"]


class Interval(NamedTuple):
    """Lower and upper end, in the metric's unit."""

    low: Numbers
    high: Numbers


class OddsBets(NamedTuple):
    """Bets on the odds of a mean of rows in time order."""

    odds: tuple[tuple[float, float], ...]
    rows: int
    estimate: float

    def evidence(self, value: Number, mean: Number, log_level: Number) -> Number:
        """Return the log of the average of ``prod (1 + k x_r) / (1 + k mean)`` over bets k, for 0/1 rows of this mean.

        Other rows in [0, 1] of the same mean have no less. The bets suit the level and nothing that is private.
        """
        share = (self.rows * self.estimate + 2.0) / (self.rows + 4.0)
        step, found = np.sqrt(-2.0 * np.asarray(log_level) / (self.rows * share * (1.0 - share))), -np.inf
        for size, weight in self.odds:
            k = np.expm1(np.minimum(size * step, _MOST_LOG_ODDS))
            won = self.rows * (value * np.log1p(k) - np.log1p(k * mean))
            found = np.logaddexp(found, math.log(weight) + won)
        return cast("Number", found - 1e-9 - 1e-14 * self.rows)  # rounding only lowers it


@dataclass(frozen=True, slots=True)
class ConfidenceBound:
    """The confidence bound of one query, for its statistic normalised to [0, 1].

    Each side misses the population value with probability at most ``exp(log_level)``.

    Parameters
    ----------
    family : {"binomial", "bounded", "bounded-difference", "odds"}
        A mean of 0/1 losses (exact binomial), a statistic with the exponential moments of a mean of `rows` losses in
        [0, 1] (kl-Chernoff), one with bounded differences (McDiarmid), or a mean in time order (:func:`odds_lower`).
    rows : int
        Number of rows that count, >= 1.
    sum_of_squares : float
        Sum over the rows of the squared largest change of the normalised statistic when that row is replaced;
        "binomial" and "odds" do not read it.
    odds : tuple of (float, float)
        For "odds": the sizes of the bets and their weights.
    estimate : float
        For "odds": the value near which the bets are the best. No bound rests on it.

    Raises
    ------
    InputError
        If the family is unknown, rows is below 1 or sum_of_squares is negative.

    Notes
    -----
    For family "bounded" the narrower of kl-Chernoff and McDiarmid is taken at each value. That costs nothing: each side
    misses if the observed value is beyond a limit that depends on the population value alone, and the narrower bound's
    limit is one of the two. For a plain mean it is always kl-Chernoff (Pinsker's inequality).

    Examples
    --------
    >>> bound = ConfidenceBound("bounded-difference", rows=100, sum_of_squares=0.01)
    >>> round(bound.lower(0.9, log_level=math.log(0.025)), 6)
    0.76419
    """

    family: _Family
    rows: int
    sum_of_squares: float
    odds: tuple[tuple[float, float], ...] = ()
    estimate: float = 0.5

    def __post_init__(self) -> None:
        check_rows(self.rows)
        if self.family not in get_args(_Family):
            known = ", ".join(get_args(_Family))
            raise InputError(f"family must be one of {known}; got {self.family!r}; correct it")
        mcdiarmid_width(sum_of_squares=self.sum_of_squares, log_level=0.0)

    def lower(self, value: Real | float, *, log_level: Real | float) -> Real:
        """Return the lower bound for the population value, in [0, 1], if the observed value is at least `value`."""
        if self.family == "binomial":
            return cast("Real", binomial_lower(value, rows=self.rows, log_level=log_level))
        if self.family == "odds":
            return cast("Real", odds_lower(value, rows=self.rows, log_level=log_level, bets=self._bets))
        checked_value, level = _checked(value, log_level, self.rows)
        f = functions(checked_value)
        inside = f.least(f.most(checked_value, 0.0), 1.0)
        found = f.most(inside - self._width(level), 0.0)
        if self.family == "bounded":
            found = f.most(chernoff_lower(value, rows=self.rows, log_level=log_level), found)
        return cast("Real", found)

    def upper(self, value: Real | float, *, log_level: Real | float) -> Real:
        """Return the upper bound for the population value, in [0, 1], if the observed value is at most `value`."""
        return cast("Real", mirrored(self._mirrored.lower(1.0 - value, log_level=log_level)))

    def reach_low(self, target: Real | float, *, log_level: Real | float) -> Real:
        """Return the least observed value for which ``lower`` reaches the target; -inf if all do, +inf if none."""
        if self.family == "binomial":
            return cast("Real", binomial_reach_low(target, rows=self.rows, log_level=log_level))
        if self.family == "odds":
            return cast("Real", odds_reach_low(target, rows=self.rows, log_level=log_level, bets=self._bets))
        checked_target, level = _checked(target, log_level, self.rows)
        f = functions(checked_target)
        needed = checked_target + self._width(level) + 2.0 * EPS
        needed = f.where(needed > 1.0, math.inf, needed)
        found = f.where(checked_target <= 0.0, -math.inf, needed)
        if self.family == "bounded":
            found = f.least(chernoff_reach_low(target, rows=self.rows, log_level=log_level), found)
        return cast("Real", found)

    def reach_high(self, target: Real | float, *, log_level: Real | float) -> Real:
        """Return the largest observed value for which ``upper`` is within the target; +inf if all are, -inf if none."""
        return cast("Real", 1.0 - self._mirrored.reach_low(mirrored_target(target), log_level=log_level))

    def of_rows(self, rows: int) -> ConfidenceBound:
        """Return the bound for another number of rows of the same kind."""
        return replace(self, rows=rows, sum_of_squares=self.sum_of_squares * self.rows / rows)

    @property
    def _mirrored(self) -> ConfidenceBound:
        return replace(self, estimate=1.0 - self.estimate) if self.odds else self

    @property
    def _bets(self) -> OddsBets:
        return OddsBets(self.odds, self.rows, self.estimate)

    def _width(self, level: Number) -> Number:
        return mcdiarmid_width(sum_of_squares=self.sum_of_squares, log_level=level) * (1.0 + 4.0 * EPS)


# ---- the three families: each lower bound exceeds the population mean with probability at most exp(log_level), the log
# level being finite and at most log(0.5); rounding only lowers it


def binomial_lower(value: Number, *, rows: int, log_level: Number) -> Number:
    """Return the exact (Clopper-Pearson 1934) lower bound for a mean of 0/1 losses observed to be at least `value`.

    With ``x = ceil(rows * value)``, less a slack of 1e-9 + 2^-51 rows for rounding, it solves
    ``log P(Bin(rows, p) >= x) = log_level`` for p, and falls short of the solution by less than 1e-12; 0 at x = 0.
    """
    value, level = _checked(value, log_level, rows)
    f = functions(value)
    value = f.least(f.most(value, 0.0), 1.0)
    x = f.ceil(rows * value - _counting_slack(rows))
    if not isinstance(x, np.ndarray):
        return _kept(x, rows, level)
    if x.size and (level == level.flat[0]).all():
        counts, places = np.unique(x, return_inverse=True)  # many questions, few counts
        return _lower_of_count(counts, rows, np.full(len(counts), level.flat[0]))[places]
    return _lower_of_count(x, rows, level)


def binomial_upper(value: Number, *, rows: int, log_level: Number) -> Number:
    """Return the exact upper bound, the mirror image of :func:`binomial_lower`; rounding only raises it."""
    return mirrored(binomial_lower(1.0 - value, rows=rows, log_level=log_level))


def binomial_reach_low(target: Number, *, rows: int, log_level: Number) -> Number:
    """Return an observed mean of 0/1 losses from which on :func:`binomial_lower` reaches a target.

    The result exceeds the smallest such mean by less than 1/rows. It is -inf if every mean reaches the target (<= 0),
    +inf if none does; a positive target below 1e-300 is taken to be 1e-300. With a real x that solves
    ``log I_target(x, rows - x + 1) = log_level`` the result is ``x / rows``, rounded up.
    """
    counting = _counting_slack(rows)
    slack = (counting + counting) / rows  # the lower bound's slack, twice
    return _reach_low(solve_binomial_reach, target, rows, log_level, accuracy=2e-9, slack=slack)


def chernoff_lower(value: Number, *, rows: int, log_level: Number) -> Number:
    """Return a lower bound for a mean of independent losses in [0, 1]; it is never above the exact bound.

    The losses may have any distribution.

    Solves ``rows * kl(value, u) = -log_level`` for ``u < value`` (Hoeffding 1963, Theorem 1, inequality (2.1)).
    """
    value, level = _checked(value, log_level, rows)
    f = functions(value)
    value = f.least(f.most(value, 0.0), 1.0)
    return solve_where(value > 1e-100, solve_chernoff, 0.0, rows * value, rows * (1.0 - value), level)


def chernoff_reach_low(target: Number, *, rows: int, log_level: Number) -> Number:
    """Return the smallest observed mean whose :func:`chernoff_lower` reaches a target, rounded up.

    It is infinite in the same cases as :func:`binomial_reach_low`.
    """
    return _reach_low(solve_chernoff_reach, target, rows, log_level, accuracy=0.0, slack=4.0 * EPS)


def odds_lower(value: Number, *, rows: int, log_level: Number, bets: OddsBets) -> Number:
    """Return a lower bound for the mean of the conditional expectations of rows in time order, losses in [0, 1].

    Each row may depend on the rows before it in any way, so this mean is random. For a fixed bet k the product over the
    rows of ``(1 + k x_r) / (1 + k mu_r)`` has expectation 1, and at the mean of all mu_r the evidence is no larger,
    because the logarithm is concave. It names no mean, so one set of bets serves all outcomes of a question.
    """
    value, level = _checked(value, log_level, rows)
    excluded, kept = value * 0.0 + 0.0, np.clip(value, 0.0, 1.0)
    for _ in range(_HALVINGS):
        middle = (excluded + kept) / 2.0
        is_out = bets.evidence(value, middle, level) >= -level
        excluded, kept = np.where(is_out, middle, excluded), np.where(is_out, kept, middle)
    return excluded if isinstance(value, np.ndarray) else float(excluded)


def odds_reach_low(target: Number, *, rows: int, log_level: Number, bets: OddsBets) -> Number:
    """Return an observed mean from which on :func:`odds_lower` reaches a target, rounded up; infinite as elsewhere."""
    target, level = _checked(target, log_level, rows)
    least, reached = np.clip(target, 0.0, 1.0), target * 0.0 + 2.0
    missed = least
    for _ in range(_HALVINGS):
        middle = (missed + reached) / 2.0
        is_there = bets.evidence(middle, least + 1e-12, level) >= -level
        missed, reached = np.where(is_there, missed, middle), np.where(is_there, middle, reached)
    found = np.where(target <= 0.0, -np.inf, np.where(reached > 1.0, np.inf, reached))
    return found if isinstance(target, np.ndarray) else float(found)


def mcdiarmid_width(*, sum_of_squares: Number, log_level: Number) -> Number:
    """Return the one-sided width of the bounded-difference bound (McDiarmid 1989, Lemma 1.2).

    If row r moves a statistic by at most c_r, the statistic exceeds its mean by this width with probability at most
    ``exp(log_level)``, a level of at most 1. `sum_of_squares` is the sum of the squared c_r over the rows, in the
    statistic's unit squared.
    """
    squares, level = pair(sum_of_squares, log_level)
    f = functions(level)
    if not (f.every(level <= 0.0) and f.every(squares >= 0.0)):
        raise InputError(
            "sum_of_squares must be >= 0, and log_level must be the natural log of a level in (0, 1]; correct them"
        )
    return f.sqrt(-0.5 * level * squares)


# ---- checks and rounding


def _checked(value: Number, log_level: Number, rows: int) -> tuple[Number, Number]:
    """Return two floats, or two arrays of one shape; refuse numbers for which no bound is defined."""
    check_rows(rows)
    value, level = pair(value, log_level)
    every = functions(level).every
    if not every((level > -1e100) & (level <= _LOG_HALF)):
        raise InputError("log_level must be the natural log of a level in (0, 0.5]; give log(0.05), not 0.05")
    if not every(value == value):  # noqa: PLR0124 - NaN alone differs from itself
        raise InputError("observed values and targets must be numbers; got NaN; leave them out")
    return value, level


def _lower_of_count(x: Number, rows: int, level: Number) -> Number:
    return solve_where(x > 0.0, solve_binomial, 0.0, x, rows - x, level)


# Between charges the level stays the same, and counts repeat: most questions then cost a look-up.
_kept = lru_cache(maxsize=4096)(_lower_of_count)


def _counting_slack(rows: float) -> float:
    """Return the most by which ``rows * value`` can lie above the whole number it stands for."""
    return 1e-9 + 2.0 * EPS * rows


def _reach_low(
    solve: Callable[..., Number],
    target: Number,
    rows: int,
    log_level: Number,
    *,
    accuracy: float,
    slack: float,
) -> Number:
    """Return the value whose lower bound is the target; infinite if no value has it, or every value suffices."""
    target, level = _checked(target, log_level, rows)
    f = functions(target)
    rounding = margin(float(rows), level)
    level = level - rounding - rounding - accuracy  # the lower bound lowers it once: once more
    inside = f.least(f.most(target, 1e-300), 1.0)
    p = inflated(inside)
    possible = rows * f.log(p) <= level
    otherwise = f.where(target <= 0.0, -math.inf, math.inf)
    failures = solve_where((target > 0.0) & possible, solve, -otherwise, p, p - p + rows, level)
    return f.where(abs(failures) < math.inf, f.least((rows - failures) / rows + slack, 1.0), -failures)


def fixed_queries_half_width(bound: ConfidenceBound, *, queries: int, beta: float, estimate: float) -> float:
    """Return the half-width if all questions were fixed before anyone saw the holdout (union bound).

    It is valid for fixed questions only. It guarantees nothing to an analyst who adapts to the answers.

    Parameters
    ----------
    bound : ConfidenceBound
        Bound of the normalised statistic.
    queries : int
        Number of questions, >= 1.
    beta : float
        Failure probability of all intervals together, in (0, 1).
    estimate : float
        Observed value in [0, 1].

    Examples
    --------
    >>> from reusable_holdout.certainty import ConfidenceBound
    >>> bound = ConfidenceBound("binomial", rows=10_000, sum_of_squares=1e-4)
    >>> round(fixed_queries_half_width(bound, queries=1_000, beta=0.05, estimate=0.9), 4)
    0.0122
    """
    level = math.log(beta / (2.0 * queries))
    return float(bound.upper(estimate, log_level=level) - bound.lower(estimate, log_level=level)) / 2.0
