"""A grid search that picks its winner on 1,000 held-out rows, plainly and through the guard.

500 decision trees, a grid of depths, leaf sizes and random seeds, are searched on UCI Adult, which ships with the
library. They are of nearly equal quality, as candidates at the end of a search are, so what decides on a holdout of
1,000 rows is luck. Three ways to choose one of them and to say how good it is:

plain
    The best score on the holdout, and that score: what everybody does.
cross-validation
    The best mean over the folds, and that mean; it has no holdout.
guarded
    GuardedSearchCV, asking one by one: each candidate's mean over the folds is put to the guard, two fits at a time.
    The best answer, with its interval.

Each choice is then scored on about 29,500 fresh rows. What it loses there has two parts: the luck of the split, for
one holdout of 1,000 rows is above or below the population by a per cent, for all candidates alike; and selection, which
is the rest: the choice's loss less the average candidate's. The whole is repeated on several random splits. When the
guard's charges are spent it halts; the answers so far, and the best of them, are on the search.

The guard does not make the better choice here: its priors are the means over the folds, which are noisy too, and it
tells them until the holdout objects. What it adds is an interval that holds, for all candidates at once.

    python examples/guarded_grid_search.py            # about a minute on two cores
    python examples/guarded_grid_search.py --quick
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from reusable_holdout_sklearn import GuardedSearchCV
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.tree import DecisionTreeClassifier
from tqdm import tqdm

from reusable_holdout import Plan, ReusableHoldout
from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.errors import Halted
from reusable_holdout.plotting import INK, pyplot

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

TREE = DecisionTreeClassifier(splitter="random")
HOLDOUT_ROWS = 1_000
TOLERANCE = 0.125  # 1,000 rows afford 3 charges to 500 questions at this; 0.121 is the narrowest, with one
ESTIMATE = 0.83  # what trees are known to reach here; a wrong guess never makes an interval wrong
COLOURS = {"plain": INK["charge"], "cross-validation": INK["prior"], "guarded": INK["answer"]}


class Sizes(NamedTuple):
    """How much is searched."""

    train: int
    seeds: int  # times 25 candidates
    splits: int


FULL, QUICK = Sizes(2_000, 20, 6), Sizes(2_000, 2, 2)


class Split(NamedTuple):
    """Disjoint random parts."""

    train: tuple[NDArray[np.float64], NDArray[np.bool_]]
    holdout: tuple[NDArray[np.float64], NDArray[np.bool_]]
    fresh: tuple[NDArray[np.float64], NDArray[np.bool_]]


class Run(NamedTuple):
    """One split: the choices, and what the plain holdout and fresh rows say of every candidate."""

    choices: list[dict[str, Any]]
    holdout: NDArray[np.float64]
    fresh: NDArray[np.float64]


def split(values: NDArray[np.float64], label: NDArray[np.bool_], sizes: Sizes, seed: int) -> Split:
    """Rows at random."""
    order = np.random.default_rng(seed).permutation(len(label))
    parts = np.split(order, [sizes.train, sizes.train + HOLDOUT_ROWS])
    return Split(*((values[part], label[part]) for part in parts))


def grid(seeds: int) -> dict[str, list[int]]:
    """500 candidates with 20 seeds."""
    return {
        "max_depth": [8, 10, 12, 14, 18],
        "min_samples_leaf": [2, 4, 6, 8, 10],
        "random_state": list(range(seeds)),
    }


def guarded_search(data: Split, seeds: int, ledger: Path, jobs: int) -> GuardedSearchCV:
    """Search, and ask about every candidate; a halt leaves what was answered."""
    guard = ReusableHoldout(
        *data.holdout,
        metric="accuracy",
        ledger=ledger,
        seed=0,
        plan=Plan(queries=25 * seeds, tolerance=TOLERANCE, estimate=ESTIMATE, choices=()),
    )
    search = GuardedSearchCV(GridSearchCV(TREE, grid(seeds), cv=3, n_jobs=jobs), guard, ask="evaluate")
    with contextlib.suppress(Halted):
        search.fit(*data.train)
    return search


def scores(data: Split, parameters: dict[str, int]) -> tuple[float, float]:
    """Plain holdout and fresh score of one candidate."""
    model = clone(TREE).set_params(**parameters).fit(*data.train)
    return model.score(*data.holdout), model.score(*data.fresh)


def run(data: Split, seeds: int, ledger: Path, jobs: int) -> Run:
    """Search one split, and choose in three ways."""
    search = guarded_search(data, seeds, ledger, jobs)
    measured = Parallel(jobs)(delayed(scores)(data, one) for one in ParameterGrid(grid(seeds)))
    holdout, fresh = np.array(measured).T
    means = search.cv_results_["mean_test_score"]
    asked = search.guard_results_
    plain, by_folds = int(holdout.argmax()), int(means.argmax())
    choices = [
        _choice("plain", plain, holdout[plain], fresh) | {"luck": (holdout - fresh).mean()},
        _choice("cross-validation", by_folds, means[by_folds], fresh),
    ]
    if len(asked):
        answer = search.best_answer_
        choices.append(
            _choice("guarded", search.best_index_, answer.value, fresh)
            | {
                "low": answer.low,
                "high": answer.high,
                "answered": len(asked),
                "charges": asked["charged"].sum(),
            }
            | {"all held": fresh_held(asked, fresh)}
        )
    return Run(choices, holdout, fresh)


def fresh_held(asked: pd.DataFrame, fresh: NDArray[np.float64]) -> float:
    """Share of the guard's intervals that hold the candidate's fresh score."""
    return float(
        ((asked["low"] <= fresh[asked["candidate"]]) & (fresh[asked["candidate"]] <= asked["high"])).mean()
    )


def _choice(way: str, candidate: int, told: float, fresh: NDArray[np.float64]) -> dict[str, Any]:
    return {"choice": way, "told": told, "fresh": fresh[candidate], "loses": told - fresh[candidate]}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """One line for each way to choose: means over the splits."""
    table = table.assign(held=(table["low"] <= table["fresh"]) & (table["fresh"] <= table["high"]))
    lines = []
    for way, part in table.groupby("choice", sort=False):
        line: dict[str, Any] = {
            "choice": way,
            "told": part["told"].mean(),
            "on fresh rows": part["fresh"].mean(),
        }
        line |= _mean("loses", part["loses"])
        if way == "plain":
            line |= _mean("by selection", part["loses"] - part["luck"])
        if way == "guarded":
            line |= {"interval": f"+-{((part['high'] - part['low']) / 2).mean():.3f}"}
            line |= {
                "holds": f"{part['held'].sum()} of {len(part)}",
                "of all intervals": f"{part['all held'].mean():.1%}",
            }
            line |= {"answered": f"{part['answered'].mean():.0f}", "charges": f"{part['charges'].mean():.1f}"}
        lines.append(line)
    return pd.DataFrame(lines).set_index("choice").fillna("")


def _mean(name: str, values: pd.Series) -> dict[str, str]:
    return {name: f"{values.mean():.4f} +- {values.std(ddof=1) / len(values) ** 0.5:.4f}"}


def picture(runs: list[Run], path: Path) -> None:
    """Draw the first split's candidates, and for every split what was told and what came."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(13, 5), layout="constrained")
    first = runs[0]
    ends = [min(first.holdout.min(), first.fresh.min()), max(first.holdout.max(), first.fresh.max())]
    left.plot(first.holdout, first.fresh, ".", ms=5, color=INK["budget"], alpha=0.6, label="candidate")
    best = first.holdout.argmax()
    left.plot(first.holdout[best], first.fresh[best], "o", ms=9, color=COLOURS["plain"], label="plain winner")
    left.plot(ends, ends, color="black", lw=0.8)
    left.set(xlabel="score on 1,000 held-out rows", ylabel="score on fresh rows")
    left.set_title(f"{len(first.holdout)} candidates on the first split")
    for place, way in enumerate(COLOURS):
        for number, one in enumerate(runs):
            for choice in (each for each in one.choices if each["choice"] == way):
                x = number + (place - 1) * 0.2
                if way == "guarded":
                    right.vlines(x, choice["low"], choice["high"], color=INK["interval"], lw=3)
                label = way if number == 0 else None
                right.plot(x, choice["told"], "o", ms=6, color=COLOURS[way], label=label)
                right.plot(
                    x,
                    choice["fresh"],
                    "_",
                    ms=11,
                    mew=2,
                    color="black",
                    label=None if label != "plain" else "fresh",
                )
    right.set(xlabel="split", ylabel="accuracy", xticks=range(len(runs)))
    right.set_title("What was told (dots, interval) and what fresh rows say (bars)")
    for ax in (left, right):
        ax.grid(alpha=0.2)
        ax.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def main() -> None:
    """Search, choose, print a table and draw a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="50 candidates, two splits: seconds")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--output", type=Path, default=Path(), help="folder for the table and the picture")
    options = parser.parse_args()
    sizes = QUICK if options.quick else FULL
    X, y = load_adult()
    codes = X.apply(lambda one: one if one.dtype.kind in "if" else one.astype("category").cat.codes)
    values, label = codes.to_numpy(np.float64), y.to_numpy()
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            run(
                split(values, label, sizes, seed), sizes.seeds, Path(folder) / f"guard{seed}.db", options.jobs
            )
            for seed in tqdm(range(sizes.splits), desc="splits", disable=None)
        ]
    table = pd.DataFrame(
        [{"split": seed, **choice} for seed, one in enumerate(runs) for choice in one.choices]
    )
    print(
        f"UCI Adult, accuracy: {25 * sizes.seeds} candidates, {sizes.train:,} training and {HOLDOUT_ROWS:,} holdout "
        f"rows; means over {sizes.splits} splits, +- one standard error\n"
    )
    lines = summary(table)
    print(lines.to_string(float_format="{:.4f}".format))
    print(
        f"\nOn fresh rows the plain holdout's winner loses {lines.loc['plain', 'loses']}, by selection alone "
        f"{lines.loc['plain', 'by selection']};\nthe guard's interval holds the fresh score of its choice in "
        f"{lines.loc['guarded', 'holds']} splits, and {lines.loc['guarded', 'of all intervals']} of all intervals hold."
    )
    table.to_csv(options.output / "guarded_grid_search.csv", index=False, float_format="%.6g")
    picture(runs, options.output / "guarded_grid_search.png")
    print(f"wrote a table and a picture to {options.output}")


if __name__ == "__main__":
    main()
