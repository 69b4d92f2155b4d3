"""Scores that people gave to some rows, combined with a judge's scores of these rows and of many more.

For a row that people have scored, the judge's score is subtracted. For the other rows it is added. So the judge's
errors cancel on average, and the part of a score that the judge gets right makes the mean less noisy. This requires one
judge for all rows, whose score of a row depends on the row's content, and not on whether people have scored it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import as_floats
from reusable_holdout.metrics.definition import Definition, checked_number, is_finite
from reusable_holdout.metrics.ids import Column, Ids, table_of
from reusable_holdout.metrics.judged import Judge, JudgedScores, check_within, score_bounds, scores_in_memory
from reusable_holdout.metrics.metric import Metric, metric_of
from reusable_holdout.metrics.scoring import Mean

_COLUMNS = "human", "judge"
_BY_CHANCE = 1e-9  # largest probability of refusing a judge who treats all rows alike


def score_with_judge(*, labelled: int, power: float, lower: float = 0.0, upper: float = 1.0) -> Metric:
    """Make the mean of people's scores, with a judge's scores of the same and of further rows to reduce its variance.

    One judge must score all rows. Its score of a row may depend on the row's content, but not on people's score of the
    row, nor on whether people have scored it. Intervals are wrong if the judge's prompt, examples or training contain
    people's scores of the holdout's rows, or if the judge's column copies them. In general nothing here can detect
    that.

    Replacing one labelled row, and the further rows that are its partners (see Notes), changes the metric by at most
    (1 + 2 power)(upper - lower)/labelled.

    Parameters
    ----------
    labelled : int
        Number of rows that people have scored: the first of the guard's ids. They must be drawn like the others.
    power : float
        Weight of the judge's scores, in [0, 1]. With 0 the judge is left out, and the metric equals :func:`score` of
        the labelled rows. :func:`judge_power` chooses a power from rows outside the holdout.
    lower, upper : float
        Bounds of the scores, both people's and the judge's.

    Raises
    ------
    InputError
        If a number is out of its range; when the guard is made, if there are fewer further rows than labelled ones.

    Notes
    -----
    The further rows are dealt out to the labelled rows in turn. The further rows that labelled row r receives are its
    partners. Let Y_r be people's score of row r, f_r the judge's score of row r, and g_r the mean of the judge's scores
    of its partners. The terms are

        z_r = Y_r - power f_r + power g_r.

    They are independent. As f_r and g_r have the same expectation, each term has expectation E[Y], whatever function of
    a row the judge is. Each term lies in [lower - power d, upper + power d] with d = upper - lower. So the metric is a
    mean of bounded terms, and has the same confidence bounds as other such means. Each question may have a judge of its
    own, chosen after earlier answers. With m partners a term's variance is Var(Y - power f) + power^2 Var(f)/m, as in
    prediction-powered inference [1]_. An interval may extend beyond the scores' bounds, where the population's mean
    cannot lie.

    References
    ----------
    .. [1] Angelopoulos, Duchi, Zrnic (2023), "PPI++: efficient prediction-powered inference".

    Examples
    --------
    >>> none = float("nan")
    >>> both = [[1.0, 1.0], [0.0, 0.5], [none, 1.0], [none, 0.0]]
    >>> score_with_judge(labelled=2, power=0.5).measure(["q1", "q2", "q3", "q4"], both)
    0.375
    """
    least, most = score_bounds(lower, upper)
    rows = int(labelled) if is_finite(labelled) and labelled == int(labelled) else 0
    if isinstance(labelled, bool) or rows < 1:
        raise InputError(
            f"labelled must be a whole number from 1 on; got {labelled!r}; count the rows people have scored"
        )
    advice = "let judge_power choose it by rows that are not the holdout's"
    share = checked_number(power, lambda one: 0 <= one <= 1, "power must be a number in [0, 1]", advice)
    judge, beyond = BesideAJudge(rows, share, least, most), share * (most - least)
    bounds = (least - beyond, most + beyond)
    stated = {"labelled": rows, "power": share, "lower": least, "upper": most}
    return metric_of("score_with_judge", "judged", judge, bounds=bounds, parameters=stated)


@dataclass(frozen=True)
class BesideAJudge(Judge):
    """The kernel of :func:`score_with_judge`: a mean over the rows that people have scored, each with its partners.

    People have scored the first `labelled` rows. The judge's scores are multiplied by `power`, in [0, 1]. The bounds
    hold for people's scores and for the judge's.
    """

    labelled: int
    power: float
    lower: float
    upper: float
    every_row = True

    @property
    def likely_spread(self) -> float:
        """Largest standard deviation that people's scores can have; a useful judge makes that of the terms smaller."""
        return (self.upper - self.lower) / 2.0

    def form(self, ids: Ids) -> HumanAndJudge:
        """Return the form that reads two scores for each row, people's and the judge's."""
        if ids.rows < 2 * self.labelled:
            raise InputError(
                f"there must be at least as many further rows as are labelled, {self.labelled:,}; got "
                f'{ids.rows - self.labelled:,}; let the judge score more rows, or ask "score" of the labelled ones'
            )
        return HumanAndJudge(ids, self)

    def of_repeats(self, scores: NDArray[np.float64], ids: Ids) -> NDArray[np.float64]:
        """Return each labelled row's term from the two columns, people's and the judge's; 0 for the other rows."""
        check_within(scores, self.lower, self.upper, ids=ids, made_by="score_with_judge")
        human, judge = scores[: self.labelled, 0], scores[:, 1]
        self._check_one_judge(judge)
        terms = np.zeros(ids.rows)
        terms[: self.labelled] = human + self.power * (self._of_partners(judge) - judge[: self.labelled])
        return terms

    def _check_one_judge(self, judge: NDArray[np.float64]) -> None:
        """Refuse a judge whose mean scores of labelled and of further rows differ by more than chance explains.

        The limit is that of Hoeffding's inequality for a judge who treats all rows alike.
        """
        labelled, further = judge[: self.labelled], judge[self.labelled :]
        shares = 1.0 / len(labelled) + 1.0 / len(further)
        by_chance = (self.upper - self.lower) * math.sqrt(shares * math.log(2.0 / _BY_CHANCE) / 2.0)
        if self.power and abs(labelled.mean() - further.mean()) > by_chance:
            raise InputError(  # without the means, for its reader may not know the scores
                "the judge must score labelled and further rows alike; its means lie further apart than the "
                f"{by_chance:.2g} that chance explains; let one judge, who knows no person's score of these rows, "
                "score all, and label rows in random order; nothing was asked"
            )

    def _of_partners(self, judge: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each labelled row, the mean of the judge's scores of its partners; they are dealt out in turn."""
        total, count = np.zeros(self.labelled), np.zeros(self.labelled)
        for start in range(self.labelled, len(judge), self.labelled):
            dealt = judge[start : start + self.labelled]
            total[: len(dealt)] += dealt
            count[: len(dealt)] += 1.0
        return np.asarray(total / count)

    def __call__(self, metric: Definition, ids: Ids) -> Mean:
        """Return the statistic: the mean over the labelled rows of the terms that :meth:`of_repeats` returned."""
        return metric.mean_of(lambda terms: terms, self.labelled).of_rows(np.arange(self.labelled))


class HumanAndJudge(JudgedScores):
    """The form of two scores for each row: people's scores of the labelled rows, which come first, and the judge's.

    The scores are passed as an array of shape (rows, 2), or as a table with ids and the columns "human" and "judge".
    People's scores are missing (NaN) for rows that are not labelled.
    """

    _judge: BesideAJudge

    def aligned(self, predictions: object) -> NDArray[np.float64]:
        """Return the scores in the order of the rows, of shape (rows, 2)."""
        scores = self._numbers(predictions).astype(np.float64)
        if scores.shape != (self.rows, 2):
            raise InputError(
                f"the scores must have shape ({self.rows}, 2), people's and the judge's; got {scores.shape}; pass NaN "
                "for people's scores of rows that only the judge has scored"
            )
        self._check_who_has_scored(scores)
        return scores

    def _of_table(self, columns: list[Column]) -> list[Column]:
        found = {column.name: column for column in columns}
        names = [f"column {name!r}" for name in _COLUMNS]
        if set(found) != set(names):
            raise InputError(
                "a table of scores must have the columns 'human' and 'judge' beside the ids; got "
                f"{', '.join(found) or 'none'}; rename them"
            )
        return [found[name] for name in names]

    def _check_who_has_scored(self, scores: NDArray[np.float64]) -> None:
        people, finite = scores[:, 0], np.isfinite(scores)
        labelled = np.arange(self.rows) < self._judge.labelled
        must = f"people must have scored the first {self._judge.labelled:,} rows"
        self._ids.refuse(labelled & ~finite[:, 0], must + "; got NaN or infinity for {}; nothing was asked")
        self._ids.refuse(
            ~labelled & ~np.isnan(people),
            must + " alone; got scores of {}, too; which rows are labelled is fixed when the guard is made",
        )
        must = "the judge must have scored every row"
        self._ids.refuse(~finite[:, 1], must + "; got NaN or infinity for {}; nothing was asked")

    def _queries(self, predictions: object) -> Sequence[Any]:
        if table_of(predictions) is None:
            array = scores_in_memory(predictions)
            if array.ndim == 3:
                return list(array)
        raise InputError(
            f"the scores of several models must be a list of one table or array of shape ({self.rows}, 2) for each; "
            f"got {type(predictions).__name__}; put them into a list"
        )


# ---- the power of a judge, from rows outside the holdout

_SURELY = 2.0  # standard errors by which the correlation must exceed 0
_LEAST_ROWS = 10
_LITTLE = 1.05  # below this worth a judge "hardly helps"


class JudgePower(NamedTuple):
    """The gain from a judge's scores of further rows.

    Attributes
    ----------
    power : float
        Weight of the judge's scores, in [0, 1], for :func:`score_with_judge`; 0 if the judge does not help.
    worth : float
        Number of labels that one label is worth with the judge's help: intervals shrink by the factor 1/sqrt(worth).
        It is 1 if the judge does not help.
    correlation : float
        Correlation of the judge's scores with people's.
    spread : float
        Standard deviation of a labelled row's term at this power, for the guard's ``spread=``.
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
    """Choose the weight of a judge's scores in :func:`score_with_judge`.

    Parameters
    ----------
    human, judge : array-like of shape (rows,)
        Scores of the same rows, by people and by the judge. None of the rows may be in the holdout, because the power
        is public.
    labelled : int
        Number of holdout rows that people have scored.
    judged : int
        Number of holdout rows that only the judge has scored; at least `labelled`.

    Returns
    -------
    JudgePower
        Its power is 0 unless the correlation is above 0 by two standard errors.

    Raises
    ------
    InputError
        If there are fewer than 10 rows, the two arrays differ in shape, or a score is missing.

    Notes
    -----
    Let Y be people's score of a row, f the judge's, p the power, and m = judged / labelled the number of partners of a
    labelled row. The terms' variance Var(Y - p f) + p^2 Var(f)/m is least at p = Cov(Y, f) / (Var(f)(1 + 1/m)). A judge
    that is no better than the model it judges saves no more than half of the labels, however many rows it scores [1]_.

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
