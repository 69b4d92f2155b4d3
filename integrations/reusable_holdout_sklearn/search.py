"""A search whose candidates are confirmed by a guarded holdout."""

from __future__ import annotations

import numbers
from typing import Any, Self

from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard import check_is_guard
from reusable_holdout.slips import checked_call
from reusable_holdout_sklearn.asking import Way, check_guard, refusals
from reusable_holdout_sklearn.best_model import BestModel, best_can
from reusable_holdout_sklearn.candidates import (
    Confirmation,
    Questions,
    check_room,
    chosen_candidates,
    fewest_candidates,
    results_of,
)
from reusable_holdout_sklearn.deployed import loaded_state, pickled_state
from reusable_holdout_sklearn.priors import prior_column
from reusable_holdout_sklearn.scorer import GuardedScorer

__all__ = ["GuardedSearchCV"]

_OF_THE_SEARCH = ("cv_results_", "multimetric_", "n_splits_", "scorer_")
_OF_THE_BEST = ("classes_", "feature_names_in_", "n_features_in_")


class GuardedSearchCV(BestModel, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search with cross-validation, then ask a guarded holdout which candidate is best.

    With the guard's confidence the intervals of all answers together contain the population values of the models they
    are about, `best_answer_` among them, however many candidates there are and however the best is chosen.

    Parameters
    ----------
    search : estimator
        GridSearchCV, RandomizedSearchCV, HalvingGridSearchCV, HalvingRandomSearchCV, or whatever has `estimator` and,
        fitted, `cv_results_`. Its cross-validation means are the priors, so it must be scored by the guard's metric: by
        scikit-learn's name for it, alone or among others, or by :func:`prior_scorer`, which is exact for every metric.
    guard : ReusableHoldout or None
        With features. None for a search alone: nothing is asked, and the best is the search's own.
    ask : {"choose", "evaluate"}
        "choose" asks one question, which of the candidates is best by the holdout, with their cross-validation means as
        priors; it makes no charge, and costs about 3 nats where the favourite wins. It takes a query for each candidate
        and room in the plan, which `choices` sets aside. "evaluate" asks about each, and is told the cross-validation
        mean again where the holdout agrees.
    prior : str, optional
        Key of the scores that estimate the guard's metric, where it cannot be told from `search.scoring`: "score" for
        a single one. You state that they do; if they do not, charges are lost, never validity.
    candidates : int, optional
        Ask only about so many of the best by cross-validation; about all by default. Of a search in rounds, such as
        successive halving, about those of its last round.
    refit : bool
        Whether the best model is kept. It is the one that was asked about, not a further fit.
    n_jobs : int, optional
        For fits and predictions, as for joblib; by default as `search` has it.
    verbose : int
        A progress bar on stderr, from 1. The search has its own.
    batch_size : int
        Candidates that are fitted, held in memory and, with ``ask="evaluate"``, asked about as one batch: another size
        is another transcript, whose intervals may differ in the last digits. A choice holds all candidates in memory.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted on all training rows; with `refit`.
    best_answer_ : Answer
        What the guard says of it.
    best_params_ : dict
    best_index_ : int
        Its place in `cv_results_`.
    best_score_ : float
        ``best_answer_.value``, negated for losses.
    certificate_ : FrozenCertificate
        `best_answer_`, as it stands in the ledger: what a pickle carries in the guard's place.
    guard_results_ : pandas.DataFrame
        What was answered, in order: candidate (place in `cv_results_`), params, cv_mean (the prior), answer, charged,
        low, high, query, replayed. NaN for a candidate that failed on the holdout, and for those a choice did not take.
    search_ : estimator
        The fitted search.
    cv_results_, multimetric_, n_splits_, scorer_
        As the fitted search has them.
    classes_, feature_names_in_, n_features_in_
        As the best model has them.

    Raises
    ------
    Halted
        From `fit`, if a budget runs out, whatever `error_score` says. It is raised last: the search, the answers so far
        and the best of them are on this object, and the answers are on the exception too.
    InputError, BudgetError
        From `fit`, if the plan has no room for the choice, or fewer queries left than there are candidates. Of a grid
        or a random search that is said before anything is fitted, of others before the candidates are refitted.
    ModelError
        From `fit`, if a candidate of a choice fails on the holdout; the message names the best of the others.

    Notes
    -----
    A choice takes the best candidate by the holdout. Asked one by one, the best candidate has the best answer; of equal
    answers, the one that cross-validation ranks higher. (A ladder answers with the best score so far: there it is the
    last new best.) An answer that is not charged is the cross-validation mean itself, so a search that is asked one by
    one is ranked by its cross-validation, unless the holdout objects.

    Candidates are fitted and predict in parallel; what is decided and charged is decided here, in candidate order. The
    same key, data and batch size give the same answers and charges with any `n_jobs` and any backend of joblib, if the
    fits are deterministic. A guard that cannot leave this process (its ledger is in memory) predicts in it.

    When the guard has halted before the candidates are fitted, those whose prior it has never been asked with are not:
    they could not be answered. Others may be replays, which are free.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from reusable_holdout import ReusableHoldout
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4_000, 3))
    >>> y = (X[:, 0] + rng.normal(size=4_000) > 0).astype(int)
    >>> guard = ReusableHoldout(X[2_000:], y[2_000:], tolerance=0.1, queries=100, seed=0)
    >>> search = GuardedSearchCV(GridSearchCV(LogisticRegression(), {"C": [1e-4, 1e-2, 1.0]}), guard)
    >>> search = search.fit(X[:2_000], y[:2_000])
    >>> search.best_answer_.kind, len(search.guard_results_), guard.charges_left == guard.plan.charges
    ('choose', 3, True)
    >>> search.best_answer_.low < search.best_answer_.value < search.best_answer_.high
    True
    """

    _is_cloned = False

    @checked_call
    def __init__(
        self,
        search: Any,
        guard: ReusableHoldout | None,
        *,
        ask: Way = "choose",
        prior: str | None = None,
        candidates: int | None = None,
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        batch_size: int = 64,
    ) -> None:
        self.search = search
        self.guard = guard
        self.ask = ask
        self.prior = prior
        self.candidates = candidates
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.batch_size = batch_size

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Search, then ask.

        Parameters
        ----------
        X, y : array-like
            Training rows; none of the holdout's.
        **params
            For the search's `fit`: sample weights, groups and what else the estimator takes.

        Raises
        ------
        Halted
            If a budget runs out; see the class.
        InputError
            If the search is not scored by the guard's metric, or the candidates do not fit the holdout.
        Refused
            In place of these errors, if this object is a clone: the loops of others fit clones, and make NaN of an
            error.
        """
        if self._is_cloned:
            with refusals():
                return self._fit(X, y, params)
        return self._fit(X, y, params)

    def _fit(self, X: Any, y: Any, params: dict[str, Any]) -> Self:
        self._check()
        column = None if self.guard is None else prior_column(self.search, self.guard, prior=self.prior)
        for name in (
            "best_estimator_",
            "best_answer_",
            "best_params_",
            "best_index_",
            "best_score_",
            "certificate_",
            "guard_results_",
        ):
            self.__dict__.pop(name, None)
        routed = process_routing(self, "fit", **params).search.fit if params and _routing() else params
        self.search_ = clone(self.search).fit(X, y, **routed)
        if self.guard is None or column is None:
            return self._take_best_of_search(X, y, routed)
        confirmation = Confirmation(self.guard.metric.greater_is_better, not self.guard.takes_priors)
        chosen = chosen_candidates(results_of(self.search_), column, self.guard, self.candidates)
        questions = Questions(
            guard=self.guard,
            candidates=chosen,
            confirmation=confirmation,
            estimator=self.search_.estimator,
            X=X,
            y=y,
            fit_params=_fit_params(self.search_, routed),
            n_jobs=getattr(self.search, "n_jobs", None) if self.n_jobs is None else self.n_jobs,
            batch_size=self.batch_size,
            keep=self.refit,
            verbose=self.verbose > 0,
        )
        halted: Halted | None = None
        try:
            if self.ask == "choose":
                questions.choose()
            else:
                halted = questions.evaluate()
        finally:  # an interrupt leaves what is known, too
            self._take_best(confirmation)
        if halted is not None:
            raise _with_all_answers(halted, confirmation, len(chosen))
        return self

    def _check(self) -> None:
        """Refuse what cannot work, before anything is fitted."""
        if self.guard is not None:
            check_is_guard(self.guard)
        for name in ("candidates", "batch_size"):
            value = getattr(self, name)
            whole = isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1
            if not whole and not (name == "candidates" and value is None):
                raise InputError(
                    f"{name} must be a whole number, 1 or more; got {value!r}; nothing was fitted"
                )
        if self.ask not in {"choose", "evaluate"}:
            raise InputError(f'ask must be "choose" or "evaluate"; got {self.ask!r}; nothing was fitted')
        if not isinstance(self.refit, bool):
            raise InputError(
                f"refit must be True or False; got {self.refit!r}; nothing was fitted; to choose by another rule, "
                "read guard_results_ and fit the candidate you want"
            )
        if not hasattr(self.search, "estimator"):
            raise InputError(
                f"the search must have an estimator that it searches; got {type(self.search).__name__}; nothing was "
                "fitted"
            )
        if self.guard is None:
            return
        check_guard(self.guard, self.ask)
        scoring = getattr(self.search, "scoring", None)
        scorers = scoring.values() if isinstance(scoring, dict) else [scoring]
        if any(isinstance(scorer, GuardedScorer) for scorer in scorers):
            raise InputError(
                "the search inside must be scored on its folds; got a guarded scorer, which would ask once per fold "
                "besides; nothing was fitted; use scoring=prior_scorer(guard) or the metric's name"
            )
        if self.ask == "choose":
            check_room(self.guard, fewest_candidates(self.search, self.candidates))

    def _take_best(self, confirmation: Confirmation) -> None:
        self.guard_results_ = confirmation.frame()
        if confirmation.best is None or self.guard is None:
            return
        candidate, self.best_answer_ = confirmation.best
        self.best_index_, self.best_params_ = candidate.place, candidate.parameters
        value = self.best_answer_.value
        self.best_score_ = value if self.guard.metric.greater_is_better else -value
        if self.refit:
            self.best_estimator_ = confirmation.model
        self.certificate_ = self.guard.certificate(self.best_answer_)

    def _take_best_of_search(self, X: Any, y: Any, routed: dict[str, Any]) -> Self:
        search = self.search_
        self.best_index_, self.best_params_ = search.best_index_, search.best_params_
        if hasattr(search, "best_score_"):
            self.best_score_ = search.best_score_
        if self.refit:
            self.best_estimator_ = getattr(search, "best_estimator_", None)
            if self.best_estimator_ is None:
                best = clone(search.estimator).set_params(**clone(self.best_params_, safe=False))
                self.best_estimator_ = best.fit(X, y, **_fit_params(search, routed))
        return self

    # ---- what the fitted search and the best model have

    def __getattr__(self, name: str) -> Any:
        if name in _OF_THE_SEARCH and "search_" in vars(self):
            return getattr(self.search_, name)
        if name in _OF_THE_BEST and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        return object.__getattribute__(self, name)  # raises again, with its reason

    def __getstate__(self) -> dict[str, Any]:
        return pickled_state(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(loaded_state(state))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_index_")

    @best_can("score")
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Score the best model on rows the analyst may see, with the scorer of the search.

        Parameters
        ----------
        X, y : array-like
            Never the holdout's: this is a plain score, which nothing protects.
        **params
            For the scorer, with metadata routing.
        """
        best = self._best()
        routed = process_routing(self, "score", **params).search.score if params else {}
        scorer = getattr(self.search_, "scorer_", None)
        if isinstance(scorer, dict):
            scorer = scorer[self._score_key()]
        if scorer is None:
            return float(best.score(X, y))
        score = scorer(best, X, y, **routed)
        return float(score[self._score_key()] if isinstance(score, dict) else score)

    def _score_key(self) -> str:
        if isinstance(self.search_.refit, str) or self.guard is None:
            return str(self.search_.refit)
        return prior_column(self.search_, self.guard, prior=self.prior).key

    # ---- what scikit-learn asks

    def __sklearn_clone__(self) -> Self:
        cloned: Self = super().__sklearn_clone__()
        cloned._is_cloned = True
        return cloned

    def get_metadata_routing(self) -> Any:
        """Pass to the search what it asks for.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit").add(caller="score", callee="score")
        return MetadataRouter(owner=self).add(search=self.search, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.search)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def _routing() -> bool:
    return bool(get_config()["enable_metadata_routing"])


def _fit_params(search: Any, params: dict[str, Any]) -> dict[str, Any]:
    """What of the search's parameters its estimator is fitted with."""
    if not params or not _routing():
        return {name: value for name, value in params.items() if name != "groups"}
    return dict(process_routing(search, "fit", **params).estimator.fit)


def _with_all_answers(halted: Halted, confirmation: Confirmation, candidates: int) -> Halted:
    """Put the answers of the whole search on the exception, not those of its last batch alone."""
    halted.answers = [answer for _, answer in confirmation.asked if answer is not None]
    halted.add_note(
        f"{len(confirmation.asked)} of {candidates} candidates were answered; they are in guard_results_, and the best "
        "of them is in best_answer_"
    )
    return halted
