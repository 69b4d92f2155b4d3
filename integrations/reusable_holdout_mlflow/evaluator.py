"""The evaluator ``reusable_holdout`` of :func:`mlflow.models.evaluate`: it answers through the guard.

``data`` is the analyst's own, for the prior; the holdout is named by its ledger or its guard, and MLflow never has it.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import LoggedModelInput, Metric, RunTag
from mlflow.models.evaluation import EvaluationResult, ModelEvaluator
from mlflow.tracing.provider import trace_disabled
from mlflow.utils.autologging_utils import disable_autologging

from reusable_holdout import Halted, InputError, ReusableHoldout
from reusable_holdout.guard import has_most_rows, predictions_of
from reusable_holdout_mlflow.answers import log_answers, released
from reusable_holdout_mlflow.dataset import log_dataset
from reusable_holdout_mlflow.identity import tag, tags_of, takes_answers
from reusable_holdout_mlflow.page import HoldoutPage
from reusable_holdout_mlflow.pictures import write_files
from reusable_holdout_mlflow.registered import registered_guard
from reusable_holdout_mlflow.words import BUDGET, budget_in_words, halt_note, is_halted, noted, words_of

if TYPE_CHECKING:
    from mlflow.models.evaluation import EvaluationArtifact

    from reusable_holdout import Answer
    from reusable_holdout_mlflow.pictures import Files

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
        log = _EvaluatedRun(guard, run_id)
        try:
            answer = _ask(guard, asked, dataset, prior, evaluator_config)
        except Halted:
            log.halt()
            raise
        log.answer(answer, model_id)
        return EvaluationResult(metrics=_metrics(guard, answer), artifacts=log.files(), run_id=run_id)


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
        model, rows if is_needed else rows[:2], response=metric.response, classes=guard.classes
    )
    if not is_needed:
        return stated
    if not dataset.has_targets:
        raise InputError(
            'a prior must be stated, or come from the labels of data; got neither; pass targets=, or "prior"; nothing '
            "was asked and nothing was charged"
        )
    return metric.measure(dataset.labels_data, predictions, classes=guard.classes)


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


# ---- what is logged


def _metrics(guard: ReusableHoldout, answer: Answer) -> dict[str, float]:
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


class _EvaluatedRun:
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
