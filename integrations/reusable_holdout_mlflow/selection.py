"""The best run by its certified answer, and models registered with their certificate."""

from __future__ import annotations

from typing import Any, NamedTuple

import mlflow
from mlflow.entities import Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.tracking import MlflowClient

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.slips import checked_call
from reusable_holdout_mlflow.identity import tag, tags_of
from reusable_holdout_mlflow.search import experiments, runs_of

__all__ = ["BestRun", "best_run", "register_certified"]


class BestRun(NamedTuple):
    """The answer whose certified end is the best, and its run.

    Attributes
    ----------
    run_id : str
    query : int
        Number of the question in its guard.
    value, low, high : float
        The answer and its interval.
    """

    run_id: str
    query: int
    value: float
    low: float
    high: float


@checked_call
def best_run(
    guard: ReusableHoldout | str, *, experiment: str | None = None, tracking_uri: str | None = None
) -> BestRun:
    """Return the run with the best certified answer: the highest `holdout_low`, of losses the lowest `holdout_high`.

    The intervals of all answers are valid together, so the interval of the best one is valid too, though it was chosen.

    Parameters
    ----------
    guard : ReusableHoldout or str
        A guard, or its digest.
    experiment : str, optional
        Name of an experiment: its runs alone.
    tracking_uri : str, optional
        Server; MLflow's current one otherwise.

    Returns
    -------
    BestRun
        Of equal ones the earliest.

    Raises
    ------
    InputError
        If no run on the server holds an answer of this holdout.
    """
    client = MlflowClient(tracking_uri or mlflow.get_tracking_uri())
    runs = runs_of(client, guard if isinstance(guard, str) else guard.digest)
    if experiment is not None:
        names = {identity: one.name for identity, one in experiments(client).items()}
        runs = [run for run in runs if names.get(str(run.info.experiment_id)) == experiment]
    ends = [(sign * end.value, run, end.step) for run in runs for sign, end in _ends(client, run)]
    if not ends:
        raise InputError(
            "a best run needs a run that holds an answer of this holdout; none was found; track the guard first, or "
            "sync it"
        )
    _, run, query = max(ends, key=lambda one: one[0])
    value, low, high = (_at(client, run, f"holdout_{name}", query) for name in ("answer", "low", "high"))
    return BestRun(str(run.info.run_id), query, value, low, high)


def _ends(client: MlflowClient, run: Run) -> list[tuple[int, Any]]:
    """Return the certified ends of a run's answers, with the sign that makes the greatest the best."""
    sign, name = (-1, "holdout_high") if run.data.tags.get(tag("direction")) == "min" else (1, "holdout_low")
    if name not in run.data.metrics:
        return []
    return [(sign, one) for one in client.get_metric_history(run.info.run_id, name)]


def _at(client: MlflowClient, run: Run, name: str, query: int) -> float:
    return next(
        float(one.value) for one in client.get_metric_history(run.info.run_id, name) if int(one.step) == query
    )


@checked_call
def register_certified(model_uri: str, name: str, guard: ReusableHoldout, answer: Answer) -> ModelVersion:
    """Register a model with the interval that its guard certified, on MLflow's current servers.

    The new version is tagged with value, interval, confidence, metric, query, digest and epoch: all of it was released
    before.

    Parameters
    ----------
    model_uri : str
        As for ``mlflow.register_model``: the model the question was about.
    name : str
        Of the registered model; made if it does not exist.
    guard : ReusableHoldout
    answer : Answer
        The guard's answer about this model.

    Returns
    -------
    mlflow.entities.model_registry.ModelVersion

    Raises
    ------
    InputError
        If the guard never gave this answer, or it is about the difference of two models.
    """
    if answer.paired:
        raise InputError(
            "a model is certified by an answer about itself; this one compares two models; nothing was registered; ask "
            "evaluate()"
        )
    history = guard.history()
    row = history[history["query"] == answer.query]
    numbers = ["value", "low", "high"]
    if row[numbers].to_numpy().tolist() != [[answer.value, answer.low, answer.high]]:
        raise InputError(
            f"a model is certified by an answer of its guard; query {answer.query} of this guard has another one; "
            "nothing was registered; pass the guard that answered"
        )
    facts = {
        "value": answer.value,
        "low": answer.low,
        "high": answer.high,
        "confidence": guard.plan.confidence,
        "query": answer.query,
    }
    tags = {tag(key): str(value) for key, value in facts.items()}
    public = {key: value for key, value in tags_of(guard).items() if key != tag("ledger")}
    return mlflow.register_model(model_uri, name, tags=tags | public)
