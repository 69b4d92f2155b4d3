"""GuardedSearchCV(ask="choose"): a choice among 100 candidates and the final of its winner, 20 splits of UCI Adult.

On each split 3,000 rows train, the next 5,000 or 10,000 are the holdout, the last 19,537 are fresh. The candidates are
trees, forests, boosted trees and linear models of a random search. Three ways to take one of them:

cross-validation
    The best mean over the folds.
plain
    The best score on the holdout, and that score.
guarded
    ``GuardedSearchCV(GridSearchCV(...), guard, ask="choose")``, which asks one choice with the means over the folds as
    priors; then ``guard.final(search.best_estimator_)``. The plan reserves the choice, ``Plan(choices=[100])``.

The table has, of each, the regret: how much better the best of the 100 is on the fresh rows. Of the guarded one, too,
how often it halted or was refused, what the choice cost, the final's half-width in exact looks (intervals for a single
question fixed in advance, around the same score), and whether the final's interval holds: a miss is one that lies apart
from the fresh score's own exact interval at a level of 0.01.

What is shared: every candidate is fitted six times on a split, and both holdouts and all three ways look its
predictions up. The search, its folds, the choice and the guard are the real ones; only `fit` and `predict` of the
estimator that is searched look at a table.

    python examples/guarded_choice.py             # about five minutes on one core, most of it fits
    python examples/guarded_choice.py --quick
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from reusable_holdout_sklearn import GuardedSearchCV
from searches.candidates import Fitted, Rows, Split, fit, load, propose, split
from searches.judges import exact_interval
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from tqdm import tqdm

from reusable_holdout import Plan, ReusableHoldout
from reusable_holdout.errors import Halted, InputError

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

TRAIN, ESTIMATE = 3_000, 0.85
TOLERANCES = {5_000: 0.06, 10_000: 0.045}
MOST = max(TOLERANCES)
DOUBT = 0.01
GOALS = {"regret": 0.001, "width": 2.2}


class Sizes(NamedTuple):
    """How much is searched."""

    splits: int
    candidates: int


FULL, QUICK = Sizes(20, 100), Sizes(2, 20)
PREDICTIONS: dict[int, NDArray[np.int8]] = {}  # of each split: candidates, rows


class LookedUp(ClassifierMixin, BaseEstimator):
    """A candidate whose fits were made before; its only feature is the row's number."""

    def __init__(self, split: int = 0, candidate: int = 0) -> None:
        self.split = split
        self.candidate = candidate

    def fit(self, X: NDArray[np.int64], y: NDArray[np.int8]) -> Self:
        """Nothing is left to do."""
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict(self, X: NDArray[np.int64]) -> NDArray[np.int8]:
        """Predictions of the fit that did not see the row."""
        return PREDICTIONS[self.split][self.candidate, X[:, 0]]


def guarded(seed: int, rows: Rows, fitted: Fitted, parts: Split, size: int) -> dict[str, Any]:
    """Search, choose, certify the winner."""
    numbers, holdout, candidates = np.arange(len(rows.y))[:, None], parts.holdout[:size], len(fitted.means)
    guard = ReusableHoldout(
        numbers[holdout],
        rows.y[holdout],
        plan=Plan(queries=candidates, tolerance=TOLERANCES[size], estimate=ESTIMATE, choices=[candidates]),
        seed=seed,
    )
    grid = GridSearchCV(LookedUp(seed), {"candidate": list(range(candidates))}, cv=fitted.folds)
    search = GuardedSearchCV(grid, guard, ask="choose")
    try:
        search.fit(numbers[parts.train], rows.y[parts.train])
    except (Halted, InputError) as refused:
        return {"halted": True, "why": str(refused)}
    last = guard.final(search.best_estimator_)
    low, high = exact_interval(round(last.value * size), size)
    means = search.cv_results_["mean_test_score"]
    return {
        "halted": False,
        "winner": search.best_index_,
        "rank": int(np.count_nonzero(means > means[search.best_index_])) + 1,
        "nats": search.best_answer_.nats,
        "told": last.value,
        "low": last.low,
        "high": last.high,
        "half-width": (last.high - last.low) / 2.0,
        "looks": (last.high - last.low) / (high - low),
    }


