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
from integrations.mlflow.answers_in import by_step, check_complete
from made_guards import right_in
from mlflow import MlflowClient
from reusable_holdout_mlflow import track

from reusable_holdout.errors import Halted, InputError

pytestmark = pytest.mark.long("integrations/reusable_holdout_mlflow", "reusable_holdout")


def ask(guard, predictions, prior):
    guard.evaluate(predictions, prior=prior)


def wait_for(found):
    """Wait up to a minute for what a background thread brings about."""
    deadline = time.monotonic() + 60
    while not found() and time.monotonic() < deadline:
        time.sleep(0.1)
    return found()


def test_a_real_server_gets_every_answer_charge_and_the_halt(server, make_guard, questions):
    uri, _ = server
    guard, client = make_guard(queries=6), MlflowClient(uri)
    with (
        pytest.raises(Halted),
        track(guard, experiment="churn", tracking_uri=uri, run_name="search") as tracked,
    ):
        for question in questions:
            ask(guard, *question)
    run = client.get_run(tracked.run_id)
    check_complete(client, tracked.run_id, guard.history())
    assert (run.info.status, run.info.run_name) == ("FINISHED", "search")
    assert client.get_experiment(run.info.experiment_id).name == "churn"
    assert run.data.tags["holdout_budget"] == "halted: all queries asked"
    assert "halted" in run.data.tags["mlflow.note.content"]
    assert run.data.params["reusable_holdout.tolerance"] == "0.1"
    assert run.data.metrics["holdout_halted"] == 1.0
    assert {file.path for file in client.list_artifacts(tracked.run_id)} == {"history.csv", "history.png"}
    table = pd.read_csv(client.download_artifacts(tracked.run_id, "history.csv"))
    assert list(table["query"]) == list(range(1, 7))


def test_answers_are_there_while_the_loop_runs_replays_are_not(database, client, make_guard, questions):
    guard = make_guard()
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        for _ in range(3):
            ask(guard, *questions[0])
        assert list(wait_for(lambda: by_step(client, tracked.run_id, "holdout_answer"))) == [1]
        assert client.get_run(tracked.run_id).info.status == "RUNNING"
    check_complete(client, tracked.run_id, guard.history())
    assert client.get_run(tracked.run_id).data.tags["holdout_budget"].endswith("charges left")


@pytest.mark.parametrize("live", [True, False])
def test_a_large_batch_is_logged_whole(database, client, make_guard, labels, live):
    guard = make_guard(queries=1_000, tolerance=0.2)
    many = np.array([right_in(labels, 0.9, number) for number in range(300)])
    with track(guard, experiment="churn", tracking_uri=database, live=live) as tracked:
        guard.evaluate(list(many), prior=np.full(300, 0.9))
    check_complete(client, tracked.run_id, guard.history())


def test_answers_of_other_processes_are_added_and_earlier_ones_are_not(
    database, client, make_guard, questions, labels, tmp_path
):
    guard = make_guard()
    ask(guard, *questions[0])
    np.save(tmp_path / "labels.npy", labels)
    script = (
        "import numpy as np; from reusable_holdout import ReusableHoldout; y = np.load('labels.npy'); "
        "ReusableHoldout.open('guard.db', None, y).evaluate(np.roll(y, 1), prior=0.9)"
    )
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        assert Child(script, folder=tmp_path).wait() == 0
        ask(guard, *questions[2])
    check_complete(client, tracked.run_id, guard.history()[1:])
    tags = client.get_run(tracked.run_id).data.tags
    own = {name.removeprefix("reusable_holdout."): tags[name] for name in tags if "reusable" in name}
    assert (own["digest"], own["epoch"], own["metric"]) == (guard.digest, "1", "accuracy")
    assert (own["first_query"], own["last_query"]) == ("2", "3")
    assert str(tmp_path) not in str(own)  # where the ledger lies is told by a digest


def test_an_error_of_the_analyst_fails_the_run_and_loses_nothing(database, client, make_guard, questions):
    guard = make_guard()
    with pytest.raises(ZeroDivisionError), track(guard, experiment="churn", tracking_uri=database) as tracked:
        ask(guard, *questions[0])
        raise ZeroDivisionError
    assert client.get_run(tracked.run_id).info.status == "FAILED"
    check_complete(client, tracked.run_id, guard.history())


# ---- which run


def test_inside_an_active_run_it_is_that_run(current, make_guard, questions, tmp_path):
    guard, other = make_guard(), make_guard(ledger=tmp_path / "other.db")
    with mlflow.start_run() as outer:
        mlflow.set_tag("mlflow.note.content", "mine")
        with track(guard) as tracked:
            ask(guard, *questions[0])
        assert tracked.run_id == outer.info.run_id == mlflow.active_run().info.run_id
        mlflow.log_metric("my_own", 1.0)
        with track(other) as second, track(guard, run_name="named") as third:
            pass
    run = current.get_run(outer.info.run_id)
    assert run.data.metrics["my_own"] == 1.0
    assert run.data.tags["mlflow.note.content"] == "mine"
    check_complete(current, outer.info.run_id, guard.history())
    assert len({outer.info.run_id, second.run_id, third.run_id}) == 3  # one run has one guard's answers
    for run_id in (second.run_id, third.run_id):
        assert "mlflow.parentRunId" not in current.get_run(run_id).data.tags


