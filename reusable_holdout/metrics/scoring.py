"""Statistics of private labels and prepared predictions, computed as integers on a grid of step 2**-32.

A statistic is normalised to [0, 1] by its bounds and then expressed in grid units. So noise can be an integer, and no
floating-point rounding reaches an answer.

Each score is floor(normalised statistic * 2**32). Counts are exact. For a mean of real losses each row's loss is
rounded to the grid, and all further steps are exact. So between neighbours the score changes by at most
ceil(sensitivity * 2**32), whatever the order in which a machine adds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics.samples import Likely, Measured
from reusable_holdout.metrics.targets import HoldsLabels, Targets

Family = Literal["binomial", "bounded", "bounded-difference"]

GRID_BITS: Final = 32
GRID: Final = 1 << GRID_BITS

FINE_BITS = 96  # binary digits of each ratio, where several ratios are averaged
FINE_SLACK = Fraction(1, 1 << 90)  # far more than rounding to these digits can add to a change


class PublicNumbers(NamedTuple):
    """The numbers of a bound metric on which its confidence bound and its noise rest; `rows` are its effective rows.

    :class:`BoundMetric` explains them.
    """

    sensitivity: Fraction
    sum_of_squares: float
    rows: int

    def scaled(self, factor: float, rests: Sequence[bool]) -> PublicNumbers:
        """Return the numbers for `factor` times as many rows; `rests` marks the numbers that rest on class counts."""
        exactly, rows = Fraction(factor), self.rows
        if rests[2]:  # a mean over the rows of a class, which has at least one
            rows = max(1, math.floor(rows * exactly))
            exactly, factor = Fraction(rows, self.rows), rows / self.rows
        return PublicNumbers(
            min(self.sensitivity / exactly, Fraction(1)) if rests[0] else self.sensitivity,
            self.sum_of_squares / factor if rests[1] else self.sum_of_squares,
            rows,
        )


# ---- statistics


class Statistic(HoldsLabels, ABC):
    """A statistic bound to private labels; :class:`BoundMetric` explains its public numbers.

    A subclass computes it from the statistic's own rows. These are all rows of a query, or the rows at the positions
    `chosen`.

    Attributes
    ----------
    rows : int
        Number of the statistic's own rows.
    family : str or None
        Family of the confidence bound if it differs from the metric's, else None.
    chosen : numpy.ndarray or None
        Positions of the statistic's own rows in a query; None for all.
    negated : bool
        True for the opposite sign: after normalisation it is one minus the statistic that the subclass computes.
    is_ratio : bool
        True if the rows of a query give a confidence set of the population value; see `sample`.
    only_as_ratio : bool
        True if that confidence set is the only bound of the population value.
    """

    sensitivity: Fraction
    sum_of_squares: float
    effective_rows: int
    family: Family | None = None
    chosen: NDArray[Any] | None = None
    negated = False
    is_ratio = only_as_ratio = False

    def of_rows(self, chosen: NDArray[Any]) -> Self:
        """Use only the rows at the chosen positions of a query; replacing any other row then changes nothing."""
        self.chosen = chosen if self.chosen is None else chosen[self.chosen]
        return self

    def shuffle(self, secret: bytes) -> None:
        """Shuffle the rows, with a secret as the random seed, if the confidence set depends on their order."""

    def averaged(self, draws: Draws) -> Self | None:
        """Average with weights or groups, if this is a mean over all rows or the root of a mean; else return None."""
        return None

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Return the score of each query in grid units; `prepared` has shape (queries, rows[, classes])."""
        scores = np.empty(len(prepared), np.int64)
        for place, query in enumerate(prepared):  # the rows of one query fit a processor's cache
            scores[place] = self._units(query if self.chosen is None else query[self.chosen])
        return scores

    def value(self, query: NDArray[Any]) -> float:
        """Return the statistic of one query of shape (rows[, classes]), in the metric's units."""
        value = self._value(query if self.chosen is None else query[self.chosen])
        return 0.0 - value if self.negated else value  # zero has no sign

    def sample(self, query: NDArray[Any]) -> Measured:
        """Return the data from which the confidence set of a ratio is computed."""
        return self._sample(query if self.chosen is None else query[self.chosen])

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Return a mean over rows about as uncertain as this metric, at the value `mean` and these class shares."""
        raise NotImplementedError

    @abstractmethod
    def _units(self, query: NDArray[Any]) -> int:
        """Return the score in grid units, given a query on the statistic's own rows."""

    @abstractmethod
    def _value(self, query: NDArray[Any]) -> float:
        """Return the value in the metric's units, not negated, given a query on the statistic's own rows."""

    def _sample(self, query: NDArray[Any]) -> Measured:
        raise NotImplementedError


