"""After a crash of the server or of the analyst's process the record is completed from the ledger, once."""

import signal

import numpy as np
import pytest
from cases import refuses
from children import Child
from integrations.mlflow.answers_in import check_complete
from made_guards import right_in
from mlflow import MlflowClient
from reusable_holdout_mlflow import sync, track
from reusable_holdout_mlflow.answers import log_answers

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError

pytestmark = pytest.mark.long("integrations/reusable_holdout_mlflow", "reusable_holdout")


@pytest.fixture
def ask(labels):
    """Ask numbered questions."""

    def ask(guard, numbers):
        for number in numbers:
            guard.evaluate(right_in(labels, 0.9, number), prior=0.9)

    return ask


def test_a_server_killed_in_the_middle_and_started_again_has_everything_once(
    tracking_server, make_guard, ask, monkeypatch
):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    guard, uri = make_guard(queries=200, seed=12), tracking_server.uri
    client = MlflowClient(uri)
    try:
        with (
            pytest.warns(RuntimeWarning) as told,
            track(guard, experiment="crashes", tracking_uri=uri) as tracked,
        ):
            ask(guard, range(40))
            tracked._log.follow()  # some arrive before the crash
            tracking_server.kill()
            ask(guard, range(40, 100))
        assert "the ledger has every answer, and sync" in str(told[-1].message)
        meanwhile = [
            str(one.message) for one in told[:-1]
        ]  # one, if asking took longer than the thread waits
        assert all("the guard goes on" in one for one in meanwhile)
        assert len(meanwhile) <= 1
        refuses(InputError, "nothing was lost", sync, guard, tracking_uri=uri)
    finally:
        tracking_server.start()
    assert len(client.get_metric_history(tracked.run_id, "holdout_answer")) == 40
    assert client.get_run(tracked.run_id).info.status == "RUNNING"
    assert sync(guard, tracking_uri=uri) == ((tracked.run_id,), 60)
    assert client.get_run(tracked.run_id).info.status == "FINISHED"
    assert sync(guard, tracking_uri=uri) == ((), 0)
    page = client.get_run(tracked.run_id).data.tags["reusable_holdout.page_run"]
    assert client.get_run(page).data.metrics["holdout_queries_asked"] == 100
    for run in (tracked.run_id, page):
        check_complete(client, run, guard.history())


@pytest.mark.parametrize("settings", ["experiment='churn', ", ""], ids=["its own run", "the active run"])
def test_what_a_killed_process_had_not_logged_is_replayed(database, tmp_path, labels, settings):
    np.save(tmp_path / "labels.npy", labels)
    script = (
        "import os, sys, signal, mlflow, numpy as np; from reusable_holdout import ReusableHoldout; "
        "from reusable_holdout_mlflow import track; y = np.load('labels.npy'); "
        "guard = ReusableHoldout(None, y, tolerance=0.1, queries=30, ledger='guard.db'); "
        "mlflow.set_tracking_uri(sys.argv[1]); mlflow.set_experiment('churn'); "
        f"{'' if settings else 'mlflow.start_run(); '}"
        f"block = track(guard, {settings}tracking_uri=sys.argv[1]); tracked = block.__enter__(); "
        "[guard.evaluate(np.roll(y, k), prior=0.5) for k in range(3)]; "
        "tracked._log.follow(); "
        "[guard.evaluate(np.roll(y, k), prior=0.5) for k in range(3, 7)]; "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert Child(script, database, folder=tmp_path).wait() == -signal.SIGKILL
    client = MlflowClient(database)
    with ReusableHoldout.open(tmp_path / "guard.db", None, labels) as guard:
        (run,), added = sync(guard, tracking_uri=database)
        assert 0 <= added <= 4  # the thread may have logged some
        for _ in range(2):
            for one in (run, client.get_run(run).data.tags["reusable_holdout.page_run"]):
                check_complete(client, one, guard.history())
            assert sync(guard, tracking_uri=database).added == 0
        assert len(guard.history()) == 7
    assert "&query=7)" in client.get_experiment_by_name("churn").tags["mlflow.note.content"]


def test_answers_that_no_run_holds_get_a_run(database, make_guard, ask):
    guard, client = make_guard(), MlflowClient(database)
    ask(guard, range(2))
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        ask(guard, range(2, 5))
    ask(guard, range(5, 9))
    (before, after), added = sync(guard, experiment="churn", tracking_uri=database)
    assert added == 6
    history = guard.history()
    for run, first, last in [(before, 1, 2), (tracked.run_id, 3, 5), (after, 6, 9)]:
        check_complete(client, run, history[history["query"].between(first, last)])
    assert sync(guard, experiment="churn", tracking_uri=database) == ((), 0)


def test_two_that_replay_at_once_log_each_answer_once(database, make_guard, ask):
    """An answer has the ledger's time: the second metric is the first, and the server drops it."""
    guard, client = make_guard(), MlflowClient(database)
    ask(guard, range(5))
    ((run,), _) = sync(guard, experiment="churn", tracking_uri=database)
    log_answers(client, run, guard.history(), queries=30)
    check_complete(client, run, guard.history())


def test_a_run_that_was_cut_off_ends_where_the_next_began(database, make_guard, ask):
    guard, client = make_guard(), MlflowClient(database)
    block = track(guard, experiment="churn", tracking_uri=database, live=False)
    cut_off = block.__enter__()
    cut_off._log._finished = True  # as if its process had been killed
    ask(guard, [0])
    with track(guard, experiment="churn", tracking_uri=database) as following:
        ask(guard, [1])
    assert sync(guard, tracking_uri=database) == ((cut_off.run_id,), 1)
    for number, run in enumerate((cut_off.run_id, following.run_id)):
        check_complete(client, run, guard.history()[number : number + 1])
    block.__exit__(None, None, None)
