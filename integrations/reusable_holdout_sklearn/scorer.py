"""The scorer: a fold's score is the prior, the guard's answer is the score."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.guard import ForWorkers, MeasuredModel, Whereabouts, check_is_guard, predictions_of
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.slips import checked_call
from reusable_holdout_sklearn.asking import called, check_guard, refusals
from reusable_holdout_sklearn.columns import OnColumns, columns_of
from reusable_holdout_sklearn.deployed import loaded_state, pickled_state
from reusable_holdout_sklearn.scored_rows import scored_rows_of

__all__ = ["GuardedScorer", "guarded_scorer"]


_BETWEEN = ("reusable_holdout_sklearn.", "sklearn.metrics.", "contextlib")  # they hand a call on
_USE_A_PLAIN_SCORER = (
    "use a plain scorer, as in permutation_importance(model, X, y, scoring=prior_scorer(guard)), on rows set aside "
    "from training"
)


@checked_call
def guarded_scorer(guard: ReusableHoldout, *, features: Any = None) -> GuardedScorer:
    """Scorer that answers from a guarded holdout.

    Every answer is certified as the guard says; all workers share the guard's one budget; a halt stops the search, and
    so does what the guard refuses (``Halted`` and ``Refused`` are no ``Exception``, so ``error_score`` cannot turn them
    into NaN).

    Parameters
    ----------
    guard : ReusableHoldout
        With features and, for ``n_jobs`` other than 1, a ledger on disk. No ladder and no gate: what those answer is no
        score of the model.
    features : array-like of shape (training rows, columns), optional
        For SequentialFeatureSelector: the X it is fitted with. It fits models to some of the columns and does not say
        which; they are told from their values. RFECV begins with all columns, and needs no help.

    Returns
    -------
    GuardedScorer
        For `scoring=` of cross_validate, GridSearchCV and others, alone or in a dict. Losses are negated: greater is
        better.

    Notes
    -----
    **When it is the wrong tool.** Each fold of each candidate is a question of its own, about a model that is thrown
    away, with a prior as noisy as the fold is small: a noisy prior deviates from the holdout by chance, and each
    deviation costs a charge. To choose among candidates use :class:`GuardedSearchCV`, which asks once for each, with
    the mean over the folds as prior; to assess one model, :func:`guarded_cross_validate`. The scorer is for loops that
    take nothing else.

    **One model has one answer.** The first call about a fitted model asks, with its score on the rows of this call as
    the prior. Each later call about the same model, with whatever rows, gives the recorded answer and is free: so train
    scores (`return_train_score`, learning_curve, validation_curve) repeat the test scores, and a model that was fitted
    before (FrozenEstimator) has the same score in each fold. Columns that are shuffled for one fitted model are refused
    with the second call. ``search.score(X, y)`` asks about the refitted model, with its score on (X, y) as the prior:
    rows that it was fitted on are a bad one.

    A SequentialFeatureSelector asks (features x folds) questions for each step. What history calls a question tells the
    model's parameters, so that the results so far of a loop that was halted can be read there: ``halted.history``.
    Refused, and free, are TunedThresholdClassifierCV, permutation_importance, and early stopping of
    HistGradientBoosting, which would ask many times about one fit.

    If the holdout's rows have sample weights, the prior must be weighted, too: pass them to the loop. With metadata
    routing they are requested then; of other guards with ``guarded_scorer(guard).set_score_request(
    sample_weight=True)``.

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
    return GuardedScorer(guard, features=features)


