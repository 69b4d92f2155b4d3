"""What to pass in place of scikit-learn's scorers and functions; scikit-learn itself is not needed for that."""

from __future__ import annotations

from functools import partial
from typing import Any

__all__ = ["advice_about", "place_of_function", "refusal_of_name"]

_CLUSTERS = (
    "which compares clusterings by all pairs or by a table, and is no mean over rows",
    '"accuracy" of clusters that are named as classes',
)
_OVERLAP = (
    "a ratio of counts that is not in the catalogue",
    '"f1", "f1_macro" and so on: of one class F1 = 2 J/(1 + J), so it ranks models alike',
)
_LIKELIHOODS = ("a ratio of two rates, which has no bound", '"recall" and "specificity"')
_UNBOUNDED = (
    "whose loss of a single row has no bound",
    "mae or mse with bounds, or a Metric of your own with this loss and the bounds you clip it to",
)
_LOGARITHMS = (
    "an error of logarithms",
    "mse or rmse with bounds, of targets and predictions that are log(1 + y) already",
)
_OWN_SCALE = "which divides by a statistic of the holdout's own targets, and so is no mean over rows"
_REFUSED: dict[str, tuple[str, str]] = {  # why, and the nearest that can be certified
    **dict.fromkeys(
        [
            "adjusted_mutual_info_score",
            "adjusted_rand_score",
            "completeness_score",
            "fowlkes_mallows_score",
            "homogeneity_score",
            "mutual_info_score",
            "normalized_mutual_info_score",
            "rand_score",
            "v_measure_score",
        ],
        _CLUSTERS,
    ),
    **dict.fromkeys(["jaccard_macro", "jaccard_micro", "jaccard_weighted"], _OVERLAP),
    **dict.fromkeys(["neg_negative_likelihood_ratio", "positive_likelihood_ratio"], _LIKELIHOODS),
    **dict.fromkeys(
        ["neg_mean_absolute_percentage_error", "neg_mean_gamma_deviance", "neg_mean_poisson_deviance"],
        _UNBOUNDED,
    ),
    **dict.fromkeys(["neg_mean_squared_log_error", "neg_root_mean_squared_log_error"], _LOGARITHMS),
    **dict.fromkeys(
        ["max_error", "neg_max_error"],
        (
            "which a single row decides",
            "mae with bounds, or a Metric of your own: the share of rows whose error exceeds a limit",
        ),
    ),
    "neg_median_absolute_error": ("a median, which is no mean over rows", "mae with bounds"),
    "d2_absolute_error_score": (_OWN_SCALE, "mae with bounds"),
    "d2_brier_score": (_OWN_SCALE, '"neg_brier_score"'),
    "d2_log_loss_score": (_OWN_SCALE, '"neg_log_loss"'),
    "explained_variance": (_OWN_SCALE, "r2 with bounds and a stated variance"),
    "roc_auc_ovo": ("a mean over pairs of classes", '"roc_auc_ovr"'),
    "roc_auc_ovo_weighted": ("a mean over pairs of classes", '"roc_auc_ovr_weighted"'),
    "top_k_accuracy": (
        "which is not in the catalogue",
        '"accuracy", or a Metric of your own with response="probabilities", family="binomial" and a loss that is 1 '
        "where the label is among the top k",
    ),
}
_GAINS = {
    "accuracy_score": '"accuracy"',
    "average_precision_score": '"average_precision"',
    "balanced_accuracy_score": '"balanced_accuracy"',
    "matthews_corrcoef": '"matthews_corrcoef"',
    "r2_score": "r2(lower=..., upper=..., variance=...)",
}
_LOSSES = {  # and with the opposite sign
    "brier_score_loss": ('"brier"', '"neg_brier_score"'),
    "hamming_loss": ('"hamming_loss"', '"neg_hamming_loss"'),
    "log_loss": ('"log_loss"', '"neg_log_loss"'),
    "mean_absolute_error": ("mae(lower=..., upper=...)", "negated(mae(lower=..., upper=...))"),
    "mean_squared_error": ("mse(lower=..., upper=...)", "negated(mse(lower=..., upper=...))"),
    "root_mean_squared_error": ("rmse(lower=..., upper=...)", "negated(rmse(lower=..., upper=...))"),
    "zero_one_loss": ('"zero_one_loss"', '"accuracy", which is 1 more'),
}
_AVERAGED = {f"{ours}_score": ours for ours in ("f1", "fbeta", "jaccard", "precision", "recall")}
_AVERAGES = ("binary", "macro", "micro", "samples", "weighted")
_NEUTRAL: dict[str, tuple[Any, ...]] = {  # arguments that change nothing that is measured here
    "adjusted": (False,),
    "force_finite": (True,),
    "labels": (None,),
    "max_fpr": (None,),
    "multioutput": ("uniform_average",),
    "normalize": (True,),
    "sample_weight": (None,),
    "scale_by_half": ("auto", True),
    "zero_division": ("warn", 0),
}
_OWN = (
    "pass Metric(name=..., lower=..., upper=..., greater_is_better=..., loss=...), whose loss(y_true, y_pred) gives "
    "one number within the bounds for each row"
)


