"""Evidence about an area under the ROC curve, averaged over fixed matchings of the rows of two classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 20  # factors whose logarithms are held at once


class Matchings(NamedTuple):
    """The mean win (share of comparisons won) of each row of the rarer class, in each matching.

    Attributes
    ----------
    wins : numpy.ndarray of float64 of shape (values,) or (matchings, rows)
        The distinct mean wins of all matchings; or, for each matching, the mean win of each row.
    counts : numpy.ndarray of float64 of shape (matchings, values) or None
        Number of rows of each matching that have these mean wins; None if each row has its own.

    Notes
    -----
    Given the labels, all scores of one class are independent draws from one distribution, in an order independent of
    them; the guard shuffles each class by its key, because a file may be sorted. In a matching each row of the rarer
    class meets some rows of the other, none of which meets another row: so its mean wins x (ties a half) are
    independent, and each has the area A as its expectation. For a bet b in (0, 1), ``prod (1 + b (x - m) / m)`` over
    the rows has expectation ``(1 + b (A - m) / m)^rows``, at most 1 if A <= m, and falls in m. So does the average over
    matchings, which depend on the labels and on nothing else.
    """

    wins: NDArray[np.float64]
    counts: NDArray[np.float64] | None

    @property
    def mirrored(self) -> Matchings:
        """The matchings with each mean win replaced by one minus it."""
        return Matchings(1.0 - self.wins, self.counts)

    def log_gains(self, value: float, bets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log gain of each bet against areas of at most `value`, averaged over the matchings."""
        gains = (self.wins - value) / value
        logs = np.array([self._logs(bet * gains) for bet in bets])
        most = logs.max(axis=1)
        return np.asarray(most + np.log(np.exp(logs - most[:, np.newaxis]).mean(axis=1)))

    def _logs(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.counts is not None:
            return np.asarray(self.counts @ np.log1p(gains))
        return np.concatenate([np.log1p(some).sum(axis=1) for some in _in_blocks(gains)])


def matched(positive: NDArray[np.float64], negative: NDArray[np.float64], matchings: int) -> Matchings:
    """Match scores of two classes, in the order of their rows, so that every row of the larger class is met once.

    A row of the rarer class meets r or r + 1 neighbouring rows of the other, in a circle. Each matching turns the
    circle further, by equal parts of a whole turn.
    """
    few, many = (positive, negative) if len(positive) <= len(negative) else (negative, positive)
    starts = np.arange(len(few)) * len(many) // len(few)
    sizes, least = np.diff(starts, append=len(many)), len(many) // len(few)
    met, circle = np.repeat(few, sizes), np.concatenate([many, many])
    turns = min(matchings, len(many))
    is_counted = 4 * least + 4 <= len(few)  # then there are fewer different mean wins than rows
    places = np.where(sizes > least, 2 * least + 1, 0)  # mean wins over r + 1 rows, after those over r
    found = []
    for start in (np.arange(turns) * len(many) // turns).tolist():
        against = circle[start : start + len(many)]
        twice = (met > against).astype(np.int8) + (met >= against)
        won = np.add.reduceat(twice, starts, dtype=np.int64)
        counted = is_counted and np.bincount(won + places, minlength=4 * least + 4)
        found.append(counted if is_counted else won / (2.0 * sizes))
    wins, counts = np.array(found, dtype=np.float64), None
    if is_counted:
        each = [np.arange(2 * rows + 1) / (2.0 * rows) for rows in (least, least + 1)]
        wins, counts = np.concatenate(each), wins
    made = Matchings(wins, counts)
    return made if few is positive else made.mirrored


def _in_blocks(gains: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    rows = max(1, _BLOCK // gains.shape[1])
    return [gains[start : start + rows] for start in range(0, len(gains), rows)]
