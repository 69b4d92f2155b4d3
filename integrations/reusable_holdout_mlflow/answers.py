"""Released answers as metrics of a run, numbered by their queries.

Each metric has the time at which the ledger recorded the answer. So the same answer is the same metric, whoever logs
it and however often, and a server that has it already drops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlflow.entities import Metric

from reusable_holdout import ReusableHoldout

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.tracking import MlflowClient

__all__ = ["log_answers", "milliseconds", "released", "steps_in"]

_METRICS_OF_A_CALL = 1_000  # MLflow's limit
_METRICS_OF_AN_ANSWER = 9
_KINDS = ("holdout", "difference")  # of scores, and of comparisons of two models


def released(guard: ReusableHoldout, *, first: int, last: int | None = None) -> pd.DataFrame:
    """History of some queries about a guard's own metric.

    Parameters
    ----------
    first, last : int
        Numbers of queries, both included; to the end by default.
    """
    history = guard.history()
    history = history[(history["view"] == guard.view) & (history["kind"] != "view")]
    wanted = history["query"] >= first
    return history[wanted if last is None else wanted & (history["query"] <= last)]


def steps_in(client: MlflowClient, run_id: str) -> set[int]:
    """Numbers of the queries whose answers a run has."""
    return {metric.step for kind in _KINDS for metric in client.get_metric_history(run_id, f"{kind}_answer")}


def log_answers(client: MlflowClient, run_id: str, rows: pd.DataFrame, *, queries: int) -> None:
    """Log rows of a history in as few calls as MLflow allows.

    Parameters
    ----------
    queries : int
        Planned in all.
    """
    metrics = [metric for row in rows.itertuples(index=False) for metric in _metrics(row, queries)]
    each = _METRICS_OF_A_CALL - _METRICS_OF_A_CALL % _METRICS_OF_AN_ANSWER  # no answer is torn apart
    for start in range(0, len(metrics), each):
        client.log_batch(run_id, metrics=metrics[start : start + each], synchronous=True)


def milliseconds(when: pd.Timestamp) -> int:
    """Time as MLflow counts it."""
    return int(when.timestamp() * 1_000)


def _metrics(row: Any, queries: int) -> list[Metric]:
    query, when, kind = int(row.query), milliseconds(row.asked_at), _KINDS[row.paired]
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
    return [Metric(name, float(value), when, query) for name, value in values.items()]
