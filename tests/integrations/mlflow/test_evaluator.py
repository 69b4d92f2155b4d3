"""mlflow.models.evaluate answers through the guard, and MLflow gets nothing else of the holdout."""

import sqlite3
import warnings

import mlflow
import numpy as np
import pandas as pd
import pytest
from cases import refuses
from made_guards import made_guard
from mlflow import MlflowClient
from reusable_holdout_mlflow import sync
from reusable_holdout_mlflow.evaluator import HoldoutEvaluator
from reusable_holdout_mlflow.search import pages_of, runs_of
from sklearn.linear_model import LogisticRegression

from reusable_holdout.errors import Halted, InputError, ModelError
from reusable_holdout.guard import has_most_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow.*"),  # of schemas with whole numbers
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
    pytest.mark.long("integrations/reusable_holdout_mlflow", "reusable_holdout"),
]
NAMES = ["a", "b", "c"]


def python_models():
    """Models that are no estimators; made late, for importing mlflow.pyfunc warns."""

    class Sign(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input: pd.DataFrame, params=None):
            with mlflow.start_span("predict") as span:  # what a traced model does with its input
                span.set_inputs({"first": float(np.asarray(model_input)[0, 0])})
            return pd.DataFrame({"label": (np.asarray(model_input)[:, 0] > 0).astype(int)})

    class Fails(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input: pd.DataFrame, params=None):
            if len(model_input) > 2_000:
                raise ValueError(f"row 0 is {np.asarray(model_input)[0]}")
            return np.zeros(len(model_input), dtype=int)

    return {"pyfunc": Sign(), "fails": Fails()}


def draw(seed, rows):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(rows, 3)), columns=NAMES)
    return X, (X["a"] + rng.normal(size=rows) > 0).astype(int).rename("label")


