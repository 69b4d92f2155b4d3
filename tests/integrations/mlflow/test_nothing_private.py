"""No unreleased value reaches MLflow: not its database, not its artifacts, not the analyst's active run."""

import sqlite3
import warnings

import mlflow
import numpy as np
import pytest
from guard.test_leaks import MARK, QUESTIONS, ROWS, Secrets, right_in
from made_guards import made_guard
from mlflow import MlflowClient
from reusable_holdout_mlflow import track
from sklearn import metrics
from sklearn.linear_model import LinearRegression, LogisticRegression

from reusable_holdout import Metric
from reusable_holdout.errors import Halted


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(0, 2, ROWS)


@pytest.fixture
def guard(labels, tmp_path):
    X = np.random.default_rng(1).normal(size=(ROWS, 2))
    X[:, 1] = MARK
    wish = {"queries": 40, "charges": 3, "threshold": 0.1, "noise": 0.002, "vacuous": True}
    with made_guard(X, labels, estimate=0.7, seed=17, ledger=tmp_path / "guard.db", **wish) as guard:
        yield guard


@pytest.fixture
def asked(labels):
    return {name: right_in(labels, right) for name, (right, _) in QUESTIONS.items()}


def everything_in(folder):
    """Bytes of all files of a server: database, write-ahead log, artifacts, its own log."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"history.csv", "history.png", "gap_and_budget.png"} <= {path.name for path in files}
    return [path.read_bytes() for path in files]


def numbers_in(database):
    """All numbers of all tables."""
    connection = sqlite3.connect(database)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = [row for table in tables for row in connection.execute(f'SELECT * FROM "{table}"')]
    connection.close()
    return np.array(sorted({float(one) for row in rows for one in row if isinstance(one, int | float)}))


def test_the_server_holds_no_unreleased_value(server, guard, labels, asked):
    uri, folder = server
    secrets = Secrets(guard, labels, asked)
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    by_chance = secrets.found_in(*files)  # answers of tests before, with the digits of a short needle
    with pytest.raises(Halted), track(guard, experiment="leaks", tracking_uri=uri):
        for name, (_, prior) in QUESTIONS.items():
            guard.evaluate(asked[name], prior=prior, name=name)
        for variant in range(1, 30):
            guard.evaluate(right_in(labels, 1_390, variant), prior=0.95)
    assert [one for one in secrets.found_in(*everything_in(folder)) if one not in by_chance] == []
    tags = MlflowClient(uri).get_experiment_by_name("leaks").tags
    assert "charges left" in tags["mlflow.note.content"]  # so the note was there to be searched
    numbers = numbers_in(folder / "mlflow.db")
    assert set(guard.history()["value"]) <= set(numbers)
    for secret in secrets.numbers:
        assert np.abs(numbers - secret).min() > 1e-9
    assert not set(numbers.tolist()) & set(map(float, secrets.units))


def test_the_search_finds_what_is_logged_by_mistake(server, guard, labels, asked):
    uri, folder = server
    secrets, client = Secrets(guard, labels, asked), MlflowClient(uri)
    run, exact = client.create_run("0").info.run_id, QUESTIONS["charged"][0] / ROWS
    client.log_metric(run, "exact", exact)
    try:
        assert np.abs(numbers_in(folder / "mlflow.db") - exact).min() == 0
        assert secrets.found_in(*[path.read_bytes() for path in folder.glob("mlflow.db*")])
    finally:  # the server is shared: leave no trace for the search above
        client.delete_run(run)
        connection = sqlite3.connect(folder / "mlflow.db")
        for table in ("metrics", "latest_metrics"):
            connection.execute(f"DELETE FROM {table} WHERE run_uuid = ?", (run,))
        connection.commit()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()


# ---- the active run


class Scoring:
    """A model that predicts as scikit-learn does, through the methods that autolog watches."""

    def __init__(self, model):
        self.model = model

    def predict(self, X):
        return self.model.predict(X)


ASK = {
    "a fitted model": lambda guard, model, X, y: guard.evaluate(model, prior=0.7),
    "a model with training data": lambda guard, model, X, y: guard.evaluate(model, X, y),
    "a model in another": lambda guard, model, X, y: guard.evaluate(Scoring(model), prior=0.7),
    "two models": lambda guard, model, X, y: guard.compare(model, Scoring(model), prior=0.0),
}


@pytest.fixture
def autologged(current):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, about versions and schemas
        mlflow.sklearn.autolog(log_models=False, log_datasets=False, log_input_examples=False)
        try:
            yield current
        finally:
            mlflow.sklearn.autolog(disable=True)


@pytest.fixture
def rows():
    X = np.random.default_rng(0).normal(size=(1_000 + ROWS, 3))
    return X, (X[:, 0] + np.random.default_rng(1).normal(size=len(X)) > 0).astype(int)


def exact_scores(y, model, X):
    """Return scores that autolog would log of a classifier on these rows."""
    predicted, odds = model.predict(X), model.predict_proba(X)
    of_labels = (metrics.accuracy_score, metrics.f1_score, metrics.precision_score, metrics.recall_score)
    scores = [score(y, predicted) for score in of_labels]
    return np.array([*scores, metrics.log_loss(y, odds), metrics.roc_auc_score(y, odds[:, 1])])


def test_nothing_inside_the_guard_writes_a_metric_to_the_active_run(autologged, rows):
    X, y = rows
    guard = made_guard(X[1_000:], y[1_000:], tolerance=0.2, queries=10)
    with mlflow.start_run() as run:
        model = LogisticRegression().fit(X[:1_000], y[:1_000])

        def logged():
            found = autologged.get_run(run.info.run_id).data.metrics
            return {name: value for name, value in found.items() if not name.startswith("training_")}

        assert autologged.get_run(run.info.run_id).data.metrics  # autolog logs the analyst's own fits
        for how, ask in ASK.items():
            ask(guard, model, X[:1_000], y[:1_000])
            assert logged() == {}, how
        metrics.accuracy_score(y[:1_000], model.predict(X[:1_000]))
        assert len(logged()) == 1  # the twin: autolog does log what is scored outside
    found = [one.data.metrics for one in autologged.search_runs([run.info.experiment_id])]
    exact = exact_scores(y[1_000:], model, X[1_000:])  # autolog sees this one: it comes after the look
    for value in [value for numbers in found for value in numbers.values()]:
        assert np.abs(exact - value).min() > 1e-9


@pytest.mark.parametrize("response", ["labels", "values"])
def test_a_metric_of_the_analysts_own_that_calls_scikit_learn_is_not_logged_either(
    autologged, rows, response
):
    def loss(y, predictions):
        metrics.mean_absolute_error(y, predictions)  # autolog watches it
        return np.clip(np.abs(y - predictions), 0, 1).astype(float)

    X, y = rows[0], rows[1].astype(int if response == "labels" else float)
    own = Metric(name="own", lower=0, upper=1, greater_is_better=False, response=response, loss=loss)
    guard = made_guard(X[1_000:], y[1_000:], tolerance=0.2, queries=10, metric=own)
    with mlflow.start_run() as run:
        model = LogisticRegression() if response == "labels" else LinearRegression()
        model.fit(X[:1_000], y[:1_000])
        before = autologged.get_run(run.info.run_id).data.metrics
        guard.evaluate(model, prior=0.3)
        assert autologged.get_run(run.info.run_id).data.metrics == before
