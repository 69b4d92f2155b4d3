"""Few labelled rows: four ways to choose a model and to say how good it is, at 300, 500 and 1,000 rows of UCI Adult.

Ten candidates: trees, forests, linear models and a support vector machine. In each run an analyst has so many rows for
everything, and 10,000 fresh rows say what is true.

repeated cross-validation
    Five folds, four times, choose; the model is fitted to all rows. The interval is the t-interval of the folds' scores
    with the variance that Nadeau and Bengio (2003) correct for shared training rows. It is no proof: the choice makes
    it too high, and the correction is a rule of thumb.
nested cross-validation
    Five outer folds, in each a choice by five inner ones; the same interval, of five scores.
one look
    Cross-validation on seven tenths of the rows chooses, and one look at the others gives an exact interval.
guard
    The same parts, and one final of all candidates: the holdout chooses with cross-validation, and certifies.

Printed: the interval's half-width, in how many runs it contains the fresh score of the model that is kept, and what
that model loses on the fresh rows against the best candidate that is fitted to all rows.

    python examples/few_rows.py             # about ten minutes on two cores
    python examples/few_rows.py --quick
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats
from searches.candidates import Rows, load, propose
from searches.judges import exact_interval
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold, RepeatedKFold, cross_val_score

from reusable_holdout import Plan, ReusableHoldout
from reusable_holdout import Rows as GuardedRows

FRESH, FOLDS, REPEATS, HELD = 10_000, 5, 4, 0.3


class Kept(NamedTuple):
    """The model that a way keeps, and what it says of it."""

    model: BaseEstimator
    low: float
    high: float


def corrected_interval(scores: NDArray[np.float64], confidence: float = 0.95) -> tuple[float, float]:
    """Return the t-interval of fold scores, corrected for training rows that folds share; scores of shape (folds,)."""
    variance = (1.0 / len(scores) + 1.0 / (FOLDS - 1)) * scores.var(ddof=1)
    reach = float(stats.t.ppf((1.0 + confidence) / 2.0, len(scores) - 1) * np.sqrt(variance))
    return float(scores.mean()) - reach, float(scores.mean()) + reach


def scored(models: list[BaseEstimator], rows: Rows, folds: Any) -> NDArray[np.float64]:
    """Return the accuracies of all models on all folds."""
    return np.array([cross_val_score(one, *rows, cv=folds, scoring="accuracy") for one in models])


def repeated(models: list[BaseEstimator], rows: Rows, seed: int) -> Kept:
    """Choose by repeated cross-validation."""
    scores = scored(models, rows, RepeatedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=seed))
    best = int(scores.mean(axis=1).argmax())
    return Kept(clone(models[best]).fit(*rows), *corrected_interval(scores[best]))


def nested(models: list[BaseEstimator], rows: Rows, seed: int) -> Kept:
    """Choose by cross-validation, and let an outer one score the choice."""
    outer = []
    for rest, fold in KFold(FOLDS, shuffle=True, random_state=seed).split(rows.X):
        model = chosen(models, Rows(rows.X[rest], rows.y[rest]), seed)
        outer.append(float((model.predict(rows.X[fold]) == rows.y[fold]).mean()))
    return Kept(chosen(models, rows, seed), *corrected_interval(np.array(outer)))


def chosen(models: list[BaseEstimator], rows: Rows, seed: int) -> Any:
    """Return the best model by cross-validation, fitted."""
    scores = scored(models, rows, KFold(FOLDS, shuffle=True, random_state=seed))
    return clone(models[int(scores.mean(axis=1).argmax())]).fit(*rows)


def parted(rows: Rows) -> tuple[Rows, Rows]:
    """Return the rows for training, and those that are held out."""
    place = round(len(rows.y) * (1.0 - HELD))
    return Rows(rows.X[:place], rows.y[:place]), Rows(rows.X[place:], rows.y[place:])


def one_look(models: list[BaseEstimator], rows: Rows, seed: int) -> Kept:
    """Look once, at the choice of cross-validation."""
    train, held = parted(rows)
    model = chosen(models, train, seed)
    return Kept(model, *exact_interval(int((model.predict(held.X) == held.y).sum()), len(held.y)))


def guarded(models: list[BaseEstimator], rows: Rows, seed: int) -> Kept:
    """Ask a guard that is made for it for one final of all models."""
    train, held = parted(rows)
    scores = scored(models, train, KFold(FOLDS, shuffle=True, random_state=seed))
    fits = [clone(one).fit(*train) for one in models]
    plan = Plan(queries=len(models), charges=1, final_share=1.0)
    with ReusableHoldout(
        GuardedRows(*held, classes=[0, 1]), plan=plan, seed=seed, allow={"vacuous"}
    ) as guard:
        found = guard.final(fits, scores.mean(axis=1).tolist())
    return Kept(fits[found.best_index], found.best.low, found.best.high)


WAYS: dict[str, Callable[[list[BaseEstimator], Rows, int], Kept]] = {
    "repeated cross-validation": repeated,
    "nested cross-validation": nested,
    "one look": one_look,
    "guard": guarded,
}


def run(every: Rows, count: int, seed: int) -> list[dict[str, Any]]:
    """Let an analyst with so many rows use each way."""
    os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"  # the rows of many runs overlap
    order = np.random.default_rng(seed).permutation(len(every.y))
    own, fresh = (Rows(every.X[part], every.y[part]) for part in (order[:count], order[-FRESH:]))
    models = propose(10, few_rows=True, seed=seed)
    true = [float((clone(one).fit(*own).predict(fresh.X) == fresh.y).mean()) for one in models]
    lines = []
    for name, way in WAYS.items():
        kept = way(models, own, seed)
        score = float((kept.model.predict(fresh.X) == fresh.y).mean())
        line = {"rows": count, "way": name, "half-width": (kept.high - kept.low) / 2.0}
        lines.append(line | {"contains": kept.low <= score <= kept.high, "regret": max(true) - score})
    return lines


def main(argv: list[str] | None = None) -> None:
    """Print a table of means over the runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one run of each number of rows")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args(argv)
    runs, every = 1 if options.quick else 60, load("adult")
    tasks = (delayed(run)(every, count, seed) for count in (300, 500, 1_000) for seed in range(runs))
    lines = pd.DataFrame([line for lines in Parallel(n_jobs=options.jobs)(tasks) for line in lines])
    table = lines.groupby(["rows", "way"], sort=False)[["half-width", "contains", "regret"]].mean()
    print(f"means over {runs} runs\n")
    print(table.to_string(formatters=dict.fromkeys(table, "{:.3f}".format)))


if __name__ == "__main__":
    main()
