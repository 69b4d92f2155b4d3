"""The candidates of a search, put to a guard batch after batch; the best model so far is kept."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import GridSearchCV, ParameterGrid, ParameterSampler, RandomizedSearchCV

from reusable_holdout import ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import BudgetError, Halted, InputError
from reusable_holdout.guard import Answer, Choice, MeasuredModel
from reusable_holdout_sklearn.asking import Way, called, fitted_and_measured, guard_for_workers
from reusable_holdout_sklearn.priors import PriorColumn

__all__ = [
    "Candidate",
    "Confirmation",
    "Questions",
    "check_room",
    "chosen_candidates",
    "fewest_candidates",
    "frame_of",
    "results_of",
]


_NESTED = (
    "each fold of an outer loop, such as a nested cross-validation, asks a choice of its own; make the guard with room "
    "for all of them: choices=[{0}] * folds, and at least {0} * folds queries"
)


class Candidate(NamedTuple):
    """One set of hyperparameters.

    Attributes
    ----------
    place : int
        Its index in `cv_results_`.
    parameters : dict
    prior : float
        Cross-validation mean in the guard's unit.
    rank : int
        By cross-validation, from 1.
    """

    place: int
    parameters: dict[str, Any]
    prior: float
    rank: int

    @property
    def name(self) -> str:
        """What the guard's history calls it."""
        settings = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return called(f"candidate {self.place}: {settings}")


@dataclass
class Confirmation:
    """What the guard has said of the candidates, so far.

    Attributes
    ----------
    greater_is_better, ladder : bool
        Of the guard.
    asked : list of (Candidate, Answer or None)
        None for one that failed on the holdout, or that a choice did not take.
    chosen : bool
        Whether it was a choice: then who has no answer was not charged.
    best : tuple of (Candidate, Answer) or None
    model : estimator or None
        The best one, as it was asked about.
    """

    greater_is_better: bool
    ladder: bool
    asked: list[tuple[Candidate, Answer | None]] = field(default_factory=list)
    chosen: bool = False
    best: tuple[Candidate, Answer] | None = None
    model: Any = None

    def add(self, candidate: Candidate, answer: Answer | None, model: Any) -> None:
        """Take an answer down, and keep the model if it is the best."""
        self.asked.append((candidate, answer))
        if answer is not None and (self.best is None or self._is_better(candidate, answer, *self.best)):
            self.best, self.model = (candidate, answer), model

    def choose(self, candidates: Sequence[Candidate], choice: Choice, models: Sequence[Any] | None) -> None:
        """Take a choice down: only the winner has an answer."""
        self.chosen = True
        for place, candidate in enumerate(candidates):
            self.asked.append((candidate, choice.answer if place == choice.index else None))
        self.best = candidates[choice.index], choice.answer
        self.model = None if models is None else models[choice.index]

    def _is_better(self, candidate: Candidate, answer: Answer, known: Candidate, best: Answer) -> bool:
        if self.ladder:  # it answers with the best score so far: only a new best is a score of this model
            return answer.charged and (not best.charged or answer.query > best.query)
        sign = 1.0 if self.greater_is_better else -1.0
        return (sign * answer.value, -candidate.rank) > (sign * best.value, -known.rank)

    def frame(self) -> pd.DataFrame:
        """One line for each question, in their order."""
        return frame_of(
            [_line(candidate, answer, charged=not self.chosen) for candidate, answer in self.asked]
        )


_COLUMNS = {
    "candidate": "int64",
    "params": "object",
    "cv_mean": "float64",
    "answer": "float64",
    "charged": "bool",
    "low": "float64",
    "high": "float64",
    "query": "Int64",
    "replayed": "bool",
}


def frame_of(lines: list[tuple[Any, ...]] | dict[str, list[Any]]) -> pd.DataFrame:
    """Frame of what was answered, of its lines or its columns."""
    return pd.DataFrame(lines, columns=list(_COLUMNS)).astype(_COLUMNS)


def _line(candidate: Candidate, answer: Answer | None, *, charged: bool) -> tuple[Any, ...]:
    """One line of the frame; of a candidate without an answer it is said whether that was a charge."""
    start = candidate.place, candidate.parameters, candidate.prior
    if answer is None:
        return *start, np.nan, charged, np.nan, np.nan, pd.NA, False
    return *start, answer.value, answer.charged, answer.low, answer.high, answer.query, answer.replayed


def chosen_candidates(
    results: dict[str, Any], column: PriorColumn, guard: ReusableHoldout, most: int | None
) -> list[Candidate]:
    """Candidates to ask about, in their order in the search.

    A search in rounds, such as successive halving, is asked about by its last round: in earlier ones the models saw
    fewer rows. Candidates whose fits failed have no prior and are left out.

    Parameters
    ----------
    results : dict
        `cv_results_`.
    column : PriorColumn
    guard : ReusableHoldout
    most : int or None
        Only so many of the best by cross-validation; all by default.

    Raises
    ------
    InputError
        If none has a prior.
    """
    priors, ranks = column.priors(results, guard.metric), column.ranks(results, guard.metric)
    rounds = np.asarray(results.get("iter", np.zeros(len(priors), dtype=np.int64)))
    places = np.flatnonzero((rounds == rounds.max()) & np.isfinite(priors))
    if not len(places):
        raise InputError("the search must have scored a candidate; every fit failed; nothing was asked")
    if most is not None:
        places = np.sort(places[np.argsort(ranks[places], kind="stable")[:most]])
    return [Candidate(int(i), results["params"][i], float(priors[i]), int(ranks[i])) for i in places]


