"""The evaluator ``reusable_holdout`` for :func:`mlflow.models.evaluate`, which asks a guard about the model.

The ``data`` passed to MLflow are the analyst's own rows, from which the prior is computed. MLflow never gets the
holdout.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from mlflow.models.evaluation import EvaluationResult, ModelEvaluator
from mlflow.tracing.provider import trace_disabled
from mlflow.utils.autologging_utils import disable_autologging

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard import check_is_guard, has_most_rows, predictions_of
from reusable_holdout_mlflow.evaluated import EvaluatedRun
from reusable_holdout_mlflow.guard_calls import ask_about

__all__ = ["HoldoutEvaluator"]

_SETTINGS = ("guard", "prior", "tolerance", "name")


class HoldoutEvaluator(ModelEvaluator):  # type: ignore[misc]
    """Evaluator that asks a guard how good a model is, and logs nothing about the holdout except the answer.

    ``evaluator_config`` may have these keys:

    guard : ReusableHoldout
        The guard to ask; required.
    prior : float, optional
        The analyst's own estimate. By default the model's score on ``data``. These rows must not be rows that the
        model was fitted to, nor rows of the holdout.
    tolerance : float, optional
        Largest distance of this answer from the population value; by default the plan's tolerance.
    name : str, optional
        Name of the question in the guard's history; by default the model's type.

    Notes
    -----
    Never pass the holdout as ``data``. MLflow logs a digest of ``data`` before any evaluator runs, and MLflow's own
    evaluators log exact scores on it. If most of the holdout's rows are in ``data``, this evaluator refuses. If
    ``data`` has some of them, more than chance explains, a refusal tells a fact about the holdout. So it costs a
    charge, like a model that fails on the holdout. A model that fails on ``data`` is refused at no cost.

    ``extra_metrics`` and ``custom_artifacts`` are ignored here; the other evaluators use them. The step of the logged
    metrics is the query's number; for a logged model MLflow logs the metrics once more, at step 0. A halt is raised
    from :func:`mlflow.models.evaluate` as :class:`Halted`.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str | None, evaluator_config: dict[str, Any], **_: Any) -> bool:
        """Return True if ``evaluator_config`` names a guard.

        Without ``evaluators=`` MLflow calls this method of every evaluator that is installed.
        """
        del model_type  # the guard's metric decides
        return "guard" in (evaluator_config or {})

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any],
        model: Any = None,
        model_id: str | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """Ask the guard about one model, and log the answer to the run.

        Parameters
        ----------
        dataset : EvaluationDataset
            The analyst's own rows.
        run_id : str
            Id of the run that gets the answer.
        evaluator_config : dict
            The settings that the class describes.
        model : PyFuncModel
            The model to ask about.
        model_id : str, optional
            Id of the logged model, whose page in MLflow shows the metrics, too.

        Returns
        -------
        EvaluationResult
            Metrics ``holdout_answer``, ``_prior``, ``_gap``, ``_low``, ``_high``, ``_charged``, ``_charges_left``,
            ``_queries_left``, ``_nats``; artifacts ``holdout_history`` and, with matplotlib, ``holdout_picture``.

        Raises
        ------
        Halted
            If a budget has run out and the question is new; the run says so.
        InputError
            If model, settings or ``data`` do not fit, or ``data`` has most of the holdout's rows; nothing was asked and
            nothing was charged.
        ModelError
            If the model failed on the holdout, or ``data`` has some of its rows; this was charged.
        """
        guard = _configured(evaluator_config, model)
        if has_most_rows(dataset.features_data, guard):
            raise InputError(
                "data must be your own rows; most of the holdout's rows are in it; nothing was asked and nothing was "
                "charged. But MLflow has logged a digest of data, and evaluators that ran before this one logged exact "
                f"scores: delete run {run_id}, and pass validation rows"
            )
        asked = _predictor(model)
        prior = _prior(guard, asked, dataset, evaluator_config.get("prior"))
        log = EvaluatedRun(guard, run_id)
        try:
            answer = _ask(guard, asked, dataset, prior, evaluator_config)
        except Halted:
            log.halt()
            raise
        metrics = log.answer(answer, model_id)
        return EvaluationResult(metrics=metrics, artifacts=log.files(), run_id=run_id)


def _configured(config: dict[str, Any], model: Any) -> ReusableHoldout:
    """Return the guard in ``evaluator_config``, after a check of the model and of the names of the settings."""
    if model is None:
        raise InputError(
            "the guard asks a model for its predictions; got no model; pass model=, or ask the guard about the "
            "predictions themselves; nothing was asked"
        )
    unknown = sorted(set(config) - set(_SETTINGS))
    if unknown or "guard" not in config:
        raise InputError(
            f"evaluator_config must have guard, and may have {', '.join(_SETTINGS[1:])}; got "
            f"{', '.join(sorted(config))}; nothing was asked"
        )
    check_is_guard(config["guard"])
    guard: ReusableHoldout = config["guard"]
    return guard


class _Pyfunc:
    """A wrapper of an MLflow model. It has only `predict`, which returns labels or values."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Any) -> Any:
        """Return the model's predictions; a table with one column is turned into an array."""
        predictions = self.model.predict(X)
        is_table = isinstance(predictions, pd.DataFrame) and predictions.shape[1] == 1
        return predictions.iloc[:, 0].to_numpy() if is_table else predictions


def _predictor(model: Any) -> Any:
    """Return the estimator inside a logged model, because it may predict probabilities; else wrap MLflow's model."""
    try:
        raw = model.get_raw_model()
    except (AttributeError, NotImplementedError):
        return _Pyfunc(model)
    return raw if hasattr(raw, "get_params") and hasattr(raw, "predict") else _Pyfunc(model)


def _prior(guard: ReusableHoldout, model: Any, dataset: Any, stated: float | None) -> float:
    """Return the stated prior, or else the model's score on the analyst's data.

    If the prior is stated, the model predicts for two rows, so that a broken model fails before the guard is asked.
    """
    metric, rows = guard.metric, dataset.features_data
    predictions = predictions_of(
        model, rows if stated is None else rows[:2], response=metric.response, classes=guard.class_set
    )
    if stated is not None:
        return stated
    if not dataset.has_targets:
        raise InputError(
            'a prior must be stated, or come from the labels of data; got neither; pass targets=, or "prior" in '
            "evaluator_config; nothing was asked and nothing was charged"
        )
    return metric.measure(dataset.labels_data, predictions, classes=guard.class_set)


@trace_disabled  # type: ignore[untyped-decorator]
def _ask(
    guard: ReusableHoldout, model: Any, dataset: Any, prior: float | None, config: dict[str, Any]
) -> Answer:
    """Ask the guard with MLflow's traces and autologging off: they would record the holdout's rows and scores."""
    name = config.get("name") or type(getattr(model, "model", model)).__name__
    rows = dataset.features_data
    labels = dataset.labels_data if dataset.has_targets else [0] * len(rows)  # not read: the prior is known
    with disable_autologging():
        return ask_about(
            guard, model, rows, labels, prior=prior, tolerance=config.get("tolerance"), name=name
        )
