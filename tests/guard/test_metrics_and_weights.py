"""The guard with every metric of the catalogue, with weights and with slices."""

import numpy as np
import pytest
from cases import for_each, refuses
from made_guards import made_guard
from sklearn import metrics as sk

from reusable_holdout import ReusableHoldout, Rows, verify
from reusable_holdout.errors import InputError, LedgerMismatchError
from reusable_holdout.metrics import mae, matthews_corrcoef, mse, quantile_loss, r2, rmse

ROWS = 4_000
RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 2, ROWS)
CLASSES = RNG.integers(0, 3, ROWS)
TARGETS = RNG.uniform(0, 10, ROWS)
GROUPS = np.where(RNG.random(ROWS) < 0.4, "A", "B")
WRONG = RNG.random(ROWS) < 0.15
PREDICTED = np.where(WRONG, 1 - LABELS, LABELS)
SCORES = LABELS + RNG.normal(size=ROWS)
GUESSES = np.where(WRONG, (CLASSES + 1) % 3, CLASSES)
VALUES = np.clip(TARGETS + RNG.normal(size=ROWS), 0, 10)

PROBABILITIES = np.clip(0.25 + 0.5 * PREDICTED + 0.2 * RNG.random(ROWS), 0.0, 1.0)

CATALOGUE = {
    "zero_one_loss": (LABELS, PREDICTED, sk.zero_one_loss),
    "brier": (LABELS, PROBABILITIES, sk.brier_score_loss),
    "log_loss": (LABELS, PROBABILITIES, sk.log_loss),
    "recall": (LABELS, PREDICTED, sk.recall_score),
    "precision": (LABELS, PREDICTED, sk.precision_score),
    "f1": (LABELS, PREDICTED, sk.f1_score),
    "mcc": (LABELS, PREDICTED, sk.matthews_corrcoef),
    "balanced_accuracy": (LABELS, PREDICTED, sk.balanced_accuracy_score),
    "f1_macro": (CLASSES, GUESSES, lambda y, p: sk.f1_score(y, p, average="macro")),
    "precision_macro": (CLASSES, GUESSES, lambda y, p: sk.precision_score(y, p, average="macro")),
    "recall_weighted": (CLASSES, GUESSES, lambda y, p: sk.recall_score(y, p, average="weighted")),
    "roc_auc": (LABELS, SCORES, sk.roc_auc_score),
    "average_precision": (LABELS, SCORES, sk.average_precision_score),
    "mae": (TARGETS, VALUES, sk.mean_absolute_error),
    "mse": (TARGETS, VALUES, sk.mean_squared_error),
    "rmse": (TARGETS, VALUES, sk.root_mean_squared_error),
    "quantile_loss": (TARGETS, VALUES, lambda y, p: sk.mean_pinball_loss(y, p, alpha=0.9)),
    "r2": (TARGETS, VALUES, lambda y, p: 1 - sk.mean_squared_error(y, p) / 8.0),
}
BOUNDED = {
    "mcc": matthews_corrcoef(floor=0.5),
    "mae": mae(lower=0, upper=10),
    "mse": mse(lower=0, upper=10),
    "rmse": rmse(lower=0, upper=10),
    "quantile_loss": quantile_loss(lower=0, upper=10, quantile=0.9),
    "r2": r2(lower=0, upper=10, variance=8.0),
}


def guard_of(name, y, **settings):
    metric = BOUNDED.get(name, name)
    given = {"queries": 10, "charges": 3, "threshold": 1e-4, "noise": 0.0, "vacuous": True}
    return made_guard(None, y, metric=metric, seed=1, **(given | settings))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_final_is_scikit_learns_number_and_a_charge_is_on_its_side(name, tmp_path):
    y, predictions, reference = CATALOGUE[name]
    expected = reference(y, predictions)
    with guard_of(name, y, ledger=tmp_path / "guard.db") as guard:
        prior = guard.metric.lower if expected > 0.1 else guard.metric.upper
        answer = guard.evaluate(predictions, prior=prior)
        assert answer.charged
        assert (answer.value > prior) == (expected > prior)
        assert answer.low <= expected <= answer.high
        final = guard.final(predictions)
        assert final.value == pytest.approx(expected, abs=1e-6)
        assert final.low <= expected <= final.high
    with ReusableHoldout.open(tmp_path / "guard.db", None, y, seed=1) as again:
        assert again.evaluate(predictions, prior=prior).replayed
        assert again.final(predictions).value == final.value
    assert verify(tmp_path / "guard.db").sound


def test_a_slice_is_asked_about_its_own_rows():
    inside = GROUPS == "A"
    guard = guard_of("accuracy", LABELS, sample_weight=inside)
    assert guard.plan.rows == inside.sum()
    answer = guard.final(PREDICTED)
    assert answer.value == pytest.approx((PREDICTED == LABELS)[inside].mean(), abs=1e-6)
    alone = guard_of("accuracy", LABELS[inside])
    other = alone.final(PREDICTED[inside])
    assert (answer.low, answer.high) == (other.low, other.high)


def test_weights_weigh():
    weights = np.random.default_rng(2).uniform(0.5, 2.0, ROWS)
    guard = guard_of("accuracy", LABELS, sample_weight=weights)
    answer = guard.final(PREDICTED)
    expected = np.average(PREDICTED == LABELS, weights=weights)
    assert answer.value == pytest.approx(expected, abs=1e-6)
    plain = guard_of("accuracy", LABELS).final(PREDICTED)
    assert answer.high - answer.low > plain.high - plain.low


def test_other_weights_are_another_question(tmp_path):
    inside = GROUPS == "A"
    guard_of("accuracy", LABELS, sample_weight=inside, ledger=tmp_path / "guard.db").close()
    with ReusableHoldout.open(
        tmp_path / "guard.db", Rows(None, LABELS, sample_weight=inside), seed=1
    ) as guard:
        assert guard.plan.rows == inside.sum()
    for weights in (None, ~inside, np.ones(ROWS)):
        with pytest.raises(LedgerMismatchError):
            ReusableHoldout.open(tmp_path / "guard.db", Rows(None, LABELS, sample_weight=weights), seed=1)


@for_each(
    "weights",
    [np.zeros(ROWS), -np.ones(ROWS), np.ones(3), [1.0, np.nan] * (ROWS // 2), "A", np.ones((ROWS, 1, 1))],
)
def test_weights_that_are_none_are_refused(weights):
    refuses(InputError, "", guard_of, "accuracy", LABELS, sample_weight=weights)