def refusal_of_name(name: str) -> str | None:
    """Why one of scikit-learn's scorers cannot be certified, and what can; None if it is none that is known."""
    if name not in _REFUSED:
        return None
    why, nearest = _REFUSED[name]
    return (
        "a metric must be a statistic that each row moves by a bounded amount, and one of the catalogue or your own; "
        f"got scikit-learn's {name!r}, {why}; use {nearest}"
    )


def advice_about(metric: object) -> str | None:
    """What to pass in place of a scorer or a function; None if it is neither."""
    function: Any = getattr(metric, "_score_func", metric)
    is_scorer, stored = function is not metric, getattr(metric, "_kwargs", None)
    kwargs = dict(stored) if isinstance(stored, dict) else {}
    while isinstance(function, partial):
        function, kwargs = function.func, {**function.keywords, **kwargs}
    if not callable(function) or isinstance(function, type):
        return None
    name = str(getattr(function, "__name__", ""))
    if str(getattr(function, "__module__", "")).startswith("sklearn.metrics"):
        sign = -1 if is_scorer and getattr(metric, "_sign", 1) < 0 else 1
        return place_of_function(name, kwargs, sign) or f"{name} with these arguments is none of ours; {_OWN}"
    return None if str(getattr(function, "__module__", "")).startswith("reusable_holdout") else _OWN


def place_of_function(name: str, kwargs: dict[str, Any] | None = None, sign: int = 1) -> str | None:
    """What to pass in place of one of scikit-learn's functions, or why nothing does; None if it is not known.

    Of a function by its name and what it is called with besides labels and predictions; the sign is -1 of a scorer of
    what is to be small.
    """
    given = (kwargs or {}).items()
    left = {word: value for word, value in given if not _is_one_of(value, _NEUTRAL.get(word, ()))}
    is_last = _is_one_of(left.pop("pos_label", None), (None, 1))
    last = "" if is_last else "; its positive class is the last sorted one"
    ours = _spelled(name, left, sign)
    if ours is not None:
        return f"pass {ours}{'' if ours.startswith(chr(34)) else ' from reusable_holdout.metrics'}{last}"
    average = left.get("average")
    tried = [name, name.removesuffix("_score"), f"neg_{name}", f"{_AVERAGED.get(name, name)}_{average}"]
    if name == "roc_auc_score":
        tried.append(f"roc_auc_{left.get('multi_class')}{'_weighted' if str(average) == 'weighted' else ''}")
    for scorer in tried:
        if scorer in _REFUSED:
            why, nearest = _REFUSED[scorer]
            return f"it is {scorer!r}, {why}; use {nearest}"
    return None


def _spelled(name: str, kwargs: dict[str, Any], sign: int) -> str | None:
    """The same metric as it is written here."""
    if name in _LOSSES and not kwargs:
        return _LOSSES[name][sign < 0]
    if name == "mean_pinball_loss" and kwargs.keys() <= {"alpha"}:
        loss = f"quantile_loss(lower=..., upper=..., quantile={kwargs.get('alpha', 0.5)!r})"
        return loss if sign > 0 else f"negated({loss})"
    if sign < 0:
        return None
    if name in _GAINS and not kwargs:
        return _GAINS[name]
    if name == "roc_auc_score":
        return _area(kwargs)
    return _averaged(name, kwargs) if name in _AVERAGED else None


def _area(kwargs: dict[str, Any]) -> str | None:
    kinds = {
        ("raise", "macro"): '"roc_auc"',
        ("ovr", "macro"): '"roc_auc_ovr"',
        ("ovr", "weighted"): '"roc_auc_ovr_weighted"',
    }
    if not kwargs.keys() <= {"multi_class", "average"}:
        return None
    wanted = kwargs.get("multi_class", "raise"), kwargs.get("average", "macro")
    return next((ours for kind, ours in kinds.items() if kind == wanted), None)


def _averaged(name: str, kwargs: dict[str, Any]) -> str | None:
    ours, average, beta = _AVERAGED[name], kwargs.get("average", "binary"), kwargs.get("beta")
    if not kwargs.keys() <= {"average", "beta"} or not _is_one_of(average, _AVERAGES):
        return None
    served = {"fbeta": average != "samples", "jaccard": average in {"binary", "samples"}}
    if not served.get(ours, True):
        return None
    if ours == "fbeta":
        shown = "..." if beta is None else repr(beta)
        return f"fbeta(beta={shown})" if average == "binary" else f'fbeta(beta={shown}, average="{average}")'
    return f'"{ours}"' if average == "binary" else f'"{ours}_{average}"'


def _is_one_of(value: object, values: tuple[Any, ...]) -> bool:
    """Whether a plain value is among these; an array is not asked."""
    return isinstance(value, str | int | float | None) and value in values
