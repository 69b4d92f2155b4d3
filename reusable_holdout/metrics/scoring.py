"""Statistics of private labels and prepared predictions, as integers on a grid of 2**-32.

A statistic is normalised to [0, 1] by its bounds and then counted in these units, so that noise can be integers and no
floating-point rounding reaches an answer.

Each score is floor(normalised statistic * 2**32). A count is exact. A mean of real losses rounds each row's loss to the
grid, and the rest is exact. So the score moves by at most ceil(sensitivity * 2**32) between neighbours, in whatever
order a machine adds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics.containers import BLOCK
from reusable_holdout.metrics.targets import HoldsLabels, Targets

Family = Literal["binomial", "bounded", "bounded-difference"]

GRID_BITS: Final = 32
GRID: Final = 1 << GRID_BITS

FINE_BITS = 96  # of each ratio, where several are averaged
FINE_SLACK = Fraction(1, 1 << 90)  # far above what that rounding can add to a change


class PublicNumbers(NamedTuple):
    """Numbers of a bound metric that its confidence bound and its noise rest on; `rows` are effective ones.

    :class:`BoundMetric` explains them.
    """

    sensitivity: Fraction
    sum_of_squares: float
    rows: int

    def scaled(self, factor: float, rests: Sequence[bool]) -> PublicNumbers:
        """Return the numbers for `factor` times the rows; `rests` marks those that rest on class counts."""
        exactly, rows = Fraction(factor), self.rows
        if rests[2]:  # a mean over the rows of a class, which has one at least
            rows = max(1, math.floor(rows * exactly))
            exactly, factor = Fraction(rows, self.rows), rows / self.rows
        return PublicNumbers(
            min(self.sensitivity / exactly, Fraction(1)) if rests[0] else self.sensitivity,
            self.sum_of_squares / factor if rests[1] else self.sum_of_squares,
            rows,
        )


# ---- statistics of one question that the confidence set of a ratio is made of: private, for the guard alone


class Ratio(NamedTuple):
    """Rows that make a ratio ``E[weight * value] / E[weight]``, times a factor.

    Values and weights lie in [0, 1]; counts are the numbers of rows that have both. With a factor below 1 nothing is
    known of the rest: the population's value may be larger by up to one minus the factor.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    counts: NDArray[np.float64]
    factor: float = 1.0

    def __repr__(self) -> str:
        return "<Ratio>"


def ratio(rows: Iterable[tuple[float, float, float]], factor: float = 1.0) -> Ratio:
    """Return the ratio of rows that are given as (value, weight, count)."""
    values, weights, counts = np.array(list(rows), dtype=np.float64).T
    return Ratio(values, weights, counts, factor)


class Counted(NamedTuple):
    """The score on the grid of a metric that counts rows, such as precision, and the ratios its interval is made of.

    A single ratio is the metric itself. The least of several ratios is the metric, as the least of two recalls.
    """

    score: int
    ratios: tuple[Ratio, ...]

    def __repr__(self) -> str:
        return "<Counted>"


class Ranked(NamedTuple):
    """The metric's score on the grid, and the order in which scores put the rows of two classes.

    `above` has shape (positives,), from the highest score down: the number of negative rows that score at least as
    high.
    """

    score: int
    above: NDArray[np.int64]
    negatives: int

    def __repr__(self) -> str:
        return "<Ranked>"


class Explained(NamedTuple):
    """Errors of a model and of a constant: the value is ``1 - mean(errors) / (unit * mean(totals))``.

    Both have shape (rows,); errors lie in [0, 1] and totals in [0, `most`]. The score is on the grid.
    """

    score: int
    errors: NDArray[np.float64]
    totals: NDArray[np.float64]
    most: float
    unit: float

    def __repr__(self) -> str:
        return "<Explained>"


class Likely(NamedTuple):
    """Rows of equal weight and this standard deviation, whose mean is about as uncertain as a metric: for a plan."""

    rows: float
    spread: float

    @classmethod
    def of(cls, rows: Ratio, mean: float) -> Likely:
        """Return such rows for the rows that make a ratio."""
        whole = float(rows.counts @ rows.weights)
        square = float(rows.counts @ np.square(rows.weights * (rows.values - mean)))
        return cls(whole, (square / whole) ** 0.5)


# ---- statistics


