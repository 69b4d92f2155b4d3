"""Answers, charges and halts arrive in MLflow, and nothing else does."""

import os
import socket
import subprocess
import sys
import time

import mlflow
import numpy as np
import pandas as pd
import pytest
from children import Child
from joblib import Parallel, delayed
from mlflow import MlflowClient
from reusable_holdout_mlflow import track

from reusable_holdout.errors import Halted, InputError

pytestmark = pytest.mark.long("integrations/reusable_holdout_mlflow", "reusable_holdout")


def wait_for(found):
    """What a background thread brings about, within a minute."""
    deadline = time.monotonic() + 60
    while not found() and time.monotonic() < deadline:
        time.sleep(0.1)
    return found()


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
    assert run.data.tags["holdout_budget"] == "halted: all queries asked"
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
        logged = wait_for(lambda: by_step(client, tracked.run_id, "holdout_answer"))
        assert list(logged) == [1]
        assert client.get_run(tracked.run_id).info.status == "RUNNING"
    assert client.get_run(tracked.run_id).data.tags["holdout_budget"].endswith("charges left")


@pytest.mark.parametrize("live", [True, False])
def test_a_large_batch_is_logged_whole(database, make_guard, labels, live):
    guard = make_guard(queries=1_000, tolerance=0.2)
    rng = np.random.default_rng(0)
    with track(guard, experiment="churn", tracking_uri=database, live=live) as tracked:
        guard.evaluate_many(
            np.where(rng.random((300, len(labels))) < 0.1, 1 - labels, labels), np.full(300, 0.9)
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
        assert Child(script, str(tmp_path)).wait() == 0
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


def test_inside_an_active_run_it_is_that_run(database, make_guard, questions, tmp_path):
    guard, other = make_guard(), make_guard(ledger=tmp_path / "other.db")
    mlflow.set_tracking_uri(database)
    try:
        with mlflow.start_run() as outer:
            mlflow.set_tag("mlflow.note.content", "mine")
            with track(guard) as tracked:
                guard.evaluate_predictions(questions[0][0], prior=0.9)
            assert tracked.run_id == outer.info.run_id == mlflow.active_run().info.run_id
            mlflow.log_metric("my_own", 1.0)
            with track(other) as second, track(guard, run_name="named") as third:
                pass
    finally:
        mlflow.set_tracking_uri(None)
    client = MlflowClient(database)
    run = client.get_run(outer.info.run_id)
    assert run.data.metrics["my_own"] == 1.0
    assert run.data.tags["mlflow.note.content"] == "mine"
    check_run(client, outer.info.run_id, guard.history())
    assert len({outer.info.run_id, second.run_id, third.run_id}) == 3  # one run has one guard's answers
    for run_id in (second.run_id, third.run_id):
        assert "mlflow.parentRunId" not in client.get_run(run_id).data.tags


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


def test_comparisons_are_logged_as_differences(database, make_guard, questions):
    guard, client = make_guard(policy="guess-and-check"), MlflowClient(database)
    (predictions, *_), *_ = questions
    with track(guard, tracking_uri=database) as tracked:
        guard.evaluate_predictions(predictions, prior=0.5)
        guard.compare_predictions(predictions, predictions, prior=0.0)
    assert list(by_step(client, tracked.run_id, "holdout_answer")) == [1]
    assert by_step(client, tracked.run_id, "difference_answer") == {2: 0.0}
    assert client.get_run(tracked.run_id).data.tags["reusable_holdout.policy"] == "guess-and-check"


def test_a_run_says_which_holdout_and_ledger_it_follows(database, make_guard, tmp_path, questions):
    guard, client = make_guard(), MlflowClient(database)
    guard.evaluate_predictions(questions[0][0], prior=0.9)
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        guard.evaluate_predictions(questions[1][0], prior=0.9)
    run = client.get_run(tracked.run_id)
    tags = {
        name.removeprefix("reusable_holdout."): value
        for name, value in run.data.tags.items()
        if name.startswith("reusable_holdout.")
    }
    assert (tags["digest"], tags["epoch"]) == (guard.digest, "1")
    assert (tags["policy"], tags["mechanism"]) == ("thresholdout", "numeric-sparse")
    assert (tags["first_query"], tags["last_query"]) == ("2", "2")
    assert str(tmp_path) not in str(tags)  # where the ledger lies is told by a digest
    (dataset,) = run.inputs.dataset_inputs
    assert guard.digest.startswith(dataset.dataset.digest)


def test_a_run_of_another_holdout_is_refused(database, make_guard, tmp_path, labels):
    with track(make_guard(), experiment="churn", tracking_uri=database) as tracked:
        pass
    other = make_guard(ledger=tmp_path / "other.db", seed=1)
    with (
        pytest.raises(InputError, match="one run tracks one guard"),
        track(other, run=tracked.run_id, tracking_uri=database),
    ):
        pass


def ask(guard, predictions, prior):
    guard.evaluate_predictions(predictions, prior=prior)


def test_answers_of_joblib_workers_arrive_while_they_work(database, make_guard, questions, tmp_path):
    guard, client = make_guard(seed=None), MlflowClient(database)
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        Parallel(n_jobs=2)(delayed(ask)(guard, predictions, prior) for predictions, prior in questions)
        live = wait_for(lambda: len(by_step(client, tracked.run_id, "holdout_answer")) == len(questions))
        assert live
    check_run(client, tracked.run_id, guard.history())


def test_a_fork_that_leaves_the_block_ends_nothing(database, make_guard, questions):
    guard, client = make_guard(), MlflowClient(database)
    with track(guard, experiment="churn", tracking_uri=database, live=False) as tracked:
        child = os.fork()
        if child == 0:
            try:
                tracked._log.finish("FAILED")
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert client.get_run(tracked.run_id).info.status == "RUNNING"
        guard.evaluate_predictions(questions[0][0], prior=0.9)
    check_run(client, tracked.run_id, guard.history())


def test_a_block_that_is_never_left_is_ended_with_the_interpreter(database, tmp_path):
    script = (
        "import sys, contextlib, numpy as np; from reusable_holdout import ReusableHoldout; "
        "from reusable_holdout_mlflow import track; y = np.arange(4000) % 2; "
        "guard = ReusableHoldout(None, y, tolerance=0.1, queries=30, ledger='guard.db', seed=0); "
        "stack = contextlib.ExitStack(); "
        "print(stack.enter_context(track(guard, experiment='churn', tracking_uri=sys.argv[1])).run_id); "
        "guard.evaluate_predictions(y, prior=0.99)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, database], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    run = MlflowClient(database).get_run(done.stdout.split()[-1])
    assert run.info.status == "FINISHED"
    assert run.data.metrics["holdout_answer"] == 0.99


def is_open(connection):
    """Whether a client still waits for what it asked."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return True
    return False


def next_waiting(listening):
    """Connection of the next client that has asked something and waits."""
    while True:
        connection, _ = listening.accept()
        if connection.recv(1 << 16) and is_open(connection):
            return connection
        connection.close()


def test_the_loop_does_not_wait_for_a_server_that_does_not_answer(make_guard, questions, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    for pause in ("_SHORTEST_PAUSE", "_PAUSE_PER_FAILURE"):
        monkeypatch.setattr(f"reusable_holdout_mlflow.run_log.{pause}", 0.0)
    guard = make_guard()
    with socket.socket() as silent:  # takes connections and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.warns(RuntimeWarning), track(guard, tracking_uri=uri):
            monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "300")
            with next_waiting(silent) as request:
                for predictions, prior in questions:
                    guard.evaluate_predictions(predictions, prior=prior)
                assert is_open(request)
            silent.close()
    assert guard.queries_asked == len(questions)


@pytest.mark.parametrize(
    ("metric", "prior", "words"),
    [
        ("accuracy", 0.9, "agrees with its prior"),
        ("accuracy", 0.999, "overfitted by "),
        ("accuracy", 0.7, "better than its prior by "),
        ("zero_one_loss", 0.001, "overfitted by "),
    ],
)
def test_a_tag_says_in_words_whether_the_model_is_overfitted(
    database, make_guard, questions, metric, prior, words
):
    guard = make_guard(metric=metric, tolerance=0.08)
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        guard.evaluate_predictions(questions[0][0], prior=prior)
    data = MlflowClient(database).get_run(tracked.run_id).data
    assert data.tags["holdout_overfitting"].startswith(words)
    assert data.tags["holdout_budget"] == f"{guard.charges_left} of {guard.plan.charges} charges left"
    if "by" in words:
        assert data.tags["holdout_overfitting"].endswith(f"{abs(data.metrics['holdout_gap']):.4f}")


def test_a_final_is_not_said_to_agree_with_anything(database, make_guard, labels):
    guard = make_guard()
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        guard.evaluate_predictions(labels, prior=0.99)
        guard.final_predictions(labels)
    tags = MlflowClient(database).get_run(tracked.run_id).data.tags
    assert (tags["holdout_overfitting"], tags["holdout_budget"]) == (
        "answered by a final",
        "halted: final given",
    )
