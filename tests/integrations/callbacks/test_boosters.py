"""XGBoost and LightGBM: what is asked, with which prior, and what comes of a halt."""

import copy
import pickle
import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from cases import refuses
from integrations.callbacks.boosters import BOOSTERS, NAMES
from integrations.callbacks.conftest import Rows
from made_guards import made_guard
from reusable_holdout_callbacks import XGBoostCallback
from sklearn import metrics

from reusable_holdout.errors import Halted, InputError
from reusable_holdout.metrics import mae, mse, negated, rmse


@pytest.fixture(params=BOOSTERS)
def library(request):
    return request.param


@pytest.fixture
def train(library, rows):
    """Train with one callback, ``train(callback, score, kind=...)``; the library has its own names of the scores."""
    names, run = NAMES[library], BOOSTERS[library][1]

    def run_it(callback, score="error", *, kind="two", on=rows, **wish):
        return run(on, kind, [callback], score and names[score][kind], **wish)

    return run_it


@pytest.fixture
def Callback(library):
    return BOOSTERS[library][0]


# ---- what is asked, and how


def test_each_round_is_asked_about_with_the_validation_score_as_its_prior(train, Callback, make_guard):
    guard, scores = make_guard(), []
    asked = Callback(guard)
    train(asked)
    assert [one.round for one in asked.answers] == [1, 2, 3, 4, 5, 6]
    history = guard.history()
    assert history["name"].tolist() == [f"round {number}" for number in range(1, 7)]
    seen = Callback(make_guard(), prior=lambda given: scores.append(copy.deepcopy(given)) or 0.5)
    train(seen)
    assert len(scores) == 6
    assert last_of(scores[-1]) == [pytest.approx(1 - history["prior"].iloc[-1], abs=1e-6)]
    assert repr(asked) == f"<{Callback.__name__}: {guard!r}>"


def last_of(given):
    """Scores of the last round, in what a library gives to a function."""
    if isinstance(given, dict):
        return [values[-1] for found in given.values() for values in found.values()]
    return [one[2] for one in given]


@pytest.fixture
def spied(monkeypatch):
    """Models that a guard is asked about."""

    def make(guard):
        models, evaluate = [], guard.evaluate
        spy = lambda model, **wish: models.append(model) or evaluate(model, **wish)  # noqa: E731
        monkeypatch.setattr(guard, "evaluate", spy)
        return models

    return make


def test_what_is_asked_about_is_the_model_of_that_round_here_and_in_a_worker(
    train, Callback, make_guard, rows, spied
):
    guard = make_guard()
    models = spied(guard)
    booster = train(Callback(guard))
    assert len(models) == 6
    for number, model in enumerate(models, start=1):
        told = outputs(booster, rows.X_held, number)
        for one in (model, pickle.loads(pickle.dumps(model))):
            assert np.allclose(one.predict_proba(rows.X_held)[:, 1], told, atol=1e-6)
            assert (one.predict(rows.X_held) == (told > 0.5)).all()


def outputs(booster, X, rounds):
    if isinstance(booster, xgboost.Booster):
        return booster.predict(xgboost.DMatrix(X), iteration_range=(0, rounds))
    return booster.predict(X, num_iteration=rounds)


METRICS = {  # the guard's metric, the library's score, the labels, and scikit-learn's function
    "accuracy": ("accuracy", "error", "two", lambda y, p: metrics.accuracy_score(y, p > 0.5)),
    "accuracy of three": ("accuracy", "error", "three", lambda y, p: np.mean(y == p.argmax(axis=1))),
    "zero_one_loss": ("zero_one_loss", "error", "two", lambda y, p: metrics.zero_one_loss(y, p > 0.5)),
    "log_loss": ("log_loss", "log_loss", "two", metrics.log_loss),
    "log_loss of three": ("log_loss", "log_loss", "three", metrics.log_loss),
    "neg_log_loss": ("neg_log_loss", "log_loss", "two", lambda y, p: -metrics.log_loss(y, p)),
    "roc_auc": ("roc_auc", "auc", "two", metrics.roc_auc_score),
    "average_precision": ("average_precision", "average_precision", "two", metrics.average_precision_score),
    "mae": (mae(lower=-4, upper=4), "mae", "value", metrics.mean_absolute_error),
    "rmse": (rmse(lower=-4, upper=4), "rmse", "value", metrics.root_mean_squared_error),
    "neg_mae": (negated(mae(lower=-4, upper=4)), "mae", "value", lambda y, p: -np.abs(y - p).mean()),
    "mse": (mse(lower=-4, upper=4), "mse", "value", metrics.mean_squared_error),
}


