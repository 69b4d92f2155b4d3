"""Which trials a guard is asked about, how, and what is kept of it: released values, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from optuna.study import StudyDirection
from optuna.trial import TrialState

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.guard import Answer

if TYPE_CHECKING:
    import pandas as pd
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

__all__ = [
    "Best",
    "Confirmation",
    "Which",
    "attributes",
    "guard_results",
    "note_halt",
]

Which = Literal["new-best", "all"]

# study attribute of a trial that was finished when the guard answered: Optuna lets nobody change it any more
_OF_STUDY = "guard_trial_{}"

_ATTRIBUTES = {  # of a trial: field of the answer
    "guard_low": "low",
    "guard_high": "high",
    "guard_charged": "charged",
    "guard_prior": "prior",
    "guard_query": "query",
    "guard_replayed": "replayed",
    "guard_charges_left": "charges_left",
    "guard_answer": "value",  # written last: whoever sees it sees the others
}


class Best(NamedTuple):
    """Best trial by the guard's answers.

    Attributes
    ----------
    number : int
        Of the trial.
    answer, low, high : float
        What the guard says of it.
    """

    number: int
    answer: float
    low: float
    high: float


class Confirmation:
    """Asks a guard about trials.

    Parameters
    ----------
    guard : ReusableHoldout
    predict : callable
        Of a trial: a fitted model, or predictions for the holdout's rows.
    ask : {"new-best", "all"}
        About trials whose value is better than those of all completed ones, or about all.
    n_startup_trials : int
        Completed trials before the first question.
    objective : int or None
        Which of several objectives is the guard's metric, from 0.

    Raises
    ------
    InputError
        If the guard is a gate, or something else is out of range.
    """

    def __init__(
        self,
        guard: ReusableHoldout,
        predict: Callable[[Any], Any],
        ask: Which,
        n_startup_trials: int,
        objective: int | None,
    ) -> None:
        if guard.policy == "gate":
            raise InputError(
                "a gate says yes or no to one named score, and does not tell how good a trial is; nothing was run; "
                "optimize first, then ask guard.compare(best, incumbent, prior=...)"
            )
        if ask not in get_args(Which):
            raise InputError(f'ask must be "new-best" or "all"; got {ask!r}')
        if not callable(predict):
            raise InputError(
                "predict must be a function of a trial that returns a fitted model or predictions; got "
                f"{type(predict).__name__}"
            )
        if (
            isinstance(n_startup_trials, bool)
            or not isinstance(n_startup_trials, int)
            or n_startup_trials < 0
        ):
            raise InputError(f"n_startup_trials must be a whole number, 0 or more; got {n_startup_trials!r}")
        if objective is not None and (isinstance(objective, bool) or not isinstance(objective, int)):
            raise InputError(
                f"objective must be the place of an objective, a whole number from 0; got {objective!r}"
            )
        self.guard, self.predict, self.which = guard, predict, ask
        self.n_startup_trials, self.objective = n_startup_trials, objective

    def check(self, study: Study) -> None:
        """Refuse a study whose values cannot be the guard's priors.

        Raises
        ------
        InputError
            If it has several objectives, or optimizes in the other direction than the guard's metric.
        """
        metric, count = self.guard.metric, len(study.directions)
        if self.objective is None and count != 1:
            raise InputError(
                f"a study of several objectives must say which one is the guard's metric, {metric.name}; this one has "
                f"{count}; nothing was asked; pass objective=0 if it is the first"
            )
        if not 0 <= self._place < count:
            raise InputError(
                f"objective must be from 0 to {count - 1}, for the study has {count}; got {self.objective}; nothing "
                "was asked"
            )
        wanted = StudyDirection.MAXIMIZE if metric.greater_is_better else StudyDirection.MINIMIZE
        if study.directions[self._place] != wanted:
            better = "greater" if metric.greater_is_better else "smaller"
            raise InputError(
                f"of {metric.name}, the guard's metric, {better} is better, so the study must {wanted.name.lower()} "
                f"it; this one is to {study.directions[self._place].name.lower()}; nothing was asked; let the "
                f"objective return {metric.name} itself, and use create_study(direction={wanted.name.lower()!r})"
            )

    @property
    def _place(self) -> int:
        return self.objective or 0

    @property
    def _sign(self) -> float:
        return 1.0 if self.guard.metric.greater_is_better else -1.0

    def value_of(self, values: Any) -> float | None:
        """Value of the guarded objective, of what an objective returned or a trial has; None if Optuna will fail it."""
        if isinstance(values, Sequence) and not isinstance(values, str):
            count = 1 if self.objective is None else self._place + 1
            fits = len(values) == 1 if self.objective is None else len(values) >= count
            return self.value_of(values[self._place]) if fits else None
        try:
            return float(values)
        except (TypeError, ValueError):
            return None

    def is_due(self, study: Study, number: int, value: float) -> bool:
        """Whether the guard is to be asked about a trial of this value."""
        if not math.isfinite(value):  # how objectives say that parameters are impossible
            return False
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        known = [self.value_of(trial.values) for trial in done if trial.number != number]
        others = [other for other in known if other is not None]
        if len(others) < self.n_startup_trials:
            return False
        return self.which == "all" or all(self._sign * value > self._sign * other for other in others)

    def confirm_finished(self, study: Study, trial: FrozenTrial) -> None:
        """Ask about a trial that is finished, and write the answer on the study.

        Raises
        ------
        Halted, InputError, ModelError
            As from the guard.
        """
        value = self.value_of(trial.values)
        if value is not None:
            study.set_user_attr(_OF_STUDY.format(trial.number), attributes(self.ask(trial, value)))
            self.note_best(study)

    def ask(self, trial: Trial | FrozenTrial, value: float) -> Answer:
        """Ask about one trial, with its value as the prior.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        InputError, ModelError
            As from the guard.
        """
        asked, name = self.predict(trial), f"trial {trial.number}"
        prior = None if self.guard.policy in {"ladder", "parameter-free-ladder"} else value
        if any(hasattr(asked, method) for method in ("predict", "predict_proba", "decision_function")):
            return self.guard.evaluate(asked, prior=prior, name=name)
        return self.guard.evaluate_predictions(asked, prior=prior, name=name)

    # ---- the best

    def unanswered_best(self, study: Study) -> FrozenTrial | None:
        """Best trial by the study's own values, if the guard was not asked about it."""
        best = self._best_of(study)
        value = None if best is None else self.value_of(best.values)
        if best is None or value is None or not math.isfinite(value):
            return None
        return best if _kept(study.user_attrs, best) is None else None

    def _best_of(self, study: Study) -> FrozenTrial | None:
        if self.objective is None:
            try:
                return study.best_trial
            except ValueError:  # none is complete, or none feasible
                return None
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        valued = [(value, one) for one in done if (value := self.value_of(one.values)) is not None]
        return max(valued, key=lambda one: (self._sign * one[0], -one[1].number))[1] if valued else None

    def best(self, study: Study) -> Best | None:
        """Trial with the best answer, of equal ones the first asked about; None if there is no answer."""
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


