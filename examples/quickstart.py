"""The whole idea in one page: plan, guard, ask, read the interval, look at the ledger.

python examples/quickstart.py
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from reusable_holdout import Plan, ReusableHoldout, verify
from reusable_holdout.demo.datasets import load_adult

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets


def main() -> None:
    """Ask a guarded holdout about three models."""
    X, y = load_adult()
    X_train, X_holdout, y_train, y_holdout = train_test_split(
        X, y, train_size=5_000, test_size=10_000, random_state=0
    )

    print(Plan(rows=10_000, queries=200, tolerance=0.04, estimate=0.85), "\n")

    text = X.select_dtypes(exclude="number").columns
    linear = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text), remainder=StandardScaler()
    )
    codes = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), text), remainder="passthrough"
    )
    models = {
        "linear": make_pipeline(linear, LogisticRegression(max_iter=1_000)),
        "boosting": make_pipeline(codes, HistGradientBoostingClassifier(max_iter=50, random_state=0)),
        "forest": make_pipeline(codes, RandomForestClassifier(50, random_state=0)),
    }
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "guard.db"
        with ReusableHoldout(
            X_holdout, y_holdout, metric="accuracy", tolerance=0.04, queries=200, estimate=0.85, ledger=ledger
        ) as guard:
            for name, model in models.items():
                fitted = model.fit(X_train, y_train)
                print(
                    f"{name:>14}: {guard.evaluate(fitted, X_train, y_train, name=name)}"
                )  # prior: cross-validated
            again = guard.evaluate(fitted, X_train, y_train, name=name)
            print(f"{'asked again':>14}: {again}")
            boasted = guard.evaluate(fitted, prior=fitted.score(X_train, y_train), name="in-sample prior")
            print(f"{'in-sample':>14}: {boasted}  (the prior was {boasted.prior:.4f})\n")
            print(
                guard.history()[
                    ["query", "name", "prior", "value", "charged", "low", "high", "charges_left"]
                ].to_string()
            )
        print(f"\n{verify(ledger)}")


if __name__ == "__main__":
    main()
