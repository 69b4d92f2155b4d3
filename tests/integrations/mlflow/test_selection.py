"""Runs are chosen by what was certified, and models are registered with their certificate."""

import mlflow
import numpy as np
import pytest
from cases import refuses
from made_guards import right_in
from reusable_holdout_mlflow import best_run, final_of_runs, register_certified, track

from reusable_holdout.errors import InputError


@pytest.mark.parametrize("metric", ["accuracy", "zero_one_loss"])
def test_the_best_run_has_the_best_certified_end(database, make_guard, labels, metric):
    guard = make_guard(metric=metric)
    refuses(InputError, "none was found", best_run, guard, tracking_uri=database)
    answers, runs = [], []
    for shares in [(0.7, 0.75), (0.9, 0.6), (0.8,)]:  # the best is not the last of its run
        with track(guard, experiment="churn", tracking_uri=database) as tracked:
            for share in shares:
                prior = share if guard.metric.greater_is_better else 1 - share
                predictions = right_in(labels, share, len(answers))
                answers.append(guard.evaluate(predictions, prior=prior))
        runs.append(tracked.run_id)
    best = best_run(guard, tracking_uri=database)
    assert best == (runs[1], 3, answers[2].value, answers[2].low, answers[2].high)
    assert best_run(guard.digest, experiment="churn", tracking_uri=database) == best
    refuses(InputError, "none was found", best_run, guard, experiment="Default", tracking_uri=database)


def test_a_registered_model_carries_its_certificate(current, make_guard, questions, tmp_path):
    guard, folder = make_guard(), tmp_path / "model"
    answer = guard.evaluate(questions[0][0], prior=0.9)
    folder.mkdir()
    (folder / "MLmodel").write_text("flavors: {}\n")
    for number in ("1", "2"):
        assert str(register_certified(folder.as_uri(), "churn", guard, answer).version) == number
    tags = current.get_model_version("churn", "2").tags
    assert {name.removeprefix("reusable_holdout."): value for name, value in tags.items()} == {
        **{name: str(getattr(answer, name)) for name in ("value", "low", "high", "query")},
        "confidence": "0.95",
        "digest": guard.digest,
        "epoch": "1",
        "metric": "accuracy",
        "direction": "max",
    }


def test_only_an_answer_of_the_guard_about_one_model_certifies(current, make_guard, labels, tmp_path):
    guard, other = make_guard(), make_guard(ledger=tmp_path / "other.db", seed=1)
    answer = guard.evaluate(labels, prior=0.99)
    other.evaluate(labels, prior=0.5)
    difference = guard.compare(labels, np.roll(labels, 1), prior=0.5)
    for one, given, words in (
        (other, answer, "has another answer"),
        (guard, answer._replace(low=0.999), "has another answer"),
        (guard, difference, "compares two models"),
    ):
        refuses(InputError, words, register_certified, "models:/none/1", "churn", one, given)
    assert current.search_registered_models() == []


def test_a_project_ends_with_one_final_of_the_models_of_its_runs(current, make_guard, labels):
    guard, runs, scores = make_guard(), {}, (0.7, 0.9, 0.8)
    for score in scores:
        with mlflow.start_run() as run:
            mlflow.log_metric("cv", score)
            runs[run.info.run_id] = score

    def model(run):
        return right_in(labels, runs[run.info.run_id])

    refuses(InputError, "got no runs", final_of_runs, guard, [], prior="cv")
    refuses(InputError, "has cv; nothing was asked", final_of_runs, guard, [*runs], prior="auc", model=model)
    refuses(InputError, "cannot be loaded; nothing was asked", final_of_runs, guard, [*runs], prior="cv")
    assert guard.queries_asked == 0
    best = final_of_runs(guard, [*runs], prior="cv", model=model)
    assert best.run_id == [*runs][1]
    assert best.low < 0.9 < best.high
    tags = current.get_run(best.run_id).data.tags
    assert tags["holdout_final"].startswith("best of 3: 0.9")
    assert float(tags["reusable_holdout.final_low"]) == best.low
    assert guard.halt_reason == "final"
    again = final_of_runs(guard, [current.get_run(run) for run in runs], prior="cv", model=model)
    assert again == best  # a replay
    part = [*runs][:1]
    refuses(InputError, "was of 3 models; got 1", final_of_runs, guard, part, prior="cv", model=model)
    assert "holdout_final" not in current.get_run(part[0]).data.tags


def test_an_agreed_answer_is_logged_as_no_measured_value(current, make_guard, labels):
    guard = make_guard()
    with track(guard) as tracked:
        guard.evaluate(right_in(labels, 0.9), prior=0.9)
        guard.evaluate(right_in(labels, 0.6), prior=0.95)
    told = {
        name: current.get_metric_history(tracked.run_id, f"holdout_{name}") for name in ("answer", "measured")
    }
    assert [one.step for one in told["answer"]] == [1, 2]
    assert [one.step for one in told["measured"]] == [2]
    assert guard.history()["measured"].notna().tolist() == [False, True]
