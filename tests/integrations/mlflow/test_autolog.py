"""One line, and every search that asks a guard is logged."""

import inspect
import warnings

import mlflow
import numpy as np
import pytest
from cases import refuses
from integrations.mlflow.answers_in import check_complete
from made_guards import made_guard
from mlflow import MlflowClient
from mlflow.utils import autologging_utils
from mlflow.utils.autologging_utils import disable_autologging
from reusable_holdout_mlflow import autolog
from reusable_holdout_mlflow.winner import SILENCE
from reusable_holdout_sklearn import GuardedSearchCV, guarded_scorer, prior_scorer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from reusable_holdout.errors import Halted, HoldoutError

pytestmark = pytest.mark.long("integrations/reusable_holdout_mlflow", "reusable_holdout")
GRID = {"C": [1e-4, 1.0]}


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 3))
    return X, (X[:, 0] + rng.normal(size=5_000) > 0).astype(int)


@pytest.fixture
def make_guard(rows, tmp_path):
    def make(**settings):
        X, y = rows
        defaults = {"tolerance": 0.15, "queries": 30, "seed": 0, "ledger": tmp_path / "guard.db"}
        return made_guard(X[1_000:], y[1_000:], **{**defaults, **settings})

    return make


@pytest.fixture
def runs(current):
    """The analyst's runs of the current experiment; our autologging is on."""
    experiment = current.get_experiment_by_name("churn").experiment_id
    autolog()
    yield lambda: [
        run for run in current.search_runs([experiment]) if "reusable_holdout.page" not in run.data.tags
    ]
    autolog(disable=True)