class GuardedScorer:
    """Callable ``(estimator, X, y) -> float``; see :func:`guarded_scorer`.

    Whatever it returns is what the guard answered about this model: no call gives a plain score.

    Parameters
    ----------
    guard : ReusableHoldout
        With features.
    features : array-like, optional
        See :func:`guarded_scorer`.

    Raises
    ------
    InputError
        If the guard cannot score models.
    """

    stands_for_a_guard = (
        True  # for a fingerprint: what a model is does not depend on what its scorer has scored
    )

    @checked_call
    def __init__(self, guard: ReusableHoldout, *, features: Any = None) -> None:
        check_guard(guard)
        if not guard.takes_priors:
            raise InputError(
                "a ladder answers with the best score so far, which is no score of the model; use GuardedSearchCV, or "
                'a guard with policy="thresholdout"'
            )
        self.guard = guard
        self.features = features
        self._requests: dict[str, bool | str | None] = {"sample_weight": self._is_weighted()}
        self._thread = threading.local()

    @property
    def name(self) -> str:
        """Name of the guard; the same in every process."""
        return Whereabouts(self.guard).name

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Ask the guard about a fitted estimator, with its score on (X, y) as the prior.

        Parameters
        ----------
        estimator : estimator
            Fitted on other rows than X.
        X, y : array-like
            Rows set aside from training: a fold.
        sample_weight : array-like, optional
            Of those rows.

        Returns
        -------
        float
            The guard's answer; negated for losses.

        Raises
        ------
        ModelError
            If the model fails on the holdout, which takes a charge: the loop's `error_score` says what becomes of it.
        Halted, Refused
            If the budget is spent, or the guard refuses the question: no loop swallows these.
        """
        with refusals():
            return self._asked(estimator, X, y, sample_weight)

    def _asked(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
        check_is_guard(self.guard)
        self._check_call(estimator, sample_weight)
        model, metric, classes = self._on_all_columns(estimator, X), self.guard.metric, self.guard.class_set
        predictions = predictions_of(estimator, X, response=metric.response, classes=classes)
        prior = metric.measure(y, predictions, classes=classes, sample_weight=sample_weight)
        content, rows = fingerprint(model), scored_rows_of(self.guard)
        if not rows.is_read_whole(estimator, content):
            raise InputError(
                "the model must be one whose content can be read whole, to be scored twice: this one holds a lock, a "
                "handle or compiled code of your own, and may have been fitted again or not; nothing was asked and "
                "nothing was charged; leave return_train_score out, or ask guard.evaluate(model, prior=...)"
            )
        if rows.are_shuffled(content, X, y, prior / (metric.upper - metric.lower)):
            raise InputError(
                "a model is asked about once, and has one answer, whatever rows it is scored on; these are the rows of "
                "an earlier call with columns shuffled, whose score the guard cannot tell; nothing was asked and "
                f"nothing was charged; {_USE_A_PLAIN_SCORER}"
            )
        sign = 1.0 if metric.greater_is_better else -1.0
        return (
            sign
            * self.guard.ask_once(MeasuredModel(model, content), prior=prior, name=called(estimator)).value
        )

    def _check_call(self, estimator: Any, sample_weight: Any) -> None:
        """Refuse calls that are no question about a fitted model."""
        if _is_permuting():
            raise InputError(
                "permutation importance scores one model on many sets of shuffled rows; a guard has one answer for it; "
                f"nothing was asked and nothing was charged; {_USE_A_PLAIN_SCORER}"
            )
        if getattr(estimator, "_in_fit", False):  # scikit-learn's own mark; it predicts binned rows alone
            raise InputError(
                "a model must be fitted before a guard is asked about it; this one is being fitted, and would ask in "
                "each iteration to stop early; nothing was asked and nothing was charged; stop by a plain score, as in "
                f'{type(estimator).__name__}(early_stopping=True, scoring="loss"), and ask about the fitted model'
            )
        if sample_weight is None and self._is_weighted() and self._requests["sample_weight"] is not False:
            raise InputError(
                "the holdout's rows have weights, so the prior must be a weighted score, too; got no sample_weight; "
                "nothing was asked and nothing was charged; pass it to the loop, as in search.fit(X, y, sample_weight="
                'weights), or with metadata routing cross_validate(..., params={"sample_weight": weights}); if '
                "unweighted rows estimate the score, say so: scorer.set_score_request(sample_weight=False)"
            )

    def _is_weighted(self) -> bool:
        return bool(getattr(self.guard, "weighted", False))  # of a guard that is elsewhere it is not known

    # ---- models of some of the columns

    def _on_all_columns(self, estimator: Any, X: Any) -> Any:
        """Model that takes the holdout's columns, if this one was fitted to some of them by a selector."""
        width, here = self.guard.features, np.shape(X)[1] if len(np.shape(X)) == 2 else None
        if here == width:
            self._thread.widest = X
        if here is None and width is not None:
            raise InputError(
                f"the model must be scored on rows with the holdout's {width} columns; got {type(X).__name__} of shape "
                f"{np.shape(X)}; nothing was asked and nothing was charged"
            )
        if here is None or width is None or here >= width:
            return estimator
        reference = self.features
        if reference is None:  # RFECV begins with all columns of the same rows
            widest: Any = getattr(self._thread, "widest", ())
            reference = widest if np.shape(widest)[:1] == np.shape(X)[:1] else None
        if reference is None:
            raise InputError(
                f"the model must take the holdout's {width} columns; it was fitted to {here}; nothing was asked; if a "
                "feature selector does this, pass it guarded_scorer(guard, features=X) with the X it is fitted with"
            )
        if np.shape(reference)[1] != width:
            raise InputError(
                f"features must have the holdout's {width} columns; got {np.shape(reference)[1]}; nothing was asked"
            )
        return OnColumns(estimator, columns_of(X, reference), width)

    # ---- what scikit-learn asks

    def _accept_sample_weight(self) -> bool:
        return self._is_weighted()

    def set_score_request(self, *, sample_weight: bool | str | None = False) -> Self:
        """Say if the rows' weights are to weigh the prior, with metadata routing.

        Parameters
        ----------
        sample_weight : bool, str or None
            As for scikit-learn's scorers: True passes them on, False does not, text is another name for them, None
            raises if they are passed. By default True if the holdout's rows have weights, else False.

        Returns
        -------
        GuardedScorer
            This one.
        """
        self._requests = {"sample_weight": sample_weight}
        return self

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn what this scorer asks for.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
        """
        requests = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            requests.score.add_request(param=name, alias=alias)
        return requests

    # TunedThresholdClassifierCV takes a scorer apart into these, and calls the first one
    _sign = 1
    _kwargs: ClassVar[dict[str, Any]] = {}
    _get_metadata_request = get_metadata_routing  # the name by which scikit-learn 1.6 asks for it

    def _score_func(self, *_: object) -> NoReturn:
        with refusals():
            raise InputError(
                "a guarded scorer cannot tune a threshold: it would ask for each threshold and fold; nothing was asked "
                "and nothing was charged; tune with a plain scorer, as in TunedThresholdClassifierCV(model, "
                'scoring="balanced_accuracy"), and ask about the tuned classifier: guard.evaluate(tuned, prior=...), '
                "or GuardedSearchCV over it"
            )

    def __getstate__(self) -> dict[str, Any]:
        sent = {"for_workers": self.features, "scored_rows": scored_rows_of(self.guard).latest()}
        state = {"guard": self.guard, "_requests": self._requests}
        return pickled_state(state | {name: ForWorkers(value) for name, value in sent.items()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = loaded_state(state)
        self.features, rows = state.pop("for_workers").value, state.pop("scored_rows", None)
        self.__dict__.update(state)
        scored_rows_of(self.guard).add((rows and rows.value) or [])
        self._thread = threading.local()

    def __repr__(self) -> str:
        return f"guarded_scorer({self.guard!r})"


def _is_permuting() -> bool:
    """Return True if permutation importance calls: it scores training rows, too, whose score would be no prior.

    Nothing that scikit-learn passes tells it. Libraries that shuffle by themselves are known by their second call.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as `inspect.currentframe`, which costs more
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_BETWEEN):
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("sklearn.inspection.")
