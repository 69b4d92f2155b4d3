"""The candidates of a search: which of them the guard is asked about, and how each one is fitted again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, ParameterSampler, RandomizedSearchCV
from sklearn.utils.metadata_routing import process_routing

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.guard import Estimate, Measured
from reusable_holdout_sklearn.guard_calls import Way, measure_model, printable_name
from reusable_holdout_sklearn.priors import PriorColumn

__all__ = [
    "Candidate",
    "Fit",
    "chosen_candidates",
    "fewest_candidates",
    "fit_params",
    "is_routing",
    "table_of",
]


class Candidate(NamedTuple):
    """One set of hyperparameters that a search has tried.

    Attributes
    ----------
    place : int
        The candidate's index in `cv_results_`.
    parameters : dict
        Names and values of the hyperparameters.
    prior : float
        The candidate's cross-validation mean, in the unit of the guard's metric.
    rank : int
        The candidate's rank by cross-validation; 1 is the best.
    error : float
        Standard error of the prior.
    """

    place: int
    parameters: dict[str, Any]
    prior: float
    rank: int
    error: float

    @property
    def estimate(self) -> Estimate:
        """The prior with its standard error."""
        return Estimate(self.prior, self.error)

    @property
    def name(self) -> str:
        """Name of the question about this candidate, for the guard's history."""
        settings = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return printable_name(f"candidate {self.place}: {settings}")


class Fit(NamedTuple):
    """Everything that is needed to fit a candidate to all training rows, except its hyperparameters.

    Attributes
    ----------
    estimator : estimator
        The estimator that is cloned for each fit.
    X, y : array-like
        All training rows.
    parameters : dict
        Further arguments of the estimator's `fit`.
    """

    estimator: Any
    X: Any
    y: Any
    parameters: dict[str, Any]

    def measured(
        self, settings: dict[str, Any], guard: ReusableHoldout | None, prior: Estimate, way: Way = "evaluate"
    ) -> Measured:
        """Fit a clone of the estimator with these hyperparameters, and measure it on the holdout.

        Without a guard in this process (`guard` is None) the model is measured later, when it is asked about.
        """
        model = clone(self.estimator).set_params(**clone(settings, safe=False))
        rows = (self.X,) if self.y is None else (self.X, self.y)
        model.fit(*rows, **self.parameters)
        return measure_model(guard, model, prior, way)


def chosen_candidates(
    search: Any, column: PriorColumn, guard: ReusableHoldout, most: int | None
) -> list[Candidate]:
    """Return the candidates to ask about, in the order of the search.

    If the search runs in rounds, such as successive halving, only the candidates of the last round are returned,
    because the models of earlier rounds were fitted to fewer rows. Candidates whose fits failed have no prior and are
    left out.

    Parameters
    ----------
    search : estimator
        The fitted search.
    column : PriorColumn
        The scores of the search that estimate the guard's metric.
    guard : ReusableHoldout
    most : int or None
        Return only this many candidates, the best by cross-validation; None means all.

    Raises
    ------
    InputError
        If no candidate has a prior, or the search does not keep the candidates' parameters.
    """
    results = _results_of(search)
    priors, ranks = column.priors(results, guard.metric), column.ranks(results, guard.metric)
    rounds = np.asarray(results.get("iter", np.zeros(len(priors), dtype=np.int64)))
    places = np.flatnonzero((rounds == rounds.max()) & np.isfinite(priors))
    if not len(places):
        raise InputError("the search must have scored a candidate; every fit failed; nothing was asked")
    if most is not None:
        places = np.sort(places[np.argsort(ranks[places], kind="stable")[:most]])
    errors, params = column.errors(results), results["params"]
    return [Candidate(int(i), params[i], float(priors[i]), int(ranks[i]), float(errors[i])) for i in places]


def _results_of(search: Any) -> dict[str, Any]:
    """Return `cv_results_`, with the parameters of each candidate.

    For OptunaSearchCV it is put together from the trials, which hold the scores and the parameters.
    """
    trials = getattr(search, "trials_", None)
    results = {} if trials is not None else search.cv_results_
    if trials is not None:  # OptunaSearchCV has no cv_results_ if a trial failed
        names = {name for one in trials for name in one.user_attrs if name.startswith("mean_test_")}
        results = {name: [one.user_attrs.get(name, np.nan) for one in trials] for name in names}
        results["params"] = [one.params for one in trials]
    if "params" not in results:
        raise InputError(
            f"cv_results_ must have the params of each candidate; that of {type(search).__name__} has none; nothing "
            "was asked and nothing was charged; search with one of scikit-learn's searches, or with OptunaSearchCV"
        )
    return results


def fewest_candidates(search: Any, most: int | None) -> int:
    """Return the number of candidates that a search will ask about; 1 if it is unknown before the search is fitted.

    The count includes candidates whose fits will fail; these are not asked about later.
    """
    try:
        if isinstance(search, GridSearchCV):
            count = len(ParameterGrid(search.param_grid))
        elif isinstance(search, RandomizedSearchCV):
            count = len(ParameterSampler(search.param_distributions, search.n_iter))
        else:
            return 1
    except (TypeError, ValueError):  # the search itself will report its wrong settings
        return 1
    return count if most is None else min(count, most)


_COLUMNS = {
    "candidate": "int64",
    "params": "object",
    "cv_mean": "float64",
    "answer": "float64",
    "measured": "float64",
    "charged": "bool",
    "low": "float64",
    "high": "float64",
    "query": "Int64",
    "replayed": "bool",
}


def table_of(told: list[tuple[Candidate, Answer | None]], *, failed_is_charged: bool) -> pd.DataFrame:
    """Return a table with one line for each candidate that was asked about, in the order of the questions.

    Parameters
    ----------
    told : list of (Candidate, Answer or None)
        Each candidate with its answer. The answer is None if the model failed on the holdout, or if a choice
        chose another candidate.
    failed_is_charged : bool
        True if every None stands for a failure on the holdout, which took a charge.
    """
    lines = []
    for candidate, answer in told:
        line = {"candidate": candidate.place, "params": candidate.parameters, "cv_mean": candidate.prior}
        if answer is None:
            line |= {"charged": failed_is_charged, "query": pd.NA, "replayed": False}
        else:
            line |= {name: getattr(answer, name) for name in _COLUMNS if hasattr(answer, name)}
            line["answer"] = answer.value
        lines.append(line)
    return pd.DataFrame(lines, columns=list(_COLUMNS)).astype(_COLUMNS)


def is_routing() -> bool:
    """Return True if metadata routing is switched on in scikit-learn's configuration."""
    return bool(get_config()["enable_metadata_routing"])


def fit_params(search: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the search's `fit` that are passed on to its estimator's `fit`."""
    if not params or not is_routing():
        return {name: value for name, value in params.items() if name != "groups"}
    return dict(process_routing(search, "fit", **params).estimator.fit)
