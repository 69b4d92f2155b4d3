"""The sparse vector technique on real numbers: the base class of all its streams."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.discrete_exponential import DiscreteExponential
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.samplers.numbered import NumberedNoise
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace
from reusable_holdout.noise.keyed import key_from_seed, new_key
from reusable_holdout.noise.sparse_vector import ComparisonLaw, NoiseScales, SparseVector, ThresholdNoise

Comparison: TypeAlias = Literal["laplace", "exponential"]

_LAWS: Mapping[str, ComparisonLaw] = {"laplace": DiscreteLaplace, "exponential": DiscreteExponential}


class RealStream:
    """The base of sparse vector streams, which compare real values with a threshold, one at a time or many in a row.

    All randomness comes from a `SparseVector` on integers. Values are rounded to a grid before noise is added, and the
    grid's sensitivity accounts for the rounding. The function `scales` takes this sensitivity in grid steps.

    Notes
    -----
    A query may have a threshold of its own. The comparison is ``value + noise >= threshold + threshold noise``, so an
    answer depends only on ``value - threshold``. This difference has the sensitivity of the value, because a threshold
    may depend on earlier answers but not on the data. So every proof for a single threshold also holds here.
    """

    _events = 2  # noises for each charge in the union bound of `accuracy`

    def __init__(
        self,
        threshold: float,
        *,
        scales: Callable[..., NoiseScales],
        charges: int,
        sensitivity: float,
        seed: int | None,
        threshold_noise: ThresholdNoise = "renewed",
        noise: str = "laplace",
    ) -> None:
        if noise not in _LAWS:
            raise InputError(f"noise is 'laplace' or 'exponential'; got {noise!r}")
        self._grid = Grid.of(sensitivity)
        self._core = SparseVector(
            scales=scales(sensitivity=self._grid.sensitivity),
            noise=NumberedNoise(new_key() if seed is None else key_from_seed(seed)),
            charges=charges,
            threshold_noise=threshold_noise,
            law=_LAWS[noise],
        )
        self._threshold = self._limit(threshold)
        self._asked = 0

    @property
    def charges_left(self) -> int:
        """Number of queries above the threshold that can still be answered."""
        return self._core.charges - self._core.spent

    @property
    def halted(self) -> bool:
        """True if all charges are spent; every further question then raises BudgetError."""
        return self._core.halted

    @property
    def scales(self) -> NoiseScales:
        """Noise scales in grid steps; multiply by `step` for real units."""
        return self._core.scales

    @property
    def step(self) -> float:
        """Width of one grid step in real units, a power of two."""
        return self._grid.step

    def accuracy(self, *, queries: int, beta: float) -> float:
        """Bound the error of every answer.

        Let ``alpha`` be the result, and let at most `charges` of `queries` queries reach ``threshold - alpha``. With
        probability at least ``1 - beta``, a query is found above only if its value is above ``threshold - alpha``, it
        is found below only if its value is below ``threshold + alpha``, and released values err by at most ``alpha``.
        The formula is in the notes of the class.

        Parameters
        ----------
        queries : int
            Number ``k`` of queries; at least 1.
        beta : float
            Failure probability, in (0, 1).

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        check_tail(queries=queries, beta=beta)
        return self._grid.real(self._reach(queries, beta))

    def _compare(self, value: float, threshold: float | None) -> tuple[int, int, bytes] | None:
        """Compare one query: return None if it is below, else its value and threshold in steps, and its number."""
        limit = self._threshold if threshold is None else self._limit(threshold)
        steps = self._grid.steps(value)
        question = self._asked.to_bytes(8, "big")
        above = self._core.is_above(steps, limit, question)
        self._asked += 1
        return (steps, limit, question) if above else None

    def _released(self, value: float, threshold: float | None) -> int | None:
        """Answer one query: return its released value in grid steps, or None if it is below its threshold."""
        found = self._compare(value, threshold)
        return None if found is None else self._core.charge(found[0], found[2])

    def _value(self, value: float, threshold: float | None) -> float | None:
        """Answer one query: return its released value, or None if it is below its threshold."""
        released = self._released(value, threshold)
        return None if released is None else self._grid.real(released)

    def _compared(self, value: float, threshold: float | None, *, less_threshold: bool) -> float | None:
        """Answer one query: return the compared noisy value, or its gap to the noisy threshold; None if below."""
        found = self._compare(value, threshold)
        if found is None:
            return None
        steps, limit, question = found
        gap = self._core.gap(steps, limit, question)
        self._core.charge(steps, question)
        return self._grid.real(gap if less_threshold else limit + gap)

    def _released_many(
        self, values: npt.ArrayLike, thresholds: npt.ArrayLike | None
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Answer many queries as if one by one, up to the last charge.

        Return an array that is True for queries above their thresholds, and the released values in grid steps.
        """
        steps = self._grid.steps_many(values)
        limits = self._limits(thresholds, len(steps))
        questions = [number.to_bytes(8, "big") for number in range(self._asked, self._asked + len(steps))]
        noise = self._core.query_noise(questions)
        above, released = np.zeros(len(steps), dtype=np.bool_), []
        at = 0
        while rest := questions[at:]:
            first = self._core.first_above(steps[at:], limits[at:], rest, query_noise=noise[at:])
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

    def _limit(self, threshold: float) -> int:
        """Return a threshold in grid steps."""
        if not math.isfinite(threshold):
            raise InputError(f"a threshold is a finite number; got {threshold}")
        return self._grid.steps(threshold)

    def _limits(self, thresholds: npt.ArrayLike | None, queries: int) -> npt.NDArray[np.int64]:
        """Return the threshold of each query in grid steps: the stream's threshold, or the query's own."""
        if thresholds is None:
            return np.full(queries, self._threshold, dtype=np.int64)
        limits = self._grid.steps_many(thresholds)
        if len(limits) != queries:
            raise InputError(
                f"each query has one threshold; got {len(limits)} thresholds for {queries} queries"
            )
        return limits

    def _reach(self, queries: int, beta: float) -> int:
        """Return a distance in grid steps that no noise exceeds, except with probability `beta`.

        In a comparison the noises of threshold and query may each take half of it; an answer's noise may take all of
        it. Three grid steps are added for the rounding of value and threshold, and because noise is discrete.
        """
        # Exponential noise is at most one scale below its mean, which a log of at least one covers.
        log_failure = max(1.0, math.log(queries) + math.log(self._events * self._core.charges / beta))
        scale = max(2 * self.scales.query, 2 * self.scales.threshold, self.scales.answer)
        return math.ceil(scale * Fraction(log_failure)) + 3


class YesNoStream(RealStream):
    """A stream that answers whether each query is above its threshold."""

    def ask(self, value: float, *, threshold: float | None = None) -> bool:
        """Return True if a query is above its threshold after noise is added.

        A query above its threshold costs one charge; others cost nothing.

        Parameters
        ----------
        value : float
            The query's value on the private data.
        threshold : float, optional
            The query's own threshold; by default the stream's. It may depend on earlier answers, not on the data.

        Raises
        ------
        BudgetError
            If the mechanism has halted; nothing is answered.
        InputError
            If the value or the threshold is not finite, or beyond 2**60 grid steps; nothing is answered.
        """
        return self._released(value, threshold) is not None

    def ask_many(
        self, values: npt.ArrayLike, thresholds: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return whether each of many queries is above its threshold, as `ask` would, up to the last charge.

        Parameters
        ----------
        values : array-like, shape (queries,)
            The queries' values on the private data.
        thresholds : array-like, shape (queries,), optional
            The queries' own thresholds; by default the stream's.

        Returns
        -------
        ndarray of bool, shape (answered,)
            True for queries above their thresholds. If the last charge was spent, the array ends with that query, and
            is shorter than `values`.

        Raises
        ------
        BudgetError
            If the mechanism has halted before.
        InputError
            If the values or thresholds are not rows of numbers within 2**60 grid steps, or differ in length; nothing is
            answered.

        Examples
        --------
        >>> from reusable_holdout.mechanisms import Sparse
        >>> Sparse(100.0, charges=1, epsilon=1.0, seed=1).ask_many([0.0, 200.0, 0.0]).tolist()
        [False, True]
        """
        return self._released_many(values, thresholds)[0]


def check_tail(*, queries: int, beta: float) -> None:
    """Refuse a number of queries or a failure probability that is out of range."""
    if queries < 1 or not 0 < beta < 1:
        raise InputError(f"queries is at least 1 and beta lies in (0, 1); got queries {queries}, beta {beta}")
