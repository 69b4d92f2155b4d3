"""What both integer cores have: they compare many scores or one with noise, and count their charges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.noise.keyed import KeyedNoise, NoiseLaw

__all__ = ["GuardCore", "check_reach"]

_FARTHEST = 2**60


def check_reach(*rows: npt.NDArray[np.int64]) -> None:
    """Refuse rows of grid units that leave too little of an int64 for noise; the message tells none of them."""
    if any(len(row) and not -_FARTHEST <= row.min() <= row.max() <= _FARTHEST for row in rows):
        raise InputError(
            "scores, priors and thresholds are at most 2**60 grid units from 0; one is beyond; nothing was answered "
            "and nothing was charged"
        )


class GuardCore(ABC):
    """The mechanism inside a guard: with noise, on integers, it decides which scores deviate, and releases those.

    `SparseVector`. It counts its charges, and remembers which question
    made the last one.

    Parameters
    ----------
    law : law of noise
        Of each comparison.
    noise, charges, spent, last_charged, direction
        As for `SparseVector`.
    """

    def __init__(
        self, law: NoiseLaw, noise: KeyedNoise, charges: int, spent: int, last_charged: bytes, direction: int
    ) -> None:
        if not 0 <= spent <= charges:
            raise InputError(f"charges spent lie between 0 and the budget; got {spent} of {charges}")
        self._query_law, self._noise, self._direction = law, noise, direction
        self._charges, self._spent, self._last_charged = charges, spent, last_charged

    @property
    def charges(self) -> int:
        """Charges that can be afforded in all."""
        return self._charges

    @property
    def spent(self) -> int:
        """Charges made so far."""
        return self._spent

    @property
    def last_charged(self) -> bytes:
        """Digest of the question that was charged last; empty if none was."""
        return self._last_charged

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
            return np.array([self._drawn(questions[0])], dtype=np.int64)
        return self._noise.draw_many(self._query_law, label="query", questions=questions)

    def first_deviation(
        self,
        scores: npt.NDArray[np.int64],
        priors: npt.NDArray[np.int64],
        thresholds: npt.NDArray[np.int64],
        questions: Sequence[bytes],
        *,
        query_noise: npt.NDArray[np.int64] | None = None,
    ) -> int | None:
        """Index of the first score that deviates from its prior past the threshold, with noise, or None.

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
        InputError
            If a number is more than 2**60 from 0: with its noise it may not fit an int64.
        """
        self._check_budget()
        check_reach(scores, priors, thresholds)
        noise = self.query_noise(questions) if query_noise is None else query_noise
        past = np.flatnonzero(self._past(scores - priors, thresholds, noise))
        return int(past[0]) if len(past) else None

    def deviates(self, score: int, prior: int, threshold: int, question: bytes) -> bool:
        """Whether one score deviates from its prior: `first_deviation` for one, without arrays.

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
        return bool(self._past(score - prior, threshold, self._drawn(question)))

    @abstractmethod
    def charge(self, value: int, question: bytes) -> int:
        """Spend one charge and release a value with noise.

        Parameters
        ----------
        value : int
            What to release, grid units.
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

    @abstractmethod
    def _past(self, difference: Any, threshold: Any, noise: Any) -> Any:
        """Whether differences of scores and priors are past their thresholds, with this noise; numbers or arrays."""

    def _deviation(self, difference: Any) -> Any:
        """How far a difference goes in the directions that count."""
        return self._direction * difference if self._direction else abs(difference)

    def _drawn(self, question: bytes) -> int:
        return self._noise.draw(self._query_law, label="query", question=question)

    def _check_budget(self) -> None:
        if self._spent >= self._charges:
            raise BudgetError(
                f"1 charge asked, 0 left of {self._charges}; nothing was answered and nothing was charged; start again "
                "on fresh data"
            )

    def _spend(self, question: bytes) -> None:
        self._spent += 1
        self._last_charged = question