# ---- what is kept


def attributes(answer: Answer) -> dict[str, Any]:
    """User attributes of a trial: what the guard released, as JSON has it."""
    return {name: getattr(answer, field) for name, field in _ATTRIBUTES.items()}


def note_halt(study: Study, reason: str) -> None:
    """Write on the study that nothing new will be answered."""
    study.set_user_attr("guard_halted", reason)


def guard_results(study: Study) -> pd.DataFrame:
    """Trials that a guard was asked about, with its answers.

    Parameters
    ----------
    study : optuna.Study
        Of a :class:`GuardedStudy` or with a :class:`GuardCallback`, in this process or another.

    Returns
    -------
    pandas.DataFrame
        In the order of the questions: trial, params, prior, answer, charged, low, high, query, replayed, charges_left.
    """
    import pandas as pd  # noqa: PLC0415 - slow to import, and asking does not need it

    columns = ["prior", "answer", "charged", "low", "high", "query", "replayed", "charges_left"]
    rows = [
        [trial.number, dict(trial.params), *(kept[f"guard_{column}"] for column in columns)]
        for trial, kept in _answered(study)
    ]
    rows.sort(key=lambda row: (row[7], row[0]))  # replays after the question they repeat
    return pd.DataFrame(rows, columns=["trial", "params", *columns])


def _answered(study: Study) -> list[tuple[FrozenTrial, dict[str, Any]]]:
    """Trials with an answer, and their attributes."""
    of_study = study.user_attrs
    kept = ((trial, _kept(of_study, trial)) for trial in study.get_trials(deepcopy=False))
    return [(trial, one) for trial, one in kept if one is not None]


def _kept(of_study: dict[str, Any], trial: FrozenTrial) -> dict[str, Any] | None:
    of_trial = trial.user_attrs
    return of_trial if "guard_answer" in of_trial else of_study.get(_OF_STUDY.format(trial.number))
