"""Honest searches of a hundred checks: how many halt, and how wide the final is after so many charges.

An honest analyst asks about a hundred candidates. Her prior of each is a mean over five cross-validation folds, or the
score on development items, and she states its standard error. She has made a default plan for three charges. Four kinds
of candidates, from UCI Adult with 2,000 training rows and 5,000 held-out rows, new ones in each run:

trees
    Decision trees of every depth, most of them worse than the best by much more than the tolerance.
linear
    Ridge classifiers on random subsets of the features.
edits
    One good tree, in each candidate replaced by another tree in a random part of the rows.
language models
    Simulated: a hundred models of every skill on 5,000 items of every difficulty; 500 other items are for development.

Printed for each kind: the searches that halted, and the plan's own figure for them; charges; and the half-width of a
final of the best candidate over that of one look, an exact interval, in the mean and by number of charges.

    python examples/honest_searches.py             # about fifteen minutes on two cores
    python examples/honest_searches.py --quick
"""

from __future__ import annotations

import argparse
import os
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from searches.candidates import Rows, Split, fit, load, split
from searches.judges import exact_interval
from sklearn.base import BaseEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import Plan, Question, ReusableHoldout
from reusable_holdout import Rows as GuardedRows
from reusable_holdout.errors import Halted
from reusable_holdout.guard.training_estimate import error_of_folds

HOLDOUT, TRAIN, DEVELOPMENT = 5_000, 2_000, 500


class Candidates(NamedTuple):
    """What one search asks about: predictions of shape (candidates, rows), priors, their errors, training rows."""

    labels: NDArray[np.int8]
    predictions: NDArray[np.int8]
    priors: NDArray[np.float64]
    errors: NDArray[np.float64]
    X_train: NDArray[np.float64] | None = None


def tree(rng: np.random.Generator) -> BaseEstimator:
    """Draw a decision tree of any depth."""
    return DecisionTreeClassifier(
        max_depth=int(rng.integers(1, 25)),
        min_samples_leaf=int(rng.integers(1, 40)),
        max_features=float(rng.uniform(0.2, 1.0)),
        random_state=int(rng.integers(2**31)),
    )


def linear(rng: np.random.Generator) -> BaseEstimator:
    """Draw a ridge classifier on some of the features."""
    columns = rng.choice(14, size=rng.integers(1, 15), replace=False)
    some = FunctionTransformer(np.take, kw_args={"indices": columns, "axis": 1})
    return make_pipeline(some, StandardScaler(), RidgeClassifier(alpha=float(10 ** rng.uniform(-2, 4))))


def of_folds(rows: Rows, parts: Split, predictions: NDArray[np.int8], folds: list[Any]) -> Candidates:
    """Return candidates whose priors are means over folds."""
    right = predictions[:, parts.train] == rows.y[parts.train]
    scores = np.array([right[:, fold].mean(axis=1) for _, fold in folds]).T
    held = parts.holdout
    errors = error_of_folds(scores)
    errors = np.maximum(errors, np.sqrt(np.mean(errors**2)))  # as a guarded search does
    return Candidates(rows.y[held], predictions[:, held], scores.mean(axis=1), errors, rows.X[parts.train])


def fitted(kind: str, rows: Rows, count: int, seed: int) -> Candidates:
    """Fit candidates to new training rows."""
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(rows.y))[: TRAIN + HOLDOUT]
    rows = Rows(rows.X[some], rows.y[some])
    parts = split(rows, train=TRAIN, holdout=HOLDOUT, seed=seed)
    draw, drawn = (linear, count) if kind == "linear" else (tree, count if kind == "trees" else 12)
    models = fit(rows, parts, [draw(rng) for _ in range(drawn)], jobs=1)
    predictions = models.predictions
    if kind == "edits":
        best, *others = predictions[np.argsort(-models.means)]
        edited = []
        for place in range(count):
            column = rows.X[:, rng.integers(rows.X.shape[1])]
            there = column <= rng.choice(column)
            edited.append(np.where(there, others[place % len(others)], best))
        predictions = np.array(edited)
    return of_folds(rows, parts, predictions, models.folds)


def simulated(count: int, seed: int) -> Candidates:
    """Simulate language models: each is right on an item with a chance that depends on its skill and the item."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0.0, 1.5, HOLDOUT + DEVELOPMENT)
    skill = rng.uniform(-0.5, 2.5, (count, 1))
    right = rng.random((count, len(difficulty))) < 1.0 / (1.0 + np.exp(difficulty - skill))
    priors = right[:, :DEVELOPMENT].mean(axis=1)
    errors = np.sqrt(priors * (1.0 - priors) / DEVELOPMENT)
    return Candidates(np.ones(HOLDOUT, np.int8), right[:, DEVELOPMENT:].astype(np.int8), priors, errors)


def searched(kind: str, rows: Rows, count: int, seed: int) -> dict[str, Any]:
    """Ask about all candidates of one search, and then for a final of the best."""
    os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"  # the rows of many runs overlap
    made = simulated(count, seed) if kind == "language models" else fitted(kind, rows, count, seed)
    plan = Plan(queries=count, charges=3, estimate=0.85)
    guarded = GuardedRows(None, made.labels, classes=[0, 1])
    with ReusableHoldout(guarded, seed=seed, plan=plan) as guard:
        one = Question(
            "evaluate",
            list(made.predictions),
            list(made.priors),
            prior_error=made.errors,
            X_train=made.X_train,
        )
        told, halted = np.array(made.priors), False
        try:
            answers = guard.ask([one])[0]
        except Halted as halt:
            answers, halted = halt.answers, True
        told[: len(answers)] = [answer.value for answer in answers]
        final = guard.final(made.predictions[int(np.argmax(told))])
        charges = guard.plan.charges - guard.charges_left
        low, high = exact_interval(round(final.value * HOLDOUT), HOLDOUT)
        promised = 1.0 - guard.plan.honest_search
    return {
        "kind": kind,
        "halted": halted,
        "promised": promised,
        "charges": charges,
        "ratio": (final.high - final.low) / (high - low),
    }


def main(argv: list[str] | None = None) -> None:
    """Search, and print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two searches of ten candidates of each kind")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args(argv)
    runs, count = (2, 10) if options.quick else (200, 100)
    rows = load("adult")
    kinds = ["trees", "linear", "edits", "language models"]
    lines = pd.DataFrame(
        Parallel(n_jobs=options.jobs)(
            delayed(searched)(kind, rows, count, seed) for kind in kinds for seed in range(runs)
        )
    )
    print(f"{runs} searches of {count} candidates of each kind; half-widths of finals over one look's\n")
    print("kind              halted  promised   charges  final: mean   0 charges   1 charge    2        3")
    for kind in kinds:
        part = lines[lines["kind"] == kind]
        by_charges = part.groupby("charges")["ratio"].mean()
        ratios = "".join(
            f"{by_charges.get(charges, np.nan):11.2f}"
            if charges < 2
            else f"{by_charges.get(charges, np.nan):9.2f}"
            for charges in range(4)
        )
        print(
            f"{kind:16} {part['halted'].sum():7d} {part['promised'].mean() * runs:9.1f} {part['charges'].mean():9.2f}"
            f"{part['ratio'].mean():13.2f} {ratios}"
        )


if __name__ == "__main__":
    main()
