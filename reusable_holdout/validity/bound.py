"""The confidence bound of one query, one of three families, for a statistic normalised to [0, 1]; and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.validity.confidence import (
    binomial_lower,
    binomial_reach_low,
    checked,
    chernoff_lower,
    chernoff_reach_low,
    mcdiarmid_width,
)
from reusable_holdout.validity.floats_and_arrays import EPS, functions
from reusable_holdout.validity.inversion import mirrored, mirrored_target
from reusable_holdout.validity.log_tails import check_rows

if TYPE_CHECKING:
    from reusable_holdout.validity.floats_and_arrays import Number, Real

__all__ = ["ConfidenceBound", "Interval", "Numbers"]

Numbers: TypeAlias = float | NDArray[np.float64]

_Family: TypeAlias = Literal["binomial", "bounded", "bounded-difference"]


class Interval(NamedTuple):
    """Lower and upper end, in the metric's unit."""

    low: Numbers
    high: Numbers


@dataclass(frozen=True, slots=True)
class ConfidenceBound:
    """The confidence bound of one query, for its statistic normalised to [0, 1].

    Each side misses the population value with probability at most ``exp(log_level)``.

    Parameters
    ----------
    family : {"binomial", "bounded", "bounded-difference"}
        Mean of 0/1 losses (exact binomial), statistic with the exponential moments of a mean of so many losses in [0,
        1] (kl-Chernoff), bounded differences (McDiarmid).
    rows : int
        Number of rows that count, >= 1.
    sum_of_squares : float
        Sum over the rows of the squared largest change of the normalised statistic when that row is replaced;
        "binomial" does not read it.

    Raises
    ------
    InputError
        If the family is unknown, rows is below 1 or sum_of_squares is negative.

    Notes
    -----
    Of family "bounded" the narrower of kl-Chernoff and McDiarmid is taken at each value. That costs nothing: each side
    misses when the value is beyond a number that the population value fixes, and the narrower one's number is one of
    the two. For a plain mean it is always kl-Chernoff (Pinsker's inequality).

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
        check_rows(self.rows)
        if self.family not in get_args(_Family):
            msg = f"family must be one of {', '.join(get_args(_Family))}, {self.family!r} came; correct it"
            raise InputError(msg)
        mcdiarmid_width(sum_of_squares=self.sum_of_squares, log_level=0.0)

    def lower(self, value: Real | float, *, log_level: Real | float) -> Real:
        """Lower bound for the population value, in [0, 1], when the observed one is at least this."""
        if self.family == "binomial":
            return binomial_lower(value, rows=self.rows, log_level=log_level)
        if self.family == "bounded":
            found = chernoff_lower(value, rows=self.rows, log_level=log_level)
            if not self._may_be_narrower:
                return found
        checked_value, level = checked(value, log_level, self.rows)
        f = functions(checked_value)
        inside = f.least(f.most(checked_value, 0.0), 1.0)
        by_differences = cast("Real", f.most(inside - self._width(level), 0.0))
        return by_differences if self.family != "bounded" else cast("Real", f.most(found, by_differences))

    def upper(self, value: Real | float, *, log_level: Real | float) -> Real:
        """Upper bound for the population value, in [0, 1], when the observed one is at most this."""
        return cast("Real", mirrored(self.lower(1.0 - value, log_level=log_level)))

    def reach_low(self, target: Real | float, *, log_level: Real | float) -> Real:
        """Observed value from which on ``lower`` reaches the target; -inf: always, +inf: never."""
        if self.family == "binomial":
            return binomial_reach_low(target, rows=self.rows, log_level=log_level)
        if self.family == "bounded":
            found = chernoff_reach_low(target, rows=self.rows, log_level=log_level)
            if not self._may_be_narrower:
                return found
        checked_target, level = checked(target, log_level, self.rows)
        f = functions(checked_target)
        needed = checked_target + self._width(level) + 2.0 * EPS
        needed = f.where((needed > 1.0) | (checked_target >= 1.0), math.inf, needed)
        by_differences = cast("Real", f.where(checked_target <= 0.0, -math.inf, needed))
        return by_differences if self.family != "bounded" else cast("Real", f.least(found, by_differences))

    def reach_high(self, target: Real | float, *, log_level: Real | float) -> Real:
        """Observed value up to which ``upper`` stays within the target; +inf: always, -inf: never."""
        return cast("Real", 1.0 - self.reach_low(mirrored_target(target), log_level=log_level))

    @property
    def _may_be_narrower(self) -> bool:
        """Whether bounded differences may say more than kl-Chernoff somewhere."""
        return self.sum_of_squares * self.rows < 1.0 - 1e-9

    def of_rows(self, rows: int) -> ConfidenceBound:
        """Bound of as many rows of the same kind."""
        return ConfidenceBound(self.family, rows=rows, sum_of_squares=self.sum_of_squares * self.rows / rows)

    def _width(self, level: Number) -> Number:
        return mcdiarmid_width(sum_of_squares=self.sum_of_squares, log_level=level) * (1.0 + 4.0 * EPS)
