"""The trials that a guard is asked about, and the released values that the study keeps of the answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from reusable_holdout import ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout_optuna.guard_calls import ask_about, check_guard

__all__ = ["Best", "Confirmation", "Which", "guard_results"]

Which = Literal["new-best", "all"]

# study attribute of a trial that was finished when the guard answered: Optuna lets nobody change it any more
_OF_STUDY = "guard_trial_{}"

_COLUMNS = ("prior", "answer", "charged", "low", "high", "query", "replayed", "charges_left")


class Best(NamedTuple):
    """Best trial by the guard's answers.

    Attributes
    ----------
    number : int
        Of the trial.
    answer, low, high : float
        The guard's answer about it.
    """

    number: int
    answer: float
    low: float
    high: float


class Confirmation:
    """The questions about a study's trials.

    Parameters
    ----------
    guard : ReusableHoldout
    predict : callable
        Of a trial: a fitted model, or predictions for the holdout's rows.
    ask : {"new-best", "all"}
        About trials whose value is better than the values of all completed ones, or about all.
    n_startup_trials : int
        Completed trials before the first question.
    objective : int, optional
        Which of several objectives is the guard's metric, from 0.

    Raises
    ------
    InputError
        If the guard's plan is for gates alone, or something else is out of range.
    """

    def __init__(
        self,
        guard: ReusableHoldout,
        predict: Callable[[Any], Any],
        *,
        ask: Which = "new-best",
        n_startup_trials: int = 0,
        objective: int | None = None,
    ) -> None:
        check_guard(guard)
        if ask not in get_args(Which):
            raise InputError(f'ask must be "new-best" or "all"; got {ask!r}')
        if not callable(predict):
            raise InputError(
                "predict must be a function of a trial that returns a fitted model or predictions; got "
                f"{type(predict).__name__}"
            )
        for name, value in {
            "n_startup_trials": n_startup_trials,
            "objective": 0 if objective is None else objective,
        }.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(f"{name} must be a whole number, 0 or more; got {value!r}")
        self.guard, self.predict, self.which = guard, predict, ask
        self.n_startup_trials, self.objective = n_startup_trials, objective
        self._sign = 1.0 if guard.metric.greater_is_better else -1.0

    def check(self, study: Study) -> None:
        """Refuse a study whose values cannot be the guard's priors.

        Raises
        ------
        InputError
            If it has several objectives, or optimizes in the other direction than the guard's metric.
        """
        metric, count, place = self.guard.metric, len(study.directions), self.objective or 0
        if self.objective is None and count != 1:
            raise InputError(
                f"a study of several objectives must say which one is the guard's metric, {metric.name}; this one has "
                f"{count}; nothing was asked; pass objective=0 if it is the first"
            )
        if place >= count:
            raise InputError(
                f"objective must be from 0 to {count - 1}, for the study has {count}; got {place}; nothing was asked"
            )
        wanted = StudyDirection.MAXIMIZE if metric.greater_is_better else StudyDirection.MINIMIZE
        if study.directions[place] != wanted:
            better = "greater" if metric.greater_is_better else "smaller"
            raise InputError(
                f"of {metric.name}, the guard's metric, {better} is better, so the study must {wanted.name.lower()} "
                f"it; this one is to {study.directions[place].name.lower()}; nothing was asked; let the "
                f"objective return {metric.name} itself, and use create_study(direction={wanted.name.lower()!r})"
            )

    def value_of(self, values: Any) -> float | None:
        """Return the value of the guarded objective; None if there is none, or Optuna will fail the trial.

        Parameters
        ----------
        values : float, sequence of float or None
            As an objective returned them, or a trial has them.
        """
        if isinstance(values, Sequence) and not isinstance(values, str):
            place = self.objective or 0
            fits = len(values) == 1 if self.objective is None else len(values) > place
            return self.value_of(values[place]) if fits else None
        try:
            return float(values)
        except (TypeError, ValueError):
            return None

    def is_due(self, study: Study, number: int, value: float) -> bool:
        """Return True if the guard is to be asked about a trial of this value."""
        if not math.isfinite(value):  # how objectives say that parameters are impossible
            return False
        others = [other for other, trial in self._completed(study) if trial.number != number]
        if len(others) < self.n_startup_trials:
            return False
        return self.which == "all" or all(self._sign * value > self._sign * other for other in others)

    def ask(self, trial: Trial | FrozenTrial, value: float) -> dict[str, Any]:
        """Ask about one trial, with its value as the prior.

        Returns
        -------
        dict
            Attributes to keep: what the guard released, as JSON has it.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        InputError, ModelError
            As from the guard.
        """
        answer = ask_about(self.guard, self.predict(trial), value, f"trial {trial.number}")
        told = {name: getattr(answer, "value" if name == "answer" else name) for name in _COLUMNS}
        last = told.pop("answer")  # whoever sees it sees the others
        return {f"guard_{name}": one for name, one in {**told, "answer": last}.items()}

    def confirm_finished(self, study: Study, trial: FrozenTrial, value: float) -> None:
        """Ask about a trial that is finished, and write the answer on the study."""
        study.set_user_attr(_OF_STUDY.format(trial.number), self.ask(trial, value))
        self.note_best(study)

    def confirm_best(self, study: Study) -> None:
        """Ask about the best completed trial, if the guard was not asked about it."""
        completed = [one for one in self._completed(study) if math.isfinite(one[0])]
        if completed:
            value, best = max(completed, key=lambda one: (self._sign * one[0], -one[1].number))
            if _kept(study.user_attrs, best) is None:
                self.confirm_finished(study, best, value)

    def _completed(self, study: Study) -> list[tuple[float, FrozenTrial]]:
        """Return the completed trials with their values."""
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [(value, trial) for trial in done if (value := self.value_of(trial.values)) is not None]

    def best(self, study: Study) -> Best | None:
        """Return the trial with the best answer, of equal answers the first; None if there is no answer."""
        found = _answered(study)
        if not found:
            return None
        trial, kept = max(
            found, key=lambda one: (self._sign * one[1]["guard_answer"], -one[1]["guard_query"])
        )
        return Best(trial.number, kept["guard_answer"], kept["guard_low"], kept["guard_high"])

    def note_best(self, study: Study) -> None:
        """Write the best confirmed trial on the study, where dashboards show it."""
        best = self.best(study)
        if best is not None:
            study.set_user_attr("guard_best", best._asdict())


def guard_results(study: Study) -> pd.DataFrame:
    """Return the trials that a guard was asked about, with its answers.

    Parameters
    ----------
    study : optuna.Study
        Of a :class:`GuardedStudy` or with a :class:`GuardCallback`, in this process or another.

    Returns
    -------
    pandas.DataFrame
        In the order of the questions: trial, params, prior, answer, charged, low, high, query, replayed, charges_left.
    """
    rows = [
        {"trial": trial.number, "params": dict(trial.params)}
        | {name: kept[f"guard_{name}"] for name in _COLUMNS}
        for trial, kept in _answered(study)
    ]
    rows.sort(key=lambda row: (row["query"], row["trial"]))  # replays after the question they repeat
    return pd.DataFrame(rows, columns=["trial", "params", *_COLUMNS])


def _answered(study: Study) -> list[tuple[FrozenTrial, dict[str, Any]]]:
    """Return the trials with an answer, and the attributes that were kept of it."""
    of_study = study.user_attrs
    kept = ((trial, _kept(of_study, trial)) for trial in study.get_trials(deepcopy=False))
    return [(trial, one) for trial, one in kept if one is not None]


def _kept(of_study: dict[str, Any], trial: FrozenTrial) -> dict[str, Any] | None:
    of_trial = trial.user_attrs
    return of_trial if "guard_answer" in of_trial else of_study.get(_OF_STUDY.format(trial.number))
