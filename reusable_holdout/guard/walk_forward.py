"""Walk-forward procedures: before each block of holdout rows a model is fitted on the history and all rows before it.

The labels of earlier rows enter the fits, so the fits run inside the guard's boundary. A model is tried first by a fit
on the history alone, which is free because it reads no row of the holdout.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import quiet
from reusable_holdout.guard.digests import holdout_digest, is_chunked
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.models import Needed, check_model, length_of
from reusable_holdout.guard.time_order import check_embargo, times_of
from reusable_holdout.guard.training_estimate import Estimate, training_estimate
from reusable_holdout.guard.trial import is_alike
from reusable_holdout.metrics import Metric
from reusable_holdout.metrics.containers import as_array, index_of, one_column, typed_array
from reusable_holdout.plan import Plan

_PERIODS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
_FEW = 64  # rows of the history that a model is tried on
_SILENT = {"memory": None, "verbose": False}  # parameters by which fits would write what they read


@dataclass(frozen=True, eq=False, repr=False)
class WalkForward:
    """A walk-forward procedure, to be asked about like a model; see :meth:`ReusableHoldout.walk_forward`.

    Parameters
    ----------
    model : estimator
        A scikit-learn estimator. Only clones of it are fitted.
    X_history, y_history : array-like
        Features and labels before the first row of the holdout, in time order; the features are of the holdout's type
        and have its columns. Categories that the history lacks become missing.
    refit : str, int or splitter
        Blocks of rows: a period of the rows' index of times, such as "W" or "week"; a number of rows, or of steps if
        the guard has groups; or a splitter such as scikit-learn's `TimeSeriesSplit`, for history and holdout together.
        A splitter's test sets hold each row of the holdout once, and each training set ends in a step before them:
        `gap=` is for labels that are known later, `max_train_size=` for a window.
    """

    model: Any
    X_history: Any
    y_history: Any
    refit: Any


def content_of(walk: WalkForward) -> bytes:
    """Return the digest of a procedure: model, history with its index and types, and blocks."""
    both, new = (walk.X_history, walk.y_history), hashlib.blake2b
    kinds = [
        (
            type(one).__name__,
            getattr(one, "dtypes", getattr(one, "dtype", None)),
            holdout_digest(new, index_of(one), None),
        )
        for one in both
    ]
    return fingerprint(("walk-forward", _clone(walk.model), walk.refit, kinds, holdout_digest(new, *both)))


def estimate_of(walk: WalkForward, metric: Metric, classes: Any) -> Estimate:
    """Return the score of the same model walked forward over the history, for a prior that is not stated."""
    from sklearn.model_selection import TimeSeriesSplit  # noqa: PLC0415

    data = walk.X_history, walk.y_history
    try:
        return training_estimate(metric, walk.model, *data, cv=TimeSeriesSplit(5), classes=classes)
    except Exception as error:
        raise InputError(
            "a prior must be stated if the model cannot be walked forward over the history in five folds; got "
            f"{type(error).__name__}; pass prior=; nothing was asked"
        ) from None


# ---- before the holdout is read


def check_procedure(walk: WalkForward, holdout: Any, plan: Plan) -> None:
    """Refuse a procedure that does not fit the rows; public facts alone decide."""
    X, y, problem = walk.X_history, walk.y_history, None
    if plan.order != "time":
        problem = (
            'a guard of rows in time order, made with Rows(..., order="time"): for independent rows, a procedure that '
            "learns from other rows is no fixed function of a row"
        )
    elif plan.noise > 0.0 and not plan.privacy_is_vacuous:
        problem = "a plan without differential privacy, such as Plan(noise=0): one row changes all later predictions"
    elif is_chunked(holdout.X):
        problem = "rows in memory; got rows in chunks; load them"
    elif type(holdout.X).__module__.startswith("polars.") or not is_alike(holdout.X, X):
        problem = (
            f"X_history of the type and the columns of the holdout's X; got {type(X).__name__}; convert both"
        )
    elif np.shape(y)[:1] != (length_of(X),):
        problem = f"a label in y_history for each of the {length_of(X)} rows of X_history; got {np.shape(y)}"
    elif _clone(walk.model) is None or not hasattr(walk.model, "fit"):
        problem = f"a scikit-learn estimator that can be cloned and fitted; got {type(walk.model).__name__}"
    if problem is not None:
        raise InputError(f"a walk-forward question must have {problem}; nothing was asked")
    check_embargo(holdout.begins, X, nothing="nothing was asked")
    _blocks(walk, holdout)


def try_on_history(walk: WalkForward, X: Any, needed: Needed) -> None:
    """Refuse a model that cannot be fitted on the history, or that does not predict its rows as the metric needs."""
    from sklearn.utils import _safe_indexing  # noqa: PLC0415

    def tried(call: Callable[[], Any]) -> Any:
        try:
            with quiet(), _apart():
                return call()
        except Exception as error:
            raise InputError(
                "the model must fit the history and predict its rows as metric and classes need; "
                f"{type(walk.model).__name__} raised {type(error).__name__}; nothing was asked; try "
                "clone(model).fit(X_history, y_history).predict(X_history)"
            ) from None

    made = tried(lambda: _fitted(walk.model, walk.X_history, _labels(walk.y_history)))
    check_model(made, X, response=needed.response, classes=needed.classes)
    few = range(min(_FEW, length_of(walk.X_history)))
    form, rows = needed.form.of_rows(len(few)), _safe_indexing(walk.X_history, list(few))
    tried(lambda: form.prepare(needed.predicted(made, rows)))


def _clone(model: Any) -> Any:
    """Return a new, unfitted estimator; None if there is none."""
    from sklearn.base import clone  # noqa: PLC0415

    try:
        made = clone(model)
    except Exception:  # no estimator
        return None
    return None if made is model else made  # a frozen one does not learn


def _blocks(walk: WalkForward, holdout: Any) -> list[tuple[Any, Any]]:
    """Return the places of each block's training rows and own rows, in history and holdout together."""
    refit, before, rows = walk.refit, length_of(walk.X_history), holdout.bound.rows
    groups = holdout.bound.groups
    steps = np.arange(rows) if groups is None else groups.codes
    if hasattr(refit, "split") and not isinstance(refit, str | type):
        return _split(refit, np.concatenate([np.full(before, -1), steps]), before)
    begins = np.flatnonzero(np.diff(steps, prepend=-1))
    if isinstance(refit, int | np.integer) and not isinstance(refit, bool) and refit > 0:
        begins = begins[:: int(refit)]
    else:
        periods = _periods(refit, holdout)[begins]
        begins = begins[np.diff(periods, prepend=periods[0] - 1) != 0]
    edges = pairwise([*(before + begins).tolist(), before + rows])
    return [(range(begin), range(begin, end)) for begin, end in edges]


