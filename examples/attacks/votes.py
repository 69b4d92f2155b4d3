"""Random classifiers, their reverses and their majorities, in the form a metric needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attacks.truth import coin_truth
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric

__all__ = ["Votes"]


class Votes:
    """Classifiers that know nothing: every row's vote is the flip of a coin.

    For labels a vote is 0 or 1, for probabilities 1/4 or 3/4, for scores uniform in [0, 1].

    Parameters
    ----------
    metric : Metric
        What the votes are measured by.
    rows : int
        Rows of the holdout.
    rng : numpy.random.Generator
        Where the coins come from.

    Raises
    ------
    InputError
        If the metric is one of real values.
    """

    def __init__(self, metric: Metric, rows: int, rng: np.random.Generator) -> None:
        if metric.response in {"values", "judged"}:
            raise InputError(
                f"votes are labels, probabilities or scores; got metric {metric.name!r} of real values or judged ones; "
                "choose a metric of classes"
            )
        self.rows, self.rng = rows, rng
        self._response = metric.response
        self._chance = coin_truth(rows, metric)

    def draw(self, count: int) -> NDArray[Any]:
        """Votes of so many classifiers; shape (count, rows)."""
        if self._response == "scores":
            return self.rng.random((count, self.rows))
        packed = np.frombuffer(self.rng.bytes(-(-count * self.rows // 8)), np.uint8)
        return self._level(np.unpackbits(packed)[: count * self.rows].reshape(count, self.rows))

    def reverse(self, votes: NDArray[Any]) -> NDArray[Any]:
        """The opposite votes."""
        reversed_votes: NDArray[Any] = 1 - votes
        return reversed_votes

    def majority(self, votes: NDArray[Any]) -> NDArray[Any]:
        """What most of them say, ties by coin; the mean of scores. Shape (rows,)."""
        mean: NDArray[np.float64] = votes.mean(axis=0, dtype=np.float64)
        if self._response == "scores":
            return mean
        ties = self.rng.random(self.rows) < 0.5
        return self._level(((mean > 0.5) | ((mean == 0.5) & ties)).astype(np.uint8))

    def chance(self, votes: NDArray[Any]) -> float:
        """Score that is expected if labels are coins: all that is known before the holdout is asked."""
        return self._chance(votes)

    def chances(self, votes: NDArray[Any]) -> NDArray[np.float64]:
        """Score that is expected of each classifier if labels are coins; shape (count,)."""
        return np.array([self._chance(each) for each in votes], dtype=np.float64)

    def _level(self, bits: NDArray[np.uint8]) -> NDArray[Any]:
        return bits if self._response == "labels" else 0.25 + bits / 2.0
