"""An Optuna study whose new bests are confirmed by a guarded holdout, once as it should be and once with a mistake.

Support vector machines are tuned on 120 rows of scikit-learn's digits. The study's values are cross-validated; each new
best after the first ten trials is refitted and asked about. In the second study the training rows are augmented with
noisy copies *before* they are cut into folds, so each fold has seen its test rows, and cross-validation promises what
no model keeps. The study cannot see that; the guard charges for it, and tells the score.

The table has the questions in their order, with the score on fresh rows that neither study nor guard has seen.

    python examples/optuna_study.py             # half a minute
    python examples/optuna_study.py --quick
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import optuna
from numpy.typing import NDArray
from reusable_holdout_optuna import GuardedStudy
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.svm import SVC

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted
from reusable_holdout.plotting import INK, pyplot

if TYPE_CHECKING:
    import pandas as pd

STUDIES = {"folds, then copies": False, "copies, then folds": True}
TRAIN, HOLDOUT = 120, 1_200


class Data(NamedTuple):
    """Disjoint random parts, features and labels each; training rows come with a noisy copy."""

    train: tuple[NDArray[np.float64], NDArray[np.int64]]
    copies: NDArray[np.float64]
    holdout: tuple[NDArray[np.float64], NDArray[np.int64]]
    fresh: tuple[NDArray[np.float64], NDArray[np.int64]]

    def augmented(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Training rows with their copies."""
        X, y = self.train
        return np.vstack([X, self.copies]), np.concatenate([y, y])


def split(seed: int) -> Data:
    """Digits, cut at random."""
    X, y = load_digits(return_X_y=True)
    X, X_rest, y, y_rest = train_test_split(X, y, train_size=TRAIN, random_state=seed, stratify=y)
    X_holdout, X_fresh, y_holdout, y_fresh = train_test_split(
        X_rest, y_rest, train_size=HOLDOUT, random_state=seed, stratify=y_rest
    )
    copies = X + np.random.default_rng(seed).normal(size=X.shape)
    return Data((X, y), copies, (X_holdout, y_holdout), (X_fresh, y_fresh))


def cross_validated(model: Any, data: Data, *, copies_first: bool) -> float:
    """Mean accuracy over 5 folds, with copies of the training rows."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    if copies_first:
        return float(cross_val_score(model, *data.augmented(), cv=folds).mean())
    X, y = data.train
    scores = []
    for train, test in folds.split(X, y):
        model.fit(np.vstack([X[train], data.copies[train]]), np.concatenate([y[train], y[train]]))
        scores.append(model.score(X[test], y[test]))
    return float(np.mean(scores))


def run(data: Data, *, copies_first: bool, trials: int, seed: int) -> tuple[GuardedStudy, str]:
    """Optimize until all trials are done or the guard halts."""

    def model(trial: Any) -> SVC:
        return SVC(C=trial.params["C"], gamma=trial.params["gamma"])

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("C", 1e-2, 1e3, log=True)
        trial.suggest_float("gamma", 1e-6, 1e-1, log=True)
        return cross_validated(model(trial), data, copies_first=copies_first)

    guard = ReusableHoldout(*data.holdout, queries=20, tolerance=0.07, estimate=0.9, seed=seed)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    guarded = GuardedStudy(
        study, guard, lambda trial: model(trial).fit(*data.augmented()), n_startup_trials=10
    )
    try:
        guarded.optimize(objective, n_trials=trials)
    except Halted as halted:
        return guarded, f"halted after {len(study.trials)} trials: its {halted.reason} ran out"
    return guarded, f"all {trials} trials, {guard.charges_left} charges left"


def confirmed(guarded: GuardedStudy, data: Data) -> pd.DataFrame:
    """What was asked, with the score on fresh rows."""
    table = guarded.guard_results
    table["fresh"] = [SVC(**params).fit(*data.augmented()).score(*data.fresh) for params in table["params"]]
    return table[["query", "trial", "prior", "answer", "low", "high", "charged", "fresh"]]


def picture(found: dict[str, tuple[GuardedStudy, pd.DataFrame]], path: Path) -> None:
    """Draw the studies' values, and the guard's intervals of their bests."""
    figure, axes = pyplot().subplots(1, len(found), figsize=(10, 4), sharey=True, layout="constrained")
    for ax, (name, (guarded, table)) in zip(axes, found.items(), strict=True):
        done = guarded.study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        ax.plot(
            [trial.number for trial in done],
            [trial.value for trial in done],
            ".",
            color="0.75",
            label="cross-validated",
        )
        answers = table["answer"].to_numpy()
        reach = np.abs(table[["low", "high"]].to_numpy().T - answers)
        ax.errorbar(
            table["trial"],
            answers,
            yerr=reach,
            fmt="o",
            color=INK["answer"],
            capsize=3,
            label="guard's answer",
        )
        ax.plot(table["trial"], table["fresh"], "x", color=INK["charge"], label="fresh rows")
        ax.set(title=name, xlabel="trial", ylim=(0.8, 1.01))
    axes[0].set_ylabel("accuracy")
    axes[0].legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def main(argv: list[str] | None = None) -> None:
    """Run both studies, print what was asked, draw them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="12 trials")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the sampler and the guard's noise")
    parser.add_argument("--output", type=Path, default=Path("optuna_study.png"), help="picture to write")
    options = parser.parse_args(argv)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    data, found = split(options.seed), {}
    print(f"digits, accuracy: {TRAIN} training, {HOLDOUT:,} holdout and {len(data.fresh[1])} fresh rows")
    for name, copies_first in STUDIES.items():
        guarded, end = run(
            data, copies_first=copies_first, trials=12 if options.quick else 60, seed=options.seed
        )
        table = confirmed(guarded, data)
        found[name] = guarded, table
        print(f"\n{name}: {end}")
        print(table.to_string(index=False, float_format="{:.4f}".format))
        best = guarded.best
        if best is not None:
            print(
                f"best by the study: {guarded.study.best_value:.4f}; by the guard: trial {best.number}, "
                f"{best.answer:.4f} in [{best.low:.4f}, {best.high:.4f}]"
            )
        held = table["fresh"].between(table["low"], table["high"])
        print(f"intervals that hold the fresh score: {held.sum()} of {len(held)}")
    picture(found, options.output)
    print(f"\nwrote {options.output}")


if __name__ == "__main__":
    main()
