"""A callback that asks the guard when a trial is finished, for tuners that run the study themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted
from reusable_holdout.slips import checked_call, warn
from reusable_holdout_optuna.confirmation import Confirmation, Which
from reusable_holdout_optuna.guard_calls import halt_of

__all__ = ["GuardCallback"]


class GuardCallback:
    """Callback that asks a guarded holdout about each new best trial of a study, and stops the study on a halt.

    Use it with tuners that call :meth:`optuna.Study.optimize` themselves and take callbacks, and with loops that call
    the study's ``ask`` and ``tell``. Elsewhere use :class:`GuardedStudy`: it writes the answers on the trials and
    raises a halt.

    Parameters
    ----------
    guard, predict, ask, n_startup_trials, objective
        The parameters of :class:`GuardedStudy`. One thing differs: if no trial is better than all startup trials,
        nothing is asked.

    Warns
    -----
    RuntimeWarning
        If the guard has halted. The study is stopped in this process, and gets the user attribute `guard_halted`. In
        another process its own callback stops the study after the next trial.

    Raises
    ------
    InputError
        If the study's objective and direction do not fit the guard's metric, or the guard's plan is for gates alone.
    Halted
        If the guard has halted and no :meth:`optuna.Study.optimize` is running that could be stopped.

    Notes
    -----
    A finished trial of Optuna cannot be changed. So the answer about trial 7 is the study's user attribute
    `guard_trial_7`. :func:`guard_results` shows all answers; the study's user attribute `guard_best` is the best one.

    For scikit-learn's searches use ``reusable_holdout_sklearn.GuardedSearchCV``.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from reusable_holdout import ReusableHoldout
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> labels = np.random.default_rng(0).integers(0, 2, 4_000)
    >>> guard = ReusableHoldout(None, labels, tolerance=0.1, queries=5, seed=0)
    >>> confirm = GuardCallback(guard, lambda trial: np.where(np.arange(4_000) % 4, labels, 1 - labels))
    >>> study = optuna.create_study(direction="maximize")
    >>> study.optimize(lambda trial: 0.75, n_trials=3, callbacks=[confirm])
    >>> study.user_attrs["guard_best"]["number"], guard.queries_asked
    (0, 1)
    """

    @checked_call
    def __init__(
        self,
        guard: ReusableHoldout,
        predict: Callable[[Any], Any],
        *,
        ask: Which = "new-best",
        n_startup_trials: int = 0,
        objective: int | None = None,
    ) -> None:
        self.guard = guard
        self._confirmation = Confirmation(
            guard, predict, ask=ask, n_startup_trials=n_startup_trials, objective=objective
        )

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Ask about a trial that was just finished, if it is a new best or all trials are asked about."""
        self._confirmation.check(study)
        value = self._confirmation.value_of(trial.values) if trial.state == TrialState.COMPLETE else None
        try:
            if value is not None and self._confirmation.is_due(study, trial.number, value):
                self._confirmation.confirm_finished(study, trial, value)
            halted = halt_of(self.guard)
        except Halted as own:
            halted = own
        if halted is not None:
            self._stop(study, halted)

    def _stop(self, study: Study, halted: Halted) -> None:
        study.set_user_attr("guard_halted", halted.reason)
        try:
            study.stop()
        except RuntimeError:  # no optimize() is running: the loop calls ask() and tell()
            raise halted.with_traceback(None) from None
        warn(f"the study was stopped: {halted}", RuntimeWarning)
