"""The sparse vector technique on real numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.noise.keyed import KeyedNoise, key_from_seed, new_key
from reusable_holdout.mechanisms.sparse_vector.core import NoiseScales, SparseVector

if TYPE_CHECKING:
    from reusable_holdout.mechanisms.noise.grid import Grid
    from reusable_holdout.mechanisms.sparse_vector.core import Comparison, ThresholdNoise

__all__ = ["RealStream"]


class RealStream:
    """A sparse vector core that is asked with real numbers, one at a time or many in a row.

    Adds no randomness of its own: rounding to the grid happens before the noise and is paid by the grid's
    sensitivity.
    """

    def __init__(
        self,
        threshold: float,
        *,
        grid: Grid,
        scales: NoiseScales,
        charges: int,
        seed: int | None,
        threshold_noise: ThresholdNoise = "renewed",
        comparison: Comparison = "laplace",
    ) -> None:
        if not math.isfinite(threshold):
            raise InputError(f"a threshold is a finite number; got {threshold}")
        key = new_key() if seed is None else key_from_seed(seed)
        self._grid = grid
        self._core = SparseVector(
            scales=scales,
            noise=KeyedNoise(key),
            charges=charges,
            threshold_noise=threshold_noise,
            comparison=comparison,
        )
        self._threshold = grid.steps(threshold)
        self._asked = 0

    @property
    def charges_left(self) -> int:
        """Queries above the threshold that can still be answered."""
        return self._core.charges - self._core.spent

    @property
    def halted(self) -> bool:
        """Whether the budget is spent: then every further question raises BudgetError."""
        return self._core.halted

    @property
    def scales(self) -> NoiseScales:
        """Noise scales in grid steps; multiply by `step` for real units."""
        return self._core.scales

    @property
    def step(self) -> float:
        """Width of one grid step in real units, a power of two."""
        return self._grid.step

    def _ask(self, value: float, threshold: int) -> tuple[int, bytes] | None:
        """Compare one query: None below the threshold, else its grid value and its question, to be charged."""
        steps = self._grid.steps(value)
        question = self._asked.to_bytes(8, "big")
        above = self._core.is_above(steps, threshold, question)
        self._asked += 1
        return (steps, question) if above else None

    def _released(self, value: float) -> int | None:
        """Ask one question: the released grid value, or None for a query below the threshold."""
        found = self._ask(value, self._threshold)
        return None if found is None else self._core.charge(*found)

    def _released_many(
        self, values: npt.ArrayLike, thresholds: npt.NDArray[np.int64] | None = None
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Ask many questions as if one by one, up to the last charge: which were above, and what was released."""
        steps = self._grid.steps_many(values)
        if thresholds is None:
            thresholds = np.full(len(steps), self._threshold, dtype=np.int64)
        questions = [number.to_bytes(8, "big") for number in range(self._asked, self._asked + len(steps))]
        noise = self._core.query_noise(questions)
        above, released = np.zeros(len(steps), dtype=np.bool_), []
        at = 0
        while at < len(steps):
            rest = slice(at, None)
            first = self._core.first_above(
                steps[rest], thresholds[rest], questions[rest], query_noise=noise[rest]
            )
            if first is None:
                at = len(steps)
                break
            at += first + 1
            above[at - 1] = True
            released.append(self._core.charge(int(steps[at - 1]), questions[at - 1]))
            if self.halted:
                break
        self._asked += at
        return above[:at], np.array(released, dtype=np.int64)

    def _radius(self, *, queries: int, beta: float, events: int) -> float:
        """Give the distance that no noise exceeds.

        A comparison has half of it for the threshold's noise and half for the query's; an answer has all
        of it. Three steps more, for the rounding of value and threshold and for noise being discrete.
        """
        if queries < 1 or not 0 < beta < 1:
            raise InputError(
                f"queries is at least 1 and beta lies in (0, 1); got queries {queries}, beta {beta}"
            )
        log_failure = math.log(queries) + math.log(events / beta)
        scale = max(2 * self._core.scales.query, self._core.scales.answer)
        return self._grid.real(math.ceil(scale * Fraction(log_failure)) + 3)
