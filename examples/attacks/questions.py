"""The questions of one attack: asked, recorded, and ended by a halt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attacks.guard_like import AnswerLike, GuardLike
from attacks.result import AttackResult
from attacks.truth import Truth, as_truth
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.metrics import Metric, resolve_metric

__all__ = ["Questions"]


class Questions:
    """Asks a holdout and keeps every answer beside its truth.

    As a context it ends at a halt: what was answered before is kept, and nothing else is swallowed.

    Parameters
    ----------
    holdout : GuardLike
        What is attacked.
    truth : callable or array-like of shape (rows,)
        Population score of predictions, or labels of fresh rows to score them on.
    metric : str or Metric
        What the holdout measures.
    rows : int, optional
        Of the holdout; fresh labels must be as many.

    Raises
    ------
    InputError
        If the holdout cannot be asked, or the truth does not fit the metric.
    """

    def __init__(
        self, holdout: GuardLike, truth: Truth | ArrayLike, metric: str | Metric, *, rows: int | None = None
    ) -> None:
        if not callable(getattr(holdout, "evaluate", None)):
            raise InputError(
                "what is attacked must have evaluate(predictions, prior=...); "
                f"got {type(holdout).__name__}; pass a guard or a PlainHoldout"
            )
        self.metric = resolve_metric(metric)
        self.truth = as_truth(truth, self.metric, rows=rows)
        self.sign = 1.0 if self.metric.greater_is_better else -1.0
        self._holdout = holdout
        self._answers: list[AnswerLike] = []
        self._truths: list[float] = []
        self._halted: str | None = None
        self._final: tuple[NDArray[Any] | None, float, float] = None, math.nan, math.nan

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, Halted):
            self._halted = error.reason
            return True
        return False

    @property
    def answers(self) -> Sequence[AnswerLike]:
        """Everything answered so far."""
        return self._answers

    def better(self, value: float, other: float) -> bool:
        """Whether a score is strictly better than another."""
        return self.sign * (value - other) > 0.0

    def ask(self, predictions: NDArray[Any], *, prior: float, truth: float | None = None) -> AnswerLike:
        """Ask one question; its truth is looked up unless it is known."""
        answer: AnswerLike = self._holdout.evaluate(predictions, prior=self.within(prior))
        self._answers.append(answer)
        self._truths.append(self.truth(predictions) if truth is None else truth)
        return answer

    def ask_many(self, predictions: NDArray[Any], priors: NDArray[np.float64]) -> Sequence[AnswerLike]:
        """Ask questions that depend on no answer of one another, as a batch."""
        stated = np.clip(priors, self.metric.lower, self.metric.upper)
        try:
            answers: list[AnswerLike] = self._holdout.evaluate(list(predictions), prior=stated)
        except Halted as halt:
            self._record(predictions, halt.answers)
            raise
        self._record(predictions, answers)
        return answers

    def submit(self, predictions: NDArray[Any], answer: float = math.nan, truth: float | None = None) -> None:
        """Say which submission is the final one so far, and what was reported for it."""
        self._final = predictions, answer, self.truth(predictions) if truth is None else truth

    def ask_and_submit(self, predictions: NDArray[Any], *, prior: float) -> None:
        """Make this the final submission, then ask about it: it stays final if the guard halts."""
        self.submit(predictions)
        answer = self.ask(predictions, prior=prior)
        self.submit(predictions, answer.value, self._truths[-1])

    def within(self, prior: float) -> float:
        """Nearest prior that the metric can have."""
        return min(max(prior, self.metric.lower), self.metric.upper)

    def result(self, name: str, details: Mapping[str, float] | None = None) -> AttackResult:
        """Everything asked and answered."""
        final, answer, truth = self._final
        return AttackResult(
            name=name,
            greater_is_better=self.metric.greater_is_better,
            answers=tuple(self._answers),
            truths=np.array(self._truths, dtype=np.float64),
            final=final,
            answer=answer,
            truth=truth,
            halted=self._halted,
            details=dict(details or {}),
        )

    def _record(self, predictions: NDArray[Any], answers: Sequence[AnswerLike]) -> None:
        self._answers += answers
        self._truths += [self.truth(each) for each in predictions[: len(answers)]]
