"""The sparse vector technique on integers, on which a guard runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace, GeometricNoise
from reusable_holdout.noise.keyed import KeyedNoise

ThresholdNoise: TypeAlias = Literal["renewed", "held"]

_FARTHEST = 2**60


ComparisonLaw: TypeAlias = Callable[[Fraction], GeometricNoise]
"""A function that returns the law of noise with a given scale, in grid units."""


@dataclass(frozen=True, slots=True)
class NoiseScales:
    """Scales of the three noises of a sparse vector mechanism, in grid units.

    A scale of 0 means no noise. Without noise on the queries there is no privacy; without noise on the threshold the
    privacy is that of `target_charging`.

    Parameters
    ----------
    threshold : Fraction
        Noise of the threshold.
    query : Fraction
        Noise of each comparison.
    answer : Fraction
        Noise of a released number; 0 if the mechanism releases none.

    Examples
    --------
    >>> from fractions import Fraction
    >>> NoiseScales(threshold=Fraction(2), query=Fraction(4), answer=Fraction(0)).query
    Fraction(4, 1)
    """

    threshold: Fraction
    query: Fraction
    answer: Fraction


class SparseVector:
    """A sparse vector mechanism on integers: it finds the first query above its noisy threshold.

    It is (epsilon, delta)-differentially private at the scales that `sparse_scales` and `numeric_sparse_scales` give
    (threshold noise renewed), or `standard_svt_scales` (held). It halts after the last charge.

    Parameters
    ----------
    scales : NoiseScales
        Grid units.
    noise : KeyedNoise
        Source of all noise, under the labels "threshold", "query" and "answer".
    charges : int
        Number of charges that the budget allows; at least 0.
    spent : int
        Charges already made, for a mechanism that is resumed.
    last_charged : bytes
        Digest of the question that was charged last; renewed threshold noise depends on it.
    threshold_noise : {"renewed", "held"}
        "renewed" if each charge renews the threshold's noise, "held" if there is only one draw.
    law : Callable[[Fraction], law of noise]
        Returns the law of the threshold's and the queries' noise at a scale; `DiscreteLaplace` by default.
        `DiscreteExponential` has half the variance at the same scale, and the same guarantee; the difference of the two
        noises' means is corrected. Answers always have Laplace noise.

    Raises
    ------
    InputError
        If not ``0 <= spent <= charges``.

    Notes
    -----
    Query ``i`` is above when ``deviation_i + query noise_i >= threshold_i + threshold noise``, ties included. The
    difference of the two noises' means, rounded, is added on the right. Renewed threshold noise is a function of the
    number of charges spent and the question that was charged last. So it stays the same between charges. If the state
    is set back to an earlier charge, the next charge brings new noise, unless it is for the same question as before.

    Where scores are compared with priors, the deviation is ``|score - prior|``, or the difference in one direction. Its
    sensitivity is that of the score, and its noise is added outside the absolute value [2]_.

    One-sided (exponential) noise is enough, because the proof shifts noise only upwards: the threshold's by the
    sensitivity ``D``, and a query's by at most ``2D``.

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
    ) -> None:
        if not 0 <= spent <= charges:
            raise InputError(f"charges spent must lie between 0 and the budget; got {spent} of {charges}")
        self.scales, self._noise = scales, noise  # scales in grid units
        self.charges, self.spent = charges, spent  # how many may be made, and were
        self.last_charged = last_charged  # digest of the question; empty before the first charge
        self._threshold_law, self._query_law = law(scales.threshold), law(scales.query)
        self._answer_law = DiscreteLaplace(scales.answer)
        self._correction = round(self._query_law.mean - self._threshold_law.mean)
        self._renews = threshold_noise == "renewed"
        self._offset = self._draw_offset()

    @property
    def halted(self) -> bool:
        """True if the budget is spent."""
        return self.spent >= self.charges

    def query_noise(self, questions: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Draw the noise of the comparisons, which must stay secret.

        It depends only on the questions, so it is the same before and after a charge, and a batch draws it once.

        Parameters
        ----------
        questions : Sequence[bytes]
            The questions' digests.

        Returns
        -------
        ndarray of int64, shape (len(questions),)
            Grid units.
        """
        return self._noise.draw_many(self._query_law, label="query", questions=questions)

    def first_above(
        self,
        deviations: npt.NDArray[np.int64],
        thresholds: npt.NDArray[np.int64],
        questions: Sequence[bytes],
        *,
        query_noise: npt.NDArray[np.int64] | None = None,
    ) -> int | None:
        """Find the first query above its noisy threshold.

        It does not change the mechanism. It is private only if the caller then charges for the query that was found.

        Parameters
        ----------
        deviations, thresholds : ndarray of int64, shape (queries,)
            Grid units.
        questions : Sequence[bytes]
            The questions' digests, in the same order.
        query_noise : ndarray of int64, shape (queries,), optional
            The result of `query_noise` for these questions, if it has been drawn already.

        Returns
        -------
        int or None
            Index of the query, or None if no query is above.

        Raises
        ------
        BudgetError
            If the mechanism has halted.
        InputError
            If a number is more than 2**60 from 0: with its noise it may not fit an int64.
        """
        self._check_budget()
        _check_reach(deviations, thresholds)
        noise = self.query_noise(questions) if query_noise is None else query_noise
        above = np.flatnonzero(deviations + noise >= thresholds + self._offset)
        return int(above[0]) if len(above) else None

    def is_above(self, deviation: int, threshold: int, question: bytes) -> bool:
        """Return True if one query is above its noisy threshold: `first_above` for a single query, without arrays.

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
        return self.gap(deviation, threshold, question) >= 0

    def gap(self, deviation: int, threshold: int, question: bytes) -> int:
        """Return how far one noisy query lies above its noisy threshold; it is negative if it lies below.

        The gap of a query that is above may be released at no further cost if the threshold's noise is held: the proof
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
        drawn = self._noise.draw(self._query_law, label="query", question=question)
        return deviation + drawn - threshold - self._offset

    def charge(self, value: int, question: bytes) -> int:
        """Spend one charge and release a value with noise.

        The answer's noise is independent of the comparison's; the threshold's noise is renewed.

        Parameters
        ----------
        value : int
            The number to release, grid units.
        question : bytes
            The question's digest.

        Returns
        -------
        int
            The value plus its noise, grid units.

        Raises
        ------
        BudgetError
            If the mechanism has halted; nothing is released.
        """
        self._check_budget()
        released = int(value) + self._noise.draw(self._answer_law, label="answer", question=question)
        self.spent += 1
        self.last_charged = question
        self._offset = self._draw_offset()
        return released

    def _draw_offset(self) -> int:
        """Return the threshold's current noise plus the correction for the two noises' means."""
        stage, follows = (self.spent, self.last_charged) if self._renews else (0, b"")
        drawn = self._noise.draw(
            self._threshold_law, label="threshold", question=stage.to_bytes(8, "big") + follows
        )
        return drawn + self._correction

    def _check_budget(self) -> None:
        if self.spent >= self.charges:
            raise BudgetError(
                f"a question needs 1 charge, 0 are left of {self.charges}; nothing was answered and nothing was "
                "charged; start again on fresh data"
            )


def _check_reach(*rows: npt.NDArray[np.int64]) -> None:
    """Refuse rows of grid units that leave too little room in an int64 for noise; the message tells no number."""
    if any(len(row) and not -_FARTHEST <= row.min() <= row.max() <= _FARTHEST for row in rows):
        raise InputError(
            "deviations and thresholds must be at most 2**60 grid units from 0; one is not; nothing was answered "
            "and nothing was charged"
        )