def results_of(search: Any) -> dict[str, Any]:
    """Return the `cv_results_` of a fitted search, with the parameters of each candidate.

    OptunaSearchCV keeps those in its trials, and has no results at all if a trial failed: then it has no mean.

    Raises
    ------
    InputError
        If they are in neither.
    """
    trials = getattr(search, "trials_", None)
    results = {} if trials is not None else search.cv_results_
    if trials is not None:
        names = {name for one in trials for name in one.user_attrs if name.startswith("mean_test_")}
        results = {name: [one.user_attrs.get(name, np.nan) for one in trials] for name in names}
        results["params"] = [one.params for one in trials]
    if "params" not in results:
        raise InputError(
            f"cv_results_ must have the params of each candidate; that of {type(search).__name__} has none; nothing "
            "was asked and nothing was charged; search with one of scikit-learn's searches, or with OptunaSearchCV"
        )
    return results


def check_room(guard: ReusableHoldout, candidates: int, priors: Sequence[float] | None = None) -> None:
    """Refuse a choice that the guard would refuse, and say what several choices need.

    Raises
    ------
    BudgetError, InputError, Halted
        As :meth:`ReusableHoldout.check_choice` does.
    """
    try:
        guard.check_choice(candidates, priors)
    except BudgetError as error:
        raise BudgetError(f"{error}; {_NESTED.format(candidates)}") from None
    except InputError as error:
        raise InputError(f"{error}; {_NESTED.format(candidates)}") from None


def fewest_candidates(search: Any, most: int | None) -> int:
    """How many candidates a search will ask about, if its settings tell before it is fitted; else 1.

    A candidate whose fit fails is counted here, and is not asked about.
    """
    try:
        if isinstance(search, GridSearchCV):
            count = len(ParameterGrid(search.param_grid))
        elif isinstance(search, RandomizedSearchCV):
            count = len(ParameterSampler(search.param_distributions, search.n_iter))
        else:
            return 1
    except (TypeError, ValueError):  # the search will say what is wrong with them
        return 1
    return count if most is None else min(count, most)


@dataclass(frozen=True, kw_only=True)
class Questions:
    """Candidates that are refitted in parallel and asked about in their order.

    Attributes
    ----------
    guard : ReusableHoldout
    candidates : sequence of Candidate
    confirmation : Confirmation
        Takes what is answered, batch after batch.
    estimator : estimator
        Cloned for each candidate.
    X, y : array-like
        All training rows.
    fit_params : dict
        For `fit`.
    n_jobs : int or None
        As for joblib; decisions are made here, in order, whatever it is.
    batch_size : int
        Candidates that are fitted, held in memory and asked about together.
    keep : bool
        Whether the best model is wanted.
    verbose : bool
        Whether a progress bar is shown.
    """

    guard: ReusableHoldout
    candidates: Sequence[Candidate]
    confirmation: Confirmation
    estimator: Any
    X: Any
    y: Any
    fit_params: dict[str, Any]
    n_jobs: int | None
    batch_size: int
    keep: bool
    verbose: bool

    def evaluate(self) -> Halted | None:
        """Ask about each, a batch at a time, up to a halt.

        Returns
        -------
        Halted or None
            To be raised when what is known has been put down.
        """
        guard, askable = self.guard, len(self.candidates)
        if guard.halted:  # only replays can be had: fit no model that is certain to be new
            askable = guard.could_replay([candidate.prior for candidate in self.candidates])
        here = guard_for_workers(guard)
        with closing(self._fitted(self.candidates[:askable], "evaluate", here)) as batches:
            for batch, models in batches:
                priors, names = [one.prior for one in batch], [one.name for one in batch]
                asked = guard.ask(models, priors, names=names, X_train=self.X)
                for candidate, answer, measured in zip(batch, asked.answers, models, strict=False):
                    self.confirmation.add(candidate, answer, measured.model if self.keep else None)
                if asked.halted is not None:
                    return asked.halted
        return guard.halt() if askable < len(self.candidates) else None

    def choose(self) -> None:
        """Ask which is best, in one question; all models are held in memory.

        Raises
        ------
        Halted
            If the guard has halted.
        InputError, BudgetError
            If the choice does not fit the plan; nothing was told.
        ModelError
            If all of them fail on the holdout, or were fitted on rows of it.
        """
        priors = [one.prior for one in self.candidates]
        check_room(self.guard, len(priors), priors)
        here = guard_for_workers(self.guard)
        if self.guard.could_have_chosen(priors):  # a replay needs no predictions: known when all are fitted
            here = None
        measured = [one for _, batch in self._fitted(self.candidates, "choose", here) for one in batch]
        choice = self.guard.ask_choice(measured, priors, name=f"best of {len(priors)}", X_train=self.X)
        models = [one.model for one in measured] if self.keep else None
        self.confirmation.choose(self.candidates, choice, models)

    def _fitted(
        self, candidates: Sequence[Candidate], way: Way, guard: ReusableHoldout | None
    ) -> Generator[tuple[Sequence[Candidate], list[MeasuredModel]], None, None]:
        """Batches of candidates and their models, each fitted when it is taken."""
        from tqdm import tqdm  # noqa: PLC0415 - a scorer shows no bar

        total = len(self.candidates)
        with (
            Parallel(n_jobs=self.n_jobs) as parallel,
            tqdm(total=total, desc="guard", unit="candidate", disable=not self.verbose) as bar,
        ):
            for start in range(0, len(candidates), self.batch_size):
                batch = candidates[start : start + self.batch_size]
                fits = (
                    delayed(fitted_and_measured)(
                        self.estimator,
                        one.parameters,
                        self.X,
                        self.y,
                        self.fit_params,
                        guard,
                        one.prior,
                        way,
                    )
                    for one in batch
                )
                yield batch, list(parallel(fits))
                bar.update(len(batch))
