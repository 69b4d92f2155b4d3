"""The metrics that come with the library, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from reusable_holdout import misfits
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import sklearn_names
from reusable_holdout.metrics.metric import Metric

__all__ = ["described_metric", "resolve_metric"]


def _of(home: str, factory: str, *values: Any, **stated: Any) -> Callable[..., Metric]:
    """Make metrics by a module's function, read when one is made: who asks for one family reads no other."""

    def made(**parameters: Any) -> Metric:
        module = import_module(f"{__package__}.{home}")
        metric: Metric = getattr(module, factory)(*values, **stated, **parameters)
        return metric

    return made


def _own(home: str, *factories: str) -> dict[str, Callable[..., Metric]]:
    """Metrics that have the names of the functions that make them."""
    return {factory: _of(home, factory) for factory in factories}


def _averages(home: str, factory: str) -> dict[str, Callable[..., Metric]]:
    return {f"{factory}_{one}": _of(home, factory, average=one) for one in ("macro", "micro", "weighted")}


def _negative_of(home: str, factory: str) -> Callable[..., Metric]:
    return lambda **parameters: _of("negation", "negated")(loss=_of(home, factory)(**parameters))


_CONFUSION, _SETS, _LABELS, _RECALLS = "confusion_metrics", "label_sets", "label_metrics", "recalls"
_JUDGED, _PROBABILITIES, _VALUES = "judged_metrics", "probability_metrics", "value_metrics"

# What describe() calls "parameters" are these functions' own, so that a description can be read back.
_CATALOGUE: dict[str, Callable[..., Metric]] = {
    **_own(_LABELS, "accuracy", "zero_one_loss"),
    **_own(_RECALLS, "balanced_accuracy", "recall", "specificity"),
    **_averages(_RECALLS, "recall"),
    **_own(_CONFUSION, "f1", "jaccard", "matthews_corrcoef", "precision"),
    **_averages(_CONFUSION, "f1"),
    **_averages(_CONFUSION, "precision"),
    **_own(_SETS, "hamming_loss"),
    **{
        f"{one}_samples": _of(_SETS, "score_of_sets", one) for one in ("f1", "jaccard", "precision", "recall")
    },
    **_own(_PROBABILITIES, "average_precision", "brier", "log_loss", "roc_auc", "roc_auc_ovr"),
    "roc_auc_ovr_weighted": _of(_PROBABILITIES, "roc_auc_ovr", weighted=True),
    **_own(_VALUES, "mae", "mse", "quantile_loss", "r2", "rmse"),
    **_own(_JUDGED, "score", "score_with_judge"),
    "neg_brier_score": _negative_of(_PROBABILITIES, "brier"),
    "neg_hamming_loss": _negative_of(_SETS, "hamming_loss"),
    "neg_log_loss": _negative_of(_PROBABILITIES, "log_loss"),
    "neg_mean_absolute_error": _negative_of(_VALUES, "mae"),
    "neg_mean_squared_error": _negative_of(_VALUES, "mse"),
    "neg_quantile_loss": _negative_of(_VALUES, "quantile_loss"),
    "neg_root_mean_squared_error": _negative_of(_VALUES, "rmse"),
}
_ALIASES = {"mcc": "matthews_corrcoef", "pinball_loss": "quantile_loss"}
_NOT_BY_NAME = {  # what to write
    "mae": "mae(lower=..., upper=...)",
    "mse": "mse(lower=..., upper=...)",
    "neg_mean_absolute_error": "negated(mae(lower=..., upper=...))",
    "neg_mean_squared_error": "negated(mse(lower=..., upper=...))",
    "neg_quantile_loss": "negated(quantile_loss(lower=..., upper=..., quantile=...))",
    "neg_root_mean_squared_error": "negated(rmse(lower=..., upper=...))",
    "quantile_loss": "quantile_loss(lower=..., upper=..., quantile=...)",
    "r2": "r2(lower=..., upper=..., variance=...)",
    "rmse": "rmse(lower=..., upper=...)",
    "score_with_judge": "score_with_judge(labelled=..., power=...)",
}
_STATED = {"score_with_judge": "how many rows people have scored"}
_WITH_BETA = {
    **_own(_CONFUSION, "fbeta"),
    **_averages(_CONFUSION, "fbeta"),
    "fbeta_micro": _of(_CONFUSION, "fbeta", beta=1, average="micro"),
}
_WITH_K = {"pass@": _of(_JUDGED, "pass_at"), "pass^": _of(_JUDGED, "pass_hat")}


