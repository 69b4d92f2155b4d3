"""The page of a holdout gathers all queries of all runs."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from integrations.mlflow.answers_in import check_complete
from mlflow import MlflowClient
from reusable_holdout_mlflow import sync, track
from reusable_holdout_mlflow.page import HoldoutPage
from reusable_holdout_mlflow.search import pages_of
from reusable_holdout_mlflow.words import halt_note

from reusable_holdout.errors import Halted


def page_of(client, guard):
    (page,) = pages_of(client, guard.digest)
    return page


def table(client, page, name):
    return pd.read_csv(client.download_artifacts(page.info.run_id, name))


def test_a_page_gathers_all_queries_of_all_runs(database, make_guard, questions):
    guard, client = make_guard(), MlflowClient(database)
    other = client.create_experiment("spam")
    runs = []
    for experiment, some in [("churn", questions[:3]), ("spam", questions[3:4]), ("churn", questions[4:])]:
        with track(guard, experiment=experiment, tracking_uri=database) as tracked:
            for predictions, prior in some:
                guard.evaluate_predictions(predictions, prior=prior)
        runs.append(tracked.run_id)
    page = page_of(client, guard)
    for run in runs:
        tags = client.get_run(run).data.tags
        assert tags["reusable_holdout.page_run"] == page.info.run_id
        assert "mlflow.parentRunId" not in tags
    assert page.info.status == "FINISHED"
    assert page.info.experiment_id != other
    files = {file.path for file in client.list_artifacts(page.info.run_id)}
    assert files == {"history.csv", "history.png", "gap_and_budget.png", "runs.csv"}
    assert table(client, page, "history.csv")["value"].tolist() == guard.history()["value"].tolist()
    asked = table(client, page, "runs.csv").set_index("experiment")
    assert asked["runs"].to_dict() == {"churn": 2, "spam": 1}
    assert asked["queries"].to_dict() == {"churn": 7, "spam": 1}
    assert len(set(asked["user"])) == 1
    expected = {"runs": 3, "experiments": 2, "users": 1, "queries_asked": 8, "queries_left": 22, "halted": 0}
    expected |= {"charges_left": guard.charges_left, "charges_spent": guard.history()["charged"].sum()}
    metrics = {f"holdout_{name}": value for name, value in expected.items()}
    assert metrics.items() <= page.data.metrics.items()
    check_complete(client, page.info.run_id, guard.history())  # its charts show all queries
    assert page.data.params["reusable_holdout.queries"] == "30"


def test_the_page_has_a_dataset_without_rows(database, make_guard):
    guard, client = make_guard(), MlflowClient(database)
    with track(guard, experiment="churn", tracking_uri=database) as tracked:
        pass
    for run in (page_of(client, guard), client.get_run(tracked.run_id)):
        (used,) = run.inputs.dataset_inputs
        assert (used.dataset.source_type, used.dataset.source, used.dataset.schema) == (
            "withheld",
            "{}",
            None,
        )
        assert used.dataset.profile == '{"num_rows": 4000, "metric": "accuracy", "epoch": 1}'
        assert [(tag.key, tag.value) for tag in used.tags] == [("mlflow.data.context", "holdout")]


def test_a_halt_is_on_the_page_too(database, make_guard, questions):
    guard, client = make_guard(queries=2), MlflowClient(database)
    with pytest.raises(Halted), track(guard, experiment="churn", tracking_uri=database):
        for predictions, prior in questions:
            guard.evaluate_predictions(predictions, prior=prior)
    for _ in range(2):
        sync(guard, tracking_uri=database)
    page = page_of(client, guard)
    assert page.data.tags["holdout_budget"] == "halted: all queries asked"
    assert page.data.tags["mlflow.note.content"].count("The guard has halted") == 1
    assert page.data.metrics["holdout_halted"] == 1


def test_the_note_of_a_halt_says_why_and_what_can_still_be_had(make_guard, labels):
    guard = make_guard(queries=1, ledger=None)
    guard.evaluate_predictions(labels, prior=1.0)
    note = halt_note(guard, guard.halt_reason)
    assert "after answer 1: all 1 declared queries are asked, and only a final can still be had" in note
    guard = make_guard(tolerance=None, charges=1, ledger=None)
    guard.evaluate_predictions(labels, prior=0.2)
    assert "after answer 1: no charge is left of 1, and only a final" in halt_note(guard, guard.halt_reason)


def test_a_final_is_logged_and_is_a_halt(database, make_guard, labels):
    guard, client = make_guard(), MlflowClient(database)
    with track(guard, tracking_uri=database) as tracked:
        guard.evaluate_predictions(labels, prior=1.0)
        guard.final_predictions(labels)
    data = client.get_run(tracked.run_id).data
    assert data.tags["holdout_budget"] == "halted: final given"
    note = data.tags["mlflow.note.content"]
    assert "after answer 2: a final was given, and nothing new will be learnt from this holdout" in note
    answers = client.get_metric_history(tracked.run_id, "holdout_answer")
    assert sorted((one.step, one.value) for one in answers) == [(1, 1.0), (2, 1.0)]
    assert data.metrics["holdout_queries_left"] == 29


def test_a_choice_takes_as_many_queries_as_it_has_candidates(database, make_guard, labels):
    guard, client = make_guard(), MlflowClient(database)
    with track(guard, tracking_uri=database) as tracked:
        guard.choose_predictions([labels, 1 - labels, labels // 2], [0.99, 0.01, 0.5])
        guard.evaluate_predictions(labels, prior=0.99)
    left = client.get_metric_history(tracked.run_id, "holdout_queries_left")
    assert sorted((one.step, one.value) for one in left) == [(1, 27.0), (2, 26.0)]
    metrics = page_of(client, guard).data.metrics
    assert (metrics["holdout_queries_asked"], metrics["holdout_queries_left"]) == (4, 26)
    nats = client.get_metric_history(tracked.run_id, "holdout_nats")
    assert {one.step: one.value for one in nats} == dict(zip((1, 2), guard.history()["nats"], strict=True))


def test_of_several_who_make_a_page_at_once_one_makes_it(server, make_guard):
    uri, _ = server
    guard, client = make_guard(seed=None), MlflowClient(uri)
    start = threading.Barrier(4, timeout=60)

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
    assert found == [page_of(client, guard).info.run_id] * 4


def test_page_and_note_are_refreshed_while_the_loop_runs(database, make_guard, questions):
    guard, client = make_guard(), MlflowClient(database)
    with track(guard, experiment="churn", tracking_uri=database, live=False) as tracked:
        guard.evaluate_predictions(questions[0][0], prior=0.999)
        tracked._log.follow()
        tracked._log.follow_page()
        page = page_of(client, guard)
        assert page.data.metrics["holdout_queries_asked"] == 1
        assert len(table(client, page, "history.csv")) == 1
        note = client.get_experiment_by_name("churn").tags["mlflow.note.content"]
        assert note.splitlines()[0].count("Overfitted: guard of accuracy by 0.") == 1


def test_another_ledger_for_the_same_rows_has_its_files_on_the_same_page(
    database, make_guard, tmp_path, questions
):
    guards = [make_guard(), make_guard(ledger=tmp_path / "second.db")]  # one seed, so one digest
    for number, guard in enumerate(guards, start=1):
        with track(guard, experiment="churn", tracking_uri=database):
            for predictions, _ in questions[:number]:
                guard.evaluate_predictions(predictions, prior=0.9)
    client = MlflowClient(database)
    page = page_of(client, guards[0])
    assert page.data.metrics["holdout_queries_asked"] == 1
    assert page.data.metrics["holdout_runs"] == 2
    (folder,) = [file.path for file in client.list_artifacts(page.info.run_id) if file.is_dir]
    assert len(table(client, page, "history.csv")) == 1
    assert len(table(client, page, f"{folder}/history.csv")) == 2


def test_comparisons_alone_can_be_drawn(database, make_guard, labels):
    guard, client = make_guard(), MlflowClient(database)
    with track(guard, experiment="churn", tracking_uri=database):
        guard.compare_predictions(labels, np.roll(labels, 1), prior=0.5)
    assert page_of(client, guard).data.metrics["holdout_queries_asked"] == 1
