"""Cross-validation and one question: the mean over the folds is the prior, one refit is the model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv, cross_validate
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, InputError, ModelError
from reusable_holdout.slips import checked_call
from reusable_holdout_sklearn.asking import check_guard, fitted_and_measured
from reusable_holdout_sklearn.priors import prior_scorer

__all__ = ["guarded_cross_validate"]

_PRIOR = "prior"


@checked_call
def guarded_cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    guard: ReusableHoldout,
    *,
    scoring: Any = None,
    cv: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict[str, Any] | None = None,
    pre_dispatch: int | str = "2*n_jobs",
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: float | str = np.nan,
    name: str | None = None,
) -> dict[str, Any]:
    """Cross-validate a model, then ask a guarded holdout about it.

    With the guard's confidence the answer's interval contains the population value of the refitted model, together with
    the intervals of all other answers.

    Parameters
    ----------
    estimator : estimator
        Cloned for each fold, and fitted once more, on all rows.
    X, y : array-like
        Training rows; none of the holdout's.
    guard : ReusableHoldout
        With features.
    scoring : str, callable, list, tuple or dict, optional
        What else to measure on the folds, as for cross_validate; by default the guard's metric alone.
    cv, groups, n_jobs, verbose, params, pre_dispatch, return_train_score, return_estimator, return_indices, error_score
        As for cross_validate.
    name : str, optional
        What history calls the question; by default the model's type.

    Returns
    -------
    dict
        What cross_validate returns, and

        test_prior : ndarray
            Scores of the folds in the guard's metric and its unit (losses are not negated); their mean is the prior.
        guard_answer : Answer
            The one question.
        guard_estimator : estimator
            The model it is about, fitted on all rows; with `return_estimator`.

    Raises
    ------
    Halted
        If a budget has run out and the question is new. If no question had this prior, the model is not even refitted.
        The folds' scores are on the exception, in `scores`.
    ModelError
        If the model fails on the holdout, or `X` holds rows of it.
    InputError
        If a fold has no score.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from reusable_holdout import ReusableHoldout
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4_000, 3))
    >>> y = (X[:, 0] + rng.normal(size=4_000) > 0).astype(int)
    >>> guard = ReusableHoldout(X[2_000:], y[2_000:], tolerance=0.1, queries=10, seed=0)
    >>> scores = guarded_cross_validate(LogisticRegression(), X[:2_000], y[:2_000], guard)
    >>> scores["guard_answer"].value == scores["test_score"].mean(), guard.queries_asked
    (np.True_, 1)
    """
    check_guard(guard)
    scores: dict[str, Any] = cross_validate(
        estimator,
        X,
        y,
        groups=groups,
        scoring=_with_prior(scoring, guard),
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        return_train_score=return_train_score,
        return_estimator=return_estimator,
        return_indices=return_indices,
        error_score=error_score,
    )
    prior = _take_prior(scores, guard, alone=scoring is None)
    if guard.halted and not guard.could_replay([prior]):
        raise _with_scores(guard.halt(), scores)
    fit_params = _fit_params(estimator, y, cv, params or {})
    measured = fitted_and_measured(estimator, {}, X, y, fit_params, guard, prior)
    called = type(estimator).__name__ if name is None else name
    asked = guard.ask([measured], [prior], names=[called], X_train=X)
    if asked.halted is not None:
        raise _with_scores(asked.halted, scores)
    (answer,) = asked.answers
    if answer is None:
        raise ModelError(
            "the model failed on the holdout, or X holds rows of the holdout, more than chance explains; which, and "
            "a failure's words, are withheld, for they may quote the holdout; either is a fact about the holdout and "
            f"took one charge (charges left: {guard.charges_left}, queries left: {guard.queries_left}); try the model "
            "on training rows with the same columns, and see whence X came"
        )
    scores["guard_answer"] = answer
    if return_estimator:
        scores["guard_estimator"] = measured.model
    return scores


def _with_prior(scoring: Any, guard: ReusableHoldout) -> dict[str, Any]:
    """What the user wants measured on the folds, and the guard's metric."""
    if scoring is None:
        scorers = {}
    elif isinstance(scoring, dict):
        scorers = dict(scoring)
    elif isinstance(scoring, list | tuple | set):
        scorers = {one: one for one in scoring}
    else:
        scorers = {"score": scoring}
    if _PRIOR in scorers:
        raise InputError(
            f"no scorer may be called {_PRIOR!r}: the guard's metric is; nothing was fitted; rename it"
        )
    return scorers | {_PRIOR: prior_scorer(guard)}


def _take_prior(scores: dict[str, Any], guard: ReusableHoldout, *, alone: bool) -> float:
    """Mean over the folds in the metric's unit; the folds' are put down in it, too."""
    train = scores.pop(f"train_{_PRIOR}", None)
    if alone:  # as cross_validate calls them, greater is better
        scores["test_score"] = scores[f"test_{_PRIOR}"]
        scores |= {} if train is None else {"train_score": train}
    sign = 1.0 if guard.metric.greater_is_better else -1.0
    scores[f"test_{_PRIOR}"] = sign * scores[f"test_{_PRIOR}"]
    prior = float(np.mean(scores[f"test_{_PRIOR}"]))
    if math.isnan(prior):
        raise InputError(
            "every fold must have a score, for their mean is the prior; one has none; nothing was asked; "
            'error_score="raise" shows why'
        )
    return float(np.clip(prior, guard.metric.lower, guard.metric.upper))


def _fit_params(estimator: Any, y: Any, cv: Any, params: dict[str, Any]) -> dict[str, Any]:
    """What of the parameters the estimator is fitted with."""
    if not params or not get_config()["enable_metadata_routing"]:
        return params
    to_fit, to_split = (MethodMapping().add(caller="fit", callee=callee) for callee in ("fit", "split"))
    router = MetadataRouter(owner="guarded_cross_validate").add(estimator=estimator, method_mapping=to_fit)
    router.add(splitter=check_cv(cv, y, classifier=is_classifier(estimator)), method_mapping=to_split)
    return dict(process_routing(router, "fit", **params).estimator.fit)


def _with_scores(halted: Halted, scores: dict[str, Any]) -> Halted:
    halted.scores = scores  # type: ignore[attr-defined] # what was computed is not lost
    return halted