TRAINING, VALIDATION, HOLDOUT = draw(0, 500), draw(1, 1_000), draw(2, 4_000)
DATA = VALIDATION[0].assign(label=VALIDATION[1])
ESTIMATOR = LogisticRegression().fit(*TRAINING)


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluator")
    uri = f"sqlite:///{folder}/mlflow.db"
    mlflow.set_tracking_uri(uri)
    MlflowClient().create_experiment("churn", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("churn")
    yield uri
    mlflow.set_tracking_uri(None)


@pytest.fixture(scope="module")
def models(uri):
    """URIs of logged models."""
    settings = {"pip_requirements": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own
        logged = {
            name: mlflow.pyfunc.log_model(name=name, python_model=model, **settings)
            for name, model in python_models().items()
        }
        settings["serialization_format"] = "cloudpickle"
        logged["estimator"] = mlflow.sklearn.log_model(ESTIMATOR, name="estimator", **settings)
    while mlflow.active_run():
        mlflow.end_run()
    return {name: info.model_uri for name, info in logged.items()}


@pytest.fixture
def make_guard(tmp_path):
    def make(X=HOLDOUT[0], y=HOLDOUT[1], **settings):
        defaults = {"tolerance": 0.1, "queries": 30, "ledger": tmp_path / "guard.db", "seed": 0}
        return made_guard(X, y, **{**defaults, **settings})

    return make


@pytest.fixture
def guard(make_guard):
    return make_guard()


def evaluate(model, *, data=DATA, targets="label", **config):
    wish = {"model_type": "classifier", "evaluators": "reusable_holdout", "evaluator_config": config}
    return mlflow.models.evaluate(model, data, targets=targets, **wish)


def run_of(result):
    return MlflowClient().get_run(result.run_id)


# ---- what is logged


def test_the_result_is_the_guards_answer(models, guard):
    result = evaluate(models["estimator"], guard=guard, prior=0.93, name="first")
    (row,) = guard.history().to_dict("records")
    assert row["name"] == "first"
    assert result.metrics == {
        "holdout_answer": row["value"],
        "holdout_prior": 0.93,
        "holdout_gap": 0.93 - row["value"],
        "holdout_low": row["low"],
        "holdout_high": row["high"],
        "holdout_charged": 1.0,
        "holdout_charges_left": guard.charges_left,
        "holdout_queries_left": 29,
        "holdout_nats": row["nats"],
        "holdout_measured": row["measured"],  # the rows corrected the prior
    }
    run = run_of(result)
    assert run.data.metrics == result.metrics
    assert run.data.tags["holdout_overfitting"].startswith("overfitted by 0.")
    steps = [each.step for each in MlflowClient().get_metric_history(result.run_id, "holdout_answer")]
    assert sorted(steps) == [0, 1]  # the first is MLflow's repetition
    assert set(result.artifacts) == {"holdout_history", "holdout_picture"}
    assert list(result.artifacts["holdout_history"].content["value"]) == [row["value"]]
    assert result.artifacts["holdout_picture"].content.size == (900, 450)


def test_the_metrics_are_on_the_models_page(models, guard):
    result = evaluate(models["estimator"], guard=guard, prior=0.75)
    model = MlflowClient().get_logged_model(models["estimator"].removeprefix("models:/"))
    found = [each for each in model.metrics if each.key == "holdout_low" and each.run_id == result.run_id]
    assert {metric.value for metric in found} == {result.metrics["holdout_low"]}
    assert not [each for each in model.metrics if each.key == "holdout_runs"]  # it is the page's
    (own,) = [metric for metric in found if metric.step == 1]
    assert own.dataset_digest is None  # MLflow repeats it as measured on data=; it was not


def test_the_run_is_on_the_holdouts_page_and_is_not_synced_again(models, make_guard, uri):
    guard = make_guard(seed=1)
    runs = {evaluate(models["estimator"], guard=guard, prior=prior).run_id for prior in (0.75, 0.76)}
    assert {run.info.run_id for run in runs_of(MlflowClient(), guard.digest)} == runs
    (page,) = pages_of(MlflowClient(), guard.digest)
    assert page.data.metrics["holdout_runs"] == 2
    assert page.data.metrics["holdout_queries_asked"] == 2
    inputs = MlflowClient().get_run(min(runs)).inputs.dataset_inputs
    assert f"holdout {guard.digest[:8]}" in {each.dataset.name for each in inputs}
    assert sync(guard, tracking_uri=uri) == ((), 0)


def test_one_run_takes_several_models_and_one_holdout(models, guard, make_guard, tmp_path):
    other = make_guard(ledger=tmp_path / "other.db")
    with mlflow.start_run():
        evaluate(models["estimator"], guard=guard, prior=0.75)
        result = evaluate(models["pyfunc"], guard=guard, prior=0.75)
        refuses(InputError, "another run", evaluate, models["pyfunc"], guard=other, prior=0.75)
    tags = run_of(result).data.tags
    assert (tags["reusable_holdout.first_query"], tags["reusable_holdout.last_query"]) == ("1", "2")
    assert other.queries_asked == 0


def test_the_same_logged_model_and_prior_replay(models, guard):
    first, again = (evaluate(models["estimator"], guard=guard, prior=0.75) for _ in range(2))
    assert again.metrics == first.metrics
    assert again.run_id != first.run_id
    with mlflow.start_run(run_id=again.run_id):
        assert evaluate(models["estimator"], guard=guard, prior=0.75).metrics == first.metrics
    assert guard.queries_asked == 1


def test_a_trace_has_no_row_of_the_holdout(models, guard):
    evaluate(models["pyfunc"], guard=guard)
    mlflow.flush_trace_async_logging()
    traces = MlflowClient().search_traces(locations=[mlflow.get_experiment_by_name("churn").experiment_id])
    seen = {span.inputs["first"] for trace in traces for span in trace.data.spans if span.inputs}
    assert float(VALIDATION[0].iloc[0, 0]) in seen  # traces are on, for what is the analyst's
    assert float(HOLDOUT[0].iloc[0, 0]) not in seen


def test_the_server_holds_no_exact_score(uri, models, guard):
    result, exact = evaluate(models["estimator"], guard=guard), ESTIMATOR.score(*HOLDOUT)
    database = sqlite3.connect(uri.removeprefix("sqlite:///"))
    logged = [value for (value,) in database.execute("SELECT value FROM metrics")]
    database.close()
    assert result.metrics["holdout_answer"] in logged
    assert exact not in {result.metrics["holdout_answer"], result.metrics["holdout_prior"]}
    assert not any(abs(value - exact) < 1e-12 for value in logged)


# ---- the prior


def test_the_prior_is_the_score_on_the_analysts_data(models, guard, make_guard, tmp_path):
    found = evaluate(models["estimator"], guard=guard)
    assert found.metrics["holdout_prior"] == pytest.approx(ESTIMATOR.score(*VALIDATION))
    assert guard.history()["name"].tolist() == ["LogisticRegression"]
    found = evaluate(models["pyfunc"], guard=guard)  # no estimator
    assert found.metrics["holdout_prior"] == np.mean((VALIDATION[0]["a"] > 0) == VALIDATION[1])
    brier = {"metric": "brier", "tolerance": 0.25, "ledger": tmp_path / "brier.db"}
    guard = make_guard(HOLDOUT[0].to_numpy(), HOLDOUT[1].to_numpy(), **brier)
    data, labels = VALIDATION[0].to_numpy(), VALIDATION[1].to_numpy()
    found = evaluate(models["estimator"], data=data, targets=labels, guard=guard)
    probabilities = ESTIMATOR.predict_proba(VALIDATION[0])[:, 1]
    assert found.metrics["holdout_prior"] == pytest.approx(np.mean((probabilities - labels) ** 2))


# ---- failures and halts


def test_a_failure_on_the_holdout_is_a_charge_without_words_and_on_data_free(models, guard):
    with pytest.raises(ValueError, match="feature names"):
        evaluate(models["estimator"], data=DATA.rename(columns={"a": "z"}), guard=guard, prior=0.7)
    assert guard.queries_asked == 0
    caught = refuses(ModelError, "", evaluate, models["fails"], guard=guard)
    assert "row 0" not in str(caught)
    assert guard.history()["charged"].tolist() == [True]


def test_a_halt_leaves_evaluate_as_itself_and_is_in_the_run(models, make_guard):
    guard = make_guard(queries=1)
    last = evaluate(models["estimator"], guard=guard, prior=0.75)
    assert run_of(last).data.metrics["holdout_halted"] == 1.0
    with pytest.raises(Halted), mlflow.start_run() as run:
        evaluate(models["pyfunc"], guard=guard, prior=0.75)
    run = MlflowClient().get_run(run.info.run_id)
    assert run.info.status == "FAILED"
    assert run.data.tags["holdout_budget"] == "halted: all queries asked"
    assert "halted" in run.data.tags["mlflow.note.content"]
    assert run.data.metrics == {"holdout_halted": 1.0}


# ---- the holdout as data


def test_the_holdout_as_data_is_refused(models, guard):
    for data in (HOLDOUT[0], HOLDOUT[0][:2_001], pd.concat([VALIDATION[0], HOLDOUT[0]])):
        with pytest.raises(InputError, match="most of the holdout's rows are in it"):
            evaluate(models["estimator"], data=data.assign(label=0), guard=guard, prior=0.75)
    assert guard.queries_asked == 0


def test_the_holdout_is_known_in_any_order_and_type_and_one_row_of_it_is_not(guard, make_guard, tmp_path):
    X, rng = HOLDOUT[0], np.random.default_rng(0)
    for rows in (X.sample(frac=1.0, random_state=0), X.astype(np.float32), X[NAMES[::-1]]):
        assert has_most_rows(rows, guard)
    for rows in (X[:1], VALIDATION[0][:1]):  # else an analyst could ask whether a record is in the holdout
        assert not has_most_rows(rows, guard)
    few, other = (pd.DataFrame(rng.integers(0, 2, (n, 3)), columns=NAMES) for n in (4_000, 20_000))
    assert not has_most_rows(
        other, make_guard(few, ledger=tmp_path / "few.db")
    )  # rows that chance makes alike
    text = X.assign(b=np.where(X["b"] > 0, "yes", "no"))
    of_text = make_guard(text, ledger=tmp_path / "text.db")
    assert has_most_rows(text, of_text)
    assert not has_most_rows(text.assign(a=text["a"] + 1), of_text)


def test_that_some_rows_of_data_are_the_holdouts_is_told_as_a_charge(models, guard):
    data = pd.concat([VALIDATION[0], HOLDOUT[0][:2_000]]).assign(label=0)
    caught = refuses(ModelError, "", evaluate, models["estimator"], data=data, guard=guard, prior=0.75)
    assert guard.history()["charged"].tolist() == [True]
    assert "row" not in str(caught).replace("rows", "")


# ---- configurations


def test_configurations_that_do_not_fit_are_refused(models, guard):
    for config, problem in (
        ({"guard": "guard.db"}, "must be a ReusableHoldout"),
        ({"guard": guard, "priors": 0.9}, "got guard, priors"),
    ):
        refuses(InputError, problem, evaluate, models["estimator"], **config)
    wish = {
        "model_type": "classifier",
        "evaluators": "reusable_holdout",
        "evaluator_config": {"guard": guard},
    }
    data = DATA.assign(predicted=0)
    with pytest.raises(InputError, match="pass model="):
        mlflow.models.evaluate(data=data, targets="label", predictions="predicted", **wish)


def test_an_evaluation_without_its_configuration_does_not_ask():
    assert not HoldoutEvaluator.can_evaluate(model_type="classifier", evaluator_config={})
    assert HoldoutEvaluator.can_evaluate(model_type=None, evaluator_config={"guard": None})
