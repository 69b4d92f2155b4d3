"""What an attack did, and what it got."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attacks.guard_like import AnswerLike

__all__ = ["AttackResult", "is_paid"]


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackResult:
    """One finished attack.

    Parameters
    ----------
    name : str
        Of the attack.
    greater_is_better : bool
        Of the metric.
    answers : tuple of answers
        Everything that was answered, in order.
    truths : numpy.ndarray of shape (questions,)
        Population score of each question, as the caller's truth has it.
    final : numpy.ndarray or None
        Predictions of the final submission; None if the attack ended before there was one.
    answer : float
        What was reported for the final submission; NaN if the guard had halted before it could be asked about.
    truth : float
        Population score of the final submission.
    halted : str or None
        Why the guard halted, if it did.
    details : mapping of str to float
        Numbers of this attack alone; its function says which.
    """

    name: str
    greater_is_better: bool
    answers: tuple[AnswerLike, ...]
    truths: NDArray[np.float64]
    final: NDArray[Any] | None
    answer: float
    truth: float
    halted: str | None
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def questions(self) -> int:
        """Questions that were answered."""
        return len(self.answers)

    @property
    def charges(self) -> int:
        """Answers that were charged; a repeated question costs nothing again."""
        return sum(map(is_paid, self.answers))

    @property
    def overfit(self) -> float:
        """Answer minus truth of the final submission, negative for losses turned round: positive is too good."""
        return (self.answer - self.truth) * (1.0 if self.greater_is_better else -1.0)

    @property
    def values(self) -> NDArray[np.float64]:
        """Reported values; shape (questions,)."""
        return np.array([answer.value for answer in self.answers], dtype=np.float64)

    @property
    def lows(self) -> NDArray[np.float64]:
        """Lower ends of the intervals; shape (questions,); NaN where there is none."""
        return np.array([_end(answer.low) for answer in self.answers], dtype=np.float64)

    @property
    def highs(self) -> NDArray[np.float64]:
        """Upper ends of the intervals; shape (questions,); NaN where there is none."""
        return np.array([_end(answer.high) for answer in self.answers], dtype=np.float64)

    @property
    def misses(self) -> int:
        """Intervals that do not contain their question's truth."""
        return int(np.count_nonzero((self.truths < self.lows) | (self.truths > self.highs)))

    @property
    def covered(self) -> bool | None:
        """Whether every interval contains its question's truth; None if an answer came without an interval.

        A truth measured on fresh rows has a sampling error of its own: coverage can be judged by exact truths alone.
        """
        if np.isnan(self.lows).any() or np.isnan(self.highs).any():
            return None
        return self.misses == 0

    def __str__(self) -> str:
        end = f", halted ({self.halted})" if self.halted else ""
        interval = {True: "all intervals hold", False: f"{self.misses} intervals miss", None: "no intervals"}
        return (
            f"{self.name}: {self.questions:,} questions, {self.charges} charges{end}; answer {self.answer:.4f}, truth "
            f"{self.truth:.4f}, overfit {self.overfit:+.4f}; {interval[self.covered]}"
        )


def is_paid(answer: AnswerLike) -> bool:
    """Whether an answer was charged, and is not a repetition of one that was."""
    return bool(answer.charged) and not getattr(answer, "replayed", False)


def _end(end: float | None) -> float:
    return math.nan if end is None else end