@pytest.mark.parametrize("case", METRICS)
def test_the_librarys_score_is_the_guards_metric(train, library, Callback, make_guard, rows, case):
    metric, score, kind, measured = METRICS[case]
    if score not in NAMES[library]:
        pytest.skip(f"{library} does not measure {score} by that name")
    guard = make_guard(kind, metric=metric, estimate=None)
    asked = Callback(guard, every=3)
    booster = train(asked, score, kind=kind)
    plain = measured(getattr(rows, kind)[1], outputs(booster, rows.X_valid, 6))
    # the area of XGBoost is interpolated, and no more than nearly average precision
    assert guard.history()["prior"].iloc[-1] == pytest.approx(plain, abs=0.02 if "average" in case else 1e-4)
    answer = asked.answers[-1].answer
    held = measured(getattr(rows, kind)[2], outputs(booster, rows.X_held, 6))
    assert answer.low - 1e-9 <= held <= answer.high + 1e-9


def test_every_so_many_rounds_and_the_last(train, Callback, make_guard):
    asked = Callback(make_guard(), every=4)
    train(asked, rounds=10)
    assert [one.round for one in asked.answers] == [4, 8, 10]


def test_the_same_training_is_replayed_free_by_whoever_asks(train, Callback, make_guard):
    guard = make_guard()
    first, again = Callback(guard), Callback(guard, every=2)
    train(first)
    train(again)
    train(first)
    assert guard.queries_asked == 6
    assert all(one.answer.replayed for one in [*first.answers, *again.answers])
    assert [one.round for one in again.answers] == [2, 4, 6]


def test_early_stopping_beside_it_is_no_other_model_and_stops_as_before(train, Callback, make_guard):
    guard = make_guard()
    train(Callback(guard), rounds=30)
    beside = Callback(guard)
    booster = train(beside, rounds=30, early=3)
    assert guard.queries_asked == 30  # what early stopping notes is no part of a model
    assert booster.best_iteration < 29
    assert 0 < len(beside.answers) < 30


def test_a_booster_that_was_cut_to_its_best_round_is_asked_about_as_that_round(make_guard, rows):
    guard = make_guard()
    asked = XGBoostCallback(guard, every=100)
    stop = xgboost.callback.EarlyStopping(rounds=3, save_best=True)
    booster = BOOSTERS["xgboost"][1](rows, "two", [stop, asked], "error", rounds=30)
    assert [one.round for one in asked.answers] == [booster.num_boosted_rounds()]


def test_frames_and_arrays_are_taken(train, Callback, make_guard):
    rows = Rows(lambda X: pd.DataFrame(X, columns=list("abcd")))
    asked = Callback(make_guard(X=rows.X_held))
    train(asked, on=rows)
    assert len(asked.answers) == 6


def test_labels_stand_for_the_guards_classes(train, Callback, make_guard, rows, spied):
    words = np.array(["high", "low", "middle"])
    guard = make_guard(y=words[rows.three[2]])
    models = spied(guard)
    booster = train(Callback(guard), kind="three")
    told = outputs(booster, rows.X_held, 6).argmax(axis=1)
    assert models[-1].predict(rows.X_held).tolist() == words[told].tolist()


def test_a_booster_of_fewer_classes_says_which(train, Callback, make_guard, rows):
    guard = make_guard(classes=[0, 1, 2])
    refuses(InputError, r"2 classes, and .* must have the same length; it has 3", train, Callback(guard))
    with pytest.raises(InputError, match=r"2 classes, .* the guard's set of labels is private"):
        train(Callback(make_guard(classes="private")))
    for one in (guard, make_guard(classes="private")):
        asked = Callback(one, classes=[0, 1])
        train(asked)
        assert len(asked.answers) == 6


# ---- scikit-learn's way in


