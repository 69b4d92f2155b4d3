"""A scorer for :func:`mlflow.genai.evaluate` whose judgements of single rows reach the guard, and MLflow never."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import mlflow
import numpy as np
from mlflow.entities import Feedback
from mlflow.genai.scorers import Scorer
from mlflow.tracing.provider import trace_disabled
from mlflow.utils.autologging_utils import disable_autologging
from pydantic import PrivateAttr

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, HoldoutError, InputError, Refused
from reusable_holdout.guard import check_is_guard
from reusable_holdout.slips import checked_call
from reusable_holdout_mlflow.evaluated import EvaluatedRun

__all__ = ["GuardedScorer", "guarded_genai_scorer"]

_WORDS = {"yes": 1.0, "no": 0.0}  # of MLflow's own judges


@checked_call
def guarded_genai_scorer(
    guard: ReusableHoldout,
    judge: Callable[..., Any] | Scorer,
    *,
    prior: float,
    id: str = "id",  # noqa: A002 - the column's name in the guard's tables, too
    name: str | None = None,
    workers: int = 10,
) -> GuardedScorer:
    """Scorer that lets a judge score all rows of a holdout and logs the guard's one answer.

    What MLflow logs for a row is that it was there. When all are, the judge scores them where nothing is traced and
    autologged, and the guard is asked once; its answer is the run's, with the metrics of
    :func:`reusable_holdout_mlflow.track`, and ``holdout/answer``.

    Parameters
    ----------
    guard : ReusableHoldout
        With metric "score": its rows are named by ids.
    judge : callable or mlflow.genai.scorers.Scorer
        Takes of `inputs`, `outputs` and `expectations` those that it names; returns a number within the metric's
        bounds, a bool, "yes" or "no", or a Feedback with one of them.
    prior : float
        The analyst's own estimate of the mean score.
    id : str
        Which of a row's inputs is its id.
    name : str, optional
        What history calls the question; by default the judge's name.
    workers : int
        Threads that judge.

    Returns
    -------
    GuardedScorer
        For ``mlflow.genai.evaluate(data=..., scorers=[...])``, again and again. The data must be the guard's ids, each
        once.

    Raises
    ------
    Halted
        From :func:`mlflow.genai.evaluate`, if a budget has run out and the question is new.
    Refused
        From there, if the judge fails or the scores do not fit; nothing was asked and nothing was charged.

    Notes
    -----
    MLflow writes the inputs, outputs and expectations it is given to traces. To keep those of the holdout off the
    server, too, let the data be ids alone and look outputs up in the judge.

    The guard protects against conclusions, not against looking: a second, plain scorer in the same list would log each
    row's score.
    """
    check_is_guard(guard)
    if guard.metric.response != "judged":
        raise InputError(
            f'the guard must have ids and metric "score"; its metric is {guard.metric.name!r}; nothing was asked; '
            "models that predict are asked about with mlflow.models.evaluate"
        )
    called = name or getattr(judge, "name", None) or getattr(judge, "__name__", type(judge).__name__)
    scorer = GuardedScorer(name="holdout")
    scorer.begin(_Question(guard, judge, prior, id, str(called), workers))
    return scorer


class _Question(NamedTuple):
    guard: ReusableHoldout
    judge: Any
    prior: float
    id: str
    name: str
    workers: int


class GuardedScorer(Scorer):  # type: ignore[misc] # mlflow ships no type information
    """See :func:`guarded_genai_scorer`."""

    _question: Any = PrivateAttr(default=None)
    _rows: dict[Any, dict[str, Any]] = PrivateAttr(default_factory=dict)

    def begin(self, question: _Question) -> None:
        """Take the question that the guard is to be asked; MLflow makes scorers by their fields."""
        self._question = question

        def answer(rows: list[float]) -> float:
            return self._answer(len(rows))

        self.aggregations = [answer]

    def __call__(self, *, inputs: Any = None, outputs: Any = None, expectations: Any = None) -> bool:
        """Take a row; it is judged when all are here."""
        question = self._question
        if not isinstance(inputs, dict) or question.id not in inputs:
            raise Refused(
                InputError(
                    f"each row's inputs must have its id under {question.id!r}; one has none; nothing was asked"
                )
            )
        self._rows[inputs[question.id]] = {"inputs": inputs, "outputs": outputs, "expectations": expectations}
        return True

    def _answer(self, scored: int) -> float:
        """Judge and ask; MLflow calls this in the run's thread, after the last row, and swallows exceptions alone."""
        rows, self._rows = self._rows, {}
        try:
            if len(rows) != scored:
                raise InputError(
                    f"the data must have each id once; got {scored:,} rows and {len(rows):,} ids; nothing was asked"
                )
            answer: float = _asked(self._question, rows)
            return answer
        except HoldoutError as error:
            refused = Refused(error)
        raise refused


@trace_disabled  # type: ignore[untyped-decorator]
def _asked(question: _Question, rows: dict[Any, dict[str, Any]]) -> float:
    import pandas as pd  # noqa: PLC0415 - as everywhere, late

    guard, run = question.guard, mlflow.active_run()
    log = EvaluatedRun(guard, run.info.run_id)
    with disable_autologging(), ThreadPoolExecutor(question.workers) as pool:
        judged = list(pool.map(lambda row: _judged(question.judge, row), rows.values()))
    failed = [one for one in judged if isinstance(one, Exception)]
    if failed:
        raise InputError(
            f"the judge must score every row; it failed on {len(failed):,} of {len(rows):,}, first with "
            f"{type(failed[0]).__name__}; nothing was asked and nothing was charged"
        )
    table = pd.DataFrame({"id": list(rows), "judge": np.array(judged, dtype=np.float64)})
    try:
        answer = guard.evaluate_predictions(table, prior=question.prior, name=question.name)
    except Halted:
        log.halt()
        raise
    log.answer(answer, None)
    log.files()
    return float(answer.value)


def _judged(judge: Any, row: dict[str, Any]) -> float | Exception:
    """Score of a row, or why there is none: its words, which may quote the row, are for nobody."""
    try:
        if isinstance(judge, Scorer):
            found = judge.run(**row)
        else:
            parameters = inspect.signature(judge).parameters
            found = judge(**{key: value for key, value in row.items() if key in parameters})
        value = found.value if isinstance(found, Feedback) else found
        return float(_WORDS.get(value.lower(), np.nan) if isinstance(value, str) else value)
    except Exception as error:
        return error
