"""Look-up of metrics by name, and advice for users who pass names, scorers or functions of scikit-learn.

scikit-learn is not imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from reusable_holdout import misfits
from reusable_holdout.errors import InputError
from reusable_holdout.metrics.catalogue import CATALOGUE
from reusable_holdout.metrics.judged import pass_at, pass_hat, score
from reusable_holdout.metrics.metric import Metric

_ALIASES = {"mcc": "matthews_corrcoef", "pinball_loss": "quantile_loss"}
_OF_REPEATS = {"pass@": pass_at, "pass^": pass_hat}


def resolve_metric(metric: str | Metric) -> Metric:
    """Return the metric of the catalogue with this name; a `Metric` is returned as it is.

    Parameters
    ----------
    metric : str or Metric
        "accuracy", "average_precision", "balanced_accuracy", "brier", "f1", "jaccard", "log_loss",
        "matthews_corrcoef" (or "mcc"), "neg_brier_score", "neg_log_loss", "precision", "recall", "roc_auc",
        "roc_auc_ovr", "roc_auc_ovr_weighted", "specificity", "zero_one_loss"; "f1", "precision" and "recall" also with
        "_macro", "_micro" or "_weighted". For rows with several labels: "accuracy" (all labels of a row right),
        "hamming_loss". For judged scores: "score", "score[politeness]" with any name, "pass@3" or "pass^3" with any
        number. A `Metric` is allowed, too.
        Names of scikit-learn's scorers mean the same here; "neg_" marks a loss with the opposite sign.

    Raises
    ------
    InputError
        If there is no such metric, if it needs bounds, or if a scorer or a function is passed. The message says what to
        pass instead.

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
    names = sorted([*CATALOGUE, *(f"{start}k" for start in _OF_REPEATS)])
    if not isinstance(metric, str):
        raise InputError(
            f"a metric must be a name or a Metric; got {type(metric).__name__}; "
            f"{_advice_about(metric) or _hint(getattr(metric, '__name__', ''), names)}"
        )
    metric = _ALIASES.get(metric, metric)
    if metric in CATALOGUE and CATALOGUE[metric].stated:
        stated = CATALOGUE[metric].stated
        raise InputError(
            f"{'the bounds of the targets' if 'lower' in stated else ' and '.join(stated)} must be stated for "
            f"{metric!r}; got the name alone; pass {CATALOGUE[metric].spelled()}, from reusable_holdout.metrics"
        )
    found = _named(metric)
    if found is not None:
        return found
    refusal = _refusal(metric)
    if refusal is not None:
        raise InputError(
            "a metric must be in the catalogue or your own, and one row may change it only by a bounded amount; got "
            f"scikit-learn's {metric!r}, {refusal}"
        )
    # list all names only if no name is close, because a close one would be hard to find in the list
    which = "in the catalogue" if misfits.closest(metric, names) else f"one of {', '.join(names)}"
    raise InputError(
        f"a metric's name must be {which}; got {metric!r}; {_place_of(metric) or _hint(metric, names)}"
    )


def described_metric(description: Mapping[str, Any]) -> Metric:
    """Return the metric of the catalogue with this description, which may have been read back from JSON.

    Parameters
    ----------
    description : mapping
        The result of :meth:`Metric.describe`.

    Raises
    ------
    InputError
        If no metric of the catalogue has this description, as for a metric of the user's own.
    """
    name = str(description.get("name"))
    metric = None
    with suppress(InputError, KeyError, TypeError):
        stated = dict(description["parameters"])
        if name.endswith(("rmse", "root_mean_squared_error")):
            del stated["floor"]  # of earlier versions
        metric = _named(name, **stated)
    if metric is None or metric.describe() != dict(description):
        raise InputError(
            f"the metric must be one of the catalogue; got {name!r} with a description that is not the catalogue's; "
            "pass the metric itself, if it is one of your own"
        )
    return metric