class Statistic(HoldsLabels, ABC):
    """A statistic bound to private labels; :class:`BoundMetric` explains its public numbers.

    A subclass computes it of its own rows. They are all rows of a query, or those at the places `chosen`.

    Attributes
    ----------
    rows : int
        Its own rows.
    family : str or None
        Family of the confidence bound, where it is not the metric's.
    chosen : numpy.ndarray or None
        Places of its own rows in a query; None for all.
    negated : bool
        True if it has the opposite sign: normalised, it is one minus the statistic of the class.
    is_ratio : bool
        True if the rows of a query give a confidence set of its population value; see `sample`.
    only_as_ratio : bool
        True if nothing else bounds it.
    """

    sensitivity: Fraction
    sum_of_squares: float
    effective_rows: int
    family: Family | None = None
    chosen: NDArray[Any] | None = None
    negated = False
    is_ratio = only_as_ratio = False

    def of_rows(self, chosen: NDArray[Any]) -> Self:
        """Take as its own rows those at the chosen places of a query; replacing another row changes nothing."""
        self.chosen = chosen if self.chosen is None else chosen[self.chosen]
        return self

    def averaged(self, draws: Draws) -> Self | None:
        """Average its rows in another way, if it is a mean over all rows or a root of one; else return None."""
        return None

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Return the grid units of each query; `prepared` has shape (queries, rows[, classes])."""
        scores = np.empty(len(prepared), np.int64)
        for place, query in enumerate(prepared):  # the rows of one query fit a processor's cache
            scores[place] = self._units(query if self.chosen is None else query[self.chosen])
        return scores

    def value(self, query: NDArray[Any]) -> float:
        """Return the statistic of one query of shape (rows[, classes]), in the metric's units."""
        value = self._value(query if self.chosen is None else query[self.chosen])
        return 0.0 - value if self.negated else value  # zero has no sign

    def sample(self, query: NDArray[Any]) -> Counted | Explained | Ranked:
        """Return the sample that the confidence set of a ratio rests on."""
        return self._sample(query if self.chosen is None else query[self.chosen])

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Return rows that are about as uncertain near a value of the metric, if classes have these shares."""
        raise NotImplementedError

    @abstractmethod
    def _units(self, query: NDArray[Any]) -> int:
        """Return the grid units of its own rows."""

    @abstractmethod
    def _value(self, query: NDArray[Any]) -> float:
        """Return the value of its own rows, not negated."""

    def _sample(self, query: NDArray[Any]) -> Counted | Explained | Ranked:
        raise NotImplementedError


class RatioMean(Statistic):
    """A weighted mean of ratios of integers.

    A single ratio is exact. Several are floored at 2^-96 each; their sensitivity needs `FINE_SLACK` more room.
    """

    @abstractmethod
    def _ratios(self, query: NDArray[Any]) -> Sequence[tuple[int, int, int]]:
        """Return weight, numerator and positive denominator of each ratio."""

    def _units(self, query: NDArray[Any]) -> int:
        """Floor each ratio, then the mean, then to the grid."""
        ratios = self._ratios(query)
        weighted = sum(weight * ((upper << FINE_BITS) // lower) for weight, upper, lower in ratios)
        return (weighted // sum(weight for weight, _, _ in ratios)) >> (FINE_BITS - GRID_BITS)

    def _value(self, query: NDArray[Any]) -> float:
        ratios = self._ratios(query)
        weighted = sum(weight * (upper / lower) for weight, upper, lower in ratios)
        return weighted / sum(weight for weight, _, _ in ratios)


class Draws:
    """Independent draws that a mean is over: the rows, all with the same weight."""

    family: Family | None = None
    relative_weights: NDArray[np.float64] | None = None
    """Weights of the draws, as fractions of the largest; None if all are equal."""
    refusal: str
    """Message for a metric, by its name, that has no mean to average in this way."""

    def __init__(self, count: int) -> None:
        self.count = self.effective_rows = count
        self.sensitivity = Fraction(1, count)
        self.sum_of_squares = 1 / count

    def of_rows(self, each: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the draws, given one value for each row."""
        return each

    def total(self, terms: NDArray[np.int64]) -> tuple[int, int]:
        """Return the sum of whole terms of at most 2**52, one per draw, and the weight of all draws; exact."""
        low = terms & ((1 << 26) - 1)  # in halves, for the sum may exceed 64 bits
        return (int((terms >> 26).sum()) << 26) + int(low.sum()), self.count

    def mean(self, values: NDArray[Any]) -> float:
        """Return the mean of one value per draw."""
        return float(values.mean())