def line(seed: int, rows: Rows, fitted: Fitted, parts: Split, size: int) -> dict[str, Any]:
    """One split and one size of holdout."""
    right = fitted.predictions == rows.y
    held, fresh = right[:, parts.holdout[:size]].mean(axis=1), right[:, parts.fresh].mean(axis=1)
    by_folds = np.argsort(-fitted.means, kind="stable")
    plain = int(by_folds[np.argmax(held[by_folds])])
    found = {
        "split": seed,
        "holdout rows": size,
        "fresh rows": len(parts.fresh),
        "cross-validation": fresh.max() - fresh[by_folds[0]],
        "plain": fresh.max() - fresh[plain],
        "plain told - fresh": held[plain] - fresh[plain],
    } | guarded(seed, rows, fitted, parts, size)
    if found["halted"]:
        return found
    winner = found["winner"]
    low, high = exact_interval(int(right[winner, parts.fresh].sum()), len(parts.fresh), DOUBT)
    return found | {
        "guarded": fresh.max() - fresh[winner],
        "told - fresh": found["told"] - fresh[winner],
        "holds": found["low"] <= high and low <= found["high"],
    }


def measure(sizes: Sizes, jobs: int) -> pd.DataFrame:
    """A line for each split and size."""
    rows, lines = load("adult"), []
    for seed in tqdm(range(sizes.splits), desc="splits", disable=None):
        parts = split(rows, train=TRAIN, holdout=MOST, seed=seed)
        fitted = fit(rows, parts, propose(sizes.candidates, few_rows=False, seed=seed), jobs=jobs)
        PREDICTIONS[seed] = fitted.predictions
        lines += [line(seed, rows, fitted, parts, size) for size in TOLERANCES]
        del PREDICTIONS[seed]
    return pd.DataFrame(lines)


def mean(values: pd.Series) -> str:
    """Mean and its standard error."""
    return f"{values.mean():+.5f} +- {values.sem():.5f}"


def show(size: int, part: pd.DataFrame) -> None:
    """Print what came of one size of holdout, beside the goals."""
    done = part[~part["halted"]]
    loses, looks = done["guarded"] - done["plain"], done["looks"]
    print(f"\n{size:,} holdout rows, tolerance {TOLERANCES[size]}, {len(part)} splits")
    print(f"  halted or refused: {part['halted'].sum()} (goal 0)")
    for way in ("cross-validation", "plain", "guarded"):
        print(f"  regret, {way}: {mean(done[way])}")
    print(
        f"  guarded less plain: {mean(loses)}, at most {loses.max():+.5f} (goal: mean at most "
        f"{GOALS['regret']}); the same winner in {(loses == 0.0).sum()} of {len(done)}"
    )
    print(
        f"  the winner's rank by cross-validation: mean {done['rank'].mean():.1f}, at most {done['rank'].max():.0f}; "
        f"the choice cost {done['nats'].mean():.2f} nats, at most {done['nats'].max():.2f}"
    )
    print(
        f"  the final's half-width: {done['half-width'].mean():.4f}, {looks.mean():.2f} exact looks, at most "
        f"{looks.max():.2f}; at most {GOALS['width']} in {(looks <= GOALS['width']).sum()} of {len(done)} splits"
    )
    print(
        f"  told less fresh: plain {mean(done['plain told - fresh'])}, final {mean(done['told - fresh'])}; the final's "
        f"interval holds in {done['holds'].sum()} of {len(done)}"
    )


def main(argv: list[str] | None = None) -> None:
    """Search every split, print what came, write a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 candidates, two splits")
    parser.add_argument("--jobs", type=int, default=2, help="processes, for fits")
    parser.add_argument(
        "--output", type=Path, default=Path("guarded_choice.csv"), help="where the table goes"
    )
    options = parser.parse_args(argv)
    sizes = QUICK if options.quick else FULL
    table = measure(sizes, options.jobs)
    print(
        f"UCI Adult, accuracy: {sizes.candidates} candidates, {TRAIN:,} training and "
        f"{table['fresh rows'].iloc[0]:,} fresh rows"
    )
    for size, part in table.groupby("holdout rows"):
        show(int(size), part)
    table.to_csv(options.output, index=False, float_format="%.6g")
    print(f"\nwrote a table to {options.output}")


if __name__ == "__main__":
    main()
