"""A study that asks while its trials run, so that the answers are attributes of the trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from optuna import TrialPruned

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted
from reusable_holdout.slips import checked_call
from reusable_holdout_optuna.confirmation import (
    Best,
    Confirmation,
    Which,
    attributes,
    guard_results,
    note_halt,
)

if TYPE_CHECKING:
    import pandas as pd
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

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
        About trials whose value is better than those of all completed ones (of n honest trials in random order there
        are about ln n), or about all.
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

    The question is asked at the end of the objective, for a finished trial can get no attributes (of one that is asked
    about later they are in the study's `guard_trial_7`). A halt there is kept until :meth:`optimize` ends, so no trial
    stays RUNNING.

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
        self._confirmation = Confirmation(guard, predict, ask, n_startup_trials, objective)
        self._confirmation.check(study)
        self._halted: Halted | None = None

    def optimize(
        self,
        func: Callable[[Trial], float],
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        catch: Iterable[type[Exception]] | type[Exception] = (),
        callbacks: Iterable[Callable[[Study, FrozenTrial], None]] | None = None,
        gc_after_trial: bool = False,
        show_progress_bar: bool = False,
    ) -> None:
        """Optimize as :meth:`optuna.Study.optimize` does, and ask.

        Parameters
        ----------
        func, n_trials, timeout, n_jobs, catch, callbacks, gc_after_trial, show_progress_bar
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
        self._halted = None
        if self.guard.halted:
            self._note(self.guard.halt())
        else:
            self.study.optimize(
                self._objective(func),
                n_trials=n_trials,
                timeout=timeout,
                n_jobs=n_jobs,
                catch=catch,
                callbacks=callbacks,
                gc_after_trial=gc_after_trial,
                show_progress_bar=show_progress_bar,
            )
            self._confirm_best()
        halted = self._take_halt()
        if halted is not None:
            raise halted

    @property
    def best(self) -> Best | None:
        """Best trial by the guard's answers: number, answer, low, high; None if nothing was answered."""
        return self._confirmation.best(self.study)

    @property
    def best_trial(self) -> FrozenTrial | None:
        """Best trial by the guard's answers, as Optuna keeps it; None if nothing was answered."""
        best = self.best
        return None if best is None else self.study.get_trials(deepcopy=True)[best.number]

    @property
    def guard_results(self) -> pd.DataFrame:
        """What was asked; see :func:`guard_results`."""
        return guard_results(self.study)

    def __repr__(self) -> str:
        return f"<GuardedStudy: {self.study.study_name!r}, {self.guard!r}>"

    def _objective(self, func: Callable[[Trial], float]) -> Callable[[Trial], float]:
        def objective(trial: Trial) -> float:
            if self.guard.halted:
                self._prune(trial, self.guard.halt())
            try:
                value = func(trial)
            except Halted as halted:  # the objective has asked by itself
                self._prune(trial, halted)
            number = self._confirmation.value_of(value)
            if number is not None and self._confirmation.is_due(trial.study, trial.number, number):
                self._confirm(trial, number)
            return value

        return objective

    def _confirm(self, trial: Trial, value: float) -> None:
        try:
            answer = self._confirmation.ask(trial, value)
        except Halted as halted:
            trial.set_user_attr("guard_halted", halted.reason)
            self._note(halted)
            trial.study.stop()
            return
        for name, kept in attributes(answer).items():
            trial.set_user_attr(name, kept)
        self._confirmation.note_best(trial.study)

    def _confirm_best(self) -> None:
        """Ask about the best trial if nobody has: it was a startup trial, or older than the guard."""
        best = self._confirmation.unanswered_best(self.study)
        if best is not None and self._take_halt() is None:
            try:
                self._confirmation.confirm_finished(self.study, best)
            except Halted as halted:
                self._note(halted)
        self._confirmation.note_best(self.study)

    def _prune(self, trial: Trial, halted: Halted) -> None:
        trial.set_user_attr("guard_halted", halted.reason)
        self._note(halted)
        trial.study.stop()
        raise TrialPruned(f"the guard has halted ({halted.reason})") from None

    def _note(self, halted: Halted) -> None:
        self._halted = halted
        note_halt(self.study, halted.reason)

    def _take_halt(self) -> Halted | None:  # threads have set it
        return None if self._halted is None else self._halted.with_traceback(None)
