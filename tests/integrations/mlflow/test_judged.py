"""mlflow.genai.evaluate with a guarded scorer: one answer is logged, and no row's score."""

import json
import sqlite3

import mlflow
import numpy as np
import pytest
from mlflow import MlflowClient
from mlflow.entities import Feedback
from mlflow.genai.scorers import scorer
from reusable_holdout_mlflow import guarded_genai_scorer

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, InputError, Refused

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow.*"),
    pytest.mark.long("integrations/reusable_holdout_mlflow", "reusable_holdout"),
]
ROWS = 120
IDS = [f"task-{number}" for number in range(ROWS)]
JUDGED = dict(zip(IDS, np.random.default_rng(0).beta(6, 2, ROWS), strict=True))
OUTPUTS = {one: f"recorded-output-of-{one}" for one in IDS}
DATA = [{"inputs": {"id": one}} for one in IDS]


def judge(inputs):
    """A deterministic judge of recorded outputs, and a talkative one."""
    with mlflow.start_span("judge") as span:
        span.set_outputs({"score": JUDGED[inputs["id"]]})
    assert OUTPUTS[inputs["id"]].endswith(inputs["id"])
    return JUDGED[inputs["id"]]


@pytest.fixture
def guard(tmp_path):
    settings = {"queries": 10, "tolerance": 0.4, "seed": 0, "vacuous": True, "ledger": tmp_path / "judged.db"}
    with ReusableHoldout(None, IDS, metric="score", **settings) as guard:
        yield guard


@pytest.fixture
def here(database, monkeypatch):
    """MLflow's current server."""
    monkeypatch.setenv(
        "MLFLOW_GENAI_EVAL_MAX_WORKERS", "1"
    )  # SQLite lets one write, and more wait by the second
    mlflow.set_tracking_uri(database)
    mlflow.set_experiment("churn")
    yield database
    mlflow.set_tracking_uri(None)


def evaluate(*scorers, data=DATA):
    return mlflow.genai.evaluate(data=data, scorers=list(scorers))


def everything_in(database, folder):
    """All numbers and all text of the server: database and files."""
    connection = sqlite3.connect(database.removeprefix("sqlite:///"))
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    cells = [
        cell for table in tables for row in connection.execute(f'SELECT * FROM "{table}"') for cell in row
    ]
    connection.close()
    files = [path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file()]
    numbers = {float(cell) for cell in cells if isinstance(cell, int | float)}
    return numbers, "\n".join([str(cell) for cell in cells] + files)


def test_the_run_has_the_guards_answer(here, guard):
    result = evaluate(guarded_genai_scorer(guard, judge, prior=0.75))
    (row,) = guard.history().to_dict("records")
    assert row["name"] == "judge"
    run = MlflowClient().get_run(result.run_id)
    assert run.data.metrics["holdout_answer"] == row["value"] == run.data.metrics["holdout/answer"]
    assert run.data.metrics["holdout_low"] < np.mean(list(JUDGED.values())) < run.data.metrics["holdout_high"]
    assert run.data.tags["holdout_overfitting"] == "agrees with its prior"


@pytest.mark.parametrize("with_outputs", [False, True])
def test_no_rows_score_is_in_traces_assessments_tables_or_files(here, guard, tmp_path, with_outputs):
    data = [{**row, "outputs": OUTPUTS[row["inputs"]["id"]]} for row in DATA] if with_outputs else DATA
    result = evaluate(guarded_genai_scorer(guard, judge, prior=0.75), data=data)
    mlflow.flush_trace_async_logging()
    traces = MlflowClient().search_traces(
        locations=[mlflow.get_experiment_by_name("churn").experiment_id], max_results=500
    )
    assert len(traces) == ROWS  # none of the judge's own
    assert {one.value for trace in traces for one in trace.info.assessments} == {True}
    numbers, text = everything_in(here, tmp_path / "artifacts")
    text += result.result_df.to_csv() + json.dumps(result.metrics)
    for score in JUDGED.values():
        assert score not in numbers
        assert str(score) not in text
    assert np.mean(list(JUDGED.values())) not in numbers
    assert (OUTPUTS[IDS[0]] in text) == with_outputs  # what MLflow is given it writes down


def test_the_search_finds_what_a_plain_scorer_logs(here, guard, tmp_path):
    @scorer
    def plain(inputs):
        return float(JUDGED[inputs["id"]])

    evaluate(plain)
    numbers, text = everything_in(here, tmp_path / "artifacts")
    assert str(JUDGED[IDS[0]]) in text
    assert np.abs(np.array(sorted(numbers)) - np.mean(list(JUDGED.values()))).min() < 1e-12


def test_judges_may_be_scorers_and_answer_in_words(here, guard):
    @scorer
    def short(inputs):
        return Feedback(value="yes" if JUDGED[inputs["id"]] > 0.7 else "no")

    share = np.mean([score > 0.7 for score in JUDGED.values()])
    evaluate(guarded_genai_scorer(guard, short, prior=share))
    (row,) = guard.history().to_dict("records")
    assert (row["name"], row["value"], row["charged"]) == ("short", pytest.approx(share), False)


def test_a_scorer_is_used_again_and_the_same_scores_are_free(here, guard):
    guarded = guarded_genai_scorer(guard, judge, prior=0.75)
    first, again = evaluate(guarded), evaluate(guarded)
    assert first.metrics == again.metrics
    assert guard.queries_asked == 1


def test_a_judge_that_fails_costs_nothing_and_is_not_quoted(here, guard, tmp_path):
    def fails(inputs):
        raise ValueError(f"cannot judge {OUTPUTS[inputs['id']]}")

    with pytest.raises(Refused, match="it failed on 120 of 120, first with ValueError"):
        evaluate(guarded_genai_scorer(guard, fails, prior=0.75))
    assert guard.queries_asked == 0
    _, text = everything_in(here, tmp_path / "artifacts")
    assert "recorded-output" not in text


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (DATA[:-1], "missing"),
        ([*DATA, DATA[0]], "121 rows and 120 ids"),
        ([{"inputs": {"task": 1}}], "under 'id'"),
    ],
)
def test_data_that_are_not_the_guards_ids_are_refused(here, guard, data, problem):
    with pytest.raises(Refused, match=problem):
        evaluate(guarded_genai_scorer(guard, judge, prior=0.75), data=data)
    assert guard.queries_asked == 0


def test_a_halt_leaves_evaluate_as_itself_and_is_in_the_run(here, guard):
    while guard.queries_asked < 10:
        guard.evaluate_predictions(np.array(list(JUDGED.values())), prior=0.7 + guard.queries_asked / 100)
    with pytest.raises(Halted), mlflow.start_run() as run:
        evaluate(guarded_genai_scorer(guard, judge, prior=0.6))
    tags = MlflowClient().get_run(run.info.run_id).data.tags
    assert tags["holdout_budget"] == "halted: all queries asked"


def test_a_guard_of_labels_is_refused():
    guard = ReusableHoldout(None, [0, 1] * 2_000, queries=10, tolerance=0.1)
    with pytest.raises(InputError, match='ids and metric "score"'):
        guarded_genai_scorer(guard, judge, prior=0.75)
