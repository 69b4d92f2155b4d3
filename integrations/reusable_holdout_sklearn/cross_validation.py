"""Cross-validation, then one question to the guard about the model refitted on all training rows.

The mean score over the folds is the prior of the question.
"""

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
from reusable_holdout.guard import Estimate, error_of_folds
from reusable_holdout.slips import checked_call
from reusable_holdout_sklearn.candidates import Fit
from reusable_holdout_sklearn.guard_calls import ask_each, check_guard, possible_replays
from reusable_holdout_sklearn.priors import prior_scorer, scorers_of

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
    params: dict[str, Any] | None = None,
    return_train_score: bool = False,
    return_estimator: bool = False,
    error_score: float | str = np.nan,
    name: str | None = None,
) -> dict[str, Any]:
    """Cross-validate a model, then ask a guarded holdout about it.

    The model is fitted once more, on all training rows, and the guard is asked about this model. The mean score over
    the folds is the prior. The answer's interval contains the model's population value; with the guard's confidence,
    this holds for all answers of the guard together.

    Parameters
    ----------
    estimator : estimator
        The model; it is cloned for each fold, and once more for the fit on all rows.
    X, y : array-like
        Training rows; they must hold no rows of the holdout.
    guard : ReusableHoldout
        A guard that was made with features.
    scoring : str, callable, list, tuple or dict, optional
        Further scores to measure on the folds, in the form that scikit-learn's cross_validate takes; by default only
        the guard's metric is measured.
    cv, groups, n_jobs, params, return_train_score, return_estimator, error_score
        Arguments of scikit-learn's cross_validate.
    name : str, optional
        Name of the question in the guard's history; by default the model's type.

    Returns
    -------
    dict
        The result of cross_validate, with these further entries:

        test_prior : ndarray
            Scores of the folds in the guard's metric and its unit (losses are not negated); their mean is the prior.
        guard_answer : Answer
            The guard's answer about the model fitted on all training rows.
        guard_estimator : estimator
            The model that the answer is about; only with `return_estimator`.

    Raises
    ------
    Halted
        If a budget has run out and the question is new. If no earlier question had this prior, the question is surely
        new, and the model is not refitted. The exception's attribute `scores` holds the folds' scores.
    ModelError
        If the model fails on the holdout, or `X` holds rows of the holdout.
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
    >>> guard = ReusableHoldout(X[2_000:], y[2_000:], charges=3, queries=10, seed=0)
    >>> scores = guarded_cross_validate(LogisticRegression(), X[:2_000], y[:2_000], guard)
    >>> scores["guard_answer"].value == scores["test_score"].mean(), guard.queries_asked
    (np.True_, 1)
    """
    check_guard(guard)
    scorers = {} if scoring is None else scorers_of(scoring)
    if _PRIOR in scorers:
        raise InputError(
            f"no scorer may be called {_PRIOR!r}: the guard's metric has this name; nothing was fitted; rename it"
        )
    scorers |= {_PRIOR: prior_scorer(guard)}
    how = {"cv": cv, "groups": groups, "params": params, "n_jobs": n_jobs, "error_score": error_score}
    wanted = {"return_train_score": return_train_score, "return_estimator": return_estimator}
    scores: dict[str, Any] = cross_validate(estimator, X, y, scoring=scorers, **how, **wanted)
    prior = _take_prior(scores, guard, alone=scoring is None)
    if not possible_replays(guard, [prior]):
        raise _with_scores(guard.halt(), scores)
    fit = Fit(estimator, X, y, _fit_params(estimator, y, cv, params or {}))
    stated = Estimate(prior, float(error_of_folds(scores["test_prior"])))
    measured = fit.measured({}, guard, stated)
    answers, halted = ask_each(guard, [measured], [stated], [name or type(estimator).__name__], X)
    if halted is not None:
        raise _with_scores(halted, scores)
    (answer,) = answers
    if answer is None:
        raise ModelError(
            "the model failed on the holdout, or X holds rows of the holdout, more than chance explains; which of "
            "the two it was, and a failure's words, are withheld: they may reveal holdout data; either took one charge "
            f"(charges left: {guard.charges_left}, queries left: {guard.queries_left}); try the model "
            "on training rows with the same columns, and find out where X came from"
        )
    scores["guard_answer"] = answer
    if return_estimator:
        scores["guard_estimator"] = measured.model
    return scores


def _take_prior(scores: dict[str, Any], guard: ReusableHoldout, *, alone: bool) -> float:
    """Return the mean over the folds in the metric's unit, and convert the folds' scores in `scores` to this unit."""
    train = scores.pop(f"train_{_PRIOR}", None)
    if alone:  # also under cross_validate's own names, for which greater is better
        scores["test_score"] = scores[f"test_{_PRIOR}"]
        scores |= {} if train is None else {"train_score": train}
    sign = 1.0 if guard.metric.greater_is_better else -1.0
    scores[f"test_{_PRIOR}"] = sign * scores[f"test_{_PRIOR}"]
    prior = float(np.mean(scores[f"test_{_PRIOR}"]))
    if math.isnan(prior):
        raise InputError(
            "every fold must have a score: the prior is their mean; one fold has none; nothing was asked; "
            'error_score="raise" shows why'
        )
    return float(np.clip(prior, guard.metric.lower, guard.metric.upper))


def _fit_params(estimator: Any, y: Any, cv: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return the part of cross_validate's `params` that is passed on to the estimator's `fit`."""
    if not params or not get_config()["enable_metadata_routing"]:
        return params
    to_fit, to_split = (MethodMapping().add(caller="fit", callee=callee) for callee in ("fit", "split"))
    router = MetadataRouter(owner="guarded_cross_validate").add(estimator=estimator, method_mapping=to_fit)
    router.add(splitter=check_cv(cv, y, classifier=is_classifier(estimator)), method_mapping=to_split)
    return dict(process_routing(router, "fit", **params).estimator.fit)


def _with_scores(halted: Halted, scores: dict[str, Any]) -> Halted:
    halted.scores = scores  # type: ignore[attr-defined] # the folds' scores are not lost
    return halted
