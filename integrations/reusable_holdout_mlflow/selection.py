"""Selection of the run with the best certified answer, and registration of a model with its certified interval."""

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
    """The best answer about a holdout, and its run. Answers are compared by the worse ends of their intervals.

    Attributes
    ----------
    run_id : str
        Id of the run that holds the answer.
    query : int
        Number of the answer's query in the guard's ledger.
    value, low, high : float
        The answer and the ends of its interval.
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
    """Return the run with the best certified answer.

    It has the highest `holdout_low` or, if the metric is a loss, the lowest `holdout_high`.

    All intervals hold together, with the guard's confidence. So the best answer's interval is valid although it was
    chosen.

    Parameters
    ----------
    guard : ReusableHoldout or str
        A guard, or its digest.
    experiment : str, optional
        Name of an experiment; then only its runs are compared.
    tracking_uri : str, optional
        Address of the tracking server; by default MLflow's current one.

    Returns
    -------
    BestRun
        The earliest one if several are equally good.

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
            "there must be a run that holds an answer of this holdout; none was found; track the guard first, or "
            "sync it"
        )
    _, run, query = max(ends, key=lambda one: one[0])
    value, low, high = (_at(client, run, f"holdout_{name}", query) for name in ("answer", "low", "high"))
    return BestRun(str(run.info.run_id), query, value, low, high)


def _ends(client: MlflowClient, run: Run) -> list[tuple[int, Any]]:
    """Return a pair for each answer of a run: a sign, and the worse end of the answer's interval.

    The sign is 1, or -1 for a loss. So the greatest product of sign and end is the best.
    """
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
    """Register a model in MLflow, tagged with the interval that the guard certified.

    The new version gets tags with value, interval, confidence, metric, query, digest and epoch. All of this was
    released before. The model goes to MLflow's current model registry.

    Parameters
    ----------
    model_uri : str
        Address of the model that the question was about, as ``mlflow.register_model`` takes it.
    name : str
        Name of the registered model; it is made if it does not exist.
    guard : ReusableHoldout
        The guard that gave the answer.
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
            f"a model is certified by an answer of its guard; query {answer.query} of this guard has another "
            "answer; nothing was registered; pass the guard that answered"
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
