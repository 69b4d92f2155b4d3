"""The page of a holdout gathers all queries of all runs."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from integrations.mlflow.answers_in import check_complete
from mlflow import MlflowClient
from reusable_holdout_mlflow import sync, track
from reusable_holdout_mlflow.page import HoldoutPage
from reusable_holdout_mlflow.search import pages_of
from reusable_holdout_mlflow.words import halt_note

from reusable_holdout.errors import Halted


@pytest.fixture
def tracked(database):
    """Track a guard in the experiment "churn"."""

    def tracked(guard, *, experiment="churn", **settings):
        return track(guard, experiment=experiment, tracking_uri=database, **settings)

    return tracked


def page_of(client, guard):
    (page,) = pages_of(client, guard.digest)
    return page


def table(client, page, name):
    return pd.read_csv(client.download_artifacts(page.info.run_id, name))


def test_a_page_gathers_all_queries_of_all_runs(client, tracked, make_guard, questions):
    guard, runs = make_guard(), []
    other = client.create_experiment("spam")
    for experiment, some in [("churn", questions[:3]), ("spam", questions[3:4]), ("churn", questions[4:])]:
        with tracked(guard, experiment=experiment) as run:
            for predictions, prior in some:
                guard.evaluate(predictions, prior=prior)
        runs.append(run.run_id)
    page = page_of(client, guard)
    for run in runs:
        tags = client.get_run(run).data.tags
        assert tags["reusable_holdout.page_run"] == page.info.run_id
        assert "mlflow.parentRunId" not in tags
    assert page.info.status == "FINISHED"
    assert page.info.experiment_id != other
    files = {file.path for file in client.list_artifacts(page.info.run_id)}
    assert files == {"history.csv", "history.png", "gap_and_budget.png"}
    assert table(client, page, "history.csv")["value"].tolist() == guard.history()["value"].tolist()
    expected = {"runs": 3, "queries_asked": 8, "queries_left": 22}
    expected |= {"charges_left": guard.charges_left, "charges_spent": guard.history()["charged"].sum()}
    assert {f"holdout_{name}": one for name, one in expected.items()}.items() <= page.data.metrics.items()
    check_complete(client, page.info.run_id, guard.history())  # its charts show all queries
    assert page.data.params["reusable_holdout.queries"] == "30"
    for run in (page, client.get_run(runs[0])):  # and its dataset is a name and a size
        (used,) = run.inputs.dataset_inputs
        dataset = used.dataset
        assert (dataset.source_type, dataset.source, dataset.schema) == ("withheld", "{}", None)
        assert dataset.profile == '{"num_rows": 4000, "metric": "accuracy", "epoch": 1}'
        assert guard.digest.startswith(dataset.digest)
        assert [(tag.key, tag.value) for tag in used.tags] == [("mlflow.data.context", "holdout")]


def test_a_halt_is_on_the_page_once(client, tracked, make_guard, questions, database):
    guard = make_guard(queries=2)
    with pytest.raises(Halted), tracked(guard):
        for predictions, prior in questions:
            guard.evaluate(predictions, prior=prior)
    for _ in range(2):
        sync(guard, tracking_uri=database)
    page = page_of(client, guard)
    assert page.data.tags["holdout_budget"] == "halted: all queries asked"
    assert page.data.tags["mlflow.note.content"].count("The guard has halted") == 1
    assert page.data.metrics["holdout_halted"] == 1


def test_the_note_of_a_halt_says_why_and_what_can_still_be_had(make_guard, labels):
    for settings, prior, words in (
        ({"queries": 1}, 1.0, "all 1 declared queries are asked, and only a final can still be had"),
        ({"tolerance": None, "charges": 1}, 0.2, "no charge is left of 1, and only a final"),
    ):
        guard = make_guard(ledger=None, **settings)
        guard.evaluate(labels, prior=prior)
        assert f"after answer 1: {words}" in halt_note(guard, guard.halt_reason)


def test_a_final_is_logged_is_a_halt_and_agrees_with_nothing(client, tracked, make_guard, labels):
    guard = make_guard()
    with tracked(guard) as run:
        guard.evaluate(labels, prior=1.0)
        guard.final(labels)
    data = client.get_run(run.run_id).data
    assert data.tags["holdout_budget"] == "halted: final given"
    assert data.tags["holdout_overfitting"] == "answered by a final"
    note = data.tags["mlflow.note.content"]
    assert "after answer 2: a final was given, and nothing new will be learnt from this holdout" in note
    answers = client.get_metric_history(run.run_id, "holdout_answer")
    assert sorted((one.step, one.value) for one in answers) == [(1, 1.0), (2, 1.0)]
    assert data.metrics["holdout_queries_left"] == 29


def test_a_choice_takes_as_many_queries_as_it_has_candidates(client, tracked, make_guard, labels):
    guard = make_guard(choices=[3])
    with tracked(guard) as run:
        guard.choose([labels, 1 - labels, labels // 2], [0.99, 0.01, 0.5])
        guard.evaluate(labels, prior=0.99)
    left = client.get_metric_history(run.run_id, "holdout_queries_left")
    assert sorted((one.step, one.value) for one in left) == [(1, 27.0), (2, 26.0)]
    metrics = page_of(client, guard).data.metrics
    assert (metrics["holdout_queries_asked"], metrics["holdout_queries_left"]) == (4, 26)
    nats = client.get_metric_history(run.run_id, "holdout_nats")
    assert {one.step: one.value for one in nats} == dict(zip((1, 2), guard.history()["nats"], strict=True))


def test_of_several_who_make_a_page_at_once_one_makes_it(server, make_guard):
    uri, _ = server
    guard, start = make_guard(seed=None), threading.Barrier(4, timeout=60)

    def find(_):
        page = HoldoutPage(guard, MlflowClient(uri))
        start.wait()
        try:
            page.find("0")
        except BaseException:
            start.abort()  # else the others would wait for it
            raise
        start.wait()
        return page.find("0")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(find, range(4)))
    assert found == [page_of(MlflowClient(uri), guard).info.run_id] * 4


def test_page_and_note_are_refreshed_while_the_loop_runs(client, tracked, make_guard, questions):
    guard = make_guard()
    with tracked(guard, live=False) as run:
        guard.evaluate(questions[0][0], prior=0.999)
        run._log.follow()
        page = page_of(client, guard)
        assert page.data.metrics["holdout_queries_asked"] == 1
        assert len(table(client, page, "history.csv")) == 1
        note = client.get_experiment_by_name("churn").tags["mlflow.note.content"]
        assert note.splitlines()[0].count("Overfitted: guard of accuracy by 0.") == 1


def test_another_ledger_for_the_same_rows_has_its_files_on_the_same_page(
    client, tracked, make_guard, tmp_path, questions
):
    guards = [make_guard(), make_guard(ledger=tmp_path / "second.db")]  # one seed, so one digest
    for number, guard in enumerate(guards, start=1):
        with tracked(guard):
            for predictions, _ in questions[:number]:
                guard.evaluate(predictions, prior=0.9)
    page = page_of(client, guards[0])
    assert page.data.metrics["holdout_queries_asked"] == 1
    assert page.data.metrics["holdout_runs"] == 2
    (folder,) = [file.path for file in client.list_artifacts(page.info.run_id) if file.is_dir]
    assert len(table(client, page, "history.csv")) == 1
    assert len(table(client, page, f"{folder}/history.csv")) == 2
