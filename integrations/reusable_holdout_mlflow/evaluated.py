"""The run of an evaluation: what one answer is in it."""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from mlflow import MlflowClient
from mlflow.entities import LoggedModelInput, Metric, RunTag

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout_mlflow.answers import log_answers, released
from reusable_holdout_mlflow.dataset import log_dataset
from reusable_holdout_mlflow.identity import tag, tags_of, takes_answers
from reusable_holdout_mlflow.page import HoldoutPage
from reusable_holdout_mlflow.pictures import Files, write_files
from reusable_holdout_mlflow.words import BUDGET, budget_in_words, halt_note, is_halted, noted, words_of

if TYPE_CHECKING:
    from mlflow.models.evaluation import EvaluationArtifact

__all__ = ["EvaluatedRun", "metrics_of"]


def metrics_of(guard: ReusableHoldout, answer: Answer) -> dict[str, float]:
    """What of an answer is a metric."""
    row = released(guard, first=answer.query, last=answer.query).iloc[0]
    return {
        "holdout_answer": answer.value,
        "holdout_prior": answer.prior,
        "holdout_gap": answer.prior - answer.value,
        "holdout_low": answer.low,
        "holdout_high": answer.high,
        "holdout_charged": float(answer.charged),
        "holdout_charges_left": float(answer.charges_left),
        "holdout_queries_left": float(guard.plan.queries - row.asked),
        "holdout_nats": answer.nats,
    }


class EvaluatedRun:
    """Run of an evaluation, described like one of :func:`track`, and the holdout's page.

    Raises
    ------
    InputError
        If the run has another holdout's answers.
    """

    def __init__(self, guard: ReusableHoldout, run_id: str) -> None:
        self._guard, self._run_id, self._client = guard, run_id, MlflowClient()
        run = self._client.get_run(run_id)
        self._place, self._before = str(run.info.experiment_id), run.data.tags
        if not takes_answers(self._before, guard):
            raise InputError(
                f"one run has the answers of one guard; run {run_id} has another's; nothing was asked; start another "
                "run"
            )

    def answer(self, answer: Answer, model_id: str | None) -> None:
        """Log an answer, numbered by its query and with the time it was given."""
        guard, client, query = self._guard, self._client, answer.query
        rows = released(guard, first=query, last=query)
        new = tags_of(guard) | self._queries(query) | words_of(guard, rows)
        tags = [RunTag(name, value) for name, value in new.items()]
        client.log_batch(self._run_id, tags=tags, synchronous=True)
        models = None if model_id is None else [LoggedModelInput(model_id)]
        log_dataset(client, self._run_id, guard, models=models)
        log_answers(client, self._run_id, rows, queries=guard.plan.queries)
        if guard.halted:
            self.halt()

    def _queries(self, query: int) -> dict[str, str]:
        """From which to which query the run has answers; one that is being tracked says so itself."""
        first, last = (self._before.get(tag(name), "") for name in ("first_query", "last_query"))
        if first and not last:
            return {}
        ends = [query, *(int(end) for end in (first, last) if end.isdecimal())]
        return {tag("first_query"): str(min(ends)), tag("last_query"): str(max(ends))}

    def halt(self) -> None:
        """Say in a metric, tags and the note that the guard has halted."""
        if is_halted(self._before):
            return
        tags = noted(self._before, halt_note(self._guard, str(self._guard.halt_reason)))
        tags[BUDGET] = budget_in_words(self._guard)
        self._client.log_batch(
            self._run_id,
            metrics=[Metric("holdout_halted", 1.0, int(time.time() * 1_000), self._guard.answered)],
            tags=[RunTag(name, value) for name, value in tags.items()],
            synchronous=True,
        )

    def files(self) -> dict[str, EvaluationArtifact]:
        """Log the history and its picture, and bring the holdout's page up to date."""
        from mlflow.models.evaluation.artifacts import (  # noqa: PLC0415 - it imports pyplot
            CsvEvaluationArtifact,
            ImageEvaluationArtifact,
        )

        kinds = {".csv": ("holdout_history", CsvEvaluationArtifact)}
        kinds[".png"] = ("holdout_picture", ImageEvaluationArtifact)
        root = self._client.get_run(self._run_id).info.artifact_uri
        artifacts = {}
        with tempfile.TemporaryDirectory() as folder:
            files = write_files(self._guard, folder)
            for path in files.for_a_run():
                self._client.log_artifact(self._run_id, str(path))
                name, kind = kinds[path.suffix]
                artifacts[name] = kind(uri=f"{root}/{path.name}")
            with ThreadPoolExecutor(1) as other:  # of this thread, MLflow takes all metrics for the model's
                other.submit(self._refresh_page, files).result()
        return artifacts

    def _refresh_page(self, files: Files) -> None:
        HoldoutPage(self._guard, self._client).refresh(self._place, files)
