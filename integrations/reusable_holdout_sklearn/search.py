"""A hyperparameter search that asks a guarded holdout about its candidates."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Sequence
from typing import Any, Self

from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard import Measured, frozen_guard, guard_here
from reusable_holdout.slips import checked_call
from reusable_holdout_sklearn.best_model import BestModel, if_best_has
from reusable_holdout_sklearn.candidates import (
    Candidate,
    Fit,
    chosen_candidates,
    fewest_candidates,
    fit_params,
    is_routing,
    table_of,
)
from reusable_holdout_sklearn.guard_calls import (
    Way,
    ask_about_all,
    ask_each,
    can_leave_the_process,
    check_guard,
    check_room,
    is_known_choice,
    possible_replays,
    refusals,
)
from reusable_holdout_sklearn.priors import PriorColumn, prior_column, scorers_of
from reusable_holdout_sklearn.scorer import GuardedScorer

__all__ = ["TRUSTED_TYPES", "GuardedSearchCV"]

TRUSTED_TYPES = [
    "reusable_holdout.guard.handle.FrozenGuard",
    "reusable_holdout.answer.Answer",
    "reusable_holdout.guard.frozen.FrozenAnswer",
    "reusable_holdout.guard.frozen.FrozenCertificate",
    "reusable_holdout_sklearn.candidates.Candidate",
    "reusable_holdout_sklearn.priors.PriorScorer",
    "reusable_holdout_sklearn.search.GuardedSearchCV",
]
"""The types that ``skops.io.load(trusted=)`` and MLflow's ``skops_trusted_types=`` must allow, with the model's own."""

_OF_THE_SEARCH = ("cv_results_", "multimetric_", "n_splits_", "scorer_")
_OF_THE_BEST = ("classes_", "feature_names_in_", "n_features_in_")
_BATCH = 64  # this many candidates are fitted, held in memory and asked about together


class GuardedSearchCV(BestModel, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search with cross-validation, then ask a guarded holdout which candidate is best, and how good it is.

    With the guard's confidence the intervals of all answers, `best_answer_` too, contain the population values of
    their models, however many candidates there are and however the best is chosen.

    Parameters
    ----------
    search : estimator
        GridSearchCV, RandomizedSearchCV, HalvingGridSearchCV, HalvingRandomSearchCV, or another search with an
        `estimator` and, once fitted, `cv_results_`. Its cross-validation means are the priors, so it must measure the
        guard's metric, alone or among others: by scikit-learn's name, or by :func:`prior_scorer`, which is exact.
    guard : ReusableHoldout
        A guard that was made with features.
    ask : {"final", "choose", "evaluate"}
        "final" finds the best candidate and certifies it in one step, with the narrowest interval; nothing new is
        answered afterwards. "choose" asks in the middle of a project which candidate is best. It costs no charge and
        few nats, a query for each candidate, and room that the plan's `choices` sets aside. "evaluate" asks about each
        candidate; where the holdout agrees with the cross-validation mean, the answer is that mean.
    prior : str, optional
        Key of the scores that estimate the guard's metric, if `search.scoring` does not show which ones do; "score" if
        the search has a single metric. If they estimate something else, charges are lost, but intervals stay valid.
    candidates : int, optional
        Ask about only this many candidates, the best by cross-validation; by default about all. In a search with
        rounds, such as successive halving, only the candidates of the last round count.
    refit : bool
        True to keep the best model, the same object that was asked about; it is not fitted again.
    n_jobs : int, optional
        Number of parallel jobs for fits and predictions, as joblib counts them; by default the search's `n_jobs`.

    Attributes
    ----------
    best_estimator_ : estimator
        The best model, fitted on all training rows; only with `refit`.
    best_answer_ : Answer
        The guard's answer about the best model.
    best_params_ : dict
    best_index_ : int
        Index of the best candidate in `cv_results_`.
    best_score_ : float
        ``best_answer_.value``, negated for losses.
    certificate_ : FrozenCertificate
        `best_answer_` with its record from the ledger. A pickle of the search holds it in place of the guard.
    guard_results_ : pandas.DataFrame
        The answers in order: candidate (index in `cv_results_`), params, cv_mean (the prior), answer, measured
        (NaN if it agreed), charged, low, high, query, replayed. NaN for candidates that failed or were not chosen.
    search_ : estimator
        The fitted search.
    cv_results_, multimetric_, n_splits_, scorer_
        Attributes of the fitted search.
    classes_, feature_names_in_, n_features_in_
        Attributes of the best model.

    Raises
    ------
    Halted
        From `fit`, if a budget runs out; `error_score` does not change this. It is raised last, so this object has the
        fitted search, the answers so far and the best of them. The answers are on the exception, too.
    InputError, BudgetError
        From `fit`, if the plan has no room for the choice, or fewer queries are left than there are candidates. Grid
        and random searches raise it before anything is fitted, others before the candidates are refitted.
    ModelError
        From `fit`, if a candidate of a choice fails on the holdout, or all candidates of a final do.

    Notes
    -----
    With "final" the best candidate is the one whose interval has the best worse end. A second `fit` is a free replay if
    the models are the same, else it is refused. A clone is refused, for loops such as cross_validate fit one per fold.

    With "choose" the best candidate is the one that the guard chose. With "evaluate" its interval has the best worse
    end; for equal ones cross-validation's rank decides. An answer that was not charged is the cross-validation mean, so
    "evaluate" ranks the candidates as cross-validation does, except where the holdout contradicts it.

    Candidates are fitted and predict in parallel. The guard decides and charges in this process, in the order of the
    candidates. If the fits are deterministic, the same key and data give the same answers and charges with any `n_jobs`
    and any backend of joblib. A guard whose ledger is in memory cannot leave this process; models then predict here.
    After a halt a candidate is fitted only if an earlier question had its prior, because it may be a free replay.

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
    >>> search.best_answer_.way, len(search.guard_results_), guard.charges_left == guard.plan.charges
    ('final', 3, True)
    >>> search.best_answer_.low < search.best_answer_.value < search.best_answer_.high
    True
    """

    _is_cloned = False

    @checked_call
    def __init__(
        self,
        search: Any,
        guard: ReusableHoldout,
        *,
        ask: Way = "final",
        prior: str | None = None,
        candidates: int | None = None,
        refit: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.search = search
        self.guard = guard
        self.ask = ask
        self.prior = prior
        self.candidates = candidates
        self.refit = refit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Run the search, then ask the guard about its candidates.

        Parameters
        ----------
        X, y : array-like
            Training rows; they must hold no rows of the holdout.
        **params
            Further arguments of the search's `fit`: sample weights, groups and arguments of the estimator.

        Raises
        ------
        Halted
            If a budget runs out; see the class.
        InputError
            If the search is not scored by the guard's metric, or the candidates do not fit the holdout.
        Refused
            In place of an error of the guard, if this object is a clone. Loops around it, such as cross_validate, fit
            clones, and replace other errors by NaN.
        """
        with refusals() if self._is_cloned else contextlib.nullcontext():
            column = self._check()
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)
            routed = process_routing(self, "fit", **params).search.fit if params and is_routing() else params
            self.search_ = clone(self.search).fit(X, y, **routed)
            self._told: list[tuple[Candidate, Answer | None]] = []
            self._best_rank: tuple[float, int] | None = None
            chosen = chosen_candidates(self.search_, column, self.guard, self.candidates)
            fit = Fit(self.search_.estimator, X, y, fit_params(self.search_, routed))
            if self.ask == "evaluate":
                self._evaluate(chosen, fit)
            else:
                self._ask_at_once(chosen, fit)
        return self

    def _check(self) -> PriorColumn:
        """Refuse settings that cannot work, before anything is fitted; return the column that holds the priors."""
        check_guard(self.guard, self.ask)
        most = self.candidates
        if most is not None and (
            isinstance(most, bool) or not isinstance(most, numbers.Integral) or most < 1
        ):
            raise InputError(
                f"candidates must be a whole number, 1 or more; got {most!r}; nothing was fitted"
            )
        if self.ask not in {"final", "choose", "evaluate"}:
            raise InputError(
                f'ask must be "final", "choose" or "evaluate"; got {self.ask!r}; nothing was fitted'
            )
        if self.ask == "final" and self._is_cloned:
            raise InputError(
                "a final is given once, and this search is a clone: a loop such as cross_validate fits one clone in "
                'each fold; nothing was fitted; search with ask="choose" inside loops, or fit this search itself'
            )
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
        scorers = scorers_of(getattr(self.search, "scoring", None))
        if any(isinstance(scorer, GuardedScorer) for scorer in scorers.values()):
            raise InputError(
                "the search inside must be scored on its folds; got a guarded scorer, which would also ask once per "
                "fold; nothing was fitted; use scoring=prior_scorer(guard) or the metric's name"
            )
        if self.ask != "evaluate":
            check_room(self.guard, self.ask, fewest_candidates(self.search, most))
        return prior_column(self.search, self.guard, prior=self.prior)

    # ---- asking

    def _ask_at_once(self, chosen: Sequence[Candidate], fit: Fit) -> None:
        """Fit all candidates, hold them in memory, and ask one question about all of them."""
        priors, names = [one.prior for one in chosen], [one.name for one in chosen]
        check_room(self.guard, self.ask, len(priors), priors)
        known = self.ask == "choose" and is_known_choice(self.guard, priors)  # a replay needs no predictions
        with self._workers() as workers:
            models = self._fitted(workers, chosen, fit, measured=not (known or self.guard.halted))
        answers, best = ask_about_all(self.guard, self.ask, models, priors, names, fit.X)
        for place, candidate in enumerate(chosen):
            self._tell(candidate, answers[place], models[place], best=place == best)

    def _evaluate(self, chosen: Sequence[Candidate], fit: Fit) -> None:
        """Fit and ask about the candidates, one batch after another, until a halt."""
        askable = possible_replays(self.guard, [one.prior for one in chosen])
        with self._workers() as workers:
            for start in range(0, askable, _BATCH):
                batch = chosen[start : min(start + _BATCH, askable)]
                models = self._fitted(workers, batch, fit)
                priors, names = [one.estimate for one in batch], [one.name for one in batch]
                answers, halted = ask_each(self.guard, models, priors, names, fit.X)
                for candidate, answer, model in zip(batch, answers, models, strict=False):
                    self._tell(candidate, answer, model)
                if halted is not None:
                    raise self._with_all_answers(halted, len(chosen))
        if askable < len(chosen):
            raise self._with_all_answers(self.guard.halt(), len(chosen))

    def _workers(self) -> Parallel:
        return Parallel(n_jobs=getattr(self.search, "n_jobs", None) if self.n_jobs is None else self.n_jobs)

    def _fitted(
        self, workers: Parallel, batch: Sequence[Candidate], fit: Fit, *, measured: bool = True
    ) -> list[Measured]:
        """Fit candidates in parallel; measure them in the workers, too, if the guard can be sent there."""
        guard = self.guard if measured and can_leave_the_process(self.guard) else None
        fits = (delayed(fit.measured)(one.parameters, guard, one.estimate, self.ask) for one in batch)
        return list(workers(fits))

    def _tell(
        self, candidate: Candidate, answer: Answer | None, model: Measured, *, best: bool | None = None
    ) -> None:
        """Keep an answer; keep its candidate if `best`, or by default if its interval, then its rank, is the best."""
        self._told.append((candidate, answer))
        if answer is None or best is False:
            return
        sign = 1.0 if self.guard.metric.greater_is_better else -1.0
        score, worse = sign * answer.value, min(sign * answer.low, sign * answer.high)
        if best is None and self._best_rank is not None and (worse, -candidate.rank) <= self._best_rank:
            return
        self._best_rank = worse, -candidate.rank  # values do not rank: an agreed one is only a prior
        self.best_index_, self.best_params_ = candidate.place, candidate.parameters
        self.best_answer_, self.best_score_ = answer, score
        self.certificate_ = self.guard.certificate(answer)
        if self.refit:
            self.best_estimator_ = model.model

    def _with_all_answers(self, halted: Halted, candidates: int) -> Halted:
        """Return the halt with the answers of the whole search, not only those of the last batch."""
        halted.answers = [answer for _, answer in self._told if answer is not None]
        halted.add_note(
            f"{len(self._told)} of {candidates} candidates were answered; they are in guard_results_, and the best "
            "of them is in best_answer_"
        )
        return halted

    @property
    def guard_results_(self) -> pd.DataFrame:
        """Table of the guard's answers, one line for each candidate; the class describes the columns."""
        if "_told" not in vars(self):
            raise AttributeError("guard_results_ exists only after fit; call fit first")
        return table_of(self._told, failed_is_charged=self.ask == "evaluate")

    # ---- what the fitted search and the best model have

    def __getattr__(self, name: str) -> Any:
        if name in _OF_THE_SEARCH and "search_" in vars(self):
            return getattr(self.search_, name)
        if name in _OF_THE_BEST and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        return object.__getattribute__(self, name)  # raises an AttributeError with the true reason

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_index_")

    @if_best_has("score")
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Score the best model on rows the analyst may see, with the scorer of the search.

        Parameters
        ----------
        X, y : array-like
            Rows that are not the holdout's. The result is a plain score, which the guard does not protect.
        **params
            Arguments of the scorer, with metadata routing.
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
        if isinstance(self.search_.refit, str):
            return self.search_.refit
        return prior_column(self.search_, self.guard, prior=self.prior).key

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "certificate_" in state:  # a deployed search must not say where files are
            state["guard"] = frozen_guard(self.guard, self.certificate_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.guard = guard_here(self.guard)

    # ---- what scikit-learn asks

    def __sklearn_clone__(self) -> Self:
        cloned: Self = super().__sklearn_clone__()
        cloned._is_cloned = True
        return cloned

    def get_metadata_routing(self) -> Any:
        """Return the routing that passes metadata on to the search.

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
