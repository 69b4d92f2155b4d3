"""The core of the sparse vector technique, on integers: what the guard runs on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from reusable_holdout.noise.discrete_laplace import DiscreteLaplace
from reusable_holdout.noise.guard_core import GuardCore, check_reach
from reusable_holdout.noise.keyed import KeyedNoise, NoiseLaw

__all__ = ["ComparisonLaw", "NoiseScales", "SparseVector", "ThresholdNoise"]

ThresholdNoise: TypeAlias = Literal["renewed", "held"]


class Centred(NoiseLaw, Protocol):
    """A law of noise that knows its mean."""

    @property
    def mean(self) -> float:
        """Mean, grid units."""


ComparisonLaw: TypeAlias = Callable[[Fraction], Centred]
"""Laws of noise, one for each scale in grid units."""


@dataclass(frozen=True, slots=True)
class NoiseScales:
    """Scales of the three noises of a sparse vector mechanism, in grid units.

    Zero means no noise: without noise on the queries there is no privacy, without it on the threshold what
    `target_charging` says.

    Parameters
    ----------
    threshold : Fraction
        Noise of the threshold.
    query : Fraction
        Noise of each comparison.
    answer : Fraction
        Noise of a released number; 0 when the mechanism releases none.

    Examples
    --------
    >>> from fractions import Fraction
    >>> NoiseScales(threshold=Fraction(2), query=Fraction(4), answer=Fraction(0)).query
    Fraction(4, 1)
    """

    threshold: Fraction
    query: Fraction
    answer: Fraction


class SparseVector(GuardCore):
    """Sparse vector technique on integers: finds the first query above its noisy threshold.

    (epsilon, delta)-differentially private at the scales that `sparse_scales`, `numeric_sparse_scales` (threshold noise
    renewed) or `standard_svt_scales` (held) give; it halts after the last charge.

    Parameters
    ----------
    scales : NoiseScales
        Grid units.
    noise : KeyedNoise
        Source of all noise. Labels "threshold", "query" and "answer".
    charges : int
        Charges that can be afforded in all; at least 0.
    spent : int
        Charges already made, for a mechanism that is resumed.
    last_charged : bytes
        Digest of the question that was charged last: renewed threshold noise belongs to what it follows.
    threshold_noise : {"renewed", "held"}
        Whether each charge renews the threshold's noise, or one draw serves for good.
    law : Callable[[Fraction], law of noise]
        Law of the threshold's and the queries' noise at a scale; `DiscreteLaplace` by default. `DiscreteExponential`
        has half the variance at the same scale and the same guarantee; its mean is corrected for. Answers have Laplace
        noise in any case.
    direction : {0, 1, -1}
        Which deviations count: both (0), upwards (1) or downwards (-1).

    Raises
    ------
    InputError
        If not ``0 <= spent <= charges``.

    Notes
    -----
    Query ``i`` is above when ``deviation_i + query noise_i >= threshold_i + threshold noise``, ties included, and the
    difference of the two noises' means, rounded, is added on the right. Renewed threshold noise is drawn
    for each number of charges spent and the question that was charged last, so it is held between charges, and after a
    return to an earlier charge it is new unless the same question is charged again.

    Where scores are compared with priors the query is ``|score - prior|``, whose sensitivity is the score's, with the
    noise outside the absolute value [2]_; or the difference in one direction.

    Why one-sided noise is enough: the proof shifts the threshold's noise upwards by D and a query's upwards by at most
    2D, never down.

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithms 1 to 3.
    .. [2] Lyu, Su and Li (2017), section 3.4.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from reusable_holdout.noise import KeyedNoise, NoiseScales, key_from_seed
    >>> scales = NoiseScales(Fraction(20), Fraction(40), Fraction(10))
    >>> core = SparseVector(scales=scales, noise=KeyedNoise(key_from_seed(0)), charges=1)
    >>> core.first_above(np.array([0, 5000]), np.array([1000, 1000]), [b"first", b"second"])
    1
    >>> abs(core.charge(5000, b"second") - 5000) < 1000, core.halted
    (True, True)
    """

    def __init__(
        self,
        *,
        scales: NoiseScales,
        noise: KeyedNoise,
        charges: int,
        spent: int = 0,
        last_charged: bytes = b"",
        threshold_noise: ThresholdNoise = "renewed",
        law: ComparisonLaw = DiscreteLaplace,
        direction: int = 0,
    ) -> None:
        threshold_law, query_law = law(scales.threshold), law(scales.query)
        super().__init__(query_law, noise, charges, spent, last_charged, direction)
        self._threshold_law, self._answer_law = threshold_law, DiscreteLaplace(scales.answer)
        self._correction = round(query_law.mean - threshold_law.mean)
        self._renews = threshold_noise == "renewed"
        self._scales = scales
        self._offset = self._draw_offset()

    @property
    def scales(self) -> NoiseScales:
        """The noise scales, in grid units."""
        return self._scales

    def first_above(
        self,
        deviations: npt.NDArray[np.int64],
        thresholds: npt.NDArray[np.int64],
        questions: Sequence[bytes],
        *,
        query_noise: npt.NDArray[np.int64] | None = None,
    ) -> int | None:
        """Index of the first query above its noisy threshold, or None.

        Changes nothing; private only if the caller then charges for what it found.

        Parameters
        ----------
        deviations, thresholds : ndarray of int64, shape (queries,)
            Grid units.
        questions, query_noise
            As for `first_deviation`.

        Raises
        ------
        BudgetError
            If the mechanism has halted.
        InputError
            If a number is more than 2**60 from 0: with its noise it may not fit an int64.
        """
        self._check_budget()
        check_reach(deviations, thresholds)
        noise = self.query_noise(questions) if query_noise is None else query_noise
        above = np.flatnonzero(deviations + noise >= thresholds + self._offset)
        return int(above[0]) if len(above) else None

    def is_above(self, deviation: int, threshold: int, question: bytes) -> bool:
        """Whether one query is above its noisy threshold: `first_above` for one, without arrays.

        Parameters
        ----------
        deviation, threshold : int
            Grid units.
        question : bytes
            The question's digest.

        Raises
        ------
        BudgetError
            If the mechanism has halted.
        """
        self._check_budget()
        return deviation + self._drawn(question) >= threshold + self._offset

    def gap(self, deviation: int, threshold: int, question: bytes) -> int:
        """How far one noisy query lies above its noisy threshold; negative if it lies below.

        Of a query that is above it may be released at no further cost if the threshold's noise is held: the proof
        shifts noises so that this difference stays the same. Below the threshold it must stay secret.

        Parameters
        ----------
        deviation, threshold : int
            Grid units.
        question : bytes
            The question's digest.

        References
        ----------
        .. [1] Ding, Wang, Zhang, Kifer (2019), "Free gap information from the differentially private sparse vector and
           noisy max mechanisms", PVLDB 13(3), Theorem 4.
        """
        return deviation + self._drawn(question) - threshold - self._offset

    def charge(self, value: int, question: bytes) -> int:
        """Spend one charge and release a value with noise; see `GuardCore`.

        The answer's noise is independent of what the comparison used; the threshold's noise is renewed.
        """
        self._check_budget()
        released = int(value) + self._noise.draw(self._answer_law, label="answer", question=question)
        self._spend(question)
        self._offset = self._draw_offset()
        return released

    def _past(self, difference: Any, threshold: Any, noise: Any) -> Any:
        return self._deviation(difference) + noise >= threshold + self._offset

    def _draw_offset(self) -> int:
        """Threshold noise in force, with the correction of the means."""
        stage, follows = (self._spent, self._last_charged) if self._renews else (0, b"")
        drawn = self._noise.draw(
            self._threshold_law, label="threshold", question=stage.to_bytes(8, "big") + follows
        )
        return drawn + self._correction
