"""What the guard adds to a grid search, as a ratio to the search's own time.

One GridSearchCV of 200 cheap candidates, alone and inside GuardedSearchCV, in turn in one process and one thread;
seconds are the processor's, because machines are busy with other things; medians over rounds. The guarded search fits
each candidate once more, on all rows: these fits are shown apart from the guard's own work (the fingerprint of each
model, its predictions for the holdout, the decisions and one durable commit for each batch). The goal is for these.

Run with ``python examples/benchmarks/search_overhead.py``; ``--json`` for programs, ``--quick`` for a rough look.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from reusable_holdout_sklearn import GuardedSearchCV, guarded_scorer
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid
from threadpoolctl import threadpool_limits

from reusable_holdout import ReusableHoldout

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

_TRAIN, _HOLDOUT, _COLUMNS = 2_000, 2_000, 20
_GOAL = 0.10


class Times(NamedTuple):
    """Processor seconds of one round."""

    search: float  # GridSearchCV alone
    refits: float  # the candidates once more, on all rows
    guarded: float  # GuardedSearchCV over the same search
    scored: float  # GridSearchCV with the guarded scorer in place of accuracy


def data(rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A linear signal in noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, _COLUMNS))
    return X, (X[:, :5].sum(axis=1) + 2.0 * rng.normal(size=rows) > 0).astype(np.int64)


def once(folder: Path, candidates: int, turn: int) -> Times:
    """Time all four, in turn."""
    X, y = data(_TRAIN, 1)
    grid = {"C": np.geomspace(1e-3, 1e3, candidates).tolist()}
    model = LogisticRegression()
    rooms = {"search": {"charges": 2, "choices": [candidates]}, "scorer": {"tolerance": 0.15}}
    guards = [
        ReusableHoldout(
            *data(_HOLDOUT, 2),
            queries=5 * candidates,
            ledger=folder / f"{turn}{use}.db",
            witness=False,
            seed=0,
            **room,
        )
        for use, room in rooms.items()
    ]

    def search(scoring: object = "accuracy") -> GridSearchCV:
        return GridSearchCV(model, grid, cv=5, scoring=scoring, refit=False)

    def refits() -> object:
        return [clone(model).set_params(**one).fit(X, y) for one in ParameterGrid(grid)]

    times = Times(
        search=_seconds(lambda: search().fit(X, y)),
        refits=_seconds(refits),
        guarded=_seconds(lambda: GuardedSearchCV(search(), guards[0]).fit(X, y)),
        scored=_seconds(lambda: search(guarded_scorer(guards[1])).fit(X, y)),
    )
    for guard in guards:
        guard.close()
    return times


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
    candidates, rounds = (20, 1) if options.quick else (200, 2)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, threadpool_limits(1):
        runs = [once(Path(folder), candidates, turn) for turn in range(rounds)]
    middle = Times(*(statistics.median(column) for column in zip(*runs, strict=True)))
    own = statistics.median((run.guarded - run.search - run.refits) / run.search for run in runs)
    ratios = {
        "guard's own work / search": own,
        "goal": _GOAL,
        "refits / search": statistics.median(run.refits / run.search for run in runs),
        "guarded search / search": statistics.median(run.guarded / run.search for run in runs),
        "search with guarded scorer / search": statistics.median(run.scored / run.search for run in runs),
    }
    if options.json:
        print(json.dumps({"candidates": candidates, "seconds": middle._asdict(), "ratios": ratios}, indent=2))
        return
    print(f"{candidates} candidates, {_TRAIN:,} training and {_HOLDOUT:,} holdout rows\n")
    print("| what | processor s |\n|---|---|")
    for name, seconds in middle._asdict().items():
        print(f"| {name} | {seconds:.2f} |")
    print("\n| ratio | |\n|---|---|")
    for name, ratio in ratios.items():
        print(f"| {name} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