@pytest.fixture
def mlflows():
    """Switch MLflow's own autologging on; it is off after the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, about versions and schemas
        yield lambda **wish: mlflow.sklearn.autolog(
            **{"log_models": False, "log_datasets": False, "log_input_examples": False, **wish}
        )
        mlflow.sklearn.autolog(disable=True)


def fit(search, rows):
    X, y = rows
    return search.fit(X[:1_000], y[:1_000])


def scored(guard, **settings):
    return GridSearchCV(
        LogisticRegression(), GRID, scoring=guarded_scorer(guard), cv=2, **{"refit": False, **settings}
    )


def guarded(guard, grid=GRID):
    return GuardedSearchCV(
        GridSearchCV(LogisticRegression(), grid, scoring=prior_scorer(guard), cv=2), guard, ask="choose"
    )


@pytest.mark.parametrize("make", [scored, guarded])
def test_a_search_that_asks_a_guard_is_one_run(runs, make_guard, rows, make):
    guard = make_guard()
    search = fit(make(guard), rows)
    (run,) = runs()
    assert (run.info.run_name, run.info.status) == (type(search).__name__, "FINISHED")
    check_complete(MlflowClient(), run.info.run_id, guard.history())
    assert mlflow.active_run() is None


def test_a_search_without_a_guard_is_left_alone(runs, rows):
    fit(GridSearchCV(LogisticRegression(), GRID, cv=2), rows)
    assert runs() == []


def test_a_halt_passes_and_finishes_the_run(runs, make_guard, rows):
    refuses(Halted, "", fit, scored(make_guard(queries=3)), rows)
    (run,) = runs()
    assert run.info.status == "FINISHED"
    # each prior, a score of 500 rows, is further off than the threshold of 0.027
    assert run.data.tags["holdout_budget"] == "halted: budget spent"
    assert mlflow.active_run() is None


def test_an_error_passes_and_fails_the_run(runs, make_guard, rows):
    refuses(ValueError, "inconsistent numbers", scored(make_guard()).fit, rows[0][:10], rows[1][:9])
    assert [run.info.status for run in runs()] == ["FAILED"]


def test_on_twice_is_on_and_off_restores_what_was_there(database):
    before = {search: vars(search).get("fit") for search in (GuardedSearchCV, GridSearchCV.__mro__[1])}
    for _ in range(2):
        autolog()
    assert all(vars(search)["fit"] is not fit for search, fit in before.items())
    assert inspect.signature(GridSearchCV.fit) == inspect.signature(before[GridSearchCV.__mro__[1]])
    for _ in range(2):
        autolog(disable=True)
    assert {search: vars(search).get("fit") for search in before} == before
    assert "fit" not in vars(RandomizedSearchCV)


def test_a_dead_server_does_not_stop_a_search(runs, make_guard, rows, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    guard = make_guard()
    with (
        pytest.warns(RuntimeWarning, match="the search goes on") as told,
        pytest.warns(RuntimeWarning, match="the guard goes on"),
        pytest.warns(RuntimeWarning, match="nothing was lost"),
    ):
        fit(scored(guard), rows)
    assert {one.filename for one in told} == {__file__}
    assert guard.queries_asked == 4


# ---- beside the autologging of MLflow


def switch_on(mlflows, first, **wish):
    """Switch both on, in either order."""
    if first == "mlflow":
        autolog(disable=True)
    mlflows(**wish)
    autolog()


@pytest.mark.parametrize("first", ["ours", "mlflow"])
def test_both_are_in_one_run(runs, mlflows, make_guard, rows, first):
    guard = make_guard()
    switch_on(mlflows, first)
    fit(scored(guard, refit=True), rows)
    (run,) = [run for run in runs() if "mlflow.parentRunId" not in run.data.tags]
    assert run.data.params["cv"] == "2"
    check_complete(MlflowClient(), run.info.run_id, guard.history())


@pytest.mark.parametrize("first", ["ours", "mlflow"])
@pytest.mark.parametrize("models", [True, False])
def test_a_guarded_search_logs_its_winner_alone(runs, mlflows, make_guard, rows, first, models):
    """The refitted candidates logged themselves into the run: eight models, and the scores of the last one."""
    guard = make_guard()
    switch_on(mlflows, first, log_models=models)
    found = fit(guarded(guard, {"C": [1e-4, 1e-3, 1.0, 10.0]}), rows)
    (run,) = runs()
    metrics = {name: value for name, value in run.data.metrics.items() if not name.startswith("holdout_")}
    score = found.best_estimator_.score(rows[0][:1_000], rows[1][:1_000])
    assert metrics == {"training_score": score, "training_accuracy_score": score}
    assert run.data.params["best_C"] == str(found.best_params_["C"])
    logged = MlflowClient().search_logged_models([run.info.experiment_id])
    assert len(logged) == models
    if models:
        loaded = mlflow.sklearn.load_model(f"models:/{logged[0].model_id}")
        assert loaded.get_params() == found.best_estimator_.get_params()
    check_complete(MlflowClient(), run.info.run_id, guard.history())


def test_after_a_guarded_search_that_halts_or_fails_mlflow_logs_again(runs, mlflows, make_guard, rows):
    mlflows()
    refuses((HoldoutError, Halted), "", fit, guarded(make_guard(queries=1)), rows)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        guarded(make_guard(ledger=None)).fit(rows[0][:10], rows[1][:9])
    fit(LogisticRegression(C=7.0), rows)
    assert sum(run.data.params.get("C") == "7.0" for run in runs()) == 1


def test_autologging_that_was_off_is_off_after_a_guarded_search(runs, mlflows, make_guard, rows):
    mlflows()
    with disable_autologging():
        fit(guarded(make_guard()), rows)
        fit(LogisticRegression(C=7.0), rows)
    (run,) = runs()
    assert run.info.run_name == "GuardedSearchCV"
    assert not {"training_score"} & set(run.data.metrics)


def test_autologging_comes_back_with_the_last_of_two_guarded_searches_at_once(mlflows):
    mlflows()
    with SILENCE as first:
        with SILENCE as second:
            assert autologging_utils._AUTOLOGGING_GLOBALLY_DISABLED
        assert autologging_utils._AUTOLOGGING_GLOBALLY_DISABLED
    assert (first, second) == (True, True)
    assert not autologging_utils._AUTOLOGGING_GLOBALLY_DISABLED


def test_an_exclusive_autologging_logs_no_winner_to_a_run_of_the_users(runs, mlflows, make_guard, rows):
    mlflows(exclusive=True)
    with mlflow.start_run(run_name="mine"):
        fit(guarded(make_guard()), rows)
    (run,) = runs()
    assert "training_score" not in run.data.metrics
    assert "holdout_answer" in run.data.metrics
