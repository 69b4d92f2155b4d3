"""The core of the sparse vector technique, on integers: what the guard runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from reusable_holdout.mechanisms.noise import KeyedNoise

__all__ = ["NoiseScales", "SparseVector"]


@dataclass(frozen=True, slots=True)
class NoiseScales:
    """Scales of the three noises of a sparse vector mechanism, in grid units.

    Zero means no noise, and then no privacy either.

    Parameters
    ----------
    threshold : Fraction
        Noise of the threshold, held until the next charge.
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


class SparseVector:
    """Sparse vector technique on integers: finds the first query above its noisy threshold.

    (epsilon, delta)-differentially private at the scales `sparse_scales` or `numeric_sparse_scales` give; it
    halts after the last charge.

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

    Raises
    ------
    InputError
        If not ``0 <= spent <= charges``.

    Notes
    -----
    Query ``i`` is above when ``deviation_i + query noise_i >= threshold_i + threshold noise``, ties included.
    The threshold noise is drawn for each number of charges spent, so it is held between charges and renewed
    by each.

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithms 1 to 3.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from reusable_holdout.mechanisms import key_from_seed
    >>> scales = NoiseScales(Fraction(20), Fraction(40), Fraction(10))
    >>> core = SparseVector(scales=scales, noise=KeyedNoise(key_from_seed(0)), charges=1)
    >>> core.first_above(np.array([0, 5000]), np.array([1000, 1000]), [b"first", b"second"])
    1
    >>> abs(core.charge(5000, b"second") - 5000) < 1000, core.halted
    (True, True)
    """

    def __init__(self, *, scales: NoiseScales, noise: KeyedNoise, charges: int, spent: int = 0) -> None:
        if not 0 <= spent <= charges:
            raise InputError(f"charges spent lie between 0 and the budget; got {spent} of {charges}")
        self._threshold_law = DiscreteLaplace(scales.threshold)
        self._query_law = DiscreteLaplace(scales.query)
        self._answer_law = DiscreteLaplace(scales.answer)
        self._scales = scales
        self._noise = noise
        self._charges = charges
        self._spent = spent
        self._threshold_noise = self._draw_threshold_noise()

    @property
    def scales(self) -> NoiseScales:
        """The noise scales, in grid units."""
        return self._scales

    @property
    def charges(self) -> int:
        """The budget."""
        return self._charges

    @property
    def spent(self) -> int:
        """Charges made so far."""
        return self._spent

    @property
    def halted(self) -> bool:
        """Whether the budget is spent."""
        return self._spent >= self._charges

    def query_noise(self, questions: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Draw the noise of the comparisons.

        A function of the questions alone, the same before and after a charge: a batch draws it once. It is
        secret.

        Parameters
        ----------
        questions : Sequence[bytes]
            The questions' digests.

        Returns
        -------
        ndarray of int64, shape (len(questions),)
            Grid units.
        """
        if len(questions) == 1:  # the same number, without the arrays
            question = questions[0]
            return np.array(
                [self._noise.draw(self._query_law, label="query", question=question)], dtype=np.int64
            )
        return self._noise.draw_many(self._query_law, label="query", questions=questions)

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
        questions : Sequence[bytes]
            The questions' digests, in the same order.
        query_noise : ndarray of int64, shape (queries,), optional
            What `query_noise` gave for these questions, to spare drawing it again.

        Raises
        ------
        BudgetError
            If the mechanism has halted.
        """
        if self.halted:
            raise BudgetError(self._halt_message())
        noise = self.query_noise(questions) if query_noise is None else query_noise
        above = np.flatnonzero(deviations + noise >= thresholds + self._threshold_noise)
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
        if self.halted:
            raise BudgetError(self._halt_message())
        noise = self._noise.draw(self._query_law, label="query", question=question)
        return deviation + noise >= threshold + self._threshold_noise

    def charge(self, value: int, question: bytes) -> int:
        """Spend one charge and release a value with noise.

        The answer's noise is independent of what the comparison used; the threshold's noise is renewed.

        Parameters
        ----------
        value : int
            What to release, grid units.
        question : bytes
            The question's digest.

        Returns
        -------
        int
            The value plus the answer noise, grid units.

        Raises
        ------
        BudgetError
            If the mechanism has halted; nothing is released.
        """
        if self.halted:
            raise BudgetError(self._halt_message())
        released = int(value) + self._noise.draw(self._answer_law, label="answer", question=question)
        self._spent += 1
        self._threshold_noise = self._draw_threshold_noise()
        return released

    def _draw_threshold_noise(self) -> int:
        return self._noise.draw(
            self._threshold_law, label="threshold", question=self._spent.to_bytes(8, "big")
        )

    def _halt_message(self) -> str:
        return (
            f"1 charge asked, 0 left of {self._charges}; nothing was answered and nothing was charged; "
            f"start again on fresh data"
        )
