"""Data and models of release_gate.sh: labels for the gate's owner, and predictions of four versions.

UCI Adult, which ships with the library: 8,000 training rows, 20,000 for the gate.

    python examples/release_gate_models.py folder
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout.demo.datasets import load_adult

VERSIONS = {
    "v1": DecisionTreeClassifier(max_depth=4, random_state=0),
    "v2": DecisionTreeClassifier(max_depth=5, random_state=0),
    "v3": HistGradientBoostingClassifier(max_iter=40, random_state=0),
    "v4": HistGradientBoostingClassifier(max_iter=40, random_state=1, min_samples_leaf=30),
}


def main(argv: list[str] | None = None) -> None:
    """Write labels.csv, and one file of predictions for each version."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(argv).folder
    X, y = load_adult()
    X = X.select_dtypes("number")
    X, X_rest, y, y_rest = train_test_split(X, y, train_size=8_000, random_state=0)
    X_holdout, y_holdout = X_rest[:20_000], y_rest[:20_000]
    ids = [f"person-{k}" for k in X_holdout.index]
    pd.DataFrame({"id": ids, "label": y_holdout}).to_csv(folder / "labels.csv", index=False)
    for version, model in VERSIONS.items():
        predictions = model.fit(X, y).predict(X_holdout)
        pd.DataFrame({"id": ids, "prediction": predictions}).to_csv(folder / f"{version}.csv", index=False)


if __name__ == "__main__":
    main()
