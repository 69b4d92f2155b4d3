"""First scripts of new users, who state no number of a plan: each works, or does what the refusal names and works."""

import numpy as np
import pandas as pd
from cases import for_each, refuses
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split

from reusable_holdout import Plan, ReusableHoldout, Rows
from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.metrics import mae


def split(folder, rows, *, held, positives=0.5, target=None):
    """Write a table to a CSV file, read it again, and hold a part of its rows."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(rows, 4)), columns=list("abcd"))
    signal = 2.0 * table["a"] + table["b"] + rng.normal(size=rows)
    table["y"] = (signal > signal.quantile(1.0 - positives)).astype(int) if target is None else target(signal)
    table.to_csv(folder / "table.csv", index=False)
    table = pd.read_csv(folder / "table.csv")
    return train_test_split(table.drop(columns="y"), table["y"], test_size=held, random_state=0)


def asked(guard, model, X, y, scoring):
    """Cross-validate, ask with the mean as the prior, and end with a final; return both answers."""
    prior = cross_val_score(model, X, y, scoring=scoring).mean() * (-1 if scoring.startswith("neg_") else 1)
    model.fit(X, y)
    answer, last = guard.evaluate(model, prior=prior), guard.final(model)
    assert not answer.charged
    assert last.low <= last.measured <= last.high
    span = guard.metric.upper - guard.metric.lower
    assert answer.high - answer.low < 0.5 * span
    assert last.high - last.low < 0.25 * span
    return answer, last


def followed(error, make, labels):
    """Make guards as a refusal names them, one after another."""
    named = error.nearest
    assert named
    for name in {"estimate", "tolerance"} & named.keys():
        assert not make(labels, **{name: named[name]}).plan.vacuous
    if "rows" in named:
        assert not make(np.resize(labels, named["rows"])).plan.vacuous


def test_a_csv_of_3000_rows_thirty_percent_held_by_auc(tmp_path):
    X_train, X_test, y_train, y_test = split(tmp_path, 3_000, held=0.3)
    guard = ReusableHoldout(X_test, y_test, metric="roc_auc")
    _, last = asked(guard, LogisticRegression(), X_train, y_train, "roc_auc")
    assert last.measured > 0.9


def test_accuracy_of_300_held_rows(tmp_path):
    X_train, X_test, y_train, y_test = split(tmp_path, 1_000, held=300)
    guard = ReusableHoldout(X_test, y_test)
    assert (guard.plan.charges, guard.plan.queries, guard.plan.vacuous) == (1, 100, False)
    asked(guard, LogisticRegression(), X_train, y_train, "accuracy")


def test_f1_with_five_percent_of_positives_is_refused_and_as_many_rows_as_are_named_work(tmp_path):
    X_train, X_test, y_train, y_test = split(tmp_path, 3_000, held=0.3, positives=0.05)

    def make(labels, **stated):
        return ReusableHoldout(Rows(None, labels, prevalence=y_train.mean()), metric="f1", **stated)

    refused = refuses(PlanError, "for f1 these 900 rows count as", make, y_test)
    followed(refused, make, y_test)
    X_train, X_test, y_train, y_test = split(tmp_path, 60_000, held=0.5, positives=0.05)
    guard = ReusableHoldout(Rows(X_test, y_test, prevalence=y_train.mean()), metric="f1")
    asked(guard, LogisticRegression(), X_train, y_train, "f1")


def test_mae_asks_for_bounds_and_works_with_them(tmp_path):
    X_train, X_test, y_train, y_test = split(tmp_path, 3_000, held=0.3, target=lambda signal: 3 * signal + 20)
    refuses(InputError, r"pass mae\(lower=..., upper=...\)", ReusableHoldout, X_test, y_test, metric="mae")
    guard = ReusableHoldout(X_test, y_test, metric=mae(lower=-10, upper=50))
    asked(guard, LinearRegression(), X_train, y_train, "neg_mean_absolute_error")


@for_each(
    "stated", [{}, {"tolerance": 0.05}, {"tolerance": 0.1, "charges": 4}, {"plan": Plan(choices=[20] * 6)}]
)
def test_what_a_refusal_of_few_rows_names_works(stated):
    labels = np.arange(120) % 2
    for metric in ("accuracy", "roc_auc", "brier"):

        def make(labels, metric=metric, **changes):
            return ReusableHoldout(None, labels, metric=metric, **stated | changes)

        refused = refuses(PlanError, "", make, labels)
        if "plan" in stated:  # whose numbers are stated in it
            refused.nearest.pop("estimate", None)
        followed(refused, make, labels)


@for_each("metric", ["accuracy", "log_loss", "f1"])
def test_a_default_guard_reveals_and_another_tells_class_counts_without_a_refusal(metric):
    labels, other = np.arange(3_000) % 2, np.arange(3_001) % 2
    right = labels if metric != "log_loss" else 0.1 + 0.8 * labels
    guard = ReusableHoldout(None, labels, metric=metric)
    assert guard.reveal(right, prior=0.9).measured is not None
    auc = ReusableHoldout(None, other, metric=metric).on("roc_auc")
    assert not auc.evaluate(0.1 + 0.8 * other, prior=0.99).charged


def test_what_a_plan_states_is_used_and_the_rest_follows():
    guard = ReusableHoldout(None, np.arange(3_000) % 2, plan=Plan(estimate=0.9, choices=[10]))
    plan = guard.plan
    assert (plan.queries, plan.charges, plan.estimate, plan.choices) == (100, 3, 0.9, (10,))
    assert guard.price("choose", candidates=10).allowed
