"""The scorer: a fold's score is the prior, the guard's answer is the score."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import joblib
import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from reusable_holdout.errors import HoldoutError, InputError, ModelError, Refused
from reusable_holdout.guard import ForWorkers, check_is_guard, predictions_of
from reusable_holdout.guard.pools import let_pools_carry_halts
from reusable_holdout.slips import checked_call
from reusable_holdout_sklearn.asking import called, check_guard
from reusable_holdout_sklearn.columns import OnColumns, columns_of
from reusable_holdout_sklearn.deployed import loaded_state, pickled_state

if TYPE_CHECKING:
    from types import FrameType

    from reusable_holdout import ReusableHoldout

__all__ = ["GuardedScorer", "guarded_scorer"]


_BETWEEN = ("reusable_holdout_sklearn", "reusable_holdout", "sklearn.metrics")  # they hand a call on


class _RefusedError(InputError, AttributeError):
    """To code that looks for an attribute it is missing; to the user it says why."""


class _Call(NamedTuple):
    """A question that was asked in this process."""

    estimator: weakref.ref[Any]
    X: Any
    predictions: Any


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

    What is charged: a question for each fold and candidate, so (features x folds) for each step of a
    SequentialFeatureSelector; train scores are plain scores of the training rows and never reach the guard, and neither
    does ``search.score(X, y)``. The same fitted model with the same fold's score is a replay, and free. What history
    calls a question tells the model's parameters, so that the results so far of a loop that was halted can be read
    there: ``halted.history``. Refused are TunedThresholdClassifierCV and permutation_importance, which would ask many
    times about one fit.

    Sample weights are not passed on unless they are requested, ``guarded_scorer(guard).set_score_request(
    sample_weight=True)``, with metadata routing. Then they weigh the prior; the holdout's rows have the guard's own.

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

    Where train scores are wanted, scikit-learn calls the scorer a second time for the same fitted estimator, with the
    training rows: this call gives the plain score of those rows and never reaches the guard.

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
        self._requests: dict[str, bool | str | None] = {"sample_weight": False}
        self._thread = threading.local()

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
        try:
            return self._asked(estimator, X, y, sample_weight)
        except ModelError:
            raise
        except HoldoutError as error:
            refused = Refused(error)
        let_pools_carry_halts()
        raise refused

    def _asked(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
        if _is_permuting():
            raise InputError(
                "permutation importance scores one model on many sets of shuffled rows, which a guard would answer as "
                "if they were new models; nothing was asked; use a plain scorer, as in permutation_importance(model, "
                "X, y, scoring=prior_scorer(guard)), on rows set aside from training"
            )
        metric, classes = self.guard.metric, self.guard.classes
        predictions = predictions_of(estimator, X, response=metric.response, classes=classes)
        plain = metric.measure(y, predictions, classes=classes, sample_weight=sample_weight)
        sign = 1.0 if metric.greater_is_better else -1.0
        if _is_score_method():  # plain also where the guard is not, but what stands for it
            return sign * plain
        check_is_guard(self.guard)
        if self._is_asked_about(estimator, X):
            return sign * plain
        model = self._on_all_columns(estimator, X)
        self._thread.last = _Call(weakref.ref(estimator), X, predictions)
        return sign * self.guard.evaluate(model, prior=plain, name=called(estimator)).value

    # ---- calls that are no question

    def _is_asked_about(self, estimator: Any, X: Any) -> bool:
        """Whether this fitted estimator has just been asked about with other rows."""
        call = getattr(self._thread, "last", None)
        if call is None or call.estimator() is not estimator or X is call.X:
            return False
        return self._is_unchanged(estimator, call) and joblib.hash(X) != joblib.hash(call.X)

    def _is_unchanged(self, estimator: Any, call: _Call) -> bool:
        """Whether it predicts as it did; else it was fitted again in place."""
        again = predictions_of(
            estimator, call.X, response=self.guard.metric.response, classes=self.guard.classes
        )
        return bool(np.array_equal(np.asarray(again), np.asarray(call.predictions)))

    # ---- models of some of the columns

    def _on_all_columns(self, estimator: Any, X: Any) -> Any:
        """Model that takes the holdout's columns, if this one was fitted to some of them by a selector."""
        width, here = self.guard.features, np.shape(X)[1] if len(np.shape(X)) == 2 else None
        if here == width:
            self._thread.widest = X
        if here is None or width is None or here >= width:
            return estimator
        reference = getattr(self._thread, "widest", None) if self.features is None else self.features
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
        return (
            False  # without metadata routing weights are not passed on: the holdout's rows have the guard's
        )

    def set_score_request(self, *, sample_weight: bool | str | None = False) -> Self:
        """Say whether the rows' weights are to weigh the prior, with metadata routing.

        Parameters
        ----------
        sample_weight : bool, str or None
            As for scikit-learn's scorers: True passes them on, False does not, text is another name for them, None
            raises if they are passed.

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

    @property
    def _score_func(self) -> NoReturn:  # TunedThresholdClassifierCV looks for it
        raise _RefusedError(
            "a guarded scorer cannot tune a threshold: it would ask for each threshold and fold; nothing was asked; "
            'tune with a plain scorer, as in TunedThresholdClassifierCV(model, scoring="balanced_accuracy"), and ask '
            "about the tuned classifier: guard.evaluate(tuned, prior=...), or GuardedSearchCV over it"
        )

    def __getstate__(self) -> dict[str, Any]:
        for_workers = ForWorkers(self.features)
        return pickled_state({"guard": self.guard, "_requests": self._requests, "for_workers": for_workers})

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = loaded_state(state)
        self.features = state.pop("for_workers").value
        self.__dict__.update(state)
        self._thread = threading.local()

    def __repr__(self) -> str:
        return f"guarded_scorer({self.guard!r})"


# ---- who calls: scikit-learn passes a scorer on without saying what its call is for


def _is_score_method() -> bool:
    """Whether it is the `score` of a fitted search or selector: a plain score of rows that its caller names."""
    frame = _caller()
    return frame is not None and frame.f_code.co_name == "score" and _is_of(frame, "sklearn")


def _is_permuting() -> bool:
    """Whether it is permutation importance, which scores one model on rows with a column shuffled."""
    frame = _caller()
    return frame is not None and _is_of(frame, "sklearn.inspection")


def _caller() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as `inspect.currentframe`, which costs more
    while frame is not None and any(_is_of(frame, package) for package in _BETWEEN):
        frame = frame.f_back
    return frame


def _is_of(frame: FrameType, package: str) -> bool:
    name = frame.f_globals.get("__name__") or ""
    return name == package or name.startswith(f"{package}.")
