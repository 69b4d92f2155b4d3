"""The prior of a candidate: its cross-validation mean in the guard's metric."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import get_scorer, get_scorer_names

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.guard import check_is_guard, error_of_folds, predictions_of
from reusable_holdout.metrics import Metric, described_metric, resolve_metric
from reusable_holdout.slips import checked_call

__all__ = ["PriorColumn", "PriorScorer", "prior_column", "prior_scorer", "scorers_of"]

_LOSSES = {  # scikit-learn's scorer, and the guard's loss. Log loss is missing here, because the guard's is clipped
    "neg_brier_score": "brier",
    "neg_mean_absolute_error": "mae",
    "neg_mean_squared_error": "mse",
    "neg_root_mean_squared_error": "rmse",
}


class PriorScorer:
    """Scorer ``(estimator, X, y) -> float`` that measures a guard's metric; made by :func:`prior_scorer`.

    Parameters
    ----------
    metric : Metric
        The guard's metric.
    classes : numpy.ndarray, "private" or None
        The guard's `class_set`.
    weighted : bool
        True if the holdout's rows have sample weights. Then the score uses the sample weights of the search's rows,
        too.
    """

    def __init__(self, metric: Metric, classes: NDArray[Any] | str | None, *, weighted: bool = False) -> None:
        self.metric = metric
        self.classes = classes
        self.weighted = weighted

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return a fitted estimator's score by the guard's metric, on rows the analyst may see; losses are negated."""
        value = self.measure(estimator, X, y, sample_weight=sample_weight)
        return value if self.metric.greater_is_better else -value

    def measure(self, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Return a fitted estimator's score in the metric's own unit; losses are not negated."""
        predictions = predictions_of(estimator, X, response=self.metric.response, classes=self.classes)
        return self.metric.measure(y, predictions, classes=self.classes, sample_weight=sample_weight)

    def _accept_sample_weight(self) -> bool:
        return self.weighted  # scikit-learn asks before it passes weights on

    def __getstate__(self) -> dict[str, Any]:
        try:  # as a description in plain data, which skops can read
            metric: Any = described_metric(self.metric.describe()).describe()
        except InputError:  # a metric of the user's own has no such description
            metric = self.metric
        return {**self.__dict__, "metric": metric}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self.metric, dict):
            self.metric = described_metric(self.metric)

    def __repr__(self) -> str:
        return f"prior_scorer(<{self.metric.name}>)"


@checked_call
def prior_scorer(guard: ReusableHoldout) -> PriorScorer:
    """Make a scorer that measures the guard's metric on folds, and never asks the guard.

    Use it for the search inside :class:`GuardedSearchCV` if scikit-learn has no scorer of the guard's metric, for
    example if the metric is a loss with bounds or your own.

    Parameters
    ----------
    guard : ReusableHoldout
        The guard whose metric is measured.

    Returns
    -------
    PriorScorer
        Pass it as `scoring=`, alone or in a dict. Losses are negated, so greater is better.
    """
    if isinstance(guard, type) or not isinstance(getattr(guard, "metric", None), Metric):
        check_is_guard(guard)
    return PriorScorer(guard.metric, guard.class_set, weighted=getattr(guard, "weighted", False))


class PriorColumn(NamedTuple):
    """The column of `cv_results_` that holds estimates of the guard's metric.

    Attributes
    ----------
    key : str
        The column is called ``mean_test_<key>``.
    factor, offset : float
        The guard's metric is ``factor * score + offset``.
    """

    key: str
    factor: float
    offset: float = 0.0

    def priors(self, results: dict[str, Any], metric: Metric) -> NDArray[np.float64]:
        """Return the cross-validation means in the metric's unit and within its bounds; NaN where a fit failed."""
        means = np.asarray(results[f"mean_test_{self.key}"], dtype=np.float64)
        return np.clip(self.factor * means + self.offset, metric.lower, metric.upper)

    def errors(self, results: dict[str, Any]) -> NDArray[np.float64]:
        """Return the standard errors of the priors in the metric's unit; 0 where the folds' scores are not kept.

        A standard error from few folds is uncertain: among a hundred, some are far too small. So each is raised to the
        root mean square of all errors of candidates fitted to the same number of rows, if it is smaller.
        """
        name = re.compile(rf"split\d+_test_{re.escape(self.key)}")
        folds = [np.asarray(results[key], dtype=np.float64) for key in results if name.fullmatch(key)]
        if not folds:
            return np.zeros(len(results[f"mean_test_{self.key}"]))
        own = np.nan_to_num(abs(self.factor) * error_of_folds(np.stack(folds, axis=-1)))
        _, fitted = np.unique(results.get("n_resources", np.zeros(len(own))), return_inverse=True)
        return np.maximum(own, np.sqrt(np.bincount(fitted, own**2) / np.bincount(fitted))[fitted])

    def ranks(self, results: dict[str, Any], metric: Metric) -> NDArray[np.int64]:
        """Return the candidates' ranks by cross-validation, from 1.

        They are the search's own ranks if it has any, else the ranks of the means.
        """
        named = results.get(f"rank_test_{self.key}")
        if named is not None:
            return np.asarray(named, dtype=np.int64)
        means = self.priors(results, metric)
        losses = -means if metric.greater_is_better else means
        return np.searchsorted(np.sort(losses), losses).astype(np.int64) + 1


def scorers_of(scoring: Any) -> dict[str, Any]:
    """Return a dict of the scorers in a `scoring` argument, with the keys that scikit-learn uses in `cv_results_`."""
    if isinstance(scoring, dict):
        return dict(scoring)
    if isinstance(scoring, list | tuple | set):
        return {name: name for name in scoring}
    return {"score": scoring}


def prior_column(search: Any, guard: ReusableHoldout, *, prior: str | None) -> PriorColumn:
    """Find the scores of a search that estimate the guard's metric.

    Two of scikit-learn's scorers are accepted although they equal the guard's metric only under a condition. For a
    metric with bounds, such as mae, the losses must lie within the bounds. For "neg_log_loss", whose losses the guard
    clips, no true class may have a probability below the clip.

    Parameters
    ----------
    search : estimator
        A search with the attribute `scoring`, as scikit-learn's searches have it.
    guard : ReusableHoldout
    prior : str or None
        The key that the user has named: "score" if the search has a single metric, else a key of its dict or list.

    Raises
    ------
    InputError
        If no scorer of the search is known to measure the guard's metric.
    """
    metric, scoring = guard.metric, getattr(search, "scoring", None)
    if prior is not None:
        return PriorColumn(prior, 1.0 if metric.greater_is_better else -1.0)
    scorers = scorers_of(_default(search) if scoring is None else scoring)
    preferred = getattr(search, "refit", None)
    for key in sorted(scorers, key=lambda key: key != preferred):  # first the score that the search ranks by
        rule = _rule(scorers[key], metric, 2 if guard.classes is None else len(guard.classes))
        if rule is not None:
            return PriorColumn(key, *rule)
    raise InputError(
        f"the search must be scored by the guard's metric, {metric.name}, because its cross-validation means are "
        f"the priors; got scoring={scoring!r}; nothing was fitted; name it in scoring=, use "
        "scoring=prior_scorer(guard), alone or in a dict with others, or say with prior= which key it is"
    )


def _default(search: Any) -> str | None:
    """Return the name of the score that an estimator's own `score` method measures."""
    if is_classifier(search):
        return "accuracy"
    return "r2" if is_regressor(search) else None


def _rule(scorer: Any, metric: Metric, classes: int) -> tuple[float, float] | None:
    """Return the factor and the offset that turn this scorer's scores into the metric; None if none are known."""
    if isinstance(scorer, PriorScorer):
        same = scorer.metric.describe() == metric.describe()
        return (1.0 if metric.greater_is_better else -1.0, 0.0) if same else None
    name = scorer if isinstance(scorer, str) else _name(scorer)
    if name is None:
        return None
    if metric.name == "zero_one_loss":
        return (-1.0, 1.0) if name == "accuracy" else None
    if _is(metric, name):
        return 1.0, 0.0
    if name in _LOSSES and _is(metric, _LOSSES[name]):
        halved = name == "neg_brier_score" and classes > 2  # the guard's loss is half of scikit-learn's
        return (-0.5 if halved else -1.0), 0.0
    return None


def _is(metric: Metric, name: str) -> bool:
    try:
        return metric.describe() == resolve_metric(name).describe()
    except InputError:  # the user has set the metric's bounds, or the guard has no metric of this name
        return metric.name == name


def _name(scorer: Any) -> str | None:
    """Return the name of a scorer object if it is one of scikit-learn's own; else None."""
    for name in get_scorer_names():
        known = get_scorer(name)
        if type(scorer) is type(known) and repr(scorer) == repr(known):
            return str(name)
    return None
