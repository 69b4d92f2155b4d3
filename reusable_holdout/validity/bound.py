"""The confidence bound of one query: one of three families, for a statistic normalised to [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

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

__all__ = ["ConfidenceBound"]

_Family: TypeAlias = Literal["binomial", "bounded", "bounded-difference"]


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
            return chernoff_lower(value, rows=self.rows, log_level=log_level)
        value, level = checked(value, log_level, self.rows)
        f = functions(value)
        value = f.least(f.most(value, 0.0), 1.0)
        return cast("Real", f.most(value - self._width(level), 0.0))

    def upper(self, value: Real | float, *, log_level: Real | float) -> Real:
        """Upper bound for the population value, in [0, 1], when the observed one is at most this."""
        return cast("Real", mirrored(self.lower(1.0 - value, log_level=log_level)))

    def reach_low(self, target: Real | float, *, log_level: Real | float) -> Real:
        """Observed value from which on ``lower`` reaches the target; -inf: always, +inf: never."""
        if self.family == "binomial":
            return binomial_reach_low(target, rows=self.rows, log_level=log_level)
        if self.family == "bounded":
            return chernoff_reach_low(target, rows=self.rows, log_level=log_level)
        target, level = checked(target, log_level, self.rows)
        f = functions(target)
        needed = target + self._width(level) + 2.0 * EPS
        needed = f.where((needed > 1.0) | (target >= 1.0), math.inf, needed)
        return cast("Real", f.where(target <= 0.0, -math.inf, needed))

    def reach_high(self, target: Real | float, *, log_level: Real | float) -> Real:
        """Observed value up to which ``upper`` stays within the target; +inf: always, -inf: never."""
        return cast("Real", 1.0 - self.reach_low(mirrored_target(target), log_level=log_level))

    def of_rows(self, rows: int) -> ConfidenceBound:
        """Bound of as many rows of the same kind."""
        return ConfidenceBound(self.family, rows=rows, sum_of_squares=self.sum_of_squares * self.rows / rows)

    def _width(self, level: Number) -> Number:
        return mcdiarmid_width(sum_of_squares=self.sum_of_squares, log_level=level) * (1.0 + 4.0 * EPS)
