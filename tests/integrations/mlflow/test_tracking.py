"""Answers, charges and halts arrive in MLflow, and nothing else does."""

import sqlite3
import subprocess
import sys
import warnings

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from reusable_holdout_mlflow import track

from reusable_holdout import Halted, InputError, ReusableHoldout


@pytest.fixture
def database(tmp_path, monkeypatch):
    """A tracking database without a server: the same client, faster."""
    monkeypatch.chdir(tmp_path)  # where runs without an experiment put their files
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    MlflowClient(uri).create_experiment("churn", artifact_location=(tmp_path / "artifacts").as_uri())
    return uri


def by_step(client, run_id, name):
    return {metric.step: metric.value for metric in client.get_metric_history(run_id, name)}


def check_run(client, run_id, history):
    """Every released number is there, by step."""
    columns = {
        "answer": "value",
        "prior": "prior",
        "low": "low",
        "high": "high",
        "charges_left": "charges_left",
    }
    for metric, column in columns.items():
        expected = dict(zip(history["query"], history[column].astype(float), strict=True))
        assert by_step(client, run_id, f"holdout_{metric}") == expected
    charged = by_step(client, run_id, "holdout_charged")
    assert [query for query, paid in charged.items() if paid] == list(
        history.loc[history["charged"], "query"]
    )


def test_a_real_server_gets_every_answer_charge_and_the_halt(server, make_guard, questions):
    uri, _ = server
    guard = make_guard(queries=6)
    with (
        pytest.raises(Halted),
        track(guard, experiment="churn", tracking_uri=uri, run_name="search") as tracked,
    ):
        for predictions, prior in questions:
            guard.evaluate_predictions(predictions, prior=prior)
    client = MlflowClient(uri)
    run = client.get_run(tracked.run_id)
    check_run(client, tracked.run_id, guard.history())
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "search"
    assert client.get_experiment(run.info.experiment_id).name == "churn"
    assert run.data.tags["reusable_holdout.halted"] == "true"
    assert run.data.tags["reusable_holdout.halt_reason"] == "queries"
    assert "halted" in run.data.tags["mlflow.note.content"]
    assert run.data.params["reusable_holdout.tolerance"] == "0.1"
    assert run.data.metrics["holdout_halted"] == 1.0
    assert {file.path for file in client.list_artifacts(tracked.run_id)} == {"history.csv", "history.png"}
    table = pd.read_csv(client.download_artifacts(tracked.run_id, "history.csv"))
    assert list(table["query"]) == list(range(1, 7))


def test_answers_are_there_while_the_loop_runs(database, make_guard, questions):
    guard, client = make_guard(), MlflowClient(database)
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        guard.evaluate_predictions(questions[0][0], prior=0.9)
        assert list(by_step(client, tracked.run_id, "holdout_answer")) == [1]
        assert client.get_run(tracked.run_id).info.status == "RUNNING"
    assert client.get_run(tracked.run_id).data.tags["reusable_holdout.halted"] == "false"


@pytest.mark.parametrize("live", [True, False])
def test_a_large_batch_is_logged_whole(database, make_guard, labels, live):
    guard = make_guard(queries=1_000, tolerance=0.2)
    rng = np.random.default_rng(0)
    with track(guard, experiment="churn", tracking_uri=database, live=live) as tracked:
        guard.evaluate_many(
            np.where(rng.random((600, len(labels))) < 0.1, 1 - labels, labels), np.full(600, 0.9)
        )
    check_run(MlflowClient(database), tracked.run_id, guard.history())


def test_replays_are_not_logged_again(database, make_guard, questions):
    guard = make_guard()
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        for _ in range(3):
            guard.evaluate_predictions(questions[0][0], prior=0.9)
    assert len(MlflowClient(database).get_metric_history(tracked.run_id, "holdout_answer")) == 1


def test_answers_of_other_processes_are_added_and_earlier_ones_are_not(
    database, make_guard, questions, tmp_path
):
    guard = make_guard()
    guard.evaluate_predictions(questions[0][0], prior=0.9)
    np.save(tmp_path / "labels.npy", guard._holdout.y)
    np.save(tmp_path / "asked.npy", questions[1][0])
    script = (
        "import sys, numpy as np; from reusable_holdout import ReusableHoldout; "
        "folder = sys.argv[1]; y = np.load(folder + '/labels.npy'); asked = np.load(folder + '/asked.npy'); "
        "ReusableHoldout.open(folder + '/guard.db', None, y).evaluate_predictions(asked, prior=0.9)"
    )
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
        guard.evaluate_predictions(questions[2][0], prior=0.9)
    assert sorted(by_step(MlflowClient(database), tracked.run_id, "holdout_answer")) == [2, 3]
    assert len(MlflowClient(database).get_metric_history(tracked.run_id, "holdout_answer")) == 2


def test_an_error_of_the_analyst_fails_the_run_and_loses_nothing(database, make_guard, questions):
    guard = make_guard()
    with pytest.raises(ZeroDivisionError), track(guard, experiment="churn", tracking_uri=database) as tracked:
        guard.evaluate_predictions(questions[0][0], prior=0.9)
        raise ZeroDivisionError
    client = MlflowClient(database)
    assert client.get_run(tracked.run_id).info.status == "FAILED"
    check_run(client, tracked.run_id, guard.history())


