"""Metrics of scores that a judge, a checker or a grader gave to each row. The rows have ids and no labels.

Scores are read as arrays, or as tables that are aligned by the rows' ids. Several scores of a row, its repeats, are
combined into one. The analyst supplies the scores, so refusing them reveals nothing. Messages name rows and quote no
score.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import as_array, in_pieces, real_array
from reusable_holdout.metrics.definition import Definition, checked_bounds
from reusable_holdout.metrics.ids import Ids, columns_in_order
from reusable_holdout.metrics.metric import Metric, metric_of
from reusable_holdout.metrics.predictions import Form
from reusable_holdout.metrics.scoring import Statistic

_LONGEST = 200


def score(*, lower: float = 0.0, upper: float = 1.0, of: str | None = None) -> Metric:
    """Make the mean of judged scores in [lower, upper]; greater is better.

    Replacing one of the n rows changes it by at most (upper - lower)/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of a score, such as 1 and 5.
    of : str, optional
        Name of the score, such as "politeness", if the same rows have several. A score with another name is another
        metric for :meth:`ReusableHoldout.on`, and may be a guardrail of a gate.

    Raises
    ------
    InputError
        If the bounds are not finite with lower < upper, or `of` is not text; when asked, if a score lies outside the
        bounds.

    Notes
    -----
    Several scores of a row, its repeats, are averaged first. Normalised by its bounds the metric is a mean of n terms
    in [0, 1]. With c_r the most that replacing row r can change it, c_r = 1/n, the sensitivity is 1/n, and the sum of
    c_r^2 is 1/n.

    Examples
    --------
    >>> score(lower=1, upper=5).measure(["q1", "q2"], [[4, 5], [3, 3]])
    3.75
    >>> score(of="politeness").name
    'score[politeness]'
    """
    must, advice = "the scores' bounds", "state which scores can be given"
    least, most = checked_bounds(lower, upper, must, advice, widest=1e150)
    if of is not None and not (isinstance(of, str) and 0 < len(of) <= _LONGEST and of.isprintable()):
        raise InputError(
            f"of must name a score, in at most {_LONGEST} printable characters; got {of!r}; rename it"
        )
    name, judge = "score" if of is None else f"score[{of}]", MeanOfRepeats(least, most)
    return metric_of(name, "judged", judge, bounds=(least, most), parameters={"lower": least, "upper": most})


def pass_at(k: int) -> Metric:
    """Make pass@k: the mean over rows of the probability that at least one of k repeats passes.

    Replacing one of the n rows changes it by at most 1/n.

    Parameters
    ----------
    k : int
        Number of repeats that are drawn from each row's repeats; at least 1.

    Raises
    ------
    InputError
        If `k` is not a whole number in range; when asked, if a row has fewer than `k` repeats, or a score is neither 0
        nor 1.

    Notes
    -----
    The term of a row with c passes in m repeats is 1 - C(m - c, k)/C(m, k). This is the mean over all sets of k
    repeats, so it is unbiased. The metric is a mean of n terms in [0, 1]. With c_r the most that replacing row r can
    change it, c_r = 1/n, the sensitivity is 1/n, and the sum of c_r^2 is 1/n.

    References
    ----------
    .. [1] Chen et al. (2021), "Evaluating large language models trained on code", equation (1).

    Examples
    --------
    >>> pass_at(2).measure(["q1", "q2"], [[1, 0, 0, 0], [0, 0, 0, 0]])
    0.25
    """
    return _passes("@", k, every=False)


def pass_hat(k: int) -> Metric:
    """Make pass^k: the mean over rows of the probability that all of k repeats pass.

    Replacing one of the n rows changes it by at most 1/n.

    Parameters
    ----------
    k : int
        Number of repeats that are drawn from each row's repeats; at least 1.

    Raises
    ------
    InputError
        If `k` is not a whole number in range; when asked, if a row has fewer than `k` repeats, or a score is neither 0
        nor 1.

    Notes
    -----
    The term of a row with c passes in m repeats is C(c, k)/C(m, k). This is the mean over all sets of k repeats, so it
    is unbiased. The metric is a mean of n terms in [0, 1]. With c_r the most that replacing row r can change it,
    c_r = 1/n, the sensitivity is 1/n, and the sum of c_r^2 is 1/n.

    References
    ----------
    .. [1] Yao, Shinn, Razavi, Narasimhan (2024), "tau-bench: a benchmark for tool-agent-user interaction in real-world
       domains".

    Examples
    --------
    >>> pass_hat(2).measure(["q1", "q2"], [[1, 1, 1, 0], [0, 0, 0, 1]])
    0.25
    """
    return _passes("^", k, every=True)


def _passes(sign: str, k: int, *, every: bool) -> Metric:
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < 10**6:
        raise InputError(
            f"k of pass{sign}k must be a whole number from 1 to 999999; got {k!r}; 1 is one repeat"
        )
    return metric_of(f"pass{sign}{k}", "judged", Passes(k, every), parameters={"k": k})


# ---- judges: kernels of these metrics


class Judge(ABC):
    """A rule that combines the repeated scores of a row into one score; the metric is the mean of these over rows."""

    def form(self, ids: Ids) -> Form:
        """Return the form that reads and checks scores of these rows."""
        return JudgedScores(ids, self)

    @abstractmethod
    def of_repeats(self, scores: NDArray[np.float64], ids: Ids) -> NDArray[np.float64]:
        """Return one score for each row, given finite scores of shape (rows, repeats)."""

    def __call__(self, metric: Definition, ids: Ids) -> Statistic:
        """Return the statistic: the mean over rows of the scores that :meth:`of_repeats` returned."""
        return metric.mean_of(lambda scores: scores, ids.rows)


@dataclass(frozen=True)
class MeanOfRepeats(Judge):
    """The mean of a row's repeats, each in [lower, upper].

    The mean does not depend on the order of the repeats. If all repeats are equal, it is exactly their value.
    """

    lower: float
    upper: float

    def of_repeats(self, scores: NDArray[np.float64], ids: Ids) -> NDArray[np.float64]:
        """Return the mean of each row's repeats."""
        ids.refuse(
            np.any((scores < self.lower) | (scores > self.upper), axis=1),
            f"the scores must lie in [{self.lower:g}, {self.upper:g}]; got scores outside for {{}}; if these may "
            "occur, make the guard with score(lower=..., upper=...)",
        )
        ordered = np.sort(scores, axis=1)
        low, high = ordered[:, 0], ordered[:, -1]
        above = np.zeros(len(scores))
        for repeat in ordered.T:  # one after another: the same to the last bit on every machine
            above += repeat - low
        return np.asarray(np.minimum(low + above / scores.shape[1], high))


