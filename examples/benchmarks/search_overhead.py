"""What the guard adds to searches, as a ratio to their own time.

A GridSearchCV of cheap candidates, alone and inside GuardedSearchCV, which fits each candidate once more, on all rows;
the same asked about the five best by cross-validation; one with the guarded scorer, of the cheap models and of tiny
ones; an Optuna study, alone and guarded. All in turn, in one process and one thread; seconds are the processor's,
because machines are busy with other things; medians over rounds.

Run with ``python examples/benchmarks/search_overhead.py``; ``--json`` for programs, ``--quick`` for a rough look.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from reusable_holdout_optuna import GuardedStudy
from reusable_holdout_sklearn import GuardedSearchCV, guarded_scorer
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid, cross_val_score
from threadpoolctl import threadpool_limits

from reusable_holdout import ReusableHoldout

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

_TRAIN, _TINY, _HOLDOUT, _COLUMNS, _TINY_COLUMNS = 2_000, 500, 2_000, 20, 5
_FEW = 5
_PLAIN, _TINY_PLAIN, _STUDY = "search", "search of tiny models", "study"
_OF = {  # what each is compared with, and the goal
    "guarded search": (_PLAIN, 1.1),
    f"guarded search, {_FEW} candidates asked about": (_PLAIN, 1.1),
    "refits alone": (_PLAIN, None),
    "search with guarded scorer": (_PLAIN, None),
    "search of tiny models with guarded scorer": (_TINY_PLAIN, 1.5),
    "guarded study": (_STUDY, 1.02),
}


def data(rows: int, columns: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A linear signal in noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, (X[:, :5].sum(axis=1) + 2.0 * rng.normal(size=rows) > 0).astype(np.int64)


class Round:
    """One round: guards of its own, and the work that is timed."""

    def __init__(self, folder: Path, candidates: int) -> None:
        self.folder, self.candidates = folder, candidates
        self.rows, self.tiny = data(_TRAIN, _COLUMNS, 1), data(_TINY, _TINY_COLUMNS, 1)
        self.grid = {"C": np.geomspace(1e-3, 1e3, candidates).tolist()}

    def guard(self, name: str, columns: int = _COLUMNS, **room: Any) -> ReusableHoldout:
        """Guard that charges nothing here: what is timed is the usual way."""
        return ReusableHoldout(
            *data(_HOLDOUT, columns, 2),
            queries=5 * self.candidates,
            ledger=self.folder / f"{name}.db",
            seed=0,
            **room,
            allow={"no witness", "vacuous"},
        )

    def search(self, scoring: object = "accuracy") -> GridSearchCV:
        """Search that is cheap for each candidate."""
        return GridSearchCV(LogisticRegression(), self.grid, cv=5, scoring=scoring, refit=False)

    def study(self, guard: ReusableHoldout | None) -> None:
        """Tune by cross-validation."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))

        def objective(trial: optuna.Trial) -> float:
            model = LogisticRegression(C=trial.suggest_float("C", 1e-3, 1e3, log=True))
            return float(cross_val_score(model, *self.rows, cv=5).mean())

        def fitted(trial: Any) -> LogisticRegression:
            return LogisticRegression(**trial.params).fit(*self.rows)

        if guard is None:
            study.optimize(objective, n_trials=self.candidates)
        else:
            GuardedStudy(study, guard, fitted).optimize(objective, n_trials=self.candidates)

    def times(self) -> dict[str, float]:
        """Processor seconds of each."""
        chosen: dict[str, Any] = {"charges": 2, "choices": [self.candidates]}
        checked: dict[str, Any] = {"charges": 5, "threshold": 0.4, "noise": 1e-3}
        guards = [
            self.guard("choose", **chosen),
            self.guard("few", charges=2, choices=[_FEW]),
            self.guard("scorer", **checked),
            self.guard("tiny", _TINY_COLUMNS, **checked),
            self.guard("study", **checked),
        ]
        every, few, scored, tiny, study = guards
        work: dict[str, Callable[[], object]] = {
            _PLAIN: lambda: self.search().fit(*self.rows),
            "guarded search": lambda: GuardedSearchCV(self.search(), every).fit(*self.rows),
            f"guarded search, {_FEW} candidates asked about": lambda: GuardedSearchCV(
                self.search(), few, candidates=_FEW
            ).fit(*self.rows),
            "refits alone": lambda: [
                clone(LogisticRegression()).set_params(**one).fit(*self.rows)
                for one in ParameterGrid(self.grid)
            ],
            "search with guarded scorer": lambda: self.search(guarded_scorer(scored)).fit(*self.rows),
            _TINY_PLAIN: lambda: self.search().fit(*self.tiny),
            "search of tiny models with guarded scorer": lambda: self.search(guarded_scorer(tiny)).fit(
                *self.tiny
            ),
            _STUDY: lambda: self.study(None),
            "guarded study": lambda: self.study(study),
        }
        found = {name: _seconds(one) for name, one in work.items()}
        for guard in guards:
            guard.close()
        return found


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="20 candidates, one round")
    options = parser.parse_args()
    candidates, rounds = (20, 1) if options.quick else (100, 5)
    runs = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, threadpool_limits(1):
            runs.append(Round(Path(folder), candidates).times())
    seconds = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    ratios = {
        name: statistics.median(run[name] / run[plain] for run in runs) for name, (plain, _) in _OF.items()
    }
    if options.json:
        print(json.dumps({"candidates": candidates, "seconds": seconds, "ratios": ratios}, indent=2))
        return
    print(
        f"{candidates} candidates, {_TRAIN:,} training and {_HOLDOUT:,} holdout rows; tiny: {_TINY:,} rows\n"
    )
    print("| what | processor s | ratio | goal |\n|---|---|---|---|")
    for name, taken in seconds.items():
        goal = _OF[name][1] if name in _OF else None
        ratio = f"{ratios[name]:.2f}" if name in ratios else ""
        print(f"| {name} | {taken:.2f} | {ratio} | {'' if goal is None else goal} |")


if __name__ == "__main__":
    main()