def test_inside_an_active_run_it_is_nested(database, make_guard):
    mlflow.set_tracking_uri(database)
    try:
        with mlflow.start_run() as outer, track(make_guard(), tracking_uri=database) as tracked:
            assert mlflow.active_run().info.run_id == outer.info.run_id
        run = MlflowClient(database).get_run(tracked.run_id)
        assert run.data.tags["mlflow.parentRunId"] == outer.info.run_id
    finally:
        mlflow.set_tracking_uri(None)


def test_a_named_run_is_used_and_left_open(database, make_guard, questions):
    client = MlflowClient(database)
    run = client.create_run(client.get_experiment_by_name("churn").experiment_id)
    guard = make_guard()
    with track(guard, run=run.info.run_id, tracking_uri=database) as tracked:
        guard.evaluate_predictions(questions[0][0], prior=0.9)
    assert tracked.run_id == run.info.run_id
    assert client.get_run(run.info.run_id).info.status == "RUNNING"
    with pytest.raises(InputError, match="not both"), track(guard, run=run.info.run_id, experiment="churn"):
        pass


def test_a_dead_server_does_not_stop_the_loop(make_guard, questions, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    guard = make_guard()
    with (
        pytest.warns(RuntimeWarning, match="the guard goes on"),
        pytest.warns(RuntimeWarning, match="nothing was lost"),
        track(guard, experiment="churn", tracking_uri="http://127.0.0.1:9") as tracked,
    ):
        for predictions, prior in questions:
            guard.evaluate_predictions(predictions, prior=prior)
    assert tracked.run_id is None
    assert guard.queries_asked == len(questions)


def secrets_of(guard, questions):
    """Unreleased numbers: exact holdout scores, noise, noisy thresholds."""
    bound, policy = guard._holdout.bound, guard._policy
    numbers = set()
    for predictions, prior in questions:
        prepared = bound.prepare(predictions)
        score = int(bound.score(prepared[None])[0])
        question = guard._content.question(prepared, policy.grid_unit(prior))
        noise = int(policy._mechanism.query_noise([question])[0])
        numbers |= {score / 2**32, noise / 2**32, abs(score / 2**32 - prior)}
    for spent in range(guard.plan.charges):
        state_noise = policy._resumed(spent)._offset / 2**32
        numbers |= {state_noise, guard.plan.threshold_at(charges=spent) + state_noise}
    return numbers


def test_the_server_holds_no_unreleased_value(server, make_guard, questions, tmp_path):
    uri, folder = server
    guard = make_guard()
    with track(guard, experiment="leaks", tracking_uri=uri) as tracked:
        for predictions, prior in questions:
            guard.evaluate_predictions(predictions, prior=prior)
    history = guard.history()
    released = set(history[["value", "prior", "low", "high", "threshold"]].to_numpy().ravel())
    secrets = secrets_of(guard, questions) - released
    assert len(secrets) > 15
    database = sqlite3.connect(folder / "mlflow.db")
    logged = {
        value
        for (value,) in database.execute("SELECT value FROM metrics WHERE run_uuid = ?", (tracked.run_id,))
    }
    database.close()
    assert {float(value) for value in history["value"]} <= logged
    assert not any(abs(secret - value) < 1e-12 for secret in secrets for value in logged if value)
    text = (folder / "mlflow.db").read_bytes() + b"".join(
        path.read_bytes() for path in (folder / "artifacts").rglob("*.csv")
    )
    for secret in secrets:
        assert repr(secret).encode() not in text


def test_autolog_does_not_see_the_holdout(tmp_path, make_guard):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    y = (X[:, 0] + rng.normal(size=3_000) > 0).astype(int)
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    mlflow.set_tracking_uri(uri)
    experiment = MlflowClient(uri).create_experiment(
        "auto", artifact_location=(tmp_path / "artifacts").as_uri()
    )
    mlflow.set_experiment("auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, about versions and schemas
        mlflow.sklearn.autolog(log_models=False, log_datasets=False)
        try:
            guard = ReusableHoldout(X[1_000:], y[1_000:], tolerance=0.2, queries=10)
            model = LogisticRegression().fit(X[:1_000], y[:1_000])
            answer = guard.evaluate(model, prior=0.7)
            guard.evaluate(model, X[:1_000], y[:1_000])
        finally:
            mlflow.sklearn.autolog(disable=True)
            mlflow.set_tracking_uri(None)
    exact = float(np.mean(model.predict(X[1_000:]) == y[1_000:]))
    client = MlflowClient(uri)
    metrics = [run.data.metrics for run in client.search_runs([experiment])]
    assert metrics  # autolog did log the analyst's own fit
    assert answer.value != exact
    for values in metrics:
        assert all(abs(value - exact) > 1e-9 for value in values.values())


def test_comparisons_are_logged_as_differences(database, make_guard, questions):
    guard, client = make_guard(policy="guess-and-check"), MlflowClient(database)
    (predictions, *_), *_ = questions
    with track(guard, tracking_uri=database) as tracked:
        guard.evaluate_predictions(predictions, prior=0.5)
        guard.compare_predictions(predictions, predictions, prior=0.0)
    assert list(by_step(client, tracked.run_id, "holdout_answer")) == [1]
    assert by_step(client, tracked.run_id, "difference_answer") == {2: 0.0}
    assert client.get_run(tracked.run_id).data.tags["reusable_holdout.policy"] == "guess-and-check"