def resolve_metric(metric: str | Metric) -> Metric:
    """Metric of the catalogue by its name; a `Metric` is returned as it is.

    Parameters
    ----------
    metric : str or Metric
        "accuracy", "average_precision", "balanced_accuracy", "brier", "f1", "jaccard", "log_loss",
        "matthews_corrcoef" (or "mcc"), "neg_brier_score", "neg_log_loss", "precision", "recall", "roc_auc",
        "roc_auc_ovr", "roc_auc_ovr_weighted", "specificity", "zero_one_loss"; "f1", "precision" and "recall" also with
        "_macro", "_micro" or "_weighted"; of several labels for each row "accuracy" (all of them right),
        "hamming_loss", "f1_samples", "jaccard_samples", "precision_samples", "recall_samples"; of judged scores
        "score", "score[politeness]" with any name, "pass@3" or "pass^3" with any number; or a metric. What
        scikit-learn's scorers are called means the same here; "neg_" is a loss with the opposite sign.

    Raises
    ------
    InputError
        If there is no such metric, it needs bounds, or it is a scorer or a function; saying what to pass instead.

    Examples
    --------
    >>> from reusable_holdout.metrics import f1
    >>> resolve_metric("brier").greater_is_better
    False
    >>> resolve_metric("f1_macro") == f1(average="macro")
    True
    """
    if isinstance(metric, Metric):
        return metric
    names = sorted([*_CATALOGUE, *(f"{start}k" for start in _WITH_K)])
    if not isinstance(metric, str):
        raise InputError(
            f"a metric must be a name or a Metric; got {type(metric).__name__}; "
            f"{sklearn_names.advice_about(metric) or _hint(getattr(metric, '__name__', ''), names)}"
        )
    metric = _ALIASES.get(metric, metric)
    if metric in _NOT_BY_NAME:
        raise InputError(
            f"{_STATED.get(metric, 'the bounds of the targets')} must be stated for {metric!r}; got the name alone; "
            f"pass {_NOT_BY_NAME[metric]}, from reusable_holdout.metrics"
        )
    found = None if metric in _WITH_BETA else _named(metric)
    if found is None:
        # all names, unless one of them must be meant, which would be lost among them
        which = "in the catalogue" if misfits.closest(metric, names) else f"one of {', '.join(names)}"
        raise InputError(
            sklearn_names.refusal_of_name(metric)
            or f"a metric's name must be {which}; got {metric!r}; "
            f"{sklearn_names.place_of_function(metric) or _hint(metric, names)}"
        )
    return found


def _named(name: str, **parameters: Any) -> Metric | None:
    """Metric of this name, with the numbers that it is called with; None if there is none."""
    if name[:5] in _WITH_K:
        return _of_repeats(name)
    if name.startswith("score[") and name.endswith("]"):
        return _CATALOGUE["score"](of=name[6:-1], **parameters)
    factory = (_CATALOGUE | _WITH_BETA).get(name)
    return None if factory is None else factory(**parameters)


def _of_repeats(name: str) -> Metric:
    """Metric "pass@3" or "pass^3"."""
    start, k = name[:5], name[5:]
    if not (k.isascii() and k.isdecimal() and not k.startswith("0") and len(k) < 7):
        raise InputError(
            f"a number of repeats from 1 to 999999 must follow {start}; got {name!r}; write {start}3, for example"
        )
    return _WITH_K[start](k=int(k))


def _hint(name: str, names: list[str]) -> str:
    near = misfits.closest(name, names)
    return f"did you mean {near!r}?" if near else "pass a Metric for one of your own"


def described_metric(description: Mapping[str, Any]) -> Metric:
    """Metric of the catalogue from what :meth:`Metric.describe` said of it, e.g. read back from JSON.

    An InputError says that no metric of the catalogue has this description: it is one of the user's own.
    """
    name = str(description.get("name"))
    try:
        metric = _named(name, **description["parameters"])
    except (InputError, KeyError, TypeError):
        metric = None
    if metric is None or metric.describe() != dict(description):
        raise InputError(
            f"the metric must be one of the catalogue; got {name!r}, which is not as described; "
            "pass the metric itself, if it is one of your own"
        )
    return metric
