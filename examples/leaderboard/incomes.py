"""UCI Adult in four parts: training rows of the teams, labels of two boards, and fresh rows that nobody asks about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reusable_holdout.demo.datasets import load_adult


class Rows(NamedTuple):
    """Some rows: features as numbers, and labels 0 and 1."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]


class Incomes(NamedTuple):
    """Disjoint random rows.

    `classes` are those of the board for labels, `chances` of the board for probabilities. They are different rows: one
    guard's certificate says nothing of rows that another one answers for.
    """

    training: Rows
    classes: Rows
    chances: Rows
    fresh: Rows

    @property
    def base_rate(self) -> float:
        """Share of ones among fresh rows."""
        return float(self.fresh.y.mean())


class Sizes(NamedTuple):
    """Rows of each part, and submissions of each team."""

    classes: int = 10_000
    chances: int = 4_000
    fresh: int = 10_000
    training: int = 8_537
    models: int = 6
    lucky: int = 200
    votes: int = 1_000
    flips: int = 2_000


FULL = Sizes()
QUICK = Sizes(
    classes=2_500, chances=1_500, fresh=4_000, training=2_000, models=2, lucky=20, votes=120, flips=150
)


def incomes(sizes: Sizes) -> Incomes:
    """Draw the parts: always the same ones."""
    X, y = load_adult()
    numbers = pd.get_dummies(X).astype(np.float32)
    numbers = (numbers - numbers.mean()) / numbers.std()
    order = np.random.default_rng(7).permutation(len(y))
    parts, start = [], 0
    for count in (sizes.training, sizes.classes, sizes.chances, sizes.fresh):
        chosen = order[start : start + count]
        assert len(chosen) == count
        parts.append(Rows(numbers.to_numpy()[chosen], y.to_numpy()[chosen].astype(np.int64)))
        start += count
    return Incomes(*parts)