def test_a_run_is_matched_by_digest_epoch_and_ledger_whatever_its_parameters(
    database, client, make_guard, questions, tmp_path
):
    run = client.create_run(client.get_experiment_by_name("churn").experiment_id).info.run_id
    client.log_param(run, "reusable_holdout.queries", "another version's")
    guard, wish = make_guard(), {"run": run, "tracking_uri": database}
    for question in questions[:2]:
        with track(guard, **wish) as tracked:
            ask(guard, *question)
    assert tracked.run_id == run
    assert client.get_run(run).info.status == "RUNNING"  # a named run is left open
    assert client.get_run(run).data.params["reusable_holdout.tolerance"] == "0.1"
    check_complete(client, run, guard.history())
    with pytest.raises(InputError, match="not both"), track(guard, experiment="churn", **wish):
        pass
    others = [make_guard(ledger=tmp_path / f"{seed}.db", seed=seed) for seed in (0, 1)]
    others.append(guard.rotate(None, np.arange(4_000) % 2, early=True).guard)
    for other in others:  # another ledger, another digest, another epoch
        with pytest.raises(InputError, match="one run tracks one guard"), track(other, **wish):
            pass


# ---- what it says


def test_comparisons_are_logged_as_differences(database, client, make_guard, labels):
    guard = make_guard()
    with track(guard, tracking_uri=database) as tracked:
        guard.compare(labels, labels, prior=0.0)
        tracked._log.follow()  # comparisons alone can be drawn, too
        ask(guard, labels, 0.5)
    assert list(by_step(client, tracked.run_id, "holdout_answer")) == [2]
    assert by_step(client, tracked.run_id, "difference_answer") == {1: 0.0}


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
    database, client, make_guard, questions, metric, prior, words
):
    guard = make_guard(metric=metric, tolerance=0.08)
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        ask(guard, questions[0][0], prior)
    data = client.get_run(tracked.run_id).data
    assert data.tags["holdout_overfitting"].startswith(words)
    assert data.tags["holdout_budget"] == f"{guard.charges_left} of {guard.plan.charges} charges left"
    if "by" in words:
        assert data.tags["holdout_overfitting"].endswith(f"{abs(data.metrics['holdout_gap']):.4f}")


# ---- servers that fail, and processes that end


def test_a_dead_server_does_not_stop_the_loop(make_guard, questions, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    guard = make_guard()
    with (
        pytest.warns(RuntimeWarning, match="the guard goes on") as began,
        pytest.warns(RuntimeWarning, match="nothing was lost") as ended,
        track(guard, experiment="churn", tracking_uri="http://127.0.0.1:9") as tracked,
    ):
        for question in questions:
            ask(guard, *question)
    assert {one.filename for one in (*began, *ended)} == {__file__}  # the line of who tracks
    assert tracked.run_id is None
    assert guard.queries_asked == len(questions)


def is_open(connection):
    """Return True if a client still waits for what it asked."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return True
    return False


def next_waiting(listening):
    """Return the connection of the next client that has asked something and waits."""
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
                for question in questions:
                    ask(guard, *question)
                assert is_open(request)
            silent.close()
    assert guard.queries_asked == len(questions)


def test_a_fork_that_leaves_the_block_ends_nothing(database, client, make_guard, questions):
    guard = make_guard()
    with track(guard, experiment="churn", tracking_uri=database, live=False) as tracked:
        child = os.fork()
        if child == 0:
            try:
                tracked._log.finish("FAILED")
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert client.get_run(tracked.run_id).info.status == "RUNNING"
        ask(guard, *questions[0])
    check_complete(client, tracked.run_id, guard.history())


def test_a_block_that_is_never_left_is_ended_with_the_interpreter(database, client, tmp_path):
    script = (
        "import sys, contextlib, numpy as np; from reusable_holdout import ReusableHoldout; "
        "from reusable_holdout_mlflow import track; y = np.arange(4000) % 2; "
        "guard = ReusableHoldout(None, y, tolerance=0.1, queries=30, ledger='guard.db', seed=0); "
        "stack = contextlib.ExitStack(); "
        "print(stack.enter_context(track(guard, experiment='churn', tracking_uri=sys.argv[1])).run_id); "
        "guard.evaluate(np.where(np.arange(4000) < 40, 1 - y, y), prior=0.99)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, database], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    run = client.get_run(done.stdout.split()[-1])
    assert run.info.status == "FINISHED"
    assert run.data.metrics["holdout_answer"] == 0.99
