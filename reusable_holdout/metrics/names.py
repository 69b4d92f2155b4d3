"""Metrics by their names, and advice on the names, scorers and functions of scikit-learn, which is not imported."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from reusable_holdout import misfits
from reusable_holdout.errors import InputError
from reusable_holdout.metrics.catalogue import CATALOGUE, Entry
from reusable_holdout.metrics.confusion_metrics import fbeta
from reusable_holdout.metrics.judged import pass_at, pass_hat, score
from reusable_holdout.metrics.metric import Metric

__all__ = ["described_metric", "resolve_metric"]

_ALIASES = {"mcc": "matthews_corrcoef", "pinball_loss": "quantile_loss"}
_STATED = {"score_with_judge": "how many rows people have scored"}
_DESCRIBED_ALONE = {  # a name does not say the beta
    "fbeta": Entry(fbeta),
    "fbeta_macro": Entry(fbeta, fixed={"average": "macro"}),
    "fbeta_micro": Entry(fbeta, fixed={"average": "micro", "beta": 1}),
    "fbeta_weighted": Entry(fbeta, fixed={"average": "weighted"}),
}
_OF_REPEATS = {"pass@": pass_at, "pass^": pass_hat}


def resolve_metric(metric: str | Metric) -> Metric:
    """Return the metric of the catalogue with this name; a `Metric` is returned as it is.

    Parameters
    ----------
    metric : str or Metric
        "accuracy", "average_precision", "balanced_accuracy", "brier", "f1", "jaccard", "log_loss",
        "matthews_corrcoef" (or "mcc"), "neg_brier_score", "neg_log_loss", "precision", "recall", "roc_auc",
        "roc_auc_ovr", "roc_auc_ovr_weighted", "specificity", "zero_one_loss"; "f1", "precision" and "recall" also with
        "_macro", "_micro" or "_weighted"; for several labels of each row "accuracy" (all of them right),
        "hamming_loss", "f1_samples", "jaccard_samples", "precision_samples", "recall_samples"; for judged scores
        "score", "score[politeness]" with any name, "pass@3" or "pass^3" with any number; or a metric. Names of
        scikit-learn's scorers mean the same here; "neg_" is a loss with the opposite sign.

    Raises
    ------
    InputError
        If there is no such metric, it needs bounds, or it is a scorer or a function; it says what to pass instead.

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
        raise InputError(
            f"{_STATED.get(metric, 'the bounds of the targets')} must be stated for {metric!r}; got the name alone; "
            f"pass {CATALOGUE[metric].spelled()}, from reusable_holdout.metrics"
        )
    found = None if metric in _DESCRIBED_ALONE else _named(metric)
    if found is not None:
        return found
    if metric in _REFUSED:
        raise InputError(
            "a metric must be a statistic that each row moves by a bounded amount, and one of the catalogue or your "
            f"own; got scikit-learn's {metric!r}, {_refusal(metric)}"
        )
    # all names, unless one of them must be meant, which would be lost among them
    which = "in the catalogue" if misfits.closest(metric, names) else f"one of {', '.join(names)}"
    raise InputError(
        f"a metric's name must be {which}; got {metric!r}; {_place_of(metric, {}) or _hint(metric, names)}"
    )


