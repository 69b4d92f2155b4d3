"""Scores that people gave to some rows, beside those that a judge gave to these and to many more.

What the judge says of a row that people have scored is subtracted, what it says of rows they have not scored is added:
its errors cancel on average, and what it gets right makes the rows less noisy. That takes one judge for all rows,
whose score of a row depends on what is in the row and not on whether people have scored it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import as_floats, real_array
from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.derived import OfRows
from reusable_holdout.metrics.ids import Ids
from reusable_holdout.metrics.judged import Judge, JudgedScores, scores_in_memory
from reusable_holdout.metrics.score_table import table_of

__all__ = ["BesideAJudge", "HumanAndJudge", "JudgePower", "judge_power"]

_COLUMNS = "human", "judge"
_BY_CHANCE = 1e-9  # a judge who scores all rows alike is refused no more often


@dataclass(frozen=True)
class BesideAJudge(Judge):
    """A mean over the rows people have scored, of which each has some of the other rows as partners.

    People have scored the first rows; the judge is followed as far as `power` says, in [0, 1]; the bounds are those of
    people's scores and the judge's alike.
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
        return np.asarray(total / count)

    def __call__(self, metric: Definition, ids: Ids) -> OfRows:
        """Mean over the labelled rows of what is prepared already."""
        mean = metric.mean_of(lambda terms: terms, self.labelled)
        return OfRows(ids.rows, np.arange(self.labelled), mean)


class HumanAndJudge(JudgedScores):
    """Two scores for each row: people's, of the labelled ones, which come first, and the judge's.

    They come as an array of shape (rows, 2), or as a table with ids and the columns "human" and "judge". People's are
    missing (NaN) for rows that are not labelled.
    """

    _judge: BesideAJudge

    def aligned(self, predictions: object) -> NDArray[np.float64]:
        """Scores in the order of the rows, of shape (rows, 2)."""
        scores = self._scores(predictions)
        if scores.shape != (self.rows, 2):
            raise InputError(
                f"the scores must have shape ({self.rows}, 2), people's and the judge's; got {scores.shape}; pass NaN "
                "for people's scores of rows that only the judge has scored"
            )
        self._check_who_has_scored(scores)
        return scores

    def _scores(self, predictions: object) -> NDArray[np.float64]:
        table = table_of(predictions)
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
        if table_of(predictions) is None:
            array = scores_in_memory(predictions)
            if array.ndim == 3:
                return list(array)
        raise InputError(
            f"the scores of several models must be a list of one table or array of shape ({self.rows}, 2) for each; "
            f"got {type(predictions).__name__}; put them into a list"
        )


# ---- how far to follow a judge, by rows that are not the holdout's

_SURELY = 2.0  # standard errors from 0
_LEAST_ROWS = 10
_LITTLE = 1.05


class JudgePower(NamedTuple):
    """What a judge's scores of more rows are worth.

    Attributes
    ----------
    power : float
        How far to follow it, in [0, 1], for :func:`score_with_judge`; 0 if it does not help.
    worth : float
        As how many labels each label counts then: intervals narrow like one over its root. 1 if it does not help.
    correlation : float
        Of the judge's scores with people's.
    spread : float
        Standard deviation of a labelled row's term then, for the guard's ``spread=``.
    """

    power: float
    worth: float
    correlation: float
    spread: float

    def __str__(self) -> str:
        if not self.power:
            return (
                f"The judge does not help: its scores correlate {self.correlation:.2f} with people's. Leave it out, or "
                "power=0."
            )
        narrower = 1.0 - 1.0 / math.sqrt(self.worth)
        words = "helps" if self.worth >= _LITTLE else "hardly helps"
        return (
            f"The judge {words}: with power={self.power:g} each label is worth {self.worth:.2f}, and intervals are "
            f"about {narrower:.0%} narrower."
        )


def judge_power(human: ArrayLike, judge: ArrayLike, *, labelled: int, judged: int) -> JudgePower:
    """Choose how far to follow a judge.

    Parameters
    ----------
    human, judge : array-like of shape (rows,)
        Scores of the same rows, by people and by the judge. None of them may be the holdout's: power is public.
    labelled : int
        Rows of the holdout that people have scored.
    judged : int
        Its further rows, which only the judge has scored; at least as many.

    Returns
    -------
    JudgePower
        Power 0 unless the correlation is above 0 by two standard errors.

    Raises
    ------
    InputError
        If there are fewer than 10 rows, the two do not fit, or a score is missing.

    Notes
    -----
    With m = judged / labelled partners of each labelled row, the terms' variance Var(Y - p f) + p^2 Var(f)/m is least
    at p = Cov(Y, f) / (Var(f)(1 + 1/m)). A judge that is no better than the model it judges saves no more than half
    of the labels, however many rows it scores [1]_.

    References
    ----------
    .. [1] Dorner, Nastl, Hardt (2025), "Limits to scalable evaluation at the frontier: LLM as judge won't beat twice
       the data", ICLR.

    Examples
    --------
    >>> human = [1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1]
    >>> print(judge_power(human, human, labelled=100, judged=900))
    The judge helps: with power=0.9 each label is worth 10.00, and intervals are about 68% narrower.
    >>> print(judge_power(human, human[::-1], labelled=100, judged=900))
    The judge does not help: its scores correlate 0.25 with people's. Leave it out, or power=0.
    """
    people, other = as_floats(human), as_floats(judge)
    if people.ndim != 1 or people.shape != other.shape or len(people) < _LEAST_ROWS:
        raise InputError(
            f"human and judge must be scores of the same rows, at least {_LEAST_ROWS}; got shapes {people.shape} and "
            f"{other.shape}; pass one number for each row"
        )
    if not (np.isfinite(people).all() and np.isfinite(other).all()):
        raise InputError("both must have scored every row; got NaN or infinity; leave such rows out")
    if not 1 <= labelled <= judged:
        raise InputError(
            f"judged must be at least labelled, and this at least 1; got judged={judged}, labelled={labelled}; let the "
            "judge score more rows"
        )
    partners = judged / labelled
    (variance, covariance), (_, of_judge) = np.cov(people, other)
    if variance <= 0.0 or of_judge <= 0.0:
        return JudgePower(0.0, 1.0, 0.0, math.sqrt(variance))
    correlation = covariance / math.sqrt(variance * of_judge)
    if correlation * math.sqrt(len(people)) < _SURELY:
        return JudgePower(0.0, 1.0, float(correlation), math.sqrt(variance))
    power = min(1.0, round(covariance / (of_judge * (1.0 + 1.0 / partners)), 2))
    left = variance - 2.0 * power * covariance + power**2 * of_judge * (1.0 + 1.0 / partners)
    return JudgePower(float(power), float(variance / left), float(correlation), math.sqrt(left))
