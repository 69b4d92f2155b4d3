"""Questions to a guard about the trials of a study, and the answers as the study keeps them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from reusable_holdout import ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.guard.prospects import end_with
from reusable_holdout_optuna.guard_calls import ask_about, check_guard

__all__ = ["Best", "Confirmation", "Which", "guard_results"]

Which = Literal["new-best", "all"]

# the study's attribute for the answer about a finished trial, because Optuna lets nobody change such a trial
_OF_STUDY = "guard_trial_{}"

_COLUMNS = ("prior", "answer", "measured", "charged", "low", "high", "query", "replayed", "charges_left")


class Best(NamedTuple):
    """The best trial that the guard answered about; trials are compared by the worse ends of their intervals.

    Attributes
    ----------
    number : int
        Number of the trial.
    answer : float
        The guard's answer about the trial.
    low, high : float
        Ends of the answer's interval.
    """

    number: int
    answer: float
    low: float
    high: float


class Confirmation:
    """A helper that asks a guard about the trials of a study, and keeps the answers in the study.

    Parameters
    ----------
    guard : ReusableHoldout
    predict : callable
        Function of a trial that returns a fitted model, or predictions for the holdout's rows.
    ask : {"new-best", "all"}
        "new-best" asks about each trial whose value is better than the values of all completed trials, "all" about
        every trial.
    n_startup_trials : int
        Number of trials that complete before the first question.
    objective : int, optional
        Place of the objective that is the guard's metric, counted from 0, if the study has several objectives.

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
            If the study has several objectives and none is named, or has no objective at the named place, or if it
            optimizes in the direction opposite to the guard's metric.
        """
        metric, count, place = self.guard.metric, len(study.directions), self.objective or 0
        if self.objective is None and count != 1:
            raise InputError(
                f"a study of several objectives must say which one is the guard's metric, {metric.name}; this one has "
                f"{count}; nothing was asked; pass objective=0 if it is the first"
            )
        if place >= count:
            raise InputError(
                f"objective must be from 0 to {count - 1}: the study has {count}; got {place}; nothing was asked"
            )
        wanted = StudyDirection.MAXIMIZE if metric.greater_is_better else StudyDirection.MINIMIZE
        if study.directions[place] != wanted:
            better = "greater" if metric.greater_is_better else "smaller"
            raise InputError(
                f"of the guard's metric, {metric.name}, {better} is better, so the study must {wanted.name.lower()} "
                f"it; this one is to {study.directions[place].name.lower()}; nothing was asked; let the "
                f"objective return {metric.name} itself, and use create_study(direction={wanted.name.lower()!r})"
            )

    def value_of(self, values: Any) -> float | None:
        """Return the guarded objective's value; None if there is no number, or Optuna will mark the trial as failed.

        Parameters
        ----------
        values : float, sequence of float or None
            The result of an objective, or the values of a trial.
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
        """Return True if the guard is to be asked about a trial with this value."""
        if not math.isfinite(value):  # objectives return infinity or NaN for impossible parameters
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
            User attributes with the answer, whose names begin with `guard_`; all values can be written as JSON.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        InputError, ModelError
            If the guard raises them.
        """
        answer = ask_about(self.guard, self.predict(trial), value, f"trial {trial.number}")
        told = {name: getattr(answer, "value" if name == "answer" else name) for name in _COLUMNS}
        last = told.pop("answer")  # written last, so that a reader who sees it sees the others, too
        return {f"guard_{name}": one for name, one in {**told, "answer": last}.items()}

    def confirm_finished(self, study: Study, trial: FrozenTrial, value: float) -> None:
        """Ask about a finished trial, and write the answer into the study's user attributes."""
        study.set_user_attr(_OF_STUDY.format(trial.number), self.ask(trial, value))
        self.note_best(study)

    def confirm_best(self, study: Study) -> None:
        """Ask about the best completed trial, unless the study has an answer about it."""
        completed = [one for one in self._completed(study) if math.isfinite(one[0])]
        if completed:
            value, best = max(completed, key=lambda one: (self._sign * one[0], -one[1].number))
            if _kept(study.user_attrs, best) is None:
                self.confirm_finished(study, best, value)

    def end(self, study: Study, most: int | None) -> Best:
        """Ask for one final about the completed trials, or the best `most` of them, and record the winner."""
        if most is not None and not (isinstance(most, int) and most > 0):
            raise InputError(f"trials must be a whole number, 1 or more; got {most!r}; nothing was asked")
        completed = [one for one in self._completed(study) if math.isfinite(one[0])]
        done = sorted(completed, key=lambda one: (-self._sign * one[0], one[1].number))[:most]
        if not done:
            raise InputError(
                "a final needs completed trials with a finite value; got none; nothing was asked"
            )
        priors, models = [value for value, _ in done], [self.predict(trial) for _, trial in done]
        finals = end_with(self.guard, models, priors, [f"trial {trial.number}" for _, trial in done])
        own = finals.best
        best = Best(done[finals.best_index][1].number, own.value, own.low, own.high)
        study.set_user_attr("guard_final", best._asdict())
        return best

    def _completed(self, study: Study) -> list[tuple[float, FrozenTrial]]:
        """Return a pair for each completed trial: its value of the guarded objective, and the trial."""
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [(value, trial) for trial in done if (value := self.value_of(trial.values)) is not None]

    def best(self, study: Study) -> Best | None:
        """Return the trial whose interval has the best worse end, the first of equal ones; None without an answer."""
        found = _answered(study)
        if not found:
            return None

        def worse_end(kept: dict[str, Any]) -> float:
            return float(min(self._sign * kept["guard_low"], self._sign * kept["guard_high"]))

        trial, kept = max(found, key=lambda one: (worse_end(one[1]), -one[1]["guard_query"]))
        return Best(trial.number, kept["guard_answer"], kept["guard_low"], kept["guard_high"])

    def note_best(self, study: Study) -> None:
        """Write the best confirmed trial into the study's user attribute `guard_best`, which dashboards show."""
        best = self.best(study)
        if best is not None:
            study.set_user_attr("guard_best", best._asdict())


def guard_results(study: Study) -> pd.DataFrame:
    """Return the trials that a guard was asked about, with its answers.

    Parameters
    ----------
    study : optuna.Study
        A study that ran in a :class:`GuardedStudy` or with a :class:`GuardCallback`, in this process or another.

    Returns
    -------
    pandas.DataFrame
        One line for each question, in the order of the questions, with the columns trial, params, prior, answer,
        measured (None where the holdout agreed), charged, low, high, query, replayed, charges_left.
    """
    rows = [
        {"trial": trial.number, "params": dict(trial.params)}
        | {name: kept.get(f"guard_{name}") for name in _COLUMNS}
        for trial, kept in _answered(study)
    ]
    rows.sort(key=lambda row: (row["query"], row["trial"]))  # a replay comes after the question it repeats
    return pd.DataFrame(rows, columns=["trial", "params", *_COLUMNS])


def _answered(study: Study) -> list[tuple[FrozenTrial, dict[str, Any]]]:
    """Return the trials that have an answer, each with the user attributes in which the answer is kept."""
    of_study = study.user_attrs
    kept = ((trial, _kept(of_study, trial)) for trial in study.get_trials(deepcopy=False))
    return [(trial, one) for trial, one in kept if one is not None]


def _kept(of_study: dict[str, Any], trial: FrozenTrial) -> dict[str, Any] | None:
    of_trial = trial.user_attrs
    return of_trial if "guard_answer" in of_trial else of_study.get(_OF_STUDY.format(trial.number))
