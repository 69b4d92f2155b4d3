"""Wrap a cross-validation loop: the fold's score is the prior, the guard's answer is what you may believe.

All workers share one budget on disk, train scores are never charged, and a halt stops the search instead of
becoming NaN.

    python examples/cross_validation_loop.py
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pandas as pd
from reusable_holdout_sklearn import guarded_scorer
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_validate, train_test_split
from sklearn.svm import SVC

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets


def main() -> None:
    """Cross-validate one model, search a grid of others, and go on until the guard halts."""
    X, y = load_digits(return_X_y=True)
    X, X_holdout, y, y_holdout = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    with tempfile.TemporaryDirectory() as folder:
        guard = ReusableHoldout(
            X_holdout,
            y_holdout,
            metric="accuracy",
            tolerance=0.08,
            queries=60,
            estimate=0.95,
            ledger=Path(folder) / "guard.db",
        )
        scoring = {"fold": "accuracy", "guard": guarded_scorer(guard)}
        scores = cross_validate(SVC(), X, y, scoring=scoring, n_jobs=2, return_train_score=True)
        print(pd.DataFrame(scores)[["train_fold", "test_fold", "test_guard"]].round(4).to_string(), "\n")
        print(guard, "\n")

        grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.0001, 0.0005, 0.001, 0.005, 0.01]}
        search = GridSearchCV(SVC(), grid, scoring=guarded_scorer(guard), n_jobs=2)
        try:
            search.fit(X, y)  # 20 candidates on 5 folds are 100 questions; 60 were declared
        except Halted as halt:
            print(f"halted ({halt.reason}): {halt}\n")
            print(halt.history.groupby("charged")["value"].describe().round(4).to_string())
        guard.close()


if __name__ == "__main__":
    main()