def _periods(refit: Any, holdout: Any) -> NDArray[np.int64]:
    """Return the number of each row's period."""
    times = times_of(holdout)
    try:
        periods = times[0].tz_localize(None).to_period(_PERIODS.get(refit, f"{refit}"))
        return np.asarray(periods.astype(np.int64))
    except Exception:
        raise InputError(
            'refit must be a period, such as "W", of rows with an index of times, a whole number of rows or steps, or '
            f"a splitter; got {refit!r} and {'' if times else 'no '}times; nothing was asked"
        ) from None


def _split(splitter: Any, steps: NDArray[Any], before: int) -> list[tuple[Any, Any]]:
    """Return a splitter's blocks, which must learn from steps before their own; the history's steps are -1."""
    try:
        given = splitter.split(np.zeros((len(steps), 1)), np.zeros(len(steps)))
        pairs = [(np.asarray(train), np.asarray(test)) for train, test in given]
        pairs = [(train, test[test >= before]) for train, test in pairs if (test >= before).any()]
        own = np.sort(np.concatenate([test for _, test in pairs]))
        fits = np.array_equal(own, np.arange(before, len(steps))) and all(
            steps[train].max() < steps[test].min() for train, test in pairs
        )
    except Exception:  # a splitter that refuses so few rows, or a training set without rows
        fits = False
    if not fits:
        raise InputError(
            "refit must be a splitter whose test sets hold each row of the holdout once, and whose training sets end "
            f"in a step before their test sets; got {type(splitter).__name__}, on {before:,} rows of history and "
            f"{len(steps) - before:,} of the holdout; nothing was asked; with TimeSeriesSplit, n_splits * test_size "
            "must reach the holdout's rows"
        )
    return pairs


# ---- inside the boundary


def walked(walk: WalkForward, holdout: Any, needed: Needed) -> NDArray[Any]:
    """Return a procedure's predictions for the holdout's rows, in canonical form; all parts of it may raise."""
    from sklearn.utils import _safe_indexing  # noqa: PLC0415

    X, y = _rows(walk.X_history, holdout.X), _labels(walk.y_history, holdout.y)
    places, parts = [], []
    with _apart():
        for train, test in _blocks(walk, holdout):
            before, own = np.asarray(train), np.asarray(test)
            made = _fitted(walk.model, _safe_indexing(X, before), _safe_indexing(y, before))
            form = needed.form.of_rows(len(own))  # else a block's predictions could stand for another's rows
            parts.append(form.prepare(needed.predicted(made, _safe_indexing(X, own))))
            places.append(own)
    return needed.form.of_rows(holdout.bound.rows).joined(parts)[np.argsort(np.concatenate(places))]


def _fitted(model: Any, X: Any, y: Any) -> Any:
    made = _clone(model)
    given = made.get_params().items()
    silent = {
        name: _SILENT[last] for name, value in given if (last := name.split("__")[-1]) in _SILENT and value
    }
    return made.set_params(**silent).fit(X, y)


@contextmanager
def _apart() -> Iterator[None]:
    """Keep fits from the caller's random numbers, and in this process, whose output is swallowed."""
    from joblib import parallel_config  # noqa: PLC0415

    state = np.random.get_state()  # noqa: NPY002 - the generator of estimators without a random_state
    np.random.seed(0)  # noqa: NPY002
    try:
        with parallel_config(backend="threading"):
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def _rows(history: Any, own: Any) -> Any:
    """Return the features of the history and then the holdout's, in new memory and in the history's categories."""
    if isinstance(history, pd.DataFrame):
        kinds = history.dtypes[[isinstance(kind, pd.CategoricalDtype) for kind in history.dtypes]]
        own = own.astype(kinds.to_dict())
    return stacked(history, own)


def stacked(first: Any, second: Any) -> Any:
    """Return two tables or columns of one kind, one below the other."""
    if isinstance(first, pd.DataFrame | pd.Series):
        return pd.concat([first, second])
    if hasattr(first, "tocsr"):
        from scipy.sparse import vstack  # noqa: PLC0415

        return vstack([first, second], format="csr")
    return first.vstack(second) if hasattr(first, "vstack") else np.concatenate([first, second])


def _labels(*parts: Any) -> Any:
    """Return labels in new memory: a series if all are series of one type, else an array."""
    if all(isinstance(part, pd.Series) for part in parts) and len({str(part.dtype) for part in parts}) == 1:
        return pd.concat(parts)
    columns = [one_column(as_array(part, what="labels")) for part in parts]
    return np.concatenate([typed_array(column, what="labels")[0] for column in columns])
