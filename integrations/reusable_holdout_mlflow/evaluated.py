"""The run of an evaluation by :func:`mlflow.models.evaluate`, with one or several answers of one guard."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor

from mlflow import MlflowClient
from mlflow.entities import LoggedModelInput
from mlflow.models.evaluation import EvaluationArtifact
from mlflow.models.evaluation.artifacts import CsvEvaluationArtifact, ImageEvaluationArtifact

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout_mlflow.answers import log_answers, log_halt, log_tags, numbers_of
from reusable_holdout_mlflow.guard_calls import released
from reusable_holdout_mlflow.identity import log_dataset, tag, tags_of, takes_answers
from reusable_holdout_mlflow.page import HoldoutPage
from reusable_holdout_mlflow.pictures import write_files
from reusable_holdout_mlflow.words import words_of

__all__ = ["EvaluatedRun"]

_ARTIFACTS = {
    ".csv": ("holdout_history", CsvEvaluationArtifact),
    ".png": ("holdout_picture", ImageEvaluationArtifact),
}


class EvaluatedRun:
    """A writer of a guard's answers to the run of an evaluation and to the holdout's page, like :func:`track`.

    Raises
    ------
    InputError
        If the run has answers of another holdout, epoch or ledger.
    """

    def __init__(self, guard: ReusableHoldout, run_id: str) -> None:
        self._guard, self._run_id, self._client = guard, run_id, MlflowClient()
        self._before = self._client.get_run(run_id)
        if not takes_answers(self._before.data.tags, guard):
            raise InputError(
                f"one run holds the answers of one guard only; run {run_id} holds another guard's; nothing was asked; "
                "start another run"
            )

    def answer(self, answer: Answer, model_id: str | None) -> dict[str, float]:
        """Log an answer, with its query's number as the step and the time when it was given, and return its metrics."""
        guard, query = self._guard, answer.query
        rows = released(guard, first=query, last=query)
        log_tags(self._client, self._run_id, tags_of(guard) | self._queries(query) | words_of(guard, rows))
        models = None if model_id is None else [LoggedModelInput(model_id)]
        log_dataset(self._client, self._run_id, guard, models=models)
        log_answers(self._client, self._run_id, rows, queries=guard.plan.queries)
        self.halt()
        return numbers_of(rows.iloc[0], guard.plan.queries)

    def _queries(self, query: int) -> dict[str, str]:
        """Return tags with the run's first and last query; return no tags if `track` is writing them already."""
        tags = self._before.data.tags
        first, last = (tags.get(tag(name), "") for name in ("first_query", "last_query"))
        if first and not last:
            return {}
        ends = [query, *(int(end) for end in (first, last) if end.isdecimal())]
        return {tag("first_query"): str(min(ends)), tag("last_query"): str(max(ends))}

    def halt(self) -> None:
        """Log to the run that the guard has halted, if it has."""
        log_halt(self._client, self._run_id, self._guard)

    def files(self) -> dict[str, EvaluationArtifact]:
        """Log the history and its picture, update the holdout's page, and return the run's files as artifacts."""
        root, place = self._before.info.artifact_uri, str(self._before.info.experiment_id)
        artifacts = {}
        with tempfile.TemporaryDirectory() as folder:
            files = write_files(self._guard, folder)
            for path in files.for_a_run():
                self._client.log_artifact(self._run_id, str(path))
                name, kind = _ARTIFACTS[path.suffix]
                artifacts[name] = kind(uri=f"{root}/{path.name}")
            page = HoldoutPage(self._guard, self._client)
            with ThreadPoolExecutor(1) as other:  # MLflow would count metrics of this thread as the model's
                other.submit(page.refresh, place, files).result()
        return artifacts
