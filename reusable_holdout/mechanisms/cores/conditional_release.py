"""Conditional release on integers: a noisy score is published where it deviates from its prior, and else kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms.cores.sparse_vector import Charged
from reusable_holdout.mechanisms.noise.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from reusable_holdout.mechanisms.noise.keyed import KeyedNoise

__all__ = ["ConditionalRelease"]


class ConditionalRelease(Charged):
    """Finds the first score whose noisy value deviates from its prior past a threshold; that value is the answer.

    With noise of scale ``D/e`` each question is a conditional release of an e-differentially private score, so the
    whole stream costs what `target_charging` says for `charges` hits with `not_prior_q`. It halts after the last one.

    Parameters
    ----------
    scale : Fraction
        Of the noise of each score, grid units.
    noise : KeyedNoise
        Source of all noise.
    charges : int
        Charges that can be afforded in all; at least 0.
    spent : int
        Charges already made, for a mechanism that is resumed.
    last_charged : bytes
        Digest of the question that was charged last.
    direction : {0, 1, -1}
        Which deviations count: both (0), upwards (1) or downwards (-1).

    Raises
    ------
    InputError
        If more is spent than can be afforded.

    Notes
    -----
    A question is charged when ``|score + noise - prior| >= threshold``. There is no hidden threshold noise, and the
    published value is the very number that was compared: the target "not released" is what target charging needs, where
    the sparse vector technique would need fresh noise.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive computations",
       Lemma 2.4.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from reusable_holdout.mechanisms import KeyedNoise, key_from_seed
    >>> core = ConditionalRelease(scale=Fraction(40), noise=KeyedNoise(key_from_seed(0)), charges=1)
    >>> core.deviates(5000, 0, 1000, b"first"), abs(core.charge(5000, b"first") - 5000) < 1000, core.halted
    (True, True, True)
    """

    def __init__(
        self,
        *,
        scale: Fraction,
        noise: KeyedNoise,
        charges: int,
        spent: int = 0,
        last_charged: bytes = b"",
        direction: int = 0,
    ) -> None:
        super().__init__(charges=charges, spent=spent, last_charged=last_charged)
        self._law = DiscreteLaplace(scale)
        self._noise = noise
        self._direction = direction

    def query_noise(self, questions: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Draw the noise of the scores; it is secret.

        Parameters
        ----------
        questions : Sequence[bytes]
            The questions' digests.

        Returns
        -------
        ndarray of int64, shape (len(questions),)
            Grid units.
        """
        return self._noise.draw_many(self._law, label="query", questions=questions)

    def first_deviation(
        self,
        scores: npt.NDArray[np.int64],
        priors: npt.NDArray[np.int64],
        thresholds: npt.NDArray[np.int64],
        questions: Sequence[bytes],
        *,
        query_noise: npt.NDArray[np.int64] | None = None,
    ) -> int | None:
        """Index of the first noisy score that deviates from its prior by at least its threshold, or None.

        Changes nothing; private only if the caller then charges for what it found.

        Parameters
        ----------
        scores, priors, thresholds : ndarray of int64, shape (queries,)
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
        self._check_budget()
        noise = self.query_noise(questions) if query_noise is None else query_noise
        differences = scores + noise - priors
        deviations = self._direction * differences if self._direction else np.abs(differences)
        above = np.flatnonzero(deviations >= thresholds)
        return int(above[0]) if len(above) else None

    def deviates(self, score: int, prior: int, threshold: int, question: bytes) -> bool:
        """Whether one noisy score deviates from its prior: `first_deviation` for one, without arrays.

        Parameters
        ----------
        score, prior, threshold : int
            Grid units.
        question : bytes
            The question's digest.

        Raises
        ------
        BudgetError
            If the mechanism has halted.
        """
        self._check_budget()
        difference = self._noisy(score, question) - prior
        return (self._direction * difference if self._direction else abs(difference)) >= threshold

    def charge(self, value: int, question: bytes) -> int:
        """Spend one charge and release the noisy score that was compared.

        Parameters
        ----------
        value : int
            The score, grid units.
        question : bytes
            The question's digest.

        Raises
        ------
        BudgetError
            If the mechanism has halted; nothing is released.
        """
        self._check_budget()
        self._spend(question)
        return self._noisy(int(value), question)

    def _noisy(self, score: int, question: bytes) -> int:
        return score + self._noise.draw(self._law, label="query", question=question)
