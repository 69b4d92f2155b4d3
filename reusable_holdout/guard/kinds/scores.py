"""Scores of the questions of a batch, some of which may have failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.guard.kinds import Integers

__all__ = ["Scores"]


class Scores(NamedTuple):
    """Values by which the questions of a batch are decided; the value of a question that failed means nothing."""

    values: Integers  # of shape (questions, ...)
    failed: NDArray[np.bool_]  # of shape (questions,)

    @classmethod
    def of(cls, found: Sequence[Integers | None]) -> Scores:
        """Join what was found of each question, which is None if it failed."""
        blank = np.zeros_like(next((one for one in found if one is not None), 0))
        values = [blank if one is None else one for one in found]
        return cls(np.stack(values), np.array([one is None for one in found]))

    def at(self, places: Sequence[int]) -> Scores:
        """Return those of some questions."""
        return Scores(self.values[places], self.failed[places])
