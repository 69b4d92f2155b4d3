"""Compare: the same questions about the difference of two models, new less old, on the same rows.

Certificate, prior and score are those of differences; which question it is, the guard's policy says. Here a distance
decides, as where the user states a threshold; :mod:`~reusable_holdout.guard.kinds.evidence` has the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.gate import Gate
from reusable_holdout.guard.kinds.guess_and_check import GuessAndCheck
from reusable_holdout.queries import GRID

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reusable_holdout.queries import BoundMetric

__all__ = ["Compare", "GateCompare", "GuessAndCompare"]


class _OfTwo(Check):
    def measured(self, bound: BoundMetric, prepared: NDArray[np.generic]) -> NDArray[np.int64]:
        """Half the difference of two scores, on the grid; shape (1,)."""
        new, old = super().measured(bound, prepared)
        halved: NDArray[np.int64] = (new - old + GRID)[None] >> 1
        return halved


class Compare(_OfTwo):
    """A check of the difference of two models."""

    name: ClassVar[str] = "compare"


class GateCompare(_OfTwo, Gate):
    """A gate on the difference of two models: whether the new one is better by what was named."""

    name: ClassVar[str] = "gate-compare"


class GuessAndCompare(_OfTwo, GuessAndCheck):
    """Guess and check of the difference of two models."""

    name: ClassVar[str] = "guess-and-compare"
