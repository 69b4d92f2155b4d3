"""A study that asks the guard while its trials run, so that the answers become attributes of the trials."""

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
    """An Optuna study that asks a guarded holdout about each new best trial.

    With the guard's confidence the intervals of all answers contain the population values of their models. This
    includes `best`, however many trials there are and however the sampler uses their values. The sampler sees the
    objective's own values, never the guard's answers.

    Parameters
    ----------
    study : optuna.Study
        A study whose objective, or one of whose objectives, is the guard's metric, with the metric's direction.
        Threads and processes may share its storage.
    guard : ReusableHoldout
        If several processes run the study, the guard's ledger must be on disk or on a server: they share one budget.
    predict : callable
        Function of a trial that the guard is to be asked about. It returns a model fitted on all training rows, or
        predictions for the holdout's rows. It may use ``trial.params`` and ``trial.user_attrs``.
    ask : {"new-best", "all"}
        "new-best" asks about each trial whose value is better than the values of all completed trials; among n trials
        in random order there are about ln n. "all" asks about every trial.
    n_startup_trials : int
        Number of trials that complete before the first question. A sampler's first trials are random, and questions
        about bad models are wasted. If no later trial is better, the best startup trial is asked about at the end.
    objective : int, optional
        If the study has several objectives, the place of the guard's metric among them, counted from 0. Only this
        objective decides which trial is a new best. The guard does not touch the study's Pareto front.

    Attributes
    ----------
    study : optuna.Study
    guard : ReusableHoldout

    Raises
    ------
    InputError
        If the study's objective and direction do not fit the guard's metric, or the guard's plan is for gates alone.

    Notes
    -----
    The prior is the objective's value, which should be cross-validated on training rows. Each trial that was asked
    about has the user attributes `guard_answer`, `guard_measured`, `guard_low`, `guard_high`, `guard_charged`,
    `guard_prior`, `guard_query`, `guard_replayed` and `guard_charges_left`. The study has the user attribute
    `guard_best`, and after a halt `guard_halted`.

    The question is asked at the end of the objective, because a finished trial can get no more attributes. If a trial,
    say number 7, is asked about after it is finished, its answer is the study's user attribute `guard_trial_7`. A halt
    during a trial is raised only when :meth:`optimize` ends, so that no trial stays RUNNING.

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
        """Optimize as :meth:`optuna.Study.optimize` does, and ask the guard about new best trials.

        Parameters
        ----------
        func, n_trials, **settings
            The arguments of :meth:`optuna.Study.optimize`.

        Raises
        ------
        Halted
            If a question was refused or a trial was pruned because a budget has run out; `catch` does not change this.
            It is raised at the end: running trials complete, trials that start after the halt are pruned, and the study
            stops, in all processes.
        InputError
            If a value cannot be a prior, or a model or its predictions do not fit the holdout. The trial fails; the
            error is not raised if `catch` includes it.
        ModelError
            If a model fails on the holdout. The trial fails, and the failure takes a charge.
        """
        self._halted = halt_of(self.guard)
        if self._halted is None:
            self.study.optimize(self._objective(func), n_trials=n_trials, **settings)
            self._confirm_best()
        if self._halted is not None:
            self._note(self._halted)
            raise self._halted.with_traceback(None)

    @checked_call
    def final(self, trials: int | None = None) -> Best:
        """End the project: find the best of the completed trials on the holdout, and certify it, in one step.

        The trials' values are the priors. The answer is also the study's user attribute `guard_final`.

        Parameters
        ----------
        trials : int, optional
            Ask about only this many trials, the best by their values; by default about all.

        Returns
        -------
        Best

        Raises
        ------
        Halted
            If another final was given.
        InputError
            If no trial has completed with a finite value; nothing was asked.
        ModelError
            If every model fails on the holdout.
        """
        return self._confirmation.end(self.study, trials)

    @property
    def best(self) -> Best | None:
        """The trial whose interval has the best worse end: number, answer, low and high; None if there is no answer."""
        return self._confirmation.best(self.study)

    @property
    def guard_results(self) -> pd.DataFrame:
        """Table of the guard's questions and answers; see :func:`guard_results`."""
        return guard_results(self.study)

    def __repr__(self) -> str:
        return f"<GuardedStudy: {self.study.study_name!r}, {self.guard!r}>"

    def _objective(self, func: Callable[[Trial], Any]) -> Callable[[Trial], Any]:
        def objective(trial: Trial) -> Any:
            halted = halt_of(self.guard)
            try:
                value = func(trial) if halted is None else None
            except Halted as own:  # the user's objective has asked the guard itself
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
        """Ask about the best trial if it has no answer: it was a startup trial, or ran before the study was guarded."""
        try:
            if self._halted is None:  # a halt in another thread's trial sets it
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
