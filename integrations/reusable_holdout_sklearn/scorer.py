"""The scorer: a fold's score is the prior, the guard's answer is the score."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np

from reusable_holdout.holdout import predictions_of

if TYPE_CHECKING:
    from reusable_holdout import ReusableHoldout

__all__ = ["GuardedScorer", "guarded_scorer"]


def guarded_scorer(guard: ReusableHoldout) -> GuardedScorer:
    """Scorer that answers from a guarded holdout.

    Every answer is certified as the guard says; all workers share the guard's one budget; a halt stops the search
    (``Halted`` is no ``Exception``, so ``error_score`` cannot turn it into NaN).

    Parameters
    ----------
    guard : ReusableHoldout
        With features and, for ``n_jobs`` other than 1, a ledger on disk.

    Returns
    -------
    GuardedScorer
        For `scoring=` of cross_validate, GridSearchCV and others. Losses are negated: greater is better.

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
    """Callable ``(estimator, X, y) -> float``; see :func:`guarded_scorer`.

    With ``return_train_score=True`` scikit-learn calls the scorer a second time for the same fitted estimator, with the
    training rows: this call gives the plain score of those rows and never reaches the guard.

    Parameters
    ----------
    guard : ReusableHoldout
        With features.
    """

    def __init__(self, guard: ReusableHoldout) -> None:
        self.guard = guard
        self._last = threading.local()

    def __call__(self, estimator: Any, X: Any, y: Any, **_: Any) -> float:
        """Ask the guard about a fitted estimator, with its score on (X, y) as the prior.

        Parameters
        ----------
        estimator : estimator
            Fitted on other rows than X.
        X, y : array-like
            Rows set aside from training: a fold.

        Returns
        -------
        float
            The guard's answer; negated for losses.
        """
        metric = self.guard.metric
        sign = 1.0 if metric.greater_is_better else -1.0
        classes = self.guard.classes
        predictions = predictions_of(estimator, X, response=metric.response, classes=classes)
        plain = metric.measure(y, predictions, classes=classes)
        if self._is_train_call(estimator, X):
            return sign * plain
        self._last.call = (weakref.ref(estimator), X, predictions)
        return sign * self.guard.evaluate(estimator, prior=plain).value

    def _is_train_call(self, estimator: Any, X: Any) -> bool:
        """Whether this fitted estimator has just been asked about with other rows."""
        reference, last_X, last_predictions = getattr(self._last, "call", (None, None, None))
        if reference is None or reference() is not estimator or X is last_X:
            return False
        metric = self.guard.metric
        again = predictions_of(estimator, last_X, response=metric.response, classes=self.guard.classes)
        if not np.array_equal(np.asarray(again), np.asarray(last_predictions)):
            return False  # refitted in place
        return bool(joblib.hash(X) != joblib.hash(last_X))

    def _accept_sample_weight(self) -> bool:
        return False  # scikit-learn asks before it routes weights; the holdout's rows have none

    def __reduce__(self) -> tuple[Any, ...]:
        return GuardedScorer, (self.guard,)

    def __repr__(self) -> str:
        return f"guarded_scorer({self.guard!r})"