def described_metric(description: Mapping[str, Any]) -> Metric:
    """Return the metric of the catalogue that :meth:`Metric.describe` described, e.g. read back from JSON.

    Parameters
    ----------
    description : mapping
        What :meth:`Metric.describe` returned.

    Raises
    ------
    InputError
        If no metric of the catalogue has this description: it is one of the user's own.
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
    entry = CATALOGUE.get(name, _DESCRIBED_ALONE.get(name))
    return None if entry is None else entry.metric(**parameters)


def _hint(name: str, names: list[str]) -> str:
    near = misfits.closest(name, names)
    return f"did you mean {near!r}?" if near else "pass a Metric for one of your own"


# ---- scikit-learn's scorers and functions

_CLUSTERS = (
    "which compares clusterings by all pairs or by a table, and is no mean over rows",
    '"accuracy" of clusters that are named as classes',
)
_OVERLAP = (
    "a ratio of counts that is not in the catalogue",
    '"f1", "f1_macro" and so on: of one class F1 = 2 J/(1 + J), so it ranks models alike',
)
_UNBOUNDED = (
    "whose loss of a single row has no bound",
    "mae or mse with bounds, or a Metric of your own with this loss and the bounds you clip it to",
)
_LOGARITHMS = (
    "an error of logarithms",
    "mse or rmse with bounds, of targets and predictions that are log(1 + y) already",
)
_LIKELIHOODS = ("a ratio of two rates, which has no bound", '"recall" and "specificity"')
_LARGEST = (
    "which a single row decides",
    "mae with bounds, or a Metric of your own: the share of rows whose error exceeds a limit",
)
_OWN_SCALE = "which divides by a statistic of the holdout's own targets, and so is no mean over rows"
_PAIRS = "a mean over pairs of classes"
_REFUSED: dict[str, tuple[str, str]] = {  # the reason, and the nearest metric that can be certified
    "adjusted_mutual_info_score": _CLUSTERS,
    "adjusted_rand_score": _CLUSTERS,
    "completeness_score": _CLUSTERS,
    "d2_absolute_error_score": (_OWN_SCALE, "mae with bounds"),
    "d2_brier_score": (_OWN_SCALE, '"neg_brier_score"'),
    "d2_log_loss_score": (_OWN_SCALE, '"neg_log_loss"'),
    "explained_variance": (_OWN_SCALE, "r2 with bounds and a stated variance"),
    "fowlkes_mallows_score": _CLUSTERS,
    "homogeneity_score": _CLUSTERS,
    "jaccard_macro": _OVERLAP,
    "jaccard_micro": _OVERLAP,
    "jaccard_weighted": _OVERLAP,
    "max_error": _LARGEST,
    "mutual_info_score": _CLUSTERS,
    "neg_max_error": _LARGEST,
    "neg_mean_absolute_percentage_error": _UNBOUNDED,
    "neg_mean_gamma_deviance": _UNBOUNDED,
    "neg_mean_poisson_deviance": _UNBOUNDED,
    "neg_mean_squared_log_error": _LOGARITHMS,
    "neg_median_absolute_error": ("a median, which is no mean over rows", "mae with bounds"),
    "neg_negative_likelihood_ratio": _LIKELIHOODS,
    "neg_root_mean_squared_log_error": _LOGARITHMS,
    "normalized_mutual_info_score": _CLUSTERS,
    "positive_likelihood_ratio": _LIKELIHOODS,
    "rand_score": _CLUSTERS,
    "roc_auc_ovo": (_PAIRS, '"roc_auc_ovr"'),
    "roc_auc_ovo_weighted": (_PAIRS, '"roc_auc_ovr_weighted"'),
    "top_k_accuracy": (
        "which is not in the catalogue",
        '"accuracy", or a Metric of your own with response="probabilities", family="binomial" and a loss that is 1 '
        "where the label is among the top k",
    ),
    "v_measure_score": _CLUSTERS,
}
_NEUTRAL: dict[str, tuple[Any, ...]] = {  # values of arguments that change nothing that is measured here
    "adjusted": (False,),
    "average": ("binary",),
    "force_finite": (True,),
    "labels": (None,),
    "max_fpr": (None,),
    "multioutput": ("uniform_average",),
    "normalize": (True,),
    "sample_weight": (None,),
    "scale_by_half": ("auto", True),
    "zero_division": ("warn", 0),
}
_OF_AREAS: dict[str, tuple[Any, ...]] = {"average": ("macro",), "multi_class": ("raise",)}
_OWN = (
    "pass Metric(name=..., lower=..., upper=..., greater_is_better=..., loss=...), whose loss(y_true, y_pred) gives "
    "one number within the bounds for each row"
)


def _refusal(name: str) -> str:
    reason, nearest = _REFUSED[name]
    return f"{reason}; use {nearest}"


def _advice_about(metric: object) -> str | None:
    """Return what to pass in place of a scorer or a function, or None if it is neither."""
    function: Any = getattr(metric, "_score_func", metric)
    is_scorer, stored = function is not metric, getattr(metric, "_kwargs", None)
    kwargs = dict(stored) if isinstance(stored, dict) else {}
    while isinstance(function, partial):
        function, kwargs = function.func, {**function.keywords, **kwargs}
    if not callable(function) or isinstance(function, type):
        return None
    name = str(getattr(function, "__name__", ""))
    home = str(getattr(function, "__module__", ""))
    if home.startswith("sklearn.metrics"):
        sign = -1 if is_scorer and getattr(metric, "_sign", 1) < 0 else 1
        return _place_of(name, kwargs, sign) or f"{name} with these arguments is none of ours; {_OWN}"
    return None if home.startswith("reusable_holdout") else _OWN


def _place_of(name: str, kwargs: Mapping[str, Any], sign: int = 1) -> str | None:
    """Return what to pass in place of a function of scikit-learn, or why nothing does; None if it is not known.

    The function comes by its name and its arguments besides labels and predictions; the sign is -1 for a scorer of a
    number that is to be small.
    """
    neutral = _NEUTRAL | _OF_AREAS if name == "roc_auc_score" else _NEUTRAL
    left = {word: one for word, one in kwargs.items() if not _is_one_of(one, neutral.get(word, ()))}
    last = (
        ""
        if _is_one_of(left.pop("pos_label", None), (None, 1))
        else "; its positive class is the last sorted one"
    )
    ours = _spelled(name, left, sign)
    if ours is not None:
        return f"pass {ours}{'' if ours.startswith(chr(34)) else ' from reusable_holdout.metrics'}{last}"
    tried = [
        name,
        name.removesuffix("_score"),
        f"neg_{name}",
        f"{name.removesuffix('_score')}_{left.get('average')}",
    ]
    if name == "roc_auc_score":
        tried.append(f"roc_auc_{left.get('multi_class')}{'_weighted' if 'average' in left else ''}")
    return next((f"it is {scorer!r}, {_refusal(scorer)}" for scorer in tried if scorer in _REFUSED), None)


def _spelled(name: str, called: dict[str, Any], sign: int) -> str | None:
    """Return the code of the same metric here, or None if there is none."""
    if not all(_is_one_of(value, (value,)) for value in called.values()):
        return None
    if (name, sign, called) == ("zero_one_loss", -1, {}):
        return '"accuracy", which is 1 more'
    if name == "fbeta_score" and sign > 0 and called.keys() <= {"average", "beta"}:
        return _spelled_fbeta(**called)
    quantile = called.pop("alpha", 0.5) if name == "mean_pinball_loss" else None
    fitting = (
        entry.spelled(quantile=repr(quantile))
        for entry in CATALOGUE.values()
        if (entry.function, entry.sign, entry.called) == (name, sign, called)
    )
    return next(fitting, None)


def _spelled_fbeta(average: str = "binary", beta: float | None = None) -> str | None:
    if average not in {"binary", "macro", "micro", "weighted"}:
        return None
    shown = "..." if beta is None else repr(beta)
    return f"fbeta(beta={shown})" if average == "binary" else f'fbeta(beta={shown}, average="{average}")'


def _is_one_of(value: object, values: tuple[Any, ...]) -> bool:
    """Return True if a plain value is among these; an array is not compared."""
    return isinstance(value, str | int | float | None) and value in values
