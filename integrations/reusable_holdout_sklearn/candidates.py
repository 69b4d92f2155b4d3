"""The candidates of a search: which are asked about, and how each is fitted again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, ParameterSampler, RandomizedSearchCV

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.guard import Measured
from reusable_holdout_sklearn.guard_calls import Way, measure_model, printable_name
from reusable_holdout_sklearn.priors import PriorColumn

__all__ = ["Candidate", "Fit", "chosen_candidates", "fewest_candidates", "table_of"]


class Candidate(NamedTuple):
    """One set of hyperparameters.

    Attributes
    ----------
    place : int
        Its index in `cv_results_`.
    parameters : dict
    prior : float
        Cross-validation mean in the guard's unit.
    rank : int
        By cross-validation, from 1.
    """

    place: int
    parameters: dict[str, Any]
    prior: float
    rank: int

    @property
    def name(self) -> str:
        """Name of the question about it."""
        settings = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return printable_name(f"candidate {self.place}: {settings}")


class Fit(NamedTuple):
    """One fit to all training rows; every candidate has such a fit.

    Attributes
    ----------
    estimator : estimator
        Cloned for the fit.
    X, y : array-like
        All training rows.
    parameters : dict
        For the estimator's `fit`.
    """

    estimator: Any
    X: Any
    y: Any
    parameters: dict[str, Any]

    def measured(
        self, settings: dict[str, Any], guard: ReusableHoldout | None, prior: float, way: Way = "evaluate"
    ) -> Measured:
        """Fit the estimator with these settings, and measure it if the guard is in this process."""
        model = clone(self.estimator).set_params(**clone(settings, safe=False))
        rows = (self.X,) if self.y is None else (self.X, self.y)
        model.fit(*rows, **self.parameters)
        return measure_model(guard, model, prior, way)


def chosen_candidates(
    search: Any, column: PriorColumn, guard: ReusableHoldout, most: int | None
) -> list[Candidate]:
    """Return the candidates to ask about, in their order in the search.

    Of a search in rounds, such as successive halving, only those of the last round: in earlier rounds the models saw
    fewer rows. Candidates whose fits failed have no prior and are left out.

    Parameters
    ----------
    search : estimator
        Fitted.
    column : PriorColumn
    guard : ReusableHoldout
    most : int or None
        Only so many of the best by cross-validation; all by default.

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
    return [Candidate(int(i), results["params"][i], float(priors[i]), int(ranks[i])) for i in places]


def _results_of(search: Any) -> dict[str, Any]:
    """Return `cv_results_` with the parameters of each candidate; OptunaSearchCV keeps them in its trials."""
    trials = getattr(search, "trials_", None)
    results = {} if trials is not None else search.cv_results_
    if trials is not None:  # there is no cv_results_ if a trial failed, for then it has no mean
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
    """Return how many candidates a search will ask about, if its settings tell that before it is fitted; else 1.

    A candidate whose fit fails is counted here, and is not asked about.
    """
    try:
        if isinstance(search, GridSearchCV):
            count = len(ParameterGrid(search.param_grid))
        elif isinstance(search, RandomizedSearchCV):
            count = len(ParameterSampler(search.param_distributions, search.n_iter))
        else:
            return 1
    except (TypeError, ValueError):  # the search will say what is wrong with its settings
        return 1
    return count if most is None else min(count, most)


_COLUMNS = {
    "candidate": "int64",
    "params": "object",
    "cv_mean": "float64",
    "answer": "float64",
    "charged": "bool",
    "low": "float64",
    "high": "float64",
    "query": "Int64",
    "replayed": "bool",
}


def table_of(told: list[tuple[Candidate, Answer | None]], *, failed_is_charged: bool) -> pd.DataFrame:
    """Return a table with a line for each candidate that was asked about, in their order.

    Parameters
    ----------
    told : list of (Candidate, Answer or None)
        None for a candidate that failed on the holdout, or that a choice did not take.
    failed_is_charged : bool
        True if a missing answer stands for a failure that took a charge.
    """
    lines = []
    for candidate, answer in told:
        line = {"candidate": candidate.place, "params": candidate.parameters, "cv_mean": candidate.prior}
        if answer is None:
            line |= {"charged": failed_is_charged, "query": pd.NA, "replayed": False}
        else:
            line |= {name: getattr(answer, name) for name in ("charged", "low", "high", "query", "replayed")}
            line["answer"] = answer.value
        lines.append(line)
    return pd.DataFrame(lines, columns=list(_COLUMNS)).astype(_COLUMNS)
