"""The evaluator ``reusable_holdout`` of :func:`mlflow.models.evaluate`: it answers through the guard.

``data`` is the analyst's own, for the prior; the holdout is named by its ledger or its guard, and MLflow never has it.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from mlflow.models.evaluation import EvaluationResult, ModelEvaluator
from mlflow.tracing.provider import trace_disabled
from mlflow.utils.autologging_utils import disable_autologging

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard import has_most_rows, predictions_of
from reusable_holdout_mlflow.evaluated import EvaluatedRun, metrics_of
from reusable_holdout_mlflow.registered import registered_guard

__all__ = ["HoldoutEvaluator"]

_PLACES = ("guard", "ledger")
_SETTINGS = (*_PLACES, "prior", "tolerance", "name")
_OWN_PRIOR = {"ladder", "parameter-free-ladder"}
_STATED_PRIOR = "gate"


class HoldoutEvaluator(ModelEvaluator):  # type: ignore[misc]
    """Ask a guard how good a model is; log its answer, and nothing else that depends on the holdout.

    ``evaluator_config`` has:

    guard : ReusableHoldout
        The guard; or
    ledger : str
        the file of its ledger, after :func:`reusable_holdout_mlflow.registered.register_holdout`.
    prior : float, optional
        The analyst's own estimate. By default the model's score on ``data``: rows that it was not fitted to, and that
        are not the holdout's.
    tolerance : float, optional
        For guess-and-check.
    name : str, optional
        What history calls the question; by default the model's type.

    Notes
    -----
    MLflow's own evaluators log exact scores of whatever ``data`` they get, and MLflow logs its digest, before any
    evaluator runs. So the holdout must never be ``data``: if most of its rows are in it, this evaluator refuses. That
    some are, more than chance explains, is a fact about the holdout: it takes a charge, like a model that fails there.
    A model that fails on ``data`` is refused for nothing. ``extra_metrics`` and ``custom_artifacts`` are
    the other evaluators'. The answer's step is its query; of a logged model MLflow repeats the metrics at step 0. A
    halt leaves :func:`mlflow.models.evaluate` as what it is: :class:`Halted`.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str | None, evaluator_config: dict[str, Any], **_: Any) -> bool:
        """Whether it was configured: without ``evaluators=`` MLflow tries all that are installed."""
        del model_type  # the guard's metric decides
        return any(name in (evaluator_config or {}) for name in _PLACES)

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
        """Ask about one model and log what was released to the run.

        Parameters
        ----------
        dataset : EvaluationDataset
            The analyst's own rows.
        run_id : str
        evaluator_config : dict
            As the class says.
        model : PyFuncModel
        model_id : str, optional
            Of the logged model: the metrics are on its page too.

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
            If something does not fit, or ``data`` has most of the holdout's rows; nothing was asked and nothing was
            charged.
        ModelError
            If the model failed on the holdout, or ``data`` has some of its rows; this was charged.
        """
        guard = _configured(evaluator_config, model)
        if has_most_rows(dataset.features_data, guard):
            raise InputError(
                "data must be rows of the analyst's own; most of the holdout's rows are in it; nothing was asked and "
                "nothing was charged. But MLflow has logged a digest of data, and evaluators before this one exact "
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
        log.answer(answer, model_id)
        return EvaluationResult(metrics=metrics_of(guard, answer), artifacts=log.files(), run_id=run_id)


# ---- the question


def _configured(config: dict[str, Any], model: Any) -> ReusableHoldout:
    """Guard that a configuration names."""
    if model is None:
        raise InputError(
            "the guard asks a model for its predictions; there is none; pass model=, or ask with "
            "guard.evaluate_predictions; nothing was asked"
        )
    unknown = sorted(set(config) - set(_SETTINGS))
    if unknown or all(name in config for name in _PLACES):
        raise InputError(
            f"evaluator_config must have one of {' and '.join(_PLACES)}, and may have {', '.join(_SETTINGS[2:])}; got "
            f"{', '.join(sorted(config))}; nothing was asked"
        )
    if "ledger" in config:
        return registered_guard(config["ledger"])
    guard = config["guard"]
    if not isinstance(guard, ReusableHoldout):
        raise InputError(
            f'"guard" must be a ReusableHoldout; got {type(guard).__name__}; its ledger\'s file goes under "ledger"; '
            "nothing was asked"
        )
    return guard


class _Pyfunc:
    """What MLflow knows of a model: `predict`, to labels or values."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Any) -> Any:
        """Predict; a table of one column is a column."""
        predictions = self.model.predict(X)
        is_table = isinstance(predictions, pd.DataFrame) and predictions.shape[1] == 1
        return predictions.iloc[:, 0].to_numpy() if is_table else predictions


def _predictor(model: Any) -> Any:
    """Estimator inside a logged model, which may have probabilities; else what MLflow makes of it."""
    try:
        raw = model.get_raw_model()
    except (AttributeError, NotImplementedError):
        return _Pyfunc(model)
    return raw if hasattr(raw, "get_params") and hasattr(raw, "predict") else _Pyfunc(model)


def _prior(guard: ReusableHoldout, model: Any, dataset: Any, stated: float | None) -> float | None:
    """Prior that was stated, or the score on the analyst's data; the model must work there in either case."""
    metric, rows = guard.metric, dataset.features_data
    is_needed = stated is None and guard.policy not in _OWN_PRIOR and guard.policy != _STATED_PRIOR
    predictions = predictions_of(
        model, rows if is_needed else rows[:2], response=metric.response, classes=guard.class_set
    )
    if not is_needed:
        return stated
    if not dataset.has_targets:
        raise InputError(
            'a prior must be stated, or come from the labels of data; got neither; pass targets=, or "prior"; nothing '
            "was asked and nothing was charged"
        )
    return metric.measure(dataset.labels_data, predictions, classes=guard.class_set)


@trace_disabled  # type: ignore[untyped-decorator]
def _ask(
    guard: ReusableHoldout, model: Any, dataset: Any, prior: float | None, config: dict[str, Any]
) -> Answer:
    """Ask; a trace of the prediction would have the holdout's rows, and autologging its scores."""
    name = config.get("name") or type(getattr(model, "model", model)).__name__
    rows = dataset.features_data
    labels = dataset.labels_data if dataset.has_targets else [0] * len(rows)  # unread: the prior is known
    with disable_autologging():
        return guard.evaluate(model, rows, labels, prior=prior, tolerance=config.get("tolerance"), name=name)
