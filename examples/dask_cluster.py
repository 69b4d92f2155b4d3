"""Search on a Dask cluster with one guard: each worker cross-validates a candidate and asks about it by itself.

The guard travels as a handle: it says where ledger, key and holdout lie, and carries none of them. All workers spend
one budget, a question that two of them ask is paid once, and each maps the one copy of the holdout that is on the disk.
The mean over the folds is the prior, so that a candidate whose folds told the truth costs nothing.

    python examples/dask_cluster.py              # 24 candidates on two processes of this machine, about 20 s
    python examples/dask_cluster.py --quick
    python examples/dask_cluster.py --scheduler tcp://10.0.0.1:8786 --ledger postgresql+psycopg://me@10.0.0.1/guards \
        --key /shared/guard.key                  # many machines; leave the password to ~/.pgpass
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from distributed import Client, get_worker
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import ParameterSampler, cross_val_score, train_test_split

from reusable_holdout import ReusableHoldout
from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.errors import Halted

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

GRID = {
    "max_iter": [20, 40, 80],
    "learning_rate": [0.03, 0.1, 0.3, 1.0],
    "max_leaf_nodes": [4, 8, 16, 31],
    "min_samples_leaf": [1, 5, 20, 100],
}


def main() -> None:
    """Search, and print what each candidate's folds, the guard and fresh rows say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="6 candidates")
    parser.add_argument("--scheduler", help="address of a running cluster; by default two local processes")
    parser.add_argument("--ledger", help="file or URL that all workers reach; by default a temporary file")
    parser.add_argument("--key", type=Path, help="key file that all workers reach; beside a file by default")
    options = parser.parse_args()
    X, y = load_adult()
    X = X.select_dtypes("number")
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=6_000, random_state=0)
    X_holdout, X_fresh, y_holdout, y_fresh = train_test_split(
        X_rest, y_rest, train_size=10_000, random_state=0
    )
    candidates = list(ParameterSampler(GRID, 6 if options.quick else 24, random_state=0))
    with tempfile.TemporaryDirectory() as folder, client_of(options.scheduler):
        guard = ReusableHoldout(
            X_holdout,
            y_holdout,
            metric="accuracy",
            tolerance=0.04,
            queries=200,
            estimate=0.83,
            ledger=options.ledger or Path(folder) / "guard.db",
            key=options.key,
        )
        model = HistGradientBoostingClassifier(random_state=0)
        with guard, parallel_config("dask"):
            try:
                asked = Parallel()(delayed(tried)(guard, model, X_train, y_train, one) for one in candidates)
            except Halted as halt:
                print(f"{halt}\n{halt.history.to_string()}")
                return
            report(pd.DataFrame(asked), clone(model), (X_train, y_train), (X_fresh, y_fresh))
            print(guard)


def client_of(scheduler: str | None) -> Client:
    """Client of a cluster: one that runs, or two processes on loopback, which end with it."""
    if scheduler:
        return Client(scheduler)
    return Client(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")


def tried(
    guard: ReusableHoldout, model: BaseEstimator, X: pd.DataFrame, y: pd.Series, parameters: dict[str, Any]
) -> dict[str, Any]:
    """One candidate, on whatever worker: cross-validated, fitted, asked about."""
    candidate = clone(model).set_params(**parameters)
    prior = float(cross_val_score(candidate, X, y, cv=5, n_jobs=1).mean())
    name = " ".join(str(value) for value in parameters.values())
    answer = guard.evaluate(candidate.fit(X, y), prior=prior, name=name)
    worker = get_worker().name
    return {**answer._asdict(), "worker": worker, "parameters": parameters}


def report(asked: pd.DataFrame, model: BaseEstimator, train: tuple[Any, Any], fresh: tuple[Any, Any]) -> None:
    """Table, best candidate first, and what fresh rows say."""
    asked["fresh"] = [clone(model).set_params(**one).fit(*train).score(*fresh) for one in asked["parameters"]]
    shown = asked.sort_values("value", ascending=False)
    columns = ["name", "prior", "value", "low", "high", "charged", "fresh", "query", "worker"]
    print(shown[columns].round(4).to_string(index=False), "\n")
    held = asked["fresh"].between(asked["low"], asked["high"]).sum()
    print(f"{held} of {len(asked)} intervals contain the accuracy on fresh rows")
    print(f"{asked['worker'].nunique()} workers asked; {asked['charged'].sum()} questions were charged")


if __name__ == "__main__":
    main()
