"""A scorer for scikit-learn's loops that returns the guard's answer; the score on the fold is the prior."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.guard import check_is_guard, predictions_of
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.slips import checked_call
from reusable_holdout_sklearn.guard_calls import answer_once, check_guard, refusals
from reusable_holdout_sklearn.scored_rows import scored_rows_of

__all__ = ["GuardedScorer", "guarded_scorer"]

_FREE = "nothing was asked and nothing was charged"


@checked_call
def guarded_scorer(guard: ReusableHoldout) -> GuardedScorer:
    """Make a scorer whose scores are a guarded holdout's answers.

    Each score has the interval that the guard certifies. All worker processes share the guard's budget. A halt or a
    refusal stops the search: ``Halted`` and ``Refused`` are not subclasses of ``Exception``, so ``error_score`` cannot
    turn them into NaN.

    Parameters
    ----------
    guard : ReusableHoldout
        A guard that was made with features. For ``n_jobs`` other than 1 its ledger must be on disk. Its plan must not
        be for gates alone, because gates tell no scores.

    Returns
    -------
    GuardedScorer
        Pass it as `scoring=` to cross_validate, GridSearchCV and others, alone or in a dict. Losses are negated, so
        greater is better.

    Notes
    -----
    **When it is the wrong tool.** Each fold of each candidate is a question of its own, about a model that is thrown
    away afterwards. The prior comes from one fold: the smaller the fold, the noisier the prior. A noisy prior deviates
    from the holdout by chance, and each deviation costs a charge. To choose among candidates use
    :class:`GuardedSearchCV`, which asks once. To assess one model use :func:`guarded_cross_validate`. Use the scorer
    only for loops that take nothing else.

    **One model has one answer.** The first call with a fitted model asks the guard; the model's score on the rows of
    this call is the prior. Each later call with the same model and any rows repeats the recorded answer and is free. So
    train scores (`return_train_score`, learning_curve, validation_curve) repeat the test scores, and a model that was
    fitted before (FrozenEstimator) has the same score in each fold. ``search.score(X, y)`` asks about the refitted
    model, with its score on (X, y) as the prior. Do not pass the rows that the model was fitted on: its score there is
    a bad prior.

    **What is refused.** Some calls are refused, at no cost: models of only some columns, as RFECV and
    SequentialFeatureSelector fit them; TunedThresholdClassifierCV; early stopping of HistGradientBoosting; and rows
    with shuffled columns, so permutation_importance asks once and is refused at the first shuffle that changes the
    score.

    **After a halt.** The history names each question by the model's parameters. The answers so far are in
    ``halted.history``.

    **Sample weights.** If the holdout's rows have sample weights, the prior must be weighted, too: pass the weights to
    the loop. With metadata routing the scorer requests them by itself. For a guard without weights, request them with
    ``guarded_scorer(guard).set_score_request(sample_weight=True)``.

    **Pickling.** Pickle a scorer only to send it to workers, because the pickle says where ledger, key and holdout are.
    Deploy the model, or a :class:`GuardedSearchCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from reusable_holdout import ReusableHoldout
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4_000, 3))
    >>> y = (X[:, 0] + rng.normal(size=4_000) > 0).astype(int)
    >>> guard = ReusableHoldout(X[2_000:], y[2_000:], tolerance=0.15, queries=10, seed=0)
    >>> scores = cross_validate(LogisticRegression(), X[:2_000], y[:2_000], scoring=guarded_scorer(guard))
    >>> len(scores["test_score"]), guard.queries_asked
    (5, 5)
    """
    return GuardedScorer(guard)


class GuardedScorer:
    """Scorer ``(estimator, X, y) -> float`` that returns a guard's answers; made by :func:`guarded_scorer`.

    Each score is the guard's answer about the model, never the plain score on the rows of the call.

    Parameters
    ----------
    guard : ReusableHoldout
        A guard that was made with features.

    Raises
    ------
    InputError
        If the guard holds labels only, or its plan is for gates alone.
    """

    @checked_call
    def __init__(self, guard: ReusableHoldout) -> None:
        check_guard(guard)
        self.guard = guard
        self._requests: dict[str, bool | str | None] = {"sample_weight": self._is_weighted()}

    def __guard_name__(
        self,
    ) -> str:  # used by a model's fingerprint: the scorer's memory of scored rows is no part of the model
        return str(self.guard.__guard_name__())

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Ask the guard about a fitted estimator, with its score on (X, y) as the prior.

        Parameters
        ----------
        estimator : estimator
            A model that was fitted on other rows than X.
        X, y : array-like
            Rows that were set aside from training, such as a fold.
        sample_weight : array-like, optional
            The sample weights of these rows.

        Returns
        -------
        float
            The guard's answer; negated for losses.

        Raises
        ------
        ModelError
            If the model fails on the holdout, which takes a charge: the loop's `error_score` decides about it.
        Halted, Refused
            If a budget has run out, or the guard refuses the question. Loops of scikit-learn do not catch these two.
        """
        with refusals():
            check_is_guard(self.guard)
            self._check_call(estimator, X, sample_weight)
            metric, classes, content = self.guard.metric, self.guard.class_set, fingerprint(estimator)
            predictions = predictions_of(estimator, X, response=metric.response, classes=classes)
            prior = metric.measure(y, predictions, classes=classes, sample_weight=sample_weight)
            self._check_rows(estimator, content, X, y, prior / (metric.upper - metric.lower))
            value = answer_once(self.guard, estimator, content, prior)
            return value if metric.greater_is_better else -value

    def _check_call(self, estimator: Any, X: Any, sample_weight: Any) -> None:
        """Refuse a call that is not about a fitted model of the holdout's columns, or that lacks sample weights."""
        if getattr(estimator, "_in_fit", False):  # scikit-learn's mark during a fit
            raise InputError(
                "a model must be fitted before a guard is asked about it; this fit has not ended, and its early "
                f"stopping would ask in each iteration; {_FREE}; stop by a plain score, as in "
                f'{type(estimator).__name__}(early_stopping=True, scoring="loss"), and ask about the fitted model'
            )
        width, shape = self.guard.features, np.shape(X)
        if width is not None and shape[1:] != (width,):
            raise InputError(
                f"the model must be scored on rows with the holdout's {width} columns; got rows of shape {shape}; "
                f"{_FREE}; make a feature selector a step of a pipeline, and search it with GuardedSearchCV"
            )
        if sample_weight is None and self._is_weighted() and self._requests["sample_weight"] is not False:
            raise InputError(
                f"the holdout's rows have weights, so the prior must be a weighted score, too; got no sample_weight; "
                f"{_FREE}; pass it to the loop, as in search.fit(X, y, sample_weight=weights), or with metadata "
                'routing cross_validate(..., params={"sample_weight": weights}); if unweighted rows estimate the '
                "score, say so: scorer.set_score_request(sample_weight=False)"
            )

    def _check_rows(self, estimator: Any, content: bytes, X: Any, y: Any, score: float) -> None:
        """Refuse a later call about the same model if repeating its first answer would be wrong."""
        rows = scored_rows_of(self.guard)
        if not rows.is_read_whole(estimator, content):
            raise InputError(
                "a model can be scored twice only if it can be read whole, to see whether it was fitted again; this "
                f"one holds a lock, a handle or compiled code of your own; {_FREE}; leave "
                "return_train_score out, or ask guard.evaluate(model, prior=...)"
            )
        if rows.are_shuffled(content, X, y, score):
            raise InputError(
                "a model is asked about once, and has one answer, whatever rows it is scored on; these are the rows of "
                f"an earlier call with columns shuffled, and the guard cannot tell their score; {_FREE}; use a plain "
                "scorer, as in permutation_importance(model, X, y, scoring=prior_scorer(guard)), on rows set aside "
                "from training"
            )

    def _is_weighted(self) -> bool:
        return bool(getattr(self.guard, "weighted", False))  # a remote guard has no `weighted`

    # ---- what scikit-learn asks

    def _accept_sample_weight(self) -> bool:
        return self._is_weighted()

    def set_score_request(self, *, sample_weight: bool | str | None = False) -> Self:
        """Set whether metadata routing passes the sample weights of the rows to the scorer, for a weighted prior.

        Parameters
        ----------
        sample_weight : bool, str or None
            The meaning is scikit-learn's: True passes the weights on, False does not, a text is the name under which
            the loop gets them, and None raises an error if weights are passed. By default it is True if the holdout's
            rows have weights, else False.

        Returns
        -------
        GuardedScorer
            The scorer itself.
        """
        self._requests = {"sample_weight": sample_weight}
        return self

    def get_metadata_routing(self) -> Any:
        """Return the metadata that this scorer requests, for scikit-learn's metadata routing.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
        """
        requests = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            requests.score.add_request(param=name, alias=alias)
        return requests

    # TunedThresholdClassifierCV reads these from a scorer and calls `_score_func`
    _sign = 1
    _kwargs: ClassVar[dict[str, Any]] = {}
    _get_metadata_request = get_metadata_routing  # the name by which scikit-learn 1.6 asks for it

    def _score_func(self, *_: object) -> NoReturn:
        with refusals():
            raise InputError(
                f"a guarded scorer cannot tune a threshold: it would ask for each threshold and fold; {_FREE}; tune "
                'with a plain scorer, as in TunedThresholdClassifierCV(model, scoring="balanced_accuracy"), and ask '
                "about the tuned classifier: guard.evaluate(tuned, prior=...), or GuardedSearchCV over it"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "rows": scored_rows_of(self.guard).latest()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rows = state.pop("rows")
        self.__dict__.update(state)
        scored_rows_of(self.guard).add(rows)

    def __repr__(self) -> str:
        return f"guarded_scorer({self.guard!r})"
