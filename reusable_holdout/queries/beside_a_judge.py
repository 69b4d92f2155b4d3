"""Scores that people gave to some rows, beside those that a judge gave to these and to many more.

What the judge says of a row that people have scored is subtracted, what it says of rows they have not scored is added:
its errors cancel on average, and what it gets right makes the rows less noisy. That takes one judge for all rows,
whose score of a row depends on what is in the row and not on whether people have scored it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.containers import is_dask, real_array
from reusable_holdout.queries.derived import OfRows
from reusable_holdout.queries.judged import Judge, scores_in_memory
from reusable_holdout.queries.predictions import Form
from reusable_holdout.queries.scoring import MeanLoss
from reusable_holdout.queries.tables import table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reusable_holdout.queries.definition import Definition
    from reusable_holdout.queries.ids import Ids

__all__ = ["BesideAJudge", "HumanAndJudge"]

_COLUMNS = "human", "judge"
_BY_CHANCE = 1e-9  # a judge who scores all rows alike is refused no more often


@dataclass(frozen=True)
class BesideAJudge(Judge):
    """A mean over the rows people have scored, of which each has some of the other rows as partners.

    Attributes
    ----------
    labelled : int
        How many rows people have scored: the first ones.
    power : float
        How far the judge is followed, in [0, 1].
    lower, upper : float
        Bounds of a score, of people and judge alike.
    """

    labelled: int
    power: float
    lower: float
    upper: float
    every_row = True

    @property
    def likely_spread(self) -> float:
        """Spread of people's scores at most: a judge is followed where it makes the terms less noisy."""
        return (self.upper - self.lower) / 2.0

    def form(self, ids: Ids) -> HumanAndJudge:
        """Two scores for each row."""
        if ids.rows < 2 * self.labelled:
            raise InputError(
                f"there must be at least as many further rows as are labelled, {self.labelled:,}; got "
                f'{ids.rows - self.labelled:,}; let the judge score more rows, or ask "score" of the labelled ones'
            )
        return HumanAndJudge(ids, self)

    def of_repeats(self, scores: NDArray[np.float64], ids: Ids) -> NDArray[np.float64]:
        """Each labelled row's term from the two columns, people's and the judge's; 0 for the other rows."""
        outside = np.any((scores < self.lower) | (scores > self.upper), axis=1)  # what is missing is not
        if outside.any():
            raise InputError(
                f"the scores must lie in [{self.lower:g}, {self.upper:g}]; got others for {ids.at(outside)}; make the "
                "guard with score_with_judge(lower=..., upper=...) if others may occur"
            )
        human, judge = scores[: self.labelled, 0], scores[:, 1]
        self._check_one_judge(judge)
        terms = np.zeros(ids.rows)
        terms[: self.labelled] = human + self.power * (self._of_partners(judge) - judge[: self.labelled])
        return terms

    def _check_one_judge(self, judge: NDArray[np.float64]) -> None:
        """Refuse means that no judge has who scores rows in random order alike, by Hoeffding's inequality."""
        labelled, further = judge[: self.labelled], judge[self.labelled :]
        shares = 1.0 / len(labelled) + 1.0 / len(further)
        by_chance = (self.upper - self.lower) * math.sqrt(shares * math.log(2.0 / _BY_CHANCE) / 2.0)
        if self.power and abs(labelled.mean() - further.mean()) > by_chance:
            raise InputError(  # without the means: who reads it may not know the scores
                "the judge must score labelled and further rows alike; its means lie further apart than the "
                f"{by_chance:.2g} that chance explains; let one judge, who knows no person's score of these rows, "
                "score all, and label rows in random order; nothing was asked"
            )

    def _of_partners(self, judge: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean of the judge's scores over each labelled row's partners, which are dealt out in turn."""
        total, count = np.zeros(self.labelled), np.zeros(self.labelled)
        for start in range(self.labelled, len(judge), self.labelled):
            dealt = judge[start : start + self.labelled]
            total[: len(dealt)] += dealt
            count[: len(dealt)] += 1.0
        mean: NDArray[np.float64] = total / count
        return mean

    def __call__(self, metric: Definition, ids: Ids) -> OfRows:
        """Mean over the labelled rows of what is prepared already."""
        mean = MeanLoss(
            self.labelled, lambda terms: terms, lower=metric.lower, upper=metric.upper, greater_is_better=True
        )
        return OfRows(ids.rows, np.arange(self.labelled), mean)


class HumanAndJudge(Form):
    """Two scores for each row: people's, of the labelled ones, and the judge's.

    Parameters
    ----------
    ids : Ids
        The labelled rows first.
    judge : BesideAJudge

    Examples
    --------
    >>> from reusable_holdout.queries.ids import Ids
    >>> form = HumanAndJudge(Ids(["q1", "q2"]), BesideAJudge(1, 1.0, 0.0, 1.0))
    >>> form.prepare([[1.0, 0.5], [float("nan"), 0.25]])
    array([0.75, 0.  ])
    """

    def __init__(self, ids: Ids, judge: BesideAJudge) -> None:
        self.rows = ids.rows
        self._ids, self._judge = ids, judge

    def prepare(self, predictions: object) -> NDArray[Any]:
        """One float64 for each row, 0 for those that nobody has scored.

        Parameters
        ----------
        predictions : array-like of shape (rows, 2), or table with ids and the columns "human" and "judge"
            People's scores, missing (NaN) for rows that are not labelled, and the judge's.

        Raises
        ------
        InputError
            If they do not fit.
        """
        scores = self._scores(predictions)
        if scores.shape != (self.rows, 2):
            raise InputError(
                f"the scores must have shape ({self.rows}, 2), people's and the judge's; got {scores.shape}; pass NaN "
                "for people's scores of rows that only the judge has scored"
            )
        self._check_who_has_scored(scores)
        return self._judge.of_repeats(scores, self._ids) + 0.0

    def _scores(self, predictions: object) -> NDArray[np.float64]:
        table = None if is_dask(predictions) else table_of(predictions)
        if table is None:
            return real_array(scores_in_memory(predictions), what="the scores").astype(np.float64)
        columns = {column.name: column.values for column in table.in_order_of(self._ids)}
        names = [f"column {name!r}" for name in _COLUMNS]
        if set(columns) != set(names):
            raise InputError(
                "a table of scores must have the columns 'human' and 'judge' beside the ids; got "
                f"{', '.join(columns) or 'none'}; rename them"
            )
        return np.stack(
            [real_array(columns[name], what=f"{name} of scores").astype(np.float64) for name in names], -1
        )

    def _check_who_has_scored(self, scores: NDArray[np.float64]) -> None:
        finite = np.isfinite(scores)
        labelled = np.arange(self.rows) < self._judge.labelled
        wrong = {
            "people must have scored the first {n} rows; got NaN or infinity for {ids}": labelled
            & ~finite[:, 0],
            "people must have scored the first {n} rows alone; got scores of {ids}, too; which rows are labelled is "
            "fixed when the guard is made": ~labelled & ~np.isnan(scores[:, 0]),
            "the judge must have scored every row; got NaN or infinity for {ids}": ~finite[:, 1],
        }
        for words, marks in wrong.items():
            if marks.any():
                problem = words.format(n=f"{self._judge.labelled:,}", ids=self._ids.at(marks))
                raise InputError(f"{problem}; nothing was asked")

    def _queries(self, predictions: object) -> Sequence[Any]:
        if isinstance(predictions, list | tuple):
            return predictions
        if not is_dask(predictions) and table_of(predictions) is None:
            array = scores_in_memory(predictions)
            if array.ndim == 3:
                return list(array)
        raise InputError(
            f"the scores of several models must be a list of one table or array of shape ({self.rows}, 2) for each; "
            f"got {type(predictions).__name__}; put them into a list"
        )
