"""Runs are chosen by what was certified, and models are registered with their certificate."""

import mlflow
import numpy as np
import pytest
from mlflow import MlflowClient
from reusable_holdout_mlflow import best_run, register_certified, track

from reusable_holdout.errors import InputError


def right_in(labels, share, variant):
    wrong = np.roll(np.arange(len(labels)) >= share * len(labels), variant)
    return np.where(wrong, 1 - labels, labels)


@pytest.mark.parametrize("metric", ["accuracy", "zero_one_loss"])
def test_the_best_run_has_the_best_certified_end(database, make_guard, labels, metric):
    guard = make_guard(metric=metric)
    better = guard.metric.greater_is_better
    with pytest.raises(InputError, match="none was found"):
        best_run(guard, tracking_uri=database)
    answers, runs = [], []
    for shares in [(0.7, 0.75), (0.9, 0.6), (0.8,)]:  # the best is not the last of its run
        with track(guard, experiment="churn", tracking_uri=database) as tracked:
            for share in shares:
                prior = share if better else 1 - share
                answers.append(guard.evaluate_predictions(right_in(labels, share, len(answers)), prior=prior))
        runs.append(tracked.run_id)
    best = best_run(guard, tracking_uri=database)
    assert best == (runs[1], 3, answers[2].value, answers[2].low, answers[2].high)
    assert best_run(guard.digest, experiment="churn", tracking_uri=database) == best
    with pytest.raises(InputError, match="none was found"):
        best_run(guard, experiment="Default", tracking_uri=database)


@pytest.fixture
def current(database):
    mlflow.set_tracking_uri(database)
    mlflow.set_experiment("churn")
    yield MlflowClient(database)
    mlflow.set_tracking_uri(None)


def test_a_registered_model_carries_its_certificate(current, make_guard, labels, questions, tmp_path):
    guard = make_guard()
    answer = guard.evaluate_predictions(questions[0][0], prior=0.9)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "MLmodel").write_text("flavors: {}\n")
    for number in ("1", "2"):
        version = register_certified(folder.as_uri(), "churn", guard, answer)
        assert str(version.version) == number
    tags = current.get_model_version("churn", "2").tags
    told = {name.removeprefix("reusable_holdout."): value for name, value in tags.items()}
    assert told == {
        "value": str(answer.value),
        "low": str(answer.low),
        "high": str(answer.high),
        "confidence": "0.95",
        "query": "1",
        "digest": guard.digest,
        "epoch": "1",
        "policy": "thresholdout",
        "mechanism": "numeric-sparse",
        "metric": "accuracy",
        "direction": "max",
    }


def test_only_an_answer_of_the_guard_about_one_model_certifies(current, make_guard, labels, tmp_path):
    guard = make_guard()
    other = make_guard(ledger=tmp_path / "other.db", seed=1)
    answer = guard.evaluate_predictions(labels, prior=0.99)
    other.evaluate_predictions(labels, prior=0.5)
    with pytest.raises(InputError, match="has another one"):
        register_certified("models:/none/1", "churn", other, answer)
    with pytest.raises(InputError, match="has another one"):
        register_certified("models:/none/1", "churn", guard, answer._replace(low=0.999))
    with pytest.raises(InputError, match="compares two models"):
        difference = guard.compare_predictions(labels, np.roll(labels, 1), prior=0.5)
        register_certified("models:/none/1", "churn", guard, difference)
    assert current.search_registered_models() == []
