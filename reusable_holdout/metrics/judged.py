"""Scores that a judge, a checker or a grader gave each row: read as arrays or by the rows' ids, and averaged.

They are the analyst's own and depend on no label, so refusing them tells nothing; messages name rows and quote no
score.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import as_array, is_dask, real_array
from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.ids import Ids
from reusable_holdout.metrics.predictions import Form
from reusable_holdout.metrics.score_table import ScoreTable, table_of
from reusable_holdout.metrics.scoring import Statistic

__all__ = ["Judge", "JudgedScores", "MeanOfRepeats", "Passes", "scores_in_memory"]


class Judge(ABC):
    """How the scores of a row's repeats become one; the metric is the mean of these over rows."""

    every_row = False
    """Return True if it needs all rows, each as a draw of its own: then there are no slices or groups."""

    @property
    def likely_spread(self) -> float | None:
        """Standard deviation of a row's term that is far below what its bounds allow; None if that is not known."""
        return None

    def form(self, ids: Ids) -> Form:
        """How scores of these rows are read."""
        return JudgedScores(ids, self)

    @abstractmethod
    def of_repeats(self, scores: NDArray[np.float64], ids: Ids) -> NDArray[np.float64]:
        """One score for each row, of shape (rows,), from finite ones of shape (rows, repeats)."""

    def __call__(self, metric: Definition, ids: Ids) -> Statistic:
        """Mean over rows of what is prepared already."""
        return metric.mean_of(lambda scores: scores, ids.rows)


@dataclass(frozen=True)
class MeanOfRepeats(Judge):
    """Mean of the repeats, each in [lower, upper].

    It does not depend on their order, and equal ones give what each of them is.
    """

    lower: float
    upper: float

    def of_repeats(self, scores: NDArray[np.float64], ids: Ids) -> NDArray[np.float64]:
        """Mean over repeats."""
        outside = np.any((scores < self.lower) | (scores > self.upper), axis=1)
        if outside.any():
            raise InputError(
                f"the scores must lie in [{self.lower:g}, {self.upper:g}]; got others for {ids.at(outside)}; make the "
                "guard with score(lower=..., upper=...) if others may occur"
            )
        ordered = np.sort(scores, axis=1)
        low, high = ordered[:, 0], ordered[:, -1]
        above = np.zeros(len(scores))
        for repeat in ordered.T:  # one after another: the same to the last bit on every machine
            above += repeat - low
        mean: NDArray[np.float64] = np.minimum(low + above / scores.shape[1], high)
        return mean


@dataclass(frozen=True)
class Passes(Judge):
    """Chance that `k` repeats, drawn without replacement from a row's, hold a pass, or that every one is a pass."""

    k: int
    every: bool

    def of_repeats(self, scores: NDArray[np.float64], ids: Ids) -> NDArray[np.float64]:
        """Unbiased estimate of each row from the number of its passes, in exact fractions, rounded once."""
        repeats = scores.shape[1]
        if repeats < self.k:
            raise InputError(
                f"there must be at least {self.k} repeats of every row; got {repeats}; pass scores of shape "
                f"({ids.rows}, repeats)"
            )
        others = np.any((scores != 0.0) & (scores != 1.0), axis=1)
        if others.any():
            raise InputError(
                f"each repeat must score 0 or 1; got other numbers for {ids.at(others)}; say which of them pass"
            )
        counts, places = np.unique(np.count_nonzero(scores, axis=1), return_inverse=True)
        return np.array([self._chance(count, repeats) for count in counts.tolist()])[places]

    def _chance(self, passed: int, repeats: int) -> float:
        ways = math.comb(repeats, self.k)
        if self.every:
            return float(Fraction(math.comb(passed, self.k), ways))
        return float(1 - Fraction(math.comb(repeats - passed, self.k), ways))


class JudgedScores(Form):
    """Scores of the rows, or of several repeats of each; a column or index that holds exactly the ids orders them."""

    def __init__(self, ids: Ids, judge: Judge) -> None:
        self.rows = ids.rows
        self._ids, self._judge = ids, judge

    def prepare(self, predictions: object) -> NDArray[Any]:
        """One float64 for each row; equal ones are one question, whatever container or repeats they came in."""
        return self._judge.of_repeats(self.aligned(predictions), self._ids) + 0.0  # turns -0.0 into 0.0

    def aligned(self, predictions: object) -> NDArray[np.float64]:
        """Scores in the order of the rows, of shape (rows, repeats): all there is to them."""
        table = table_of(predictions)
        if isinstance(predictions, ScoreTable):
            numbers: NDArray[Any] = predictions.in_order_of(self._ids)
        elif table is None:
            numbers = real_array(scores_in_memory(predictions), what="the scores")
        else:
            columns = table.in_order_of(self._ids)
            if not columns:
                raise InputError("a table of scores must have a column beside the ids; got none; add it")
            numbers = np.stack([real_array(values, what=f"{name} of scores") for name, values in columns], -1)
        if numbers.ndim not in {1, 2} or len(numbers) != self.rows or not numbers.size:
            raise self._misshapen(numbers.shape)
        with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite and is refused
            scores = numbers.reshape(self.rows, -1).astype(np.float64)
        strange = np.any(~np.isfinite(scores), axis=1)
        if strange.any():
            raise InputError(
                f"the scores must be finite numbers; got NaN or infinity for {self._ids.at(strange)}; score every row"
            )
        return scores

    def _misshapen(self, shape: tuple[int, ...]) -> InputError:
        advice = "score every row of the guard, in its order"
        if shape[1:] == (self.rows,):
            advice = "transpose it if its first axis are repeats, or pass several models to evaluate_many"
        elif len(shape) == 3:
            advice = "pass its entries one by one, or all of them to evaluate_many"
        return InputError(
            f"the scores must have shape ({self.rows},) or ({self.rows}, repeats); got {shape}; {advice}"
        )

    def _queries(self, predictions: object) -> Sequence[Any] | NDArray[Any]:
        must = f"the scores of several models must have shape (models, {self.rows}) or (models, {self.rows}, repeats)"
        if isinstance(predictions, ScoreTable) or table_of(predictions) is not None:
            raise InputError(f"{must}; got a table; pass a list of one table for each model")
        array = scores_in_memory(predictions)
        if array.ndim not in {2, 3} or array.shape[1] != self.rows:
            raise InputError(f"{must}; got {array.shape}; put the models first and the repeats last")
        return array


def scores_in_memory(scores: object) -> NDArray[Any]:
    """Scores as an array, if they are no table, and not lazy."""
    if is_dask(scores) or hasattr(scores, "row_pieces"):
        raise InputError(
            f"the scores must be in memory; got {type(scores).__name__}; pass what its compute() gives"
        )
    return as_array(scores, what="the scores")