class RatioMean(Statistic):
    """A weighted mean of ratios of integers.

    A single ratio is exact. If there are several, each is rounded down to a multiple of 2^-96, and the sensitivity must
    include the margin `FINE_SLACK` for that.
    """

    @abstractmethod
    def _ratios(self, query: NDArray[Any]) -> Sequence[tuple[int, int, int]]:
        """Return each ratio as (weight, numerator, positive denominator)."""

    def _units(self, query: NDArray[Any]) -> int:
        """Return the mean in grid units: each ratio is rounded down, then the mean, then the result to the grid."""
        ratios = self._ratios(query)
        weighted = sum(weight * ((upper << FINE_BITS) // lower) for weight, upper, lower in ratios)
        return (weighted // sum(weight for weight, _, _ in ratios)) >> (FINE_BITS - GRID_BITS)

    def _value(self, query: NDArray[Any]) -> float:
        ratios = self._ratios(query)
        weighted = sum(weight * (upper / lower) for weight, upper, lower in ratios)
        return weighted / sum(weight for weight, _, _ in ratios)


class Draws:
    """The independent draws over which a mean is taken: here the rows, all with the same weight."""

    family: Family | None = None
    relative_weights: NDArray[np.float64] | None = None
    """Weights of the draws, as fractions of the largest; None if all are equal."""
    refusal: str
    """Error message for a metric that cannot be averaged over these draws; the metric's name is filled in."""

    def __init__(self, count: int) -> None:
        self.count = self.effective_rows = count
        self.sensitivity = Fraction(1, count)
        self.sum_of_squares = 1 / count

    def of_rows(self, each: NDArray[Any]) -> NDArray[Any]:
        """Return one value for each draw, given one value for each row."""
        return each

    def total(self, terms: NDArray[np.int64]) -> tuple[int, int]:
        """Return the exact weighted sum of integer terms up to 2**52, one per draw, and the total weight."""
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
        """Average the rows with weights or groups, or return None if only some rows were chosen."""
        if self.chosen is not None:
            return None
        self._rest_on(draws)
        return self

    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Return what each row or group adds to the mean, in [0, 1], for a query on the statistic's own rows."""
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
        """Return the mean in grid units: round each normalised term to the grid, then sum and divide in integers."""
        total, whole = self.draws.total(np.rint(self.shares(query) * GRID).astype(np.int64))
        return total // whole

    def _value(self, query: NDArray[Any]) -> float:
        return self.draws.mean(self.draws.of_rows(self._row_values(query)))


class Agreement(Mean):
    """The share of rows whose predicted label is right; if rows have several labels, all of them must be right."""

    def __init__(self, _: object, targets: Targets) -> None:
        super().__init__(targets.rows)
        self._codes = targets.values

    def _units(self, query: NDArray[Any]) -> int:
        """Return the share in grid units, from the exact count of rows, by integer division."""
        if type(self.draws) is not Draws or self.negated:
            return super()._units(query)
        return (int(np.count_nonzero(self._marks(query, self._codes))) << GRID_BITS) // self.rows

    def _shares(self, query: NDArray[Any]) -> NDArray[Any]:
        return self._marks(query, self._codes).astype(np.float64)

    _row_values = _shares

    def _marks(self, query: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
        """Return an array that is True for each row that counts."""
        marks: NDArray[Any] = query == codes
        return marks if marks.ndim == 1 else np.all(marks, axis=1)


class Disagreement(Agreement):
    """The share of rows whose predicted label is wrong; if rows have several labels, one wrong label is enough."""

    def _marks(self, query: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
        return ~super()._marks(query, codes)


class MeanLoss(Mean):
    """The mean of bounded losses, one per row.

    Losses outside the bounds are clipped to them, and NaN becomes the worst value, because an error would tell the
    analyst something about a label.

    The function `losses` returns the losses, of shape (rows,), of one query of shape (rows[, classes]), in the metric's
    units. The metric is a :class:`~reusable_holdout.metrics.Definition`. If it is binomial, each loss is moved to the
    nearer of its bounds.
    """

    def __init__(self, metric: Any, losses: Callable[[NDArray[Any]], NDArray[Any]], rows: int) -> None:
        super().__init__(rows)
        self._metric, self._losses = metric, losses

    def _shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Return each row's loss, normalised to [0, 1] by the bounds."""
        lower, upper = self._metric.lower, self._metric.upper
        return np.asarray((self._row_values(query) - lower) / (upper - lower))

    def _row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Return the losses, clipped to the bounds."""
        losses, lower, upper = self._losses(query), self._metric.lower, self._metric.upper
        if self._metric.greater_is_better:  # fmax and fmin replace NaN by the bound that is applied first
            losses = np.fmin(np.fmax(losses, lower), upper)
        else:
            losses = np.fmax(np.fmin(losses, upper), lower)
        if self._metric.family == "binomial":
            losses = np.where(losses - lower < upper - losses, lower, upper)
        return np.asarray(losses)