def test_classifiers_with_the_callback_fit_predict_and_are_pickled(
    library, Callback, make_guard, rows, tmp_path
):
    guard = make_guard(ledger=tmp_path / "guard.db", witness=False)
    asked, rows_of_set = Callback(guard, every=3), [(rows.X_valid, rows.two[1])]
    if library == "xgboost":
        model = xgboost.XGBClassifier(n_estimators=6, n_jobs=1, eval_metric="error", callbacks=[asked])
        model.fit(rows.X, rows.two[0], eval_set=rows_of_set, verbose=False)
        assert pickle.loads(pickle.dumps(model)).predict(rows.X).shape == (len(rows.X),)
    else:
        model = lightgbm.LGBMClassifier(n_estimators=6, n_jobs=1, verbose=-1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # from 4.7 on eval_set has another name
            wish = {"eval_set": rows_of_set, "eval_metric": "binary_error"}
            model.fit(rows.X, rows.two[0], callbacks=[asked], **wish)
    assert [one.round for one in asked.answers] == [3, 6]
    assert [one.round for one in pickle.loads(pickle.dumps(asked)).answers] == [3, 6]


# ---- a halt


def test_a_halt_is_raised_out_of_the_training_with_the_answers(train, Callback, make_guard):
    asked = Callback(make_guard(queries=3))
    caught = refuses(Halted, "", train, asked)
    assert len(asked.answers) == len(caught.history) == 3
    assert caught.answers == [one.answer for one in asked.answers]


def test_a_halt_can_stop_the_training_and_keep_the_model(train, library, Callback, make_guard, rows):
    asked = Callback(make_guard(queries=3), on_halt="stop")
    with pytest.warns(RuntimeWarning, match="stopped after round 4: the guard has halted"):
        booster = train(asked, rounds=30)
    assert (booster.num_boosted_rounds() if library == "xgboost" else booster.num_trees()) == 4
    assert metrics.accuracy_score(rows.two[1], outputs(booster, rows.X_valid, 4) > 0.5) > 0.7
    assert len(asked.answers) == 3


# ---- what is refused, before anything is asked


def test_without_a_validation_score_the_first_round_says_what_to_pass(train, library, Callback, make_guard):
    guard = make_guard()
    sets = {"xgboost": r'evals=\[\(dvalid, "valid"\)\]', "lightgbm": r"valid_sets=\[valid\]"}[library]
    name = NAMES[library]["error"]["two"]
    with pytest.raises(InputError, match=rf'the scores are: none; nothing was asked; pass {sets}.*"{name}"'):
        train(Callback(guard, every=5), valid=None)
    with pytest.raises(InputError, match=r"guard's metric, accuracy; the scores are: valid-\w*logloss"):
        train(Callback(guard, every=5), "log_loss")
    refuses(InputError, "the scores are: train-", train, Callback(guard, every=5), valid="train")
    assert guard.queries_asked == 0


def test_a_metric_that_no_library_measures_needs_a_function(train, Callback, make_guard):
    with pytest.raises(InputError, match="and prior= a function of its scores"):
        train(Callback(make_guard(metric="f1", prevalence=0.5)))


def test_a_score_by_name_must_be_there_and_of_the_guards_metric(train, library, Callback, make_guard):
    guard, name = make_guard(), NAMES[library]["error"]["two"]
    with pytest.raises(InputError, match=rf"there is no score 'f1'; the scores of a round are: valid-{name}"):
        train(Callback(guard, prior="f1"))
    loss = NAMES[library]["log_loss"]["two"]
    with pytest.raises(InputError, match=f"{loss} is log_loss; nothing was asked"):
        train(Callback(guard, prior=loss), "log_loss")
    assert guard.queries_asked == 0
    for named in (name, f"valid-{name}"):
        train(Callback(guard, prior=named))
    assert guard.queries_asked == 6


def test_an_objective_without_probabilities_is_told_what_to_train_with(train, library, Callback, make_guard):
    guard = make_guard()
    objective = {"xgboost": "reg:squarederror", "lightgbm": "regression"}[library]
    advice = {"xgboost": "binary:logistic", "lightgbm": "binary"}[library]
    with pytest.raises(InputError, match=f'its objective is {objective}; .* train with objective="{advice}"'):
        train(Callback(guard), objective=objective)
    assert guard.queries_asked == 0


def test_what_ranks_rows_is_enough_for_an_area(make_guard, rows):
    asked = XGBoostCallback(make_guard(metric="roc_auc"))
    BOOSTERS["xgboost"][1](rows, "two", [asked], "auc", objective="binary:logitraw")
    assert asked.answers[-1].answer.value > 0.8


def test_softmax_tells_probabilities_too(make_guard, rows):
    asked = XGBoostCallback(make_guard("three", metric="log_loss"))
    BOOSTERS["xgboost"][1](rows, "three", [asked], "mlogloss", objective="multi:softmax")
    assert asked.answers[-1].answer.value < 0.9


def test_cross_validation_is_refused_in_plain_words(library, Callback, make_guard, rows):
    guard = make_guard()
    if library == "xgboost":
        data = xgboost.DMatrix(rows.X, rows.two[0])
        run = lambda callback: xgboost.cv({"objective": "binary:logistic"}, data, callbacks=[callback])  # noqa: E731
    else:
        data = lightgbm.Dataset(rows.X, rows.two[0])
        run = lambda callback: lightgbm.cv({"objective": "binary", "verbose": -1}, data, callbacks=[callback])  # noqa: E731
    refuses(InputError, rf"{library}\.cv trains a model for each fold", run, Callback(guard))
    assert guard.queries_asked == 0


def test_what_does_not_fit_is_refused_when_the_callback_is_made(Callback, make_guard, rows):
    guard = make_guard()
    labels = made_guard(None, rows.two[2], queries=5, tolerance=0.2, seed=0, vacuous=True)
    for given, match in (
        ([], "guard must be a ReusableHoldout; got list"),
        (labels, "holds labels only"),
        (make_guard(gates=True, threshold=None), r"plan is for gates.*guard\.gate"),
    ):
        refuses(InputError, match, Callback, given)
    for wish, match in (
        *(({"every": every}, "every must be a whole number of rounds") for every in (0, 1.5, True)),
        ({"on_halt": "warn"}, 'on_halt must be "raise" or "stop"'),
        ({"prior": 0.9}, "prior must be the name of a validation score or a function"),
        ({"evry": 2}, "did you mean every="),
    ):
        refuses(InputError, match, Callback, guard, **wish)