class Mean(Statistic):
    """A mean over draws of terms that lie in [0, 1] after normalisation.

    Its sensitivity is the largest weight of a draw in the mean.
    """

    def __init__(self, rows: int) -> None:
        self._rest_on(Draws(rows))

    def _rest_on(self, draws: Draws) -> None:
        self.draws = draws
        self.rows, self.effective_rows, self.family = draws.count, draws.effective_rows, draws.family
        self.sensitivity, self.sum_of_squares = draws.sensitivity, draws.sum_of_squares

    def averaged(self, draws: Draws) -> Self | None:
        """Average its rows in another way, unless it is of some rows alone."""
        if self.chosen is not None:
            return None
        self._rest_on(draws)
        return self

    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Return the normalised term of each draw, float64 in [0, 1]; the query holds its own rows."""
        each = self._shares(query)
        means = self.draws.of_rows(1.0 - each if self.negated else each)
        return means.clip(0.0, 1.0)  # a mean of several shares may be rounded beyond 1

    @abstractmethod
    def _shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Return the normalised term of each row, not negated."""

    @abstractmethod
    def _row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Return the term of each row in the metric's units, not negated."""

    def _units(self, query: NDArray[Any]) -> int:
        """Round each normalised term to the grid, then sum and divide in integers."""
        total, whole = self.draws.total(np.rint(self.shares(query) * GRID).astype(np.int64))
        return total // whole

    def _value(self, query: NDArray[Any]) -> float:
        return self.draws.mean(self.draws.of_rows(self._row_values(query)))


class Agreement(Mean):
    """Share of rows whose predicted code equals the label's; of several labels, of rows with all of them right."""

    def __init__(self, _: object, targets: Targets) -> None:
        super().__init__(targets.rows)
        self._codes = targets.values

    def _units(self, query: NDArray[Any]) -> int:
        """Shift the exact count left and divide by the rows, in integers."""
        if type(self.draws) is not Draws or self.negated:
            return super()._units(query)
        count = 0
        for start in range(0, self.rows, BLOCK):  # a block's marks stay in a processor's cache
            rows = slice(start, start + BLOCK)
            count += int(np.count_nonzero(self._marks(query[rows], self._codes[rows])))
        return (count << GRID_BITS) // self.rows

    def _shares(self, query: NDArray[Any]) -> NDArray[Any]:
        return self._marks(query, self._codes).astype(np.float64)

    _row_values = _shares

    def _marks(self, query: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
        """Return True for the rows that count."""
        marks: NDArray[Any] = query == codes
        return marks if marks.ndim == 1 else np.all(marks, axis=1)


class Disagreement(Agreement):
    """Share of rows whose predicted code differs from the label's; of several labels, of rows with any wrong."""

    def _marks(self, query: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
        return ~super()._marks(query, codes)


class MeanLoss(Mean):
    """Mean of bounded losses, one per row.

    Losses outside the bounds are moved to them, and a loss that is not a number becomes the worst value: an error would
    tell the analyst something about a label.

    `losses` gives the losses (rows,) of one query (rows[, classes]), in the metric's units. Binary losses are `lower`
    or `upper` and nothing between; others go to the nearer one.
    """

    def __init__(
        self,
        rows: int,
        losses: Callable[[NDArray[Any]], NDArray[Any]],
        bounds: tuple[float, float],
        *,
        greater_is_better: bool,
        binary: bool = False,
    ) -> None:
        super().__init__(rows)
        self._losses = losses
        self._lower, self._upper = bounds
        self._greater_is_better = greater_is_better
        self._binary = binary

    def _shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Return the place of each row's loss between the bounds."""
        shares: NDArray[Any] = (self._row_values(query) - self._lower) / (self._upper - self._lower)
        return shares

    def _row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Return the losses within the bounds."""
        losses = self._losses(query)
        if self._greater_is_better:  # fmax and fmin replace what is not a number by the first bound
            losses = np.fmin(np.fmax(losses, self._lower), self._upper)
        else:
            losses = np.fmax(np.fmin(losses, self._upper), self._lower)
        if self._binary:
            losses = np.where(losses - self._lower < self._upper - losses, self._lower, self._upper)
        return losses
