"""Logging of released answers as metrics of an MLflow run. The step of a metric is the number of the query.

Each metric has the time at which the ledger recorded the answer. So if an answer is logged twice, by one process or by
two, both metrics are equal, and the server stores one of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from mlflow.entities import Metric, RunTag
from mlflow.tracking import MlflowClient

from reusable_holdout import ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout_mlflow.guard_calls import released
from reusable_holdout_mlflow.words import BUDGET, budget_in_words, halt_note, is_halted, noted

__all__ = ["log_answers", "log_halt", "log_missing", "log_tags", "milliseconds", "numbers_of"]

_ANSWERS_OF_A_CALL = 100  # an answer has up to ten metrics, and MLflow takes 1,000 metrics in a call


def numbers_of(row: Any, queries: int) -> dict[str, float]:
    """Return the metrics of one line of a history, by name. `queries` is the planned number of queries.

    An agreed answer is the analyst's own prior, so it has no metric of a measured value.
    """
    kind = "difference" if row.paired else "holdout"  # a comparison of two models, or a score
    values = {
        f"{kind}_answer": row.value,
        f"{kind}_prior": row.prior,
        f"{kind}_gap": row.prior - row.value,
        f"{kind}_low": row.low,
        f"{kind}_high": row.high,
        "holdout_charged": row.charged,
        "holdout_charges_left": row.charges_left,
        "holdout_queries_left": queries - row.asked,
        "holdout_nats": row.nats,
    }
    if row.measured == row.measured:  # NaN if the rows only agreed
        values[f"{kind}_measured"] = row.measured
    return {name: float(value) for name, value in values.items()}


def log_answers(client: MlflowClient, run_id: str, rows: pd.DataFrame, *, queries: int) -> None:
    """Log lines of a history in as few calls as MLflow allows; `queries` is the planned number of queries."""
    each_row: Iterable[Any] = rows.itertuples(index=False)
    each_answer = [
        [
            Metric(name, value, milliseconds(row.asked_at), int(row.query))
            for name, value in numbers_of(row, queries).items()
        ]
        for row in each_row
    ]
    for start in range(0, len(each_answer), _ANSWERS_OF_A_CALL):
        metrics = [one for answer in each_answer[start : start + _ANSWERS_OF_A_CALL] for one in answer]
        client.log_batch(run_id, metrics=metrics, synchronous=True)


def log_missing(
    client: MlflowClient, run_id: str, guard: ReusableHoldout, *, first: int, last: int | None = None
) -> pd.DataFrame:
    """Log those answers from query `first` to `last` that a run lacks, and return their lines of the history."""
    rows = released(guard, first=first, last=last)
    if len(rows):
        answers = ("holdout_answer", "difference_answer")
        there = {one.step for name in answers for one in client.get_metric_history(run_id, name)}
        rows = rows[~rows["query"].isin(there)]
    log_answers(client, run_id, rows, queries=guard.plan.queries)
    return rows


def log_tags(client: MlflowClient, run_id: str, tags: dict[str, str], metrics: Sequence[Metric] = ()) -> None:
    """Log tags and the metrics that belong to them in one call."""
    entities = [RunTag(name, value) for name, value in tags.items()]
    client.log_batch(run_id, metrics=list(metrics), tags=entities, synchronous=True)


def log_halt(client: MlflowClient, run_id: str, guard: ReusableHoldout) -> None:
    """Log that a run's guard has halted: in a metric, in a tag and in the run's note.

    Nothing is logged if the guard has not halted, or if the run's tags say so already.
    """
    reason = guard.halt_reason
    if reason is None:
        return
    before = client.get_run(run_id).data.tags
    if not is_halted(before):  # else it was logged before, here or by another process
        tags = noted(before, halt_note(guard, reason)) | {BUDGET: budget_in_words(guard)}
        halt = Metric("holdout_halted", 1.0, int(time.time() * 1_000), guard.answered)
        log_tags(client, run_id, tags, [halt])


def milliseconds(when: pd.Timestamp) -> int:
    """Return a time in milliseconds since 1970, as MLflow counts it."""
    return int(when.timestamp() * 1_000)
