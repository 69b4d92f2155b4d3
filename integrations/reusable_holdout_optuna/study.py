"""A study that asks while its trials run, so that the answers are attributes of the trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optuna import TrialPruned
from optuna.study import Study
from optuna.trial import Trial

from reusable_holdout import ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import Halted
from reusable_holdout.slips import checked_call
from reusable_holdout_optuna.confirmation import Best, Confirmation, Which, guard_results
from reusable_holdout_optuna.guard_calls import halt_of

__all__ = ["GuardedStudy"]


class GuardedStudy:
    """A study whose new bests are confirmed by a guarded holdout.

    With the guard's confidence the intervals of all answers together contain the population values of the models they
    are about, `best` among them, however many trials there are and however the sampler uses their values. The sampler
    sees the objective's own values, never the guard's answers.

    Parameters
    ----------
    study : optuna.Study
        Of the guard's metric, in its direction, or of several objectives of which that is one. Its storage may be
        shared by threads and processes.
    guard : ReusableHoldout
        For several processes with a ledger on disk or on a server: they have one budget.
    predict : callable
        Of a trial that is to be asked about: a model fitted on all training rows, or predictions for the holdout's
        rows. It may use ``trial.params`` and ``trial.user_attrs``.
    ask : {"new-best", "all"}
        About trials whose value is better than the values of all completed ones (of n honest trials in random order
        there are about ln n), or about all.
    n_startup_trials : int
        Trials that complete before the first question: a sampler's first ones are random, and questions about bad
        models are wasted. If none after them is better, the best of them is asked about at the end.
    objective : int, optional
        Of several objectives the place of the guarded one, from 0. A new best is one of this objective, whatever the
        others say; the Pareto front is the study's own.

    Attributes
    ----------
    study : optuna.Study
    guard : ReusableHoldout

    Raises
    ------
    InputError
        If study and guard do not fit.

    Notes
    -----
    The objective's value, cross-validated on training rows, is the prior. Each trial that was asked about has the user
    attributes `guard_answer`, `guard_low`, `guard_high`, `guard_charged`, `guard_prior`, `guard_query`,
    `guard_replayed`, `guard_charges_left`; the study has `guard_best`, and after a halt `guard_halted`.

    The question is asked at the end of the objective, for a finished trial can get no attributes (those of a trial that
    is asked about later are in the study's `guard_trial_7`). A halt there is kept until :meth:`optimize` ends, so no
    trial stays RUNNING.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from reusable_holdout import ReusableHoldout
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4_000, 3))
    >>> y = (X[:, 0] + rng.normal(size=4_000) > 0).astype(int)
    >>> guard = ReusableHoldout(X[2_000:], y[2_000:], tolerance=0.1, queries=20, seed=0)
    >>> def model(trial):
    ...     return DecisionTreeClassifier(max_depth=trial.params["depth"], random_state=0)
    >>> def objective(trial):
    ...     trial.suggest_int("depth", 1, 8)
    ...     return cross_val_score(model(trial), X[:2_000], y[:2_000]).mean()
    >>> study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
    >>> guarded = GuardedStudy(study, guard, lambda trial: model(trial).fit(X[:2_000], y[:2_000]))
    >>> guarded.optimize(objective, n_trials=10)
    >>> guard.queries_asked < 10
    True
    >>> guarded.best.low < study.best_value < guarded.best.high
    True
    """

    @checked_call
    def __init__(
        self,
        study: Study,
        guard: ReusableHoldout,
        predict: Callable[[Any], Any],
        *,
        ask: Which = "new-best",
        n_startup_trials: int = 0,
        objective: int | None = None,
    ) -> None:
        self.study, self.guard = study, guard
        self._confirmation = Confirmation(
            guard, predict, ask=ask, n_startup_trials=n_startup_trials, objective=objective
        )
        self._confirmation.check(study)
        self._halted: Halted | None = None

    def optimize(self, func: Callable[[Trial], Any], n_trials: int | None = None, **settings: Any) -> None:
        """Optimize as :meth:`optuna.Study.optimize` does, and ask.

        Parameters
        ----------
        func, n_trials, **settings
            As for :meth:`optuna.Study.optimize`.

        Raises
        ------
        Halted
            If a question was refused or a trial was pruned because a budget has run out, whatever `catch` says. It is
            raised last: trials that run are completed, those that start after the halt are pruned, and the study stops,
            in all processes.
        InputError
            If a value cannot be a prior, or a model or its predictions do not fit the holdout: the trial has failed,
            which `catch` can hide.
        ModelError
            If a model fails on the holdout: the trial has failed, and it took a charge.
        """
        self._halted = halt_of(self.guard)
        if self._halted is None:
            self.study.optimize(self._objective(func), n_trials=n_trials, **settings)
            self._confirm_best()
        if self._halted is not None:
            self._note(self._halted)
            raise self._halted.with_traceback(None)

    @property
    def best(self) -> Best | None:
        """Best trial by the guard's answers: number, answer, low, high; None if nothing was answered."""
        return self._confirmation.best(self.study)

    @property
    def guard_results(self) -> pd.DataFrame:
        """The questions and their answers; see :func:`guard_results`."""
        return guard_results(self.study)

    def __repr__(self) -> str:
        return f"<GuardedStudy: {self.study.study_name!r}, {self.guard!r}>"

    def _objective(self, func: Callable[[Trial], Any]) -> Callable[[Trial], Any]:
        def objective(trial: Trial) -> Any:
            halted = halt_of(self.guard)
            try:
                value = func(trial) if halted is None else None
            except Halted as own:  # the objective has asked by itself
                halted = own
            if halted is not None:
                self._stop(trial, halted)
                raise TrialPruned(f"the guard has halted ({halted.reason})")
            number = self._confirmation.value_of(value)
            if number is not None and self._confirmation.is_due(trial.study, trial.number, number):
                self._confirm(trial, number)
            return value

        return objective

    def _confirm(self, trial: Trial, value: float) -> None:
        try:
            attributes = self._confirmation.ask(trial, value)
        except Halted as halted:
            self._stop(trial, halted)
            return
        for name, kept in attributes.items():
            trial.set_user_attr(name, kept)
        self._confirmation.note_best(trial.study)

    def _confirm_best(self) -> None:
        """Ask about the best trial if nobody has: it was a startup trial, or older than the guard."""
        try:
            if self._halted is None:  # else a thread has set it
                self._confirmation.confirm_best(self.study)
        except Halted as halted:
            self._note(halted)

    def _stop(self, trial: Trial, halted: Halted) -> None:
        trial.set_user_attr("guard_halted", halted.reason)
        self._note(halted)
        trial.study.stop()

    def _note(self, halted: Halted) -> None:
        self._halted = halted
        self.study.set_user_attr("guard_halted", halted.reason)
