"""Autologging: every scikit-learn search that asks a guard logs the guard's answers to MLflow."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlflow
from reusable_holdout_sklearn import GuardedSearchCV
from sklearn.model_selection import GridSearchCV

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted
from reusable_holdout.slips import checked_call, warn
from reusable_holdout_mlflow.identity import tag
from reusable_holdout_mlflow.places import check_reachable
from reusable_holdout_mlflow.run_log import told
from reusable_holdout_mlflow.tracking import track
from reusable_holdout_mlflow.winner import SILENCE, log_winner

__all__ = ["autolog"]

_CHANGES = threading.Lock()
_WRAPPED: dict[type, tuple[Any, Any]] = {}  # the original `fit`, and the one that replaces it
_THREAD = threading.local()


@checked_call
def autolog(*, disable: bool = False) -> None:
    """Log every search that asks a guard, as if its `fit` ran inside :func:`reusable_holdout_mlflow.track`.

    This applies to GuardedSearchCV, and to GridSearchCV and scikit-learn's other searches with a guarded scorer. A
    search without a guard is left alone, and so is a search inside another search.

    Inside an active run the answers are logged to that run. Else the search gets a run in MLflow's current experiment,
    and ``mlflow.sklearn.autolog`` logs to the same run. If ``mlflow.sklearn.autolog`` is on, a GuardedSearchCV logs its
    best model with its parameters and training scores, as autolog's settings say. The other candidates that it fits are
    not logged.

    Parameters
    ----------
    disable : bool
        True turns autologging off; a search that is being fitted is still logged to its end.
    """
    with _CHANGES:
        if disable:
            for search, (before, ours) in _WRAPPED.items():
                if search.__dict__.get("fit") is ours:  # else other code has wrapped our `fit`
                    search.fit = before  # type: ignore[attr-defined]
            _WRAPPED.clear()
            return
        for search in _searches():
            if search not in _WRAPPED and "fit" in search.__dict__:
                before = search.__dict__["fit"]
                _WRAPPED[search] = before, _logging(search, before)
                search.fit = _WRAPPED[search][1]  # type: ignore[attr-defined]


def _searches() -> list[type]:
    """Return the classes of searches that are imported by now; classes made later inherit the wrapped `fit`."""
    found: list[type] = [GuardedSearchCV, GridSearchCV.__mro__[1]]
    for search in found:
        inherited: list[type] = type.__subclasses__(search)
        found += [one for one in inherited if one not in found]
    return found


def _logging(search: type, fit: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fit)
    def logged(self: Any, *args: Any, **kwargs: Any) -> Any:
        guard = None
        if search in _WRAPPED and not getattr(_THREAD, "logs", False):
            guard = _guard_of(self)
        if guard is None:
            return fit(self, *args, **kwargs)
        _THREAD.logs = True
        try:
            with _run_of(type(self).__name__) as run, track(guard, run=run):
                if getattr(self, "guard", None) is None:  # a search of scikit-learn, which MLflow logs itself
                    return fit(self, *args, **kwargs)
                with SILENCE as logs:  # else each refitted candidate would log itself as the winner
                    fitted = fit(self, *args, **kwargs)
                    if logs:
                        log_winner(fitted, *args, own=run is not None, **kwargs)
                return fitted
        finally:
            _THREAD.logs = False

    return logged


def _guard_of(search: Any) -> ReusableHoldout | None:
    scoring = getattr(search, "scoring", None)
    scorers = scoring.values() if isinstance(scoring, dict) else [scoring]
    guards = [getattr(one, "guard", None) for one in (search, *scorers)]
    return next((guard for guard in guards if isinstance(guard, ReusableHoldout)), None)


@contextmanager
def _run_of(name: str) -> Iterator[str | None]:
    """Start a run for one search, and yield its id; yield None if there is an active run, or no run can be made."""
    run = None
    if mlflow.active_run() is None:
        try:
            check_reachable(mlflow.get_tracking_uri())
            run = mlflow.start_run(run_name=name, tags={tag("owned"): "true"})
        except Exception as error:
            warn(f"no run was started for {name} ({told(error)}); the search goes on", RuntimeWarning)
    try:
        yield None if run is None else str(run.info.run_id)
    except BaseException as error:
        if run is not None:
            mlflow.end_run("FINISHED" if isinstance(error, Halted) else "FAILED")
        raise
    if run is not None:
        mlflow.end_run()