def _named(name: str, **parameters: Any) -> Metric | None:
    """Return the metric of this name with these parameters, or None if there is none."""
    start, k = name[:5], name[5:]
    if start in _OF_REPEATS:
        if not (k.isascii() and k.isdecimal() and not k.startswith("0") and len(k) < 7):
            raise InputError(
                f"a number of repeats from 1 to 999999 must follow {start}; got {name!r}; write {start}3, for example"
            )
        return _OF_REPEATS[start](k=int(k))
    if name.startswith("score[") and name.endswith("]"):
        return score(of=name[6:-1], **parameters)
    return CATALOGUE[name].metric(**parameters) if name in CATALOGUE else None


def _hint(name: str, names: list[str]) -> str:
    near = misfits.closest(name, names)
    return f"did you mean {near!r}?" if near else "pass a Metric for one of your own"


# ---- scikit-learn's scorers and functions

_REFUSED = {  # patterns of names, the reason, and the nearest metric that can be certified
    "(adjusted_|normalized_)?(mutual_info|rand)|completeness|fowlkes_mallows|homogeneity|v_measure": (
        "which compares all pairs of rows or a table of clusters, and is no mean over rows; use "
        '"accuracy", with clusters named as classes'
    ),
    "jaccard_(macro|micro|weighted)": (
        'a ratio of counts that is not in the catalogue; use "f1", "f1_macro" and so on: for one class '
        "with Jaccard score J, F1 = 2 J/(1 + J), so both rank models alike"
    ),
    "(f1|jaccard|precision|recall)_samples": (
        'a mean of scores of sets, which is not in the catalogue; use "hamming_loss", or a Metric of your own'
    ),
    "(positive|negative)_likelihood_ratio": (
        'a ratio of two rates, which has no bound; use "recall" and "specificity"'
    ),
    "mean_(absolute_percentage_error|gamma_deviance|poisson_deviance)": (
        "whose loss on a single row has no limit; use mae or mse with bounds, or a Metric of your own with this loss "
        "and the bounds you clip it to"
    ),
    "(root_)?mean_squared_log_error": (
        "an error of logarithms; use mse or rmse with bounds, and give log(1 + y) for every target and prediction y"
    ),
    "max_error|median_absolute_error": "which few rows decide, and is no mean over rows; use mae with bounds",
    "d2_.*|explained_variance": (
        "which divides by a statistic of the holdout's own targets, and so is no mean over rows; use mae with bounds, "
        'r2 with bounds and a stated variance, "neg_brier_score" or "neg_log_loss"'
    ),
    "roc_auc_ovo(_weighted)?": 'a mean over pairs of classes; use "roc_auc_ovr" or "roc_auc_ovr_weighted"',
    "top_k_accuracy": (
        'which is not in the catalogue; use "accuracy", or a Metric of your own with response="probabilities", '
        'family="binomial" and a loss that is 1 where the label is among the top k'
    ),
}
_OWN = (
    "pass Metric(name=..., lower=..., upper=..., greater_is_better=..., loss=...), whose loss(y_true, y_pred) gives "
    "one number within the bounds for each row"
)


def _refusal(name: str) -> str | None:
    """Return the reason why scikit-learn's metric of this name is not offered, with advice; None for other names."""
    scorer = name.removeprefix("neg_").removesuffix("_score")
    return next((words for pattern, words in _REFUSED.items() if re.fullmatch(pattern, scorer)), None)


def _advice_about(metric: object) -> str | None:
    """Return advice on what to pass in place of a scorer or a function, or None for another object."""
    function: Any = getattr(metric, "_score_func", metric)
    while isinstance(function, partial):
        function = function.func
    if not callable(function) or isinstance(function, type):
        return None
    home, name = (str(getattr(function, word, "")) for word in ("__module__", "__name__"))
    if home.startswith("sklearn.metrics"):
        return _place_of(name) or f"{name} is not in the catalogue; {_OWN}"
    return None if home.startswith("reusable_holdout") else _OWN


def _place_of(name: str) -> str | None:
    """Return advice on what to pass in place of a scikit-learn function, by its name; None for an unknown name."""
    ours = [entry.spelled() for entry in CATALOGUE.values() if entry.function == name]
    if ours:
        home = "" if ours[0].startswith('"') else ", from reusable_holdout.metrics"
        one_of = "one of " * (len(ours) > 1) + ", ".join(ours)
        return f"pass {one_of}{home}, if it has the same arguments"
    refusal = _refusal(name)
    return None if refusal is None else f"it is {name!r}, {refusal}"
