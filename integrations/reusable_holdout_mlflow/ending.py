"""The end of a search whose models lie in MLflow runs: one final of all these models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mlflow
from mlflow.entities import Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.guard.prospects import end_with
from reusable_holdout.slips import checked_call
from reusable_holdout_mlflow.identity import tag, tags_of
from reusable_holdout_mlflow.selection import BestRun

__all__ = ["final_of_runs"]


@checked_call
def final_of_runs(
    guard: ReusableHoldout,
    runs: Iterable[str | Run],
    *,
    prior: str | Callable[[Run], float],
    model: str | Callable[[Run], Any] = "model",
    tracking_uri: str | None = None,
) -> BestRun:
    """End a project with one final of the models of MLflow runs, and tag the winner's run.

    With the guard's confidence the winner's interval contains the population value, although the winner was chosen from
    all runs. Intervals are compared by their worse ends: the best of these wins. The winner's run gets the result in
    words as the tag `holdout_final`, and the certified numbers as tags that begin with `reusable_holdout.final_`.

    Parameters
    ----------
    guard : ReusableHoldout
        The guard. After its final it answers nothing new.
    runs : iterable of str or mlflow.entities.Run
        Runs, or their ids.
    prior : str or callable
        Name of a metric of the runs, such as a mean of cross-validation in the guard's metric; or a function of a run
        that returns the prior. It must not come from the holdout.
    model : str or callable
        Name of the fitted scikit-learn model that each run has logged; or a function of a run that returns a fitted
        model, or predictions.
    tracking_uri : str, optional
        Address of the tracking server; by default MLflow's current one.

    Returns
    -------
    BestRun

    Raises
    ------
    InputError
        If there are no runs, or one has no such metric or model; nothing was asked.
    Halted
        If another final was given.
    ModelError
        If every model fails on the holdout.
    """
    client = MlflowClient(tracking_uri or mlflow.get_tracking_uri())
    found = [run if isinstance(run, Run) else client.get_run(run) for run in runs]
    if not found:
        raise InputError("a final needs runs, whose models it asks about; got no runs; nothing was asked")
    priors = [_prior(run, prior) for run in found]
    models = [_model(run, model) for run in found]
    finals = end_with(guard, models, priors, [f"run {run.info.run_name}" for run in found])
    own, winner = finals.best, found[finals.best_index].info.run_id
    numbers = {"value": own.value, "low": own.low, "high": own.high, "query": own.query}
    tags = tags_of(guard) | {tag(f"final_{name}"): str(value) for name, value in numbers.items()}
    tags["holdout_final"] = f"best of {len(found)}: {own.value:.4f} in [{own.low:.4f}, {own.high:.4f}]"
    client.log_batch(winner, tags=[RunTag(name, value) for name, value in tags.items()], synchronous=True)
    return BestRun(str(winner), own.query, own.value, own.low, own.high)


def _prior(run: Run, prior: str | Callable[[Run], float]) -> float:
    if callable(prior):
        return prior(run)
    if prior not in run.data.metrics:
        raise InputError(
            f"each run must have the metric that is its prior, {prior!r}; run {run.info.run_id} has "
            f"{', '.join(sorted(run.data.metrics)) or 'none'}; nothing was asked"
        )
    return float(run.data.metrics[prior])


def _model(run: Run, model: str | Callable[[Run], Any]) -> Any:
    if callable(model):
        return model(run)
    try:
        return mlflow.sklearn.load_model(f"runs:/{run.info.run_id}/{model}")
    except (MlflowException, OSError) as error:
        raise InputError(
            f"each run must have logged a scikit-learn model named {model!r}; the model of run {run.info.run_id} "
            "cannot be loaded; nothing was asked; pass model=, a function of a run that returns a fitted model"
        ) from error