@dataclass(frozen=True)
class Passes(Judge):
    """The probability that at least one of `k` repeats, drawn without replacement, passes; if `every`, that all do."""

    k: int
    every: bool

    def of_repeats(self, scores: NDArray[np.float64], ids: Ids) -> NDArray[np.float64]:
        """Return this probability for each row, computed from its number of passes in fractions and rounded once."""
        repeats = scores.shape[1]
        if repeats < self.k:
            raise InputError(
                f"there must be at least {self.k} repeats of every row; got {repeats}; pass scores of shape "
                f"({ids.rows}, repeats)"
            )
        others = np.any((scores != 0.0) & (scores != 1.0), axis=1)
        ids.refuse(others, "each repeat must score 0 or 1; got other numbers for {}; give 1 for a pass")
        counts, places = np.unique(np.count_nonzero(scores, axis=1), return_inverse=True)
        return np.array([self._chance(count, repeats) for count in counts.tolist()])[places]

    def _chance(self, passed: int, repeats: int) -> float:
        ways = math.comb(repeats, self.k)
        if self.every:
            return float(Fraction(math.comb(passed, self.k), ways))
        return float(1 - Fraction(math.comb(repeats - passed, self.k), ways))


# ---- the form of scores


class JudgedScores(Form):
    """The form of scores, one or several repeats for each row; a column or index of ids brings them into row order."""

    def __init__(self, ids: Ids, judge: Judge) -> None:
        self.rows = ids.rows
        self._ids, self._judge = ids, judge

    def prepare(self, predictions: object) -> NDArray[Any]:
        """Return one float64 for each row; equal scores give equal bytes, whatever the container."""
        return self._judge.of_repeats(self.aligned(predictions), self._ids) + 0.0  # turns -0.0 into 0.0

    def aligned(self, predictions: object) -> NDArray[np.float64]:
        """Return the scores in the order of the rows, of shape (rows, repeats)."""
        numbers = self._numbers(predictions)
        if numbers.ndim not in {1, 2} or len(numbers) != self.rows or not numbers.size:
            raise InputError(
                f"the scores must have shape ({self.rows},) or ({self.rows}, repeats); got {numbers.shape}; score "
                "every row of the guard, in its order; rows come first, repeats second; pass several models as a "
                "list to evaluate"
            )
        with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite and is refused
            scores = numbers.reshape(self.rows, -1).astype(np.float64)
        strange = np.any(~np.isfinite(scores), axis=1)
        words = "the scores must be finite numbers; got NaN or infinity for {}; score every row"
        self._ids.refuse(strange, words)
        return scores

    def _numbers(self, predictions: object) -> NDArray[Any]:
        """Return the scores as real numbers in the order of the rows; the shape stays the same."""
        columns = columns_in_order(predictions, self._ids)
        if columns is None and in_pieces(predictions):
            raise InputError(
                f"the scores must be in memory; got {type(predictions).__name__}; pass what its compute() gives"
            )
        if columns is None:
            return real_array(as_array(predictions, what="the scores"), what="the scores")
        if not columns:
            raise InputError("a table of scores must have a column in addition to the ids; got none; add it")
        return np.stack([real_array(one.values, what=f"{one.name} of scores") for one in columns], -1)
