"""Guarded studies: what is asked, what trials keep of it, and halts that nobody can miss."""

import json
import sqlite3

import numpy as np
import optuna
import pytest
from cases import for_each, refuses
from made_guards import made_guard
from reusable_holdout_optuna import GuardCallback, GuardedStudy, guard_results
from sklearn.linear_model import LogisticRegression

from reusable_holdout.errors import Halted, InputError, ModelError
from reusable_holdout.metrics import mae

RELEASED = ("low", "high", "charged", "prior", "query", "charges_left")


def states(study):
    return [trial.state.name for trial in study.trials]


def asked(study):
    return [trial.number for trial in study.trials if "guard_answer" in trial.user_attrs]


def by_study(study, guard, predict, func, n_trials, **settings):
    GuardedStudy(study, guard, predict, **settings).optimize(func, n_trials)


def by_callback(study, guard, predict, func, n_trials, **settings):
    study.optimize(func, n_trials, callbacks=[GuardCallback(guard, predict, **settings)])


@pytest.fixture(params=[by_study, by_callback])
def run(request):
    """Run a study in either way, a guarded one or a callback."""
    return request.param


# ---- what is asked


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        ((0.6, 0.5, 0.7, 0.7, 0.65, 0.75), {}, [0, 2, 5]),
        ((0.6, 0.5, 0.7), {"ask": "all"}, [0, 1, 2]),
        ((0.5, 0.55, 0.4, 0.6, 0.7), {"n_startup_trials": 3}, [3, 4]),
    ],
    ids=["new bests", "all", "after the startup"],
)
def test_the_trials_that_are_due_are_asked_about_once(
    study, make_guard, told, run, values, settings, expected
):
    objective, predict = told(*values)
    guard = make_guard()
    run(study, guard, predict, objective, len(values), **settings)
    assert guard_results(study)["trial"].tolist() == expected
    assert guard.history()["prior"].tolist() == [values[number] for number in expected]
    assert guard.history()["name"].tolist() == [f"trial {number}" for number in expected]
    assert (asked(study) == expected) == (run is by_study)


def test_a_smaller_loss_is_a_new_best(make_guard, run):
    study = optuna.create_study(direction="minimize")
    guard = make_guard(y=np.zeros(2_000), metric=mae(lower=0.0, upper=1.0), estimate=0.3)
    values = [0.5, 0.6, 0.4]
    predict = lambda trial: np.full(2_000, values[trial.number])  # noqa: E731
    run(study, guard, predict, lambda trial: values[trial.number], 3)
    assert guard_results(study)["trial"].tolist() == [0, 2]
    best = GuardedStudy(study, guard, predict).best
    assert (best.number, best.answer) == (2, 0.4)


def test_failed_pruned_and_impossible_trials_are_not_asked_about(study, make_guard, told):
    objective, predict = told(
        optuna.TrialPruned(), float("nan"), float("-inf"), ValueError("mine"), "no number", 0.6
    )
    guarded = GuardedStudy(study, make_guard(), predict, ask="all")
    guarded.optimize(objective, n_trials=6, catch=(ValueError,))
    assert states(study) == ["PRUNED", "FAIL", "COMPLETE", "FAIL", "FAIL", "COMPLETE"]
    assert asked(study) == [5]
    by_callback(study, guarded.guard, predict, objective, 1, ask="all")
    assert guarded.guard.queries_asked == 1


def test_a_study_that_is_continued_asks_about_better_trials_only(study, make_guard, told):
    objective, predict = told(0.6, 0.5, 0.55, 0.7)
    guard = make_guard()
    for _ in range(2):
        GuardedStudy(study, guard, predict).optimize(objective, n_trials=2)
    assert asked(study) == [0, 3]


def test_a_best_that_nobody_asked_about_is_asked_about_at_the_end(study, make_guard, told):
    """It was a startup trial, or one of the study before it was guarded."""
    objective, predict = told(0.5, 0.7, 0.4, 0.6, 0.65)
    guard = make_guard()
    guarded = GuardedStudy(study, guard, predict, n_startup_trials=2)
    guarded.optimize(objective, n_trials=5)
    assert asked(study) == []
    assert guarded.guard_results["trial"].tolist() == [1]
    assert study.user_attrs["guard_trial_1"]["guard_answer"] == 0.7
    guarded.optimize(objective, n_trials=1)
    assert guard.queries_asked == 1


def test_a_best_that_cannot_be_asked_about_at_the_end_is_a_halt(study, make_guard, told, scoring):
    objective, predict = told(0.7, 0.5)
    guard = make_guard(queries=1)
    spend = lambda _, trial: trial.number and guard.evaluate(scoring(0.5), prior=0.5)  # noqa: E731
    with pytest.raises(Halted):
        GuardedStudy(study, guard, predict, n_startup_trials=2).optimize(objective, 2, callbacks=[spend])
    assert states(study) == ["COMPLETE", "COMPLETE"]
    assert study.user_attrs == {"guard_halted": "queries"}


def test_a_study_of_impossible_trials_has_nothing_to_confirm(study, make_guard, told):
    objective, predict = told(float("-inf"), float("nan"))
    guard = make_guard()
    GuardedStudy(study, guard, predict).optimize(objective, n_trials=2)
    GuardedStudy(optuna.create_study(direction="maximize"), guard, predict).optimize(objective, n_trials=0)
    assert guard.queries_asked == 0


def test_models_are_asked_about_with_the_holdouts_features(study, make_guard):
    X = np.random.default_rng(3).normal(size=(2_600, 3))
    y = (X[:, 0] > 0).astype(int)
    guard = make_guard(X=X[600:], y=y[600:], estimate=0.9)
    model = LogisticRegression().fit(X[:600], y[:600])
    GuardedStudy(study, guard, lambda trial: model).optimize(lambda trial: 0.95, n_trials=2)
    (row,) = guard_results(study).to_dict("records")
    assert (row["trial"], row["answer"], row["charged"]) == (0, 0.95, False)


@pytest.mark.parametrize("startup", [0, 4])
def test_of_several_objectives_the_guarded_one_decides_what_is_asked(make_guard, told, run, startup):
    guard, (objective, predict) = make_guard(), told(0.6, 0.5, 0.7, 0.65)
    study = optuna.create_study(directions=["minimize", "maximize"])
    wish = {"objective": 1, "n_startup_trials": startup}
    run(study, guard, predict, lambda trial: (100.0 - trial.number, objective(trial)), 4, **wish)
    expected = [0, 2] if not startup else [2] * (run is by_study)  # a callback is not told of the end
    assert guard_results(study)["trial"].tolist() == expected
    assert guard.history()["prior"].tolist() == [(0.6, 0.5, 0.7)[number] for number in expected]
    assert not expected or study.user_attrs["guard_best"]["number"] == 2
    assert [trial.number for trial in study.best_trials] == [2, 3]


# ---- what is kept


def test_what_is_kept_is_what_history_shows(study, make_guard, told, run):
    objective, predict = told(0.6, 0.9, 0.95, accuracies=[0.6, 0.7, 0.7])
    guard = make_guard()
    run(study, guard, predict, objective, 3)
    history = guard.history()
    assert history["charged"].tolist() == [False, True, True]
    assert [trial.value for trial in study.trials] == [0.6, 0.9, 0.95]  # what the sampler sees
    for trial, row in zip(study.trials, history.to_dict("records"), strict=True):
        released = {f"guard_{name}": row[name] for name in RELEASED}
        measured = row["measured"] if row["charged"] else None  # an agreed answer is the prior
        released |= {"guard_replayed": False, "guard_answer": row["value"], "guard_measured": measured}
        of_study = study.user_attrs.get(f"guard_trial_{trial.number}", {})
        assert (trial.user_attrs, of_study) == ((released, {}) if run is by_study else ({}, released))
        assert trial.system_attrs == {}


def test_the_best_is_the_one_with_the_best_answer(study, make_guard, told):
    objective, predict = told(0.7, 0.9, accuracies=[0.7, 0.5])
    guarded = GuardedStudy(study, make_guard(), predict)
    assert guarded.best is None
    assert guarded.guard_results.empty
    guarded.optimize(objective, n_trials=2)
    assert study.best_trial.number == 1
    assert (guarded.best.number, guarded.best.answer) == (0, 0.7)
    assert study.user_attrs == {"guard_best": guarded.best._asdict()}
    assert repr(guarded).startswith("<GuardedStudy: 'no-name")


def test_the_same_model_again_is_a_replay_after_its_question(study, make_guard, scoring):
    guard = make_guard()
    guarded = GuardedStudy(study, guard, lambda trial: scoring(0.6), ask="all")
    guarded.optimize(lambda trial: 0.6, n_trials=3)
    table = guarded.guard_results
    assert table["replayed"].tolist() == [False, True, True]
    assert table["trial"].tolist() == [0, 1, 2]
    columns = (
        "trial",
        "params",
        "prior",
        "answer",
        "measured",
        "charged",
        "low",
        "high",
        "query",
        "replayed",
    )
    assert list(table) == [*columns, "charges_left"]
    assert guard.queries_asked == 1


# ---- halts of a guarded study


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("catch", [(), (Exception,)])
def test_a_halt_ends_the_study_and_is_raised(study, make_guard, told, n_jobs, catch):
    objective, predict = told(*np.linspace(0.84, 0.86, 20).tolist(), accuracies=[0.7] * 20)
    guard = make_guard(charges=2)
    guarded = GuardedStudy(study, guard, predict, ask="all")
    raised = refuses(Halted, "", guarded.optimize, objective, n_trials=20, n_jobs=n_jobs, catch=catch)
    assert raised.reason == guard.halt_reason
    assert raised.history["charged"].sum() == 2
    assert study.user_attrs["guard_halted"] == guard.halt_reason
    assert set(states(study)) <= {"COMPLETE", "PRUNED"}
    assert len(study.trials) <= 2 + 2 * n_jobs
    assert len(asked(study)) == guard.queries_asked
    for trial in study.trials:
        assert ("guard_answer" in trial.user_attrs) != ("guard_halted" in trial.user_attrs)


def test_a_refused_question_leaves_its_trial_complete(study, make_guard, told, scoring):
    """The budget goes to somebody else while the trial runs."""
    objective, predict = told(0.6, 0.7)
    guard = make_guard(queries=2)

    def slow(trial):
        value = objective(trial)
        if trial.number == 1:
            guard.evaluate(scoring(0.5), prior=0.5)
        return value

    refuses(Halted, "", GuardedStudy(study, guard, predict).optimize, slow, n_trials=5)
    assert states(study) == ["COMPLETE", "COMPLETE"]
    assert study.trials[1].user_attrs == {"guard_halted": "queries"}
    assert study.trials[1].value == 0.7


def test_trials_that_start_after_a_halt_are_pruned_and_not_run(study, make_guard, told):
    objective, predict = told(0.6, 0.7, 0.8)
    ran, guard = [], make_guard(queries=2)
    guarded = GuardedStudy(study, guard, predict)

    def counted(trial):
        ran.append(trial.number)
        return objective(trial)

    guarded.optimize(counted, n_trials=2)  # a budget that is just enough is no halt
    assert guard.halted
    assert "guard_halted" not in study.user_attrs
    # no trial is started
    refuses(Halted, "all 2 declared queries are asked", guarded.optimize, counted, n_trials=10)
    assert states(study) == ["COMPLETE", "COMPLETE"]
    with pytest.raises(Halted):
        GuardedStudy(study, make_guard(queries=1), predict, ask="all").optimize(counted, n_trials=10)
    assert ran == [0, 1, 2]
    assert states(study)[2:] == ["COMPLETE", "PRUNED"]
    assert study.trials[3].user_attrs == {"guard_halted": "queries"}


def test_an_objective_that_is_halted_by_itself_is_pruned(study, make_guard, told, scoring):
    guard, other, (_, predict) = make_guard(queries=1), make_guard(), told(0.6)
    guard.evaluate(scoring(0.5), prior=0.5)
    objective = lambda trial: guard.evaluate(scoring(0.6), prior=0.6).value  # noqa: E731
    with pytest.raises(Halted):
        GuardedStudy(study, other, predict).optimize(objective, n_trials=3, catch=(Exception,))
    assert states(study) == ["PRUNED"]


def test_an_interrupt_is_no_halt(study, make_guard, told):
    objective, predict = told(0.6, KeyboardInterrupt())
    refuses(KeyboardInterrupt, "", GuardedStudy(study, make_guard(), predict).optimize, objective, n_trials=3)
    assert states(study) == ["COMPLETE", "FAIL"]


# ---- halts of a study with a callback


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_halt_stops_a_study_with_a_warning(study, make_guard, told, n_jobs):
    objective, predict = told(0.6, 0.7, 0.8, 0.9)
    confirm = GuardCallback(make_guard(queries=2), predict, ask="all")
    with pytest.warns(RuntimeWarning, match="the study was stopped: the guard has halted: all 2 declared"):
        study.optimize(objective, n_trials=20, n_jobs=n_jobs, callbacks=[confirm], catch=(Exception,))
    assert study.user_attrs["guard_halted"] == "queries"
    assert len(study.trials) <= 1 + 2 * n_jobs
    assert set(states(study)) == {"COMPLETE"}
    assert len(guard_results(study)) == 2


def test_a_halt_elsewhere_stops_this_study(study, make_guard, told, scoring):
    objective, predict = told(0.6)
    guard = make_guard(queries=1)
    guard.evaluate(scoring(0.5), prior=0.5)
    with pytest.warns(RuntimeWarning, match="this question was not answered"):
        by_callback(study, guard, predict, objective, 5)
    assert len(study.trials) == 1
    assert guard_results(study).empty


def test_a_loop_of_ask_and_tell_is_ended_by_the_halt_itself(study, make_guard, told):
    objective, predict = told(0.6, 0.7, 0.8)
    confirm = GuardCallback(make_guard(queries=2), predict)

    def loop():
        for _ in range(5):
            trial = study.ask()
            confirm(study, study.tell(trial, objective(trial)))

    refuses(Halted, "", loop)
    assert states(study) == ["COMPLETE", "COMPLETE"]
    assert study.user_attrs["guard_halted"] == "queries"


# ---- wrong use


@for_each(
    ("directions", "settings", "message"),
    [
        (["minimize"], {}, "must maximize it; this one is to minimize"),
        (["maximize"] * 2, {}, "this one has 2; nothing was asked; pass objective=0"),
        (["minimize", "maximize"], {"objective": 2}, "objective must be from 0 to 1"),
        (["minimize", "maximize"], {"objective": 0}, "must maximize"),
        (["maximize"], {"metric": "zero_one_loss", "estimate": 0.3}, "smaller is better, so the study must"),
    ],
)
def test_a_study_that_does_not_fit_is_refused(make_guard, told, directions, settings, message):
    objective = {name: settings[name] for name in settings if name == "objective"}
    guard = make_guard(**{name: settings[name] for name in settings if name != "objective"})
    study = optuna.create_study(directions=directions)
    refuses(InputError, message, GuardedStudy, study, guard, told(0.6)[1], **objective)
    with pytest.raises(InputError, match=message):  # after the first trial
        by_callback(study, guard, told(0.6)[1], lambda trial: [0.6] * len(directions), 3, **objective)
    assert len(study.trials) == 1
    assert guard.queries_asked == 0


@for_each(
    ("settings", "message"),
    [
        ({"ask": "best"}, '"new-best" or "all"'),
        *(({"n_startup_trials": one}, "n_startup_trials must be a whole") for one in (-1, 2.5, True)),
        *(({"objective": one}, "objective must be a whole") for one in (-1, True, "first")),
        ({"predict": np.zeros(3)}, "got ndarray"),
    ],
)
def test_wrong_settings_are_refused(study, make_guard, told, settings, message):
    wish = {"guard": make_guard(), "predict": told(0.6)[1], **settings}
    refuses(InputError, message, GuardedStudy, study, **wish)
    refuses(InputError, message, GuardCallback, **wish)


def test_guards_that_do_not_score_a_trial_are_refused(study, make_guard, told):
    guard = make_guard(gates=True, threshold=None)
    refuses(InputError, r"plan is for gates.*guard\.gate", GuardedStudy, study, guard, told(0.6)[1])


@pytest.mark.parametrize(
    ("value", "predictions", "message"),
    [(70.0, np.zeros(2_000, dtype=int), r"a prior must be a number in \[0, 1\]"), (0.7, [0, 1], "shape")],
)
def test_what_does_not_fit_fails_the_trial_and_costs_nothing(study, make_guard, value, predictions, message):
    guard = make_guard()
    refuses(InputError, message, by_study, study, guard, lambda trial: predictions, lambda trial: value, 3)
    assert states(study) == ["FAIL"]
    assert guard.queries_asked == 0


class Crashing:
    """A model that fails on the holdout, and says what it saw."""

    def predict(self, X):
        raise RuntimeError(f"row {X[0]}")


def test_a_model_that_fails_on_the_holdout_fails_its_trial(study, make_guard):
    guard = make_guard(X=np.full((2_000, 1), 0.123456789))
    with pytest.raises(ModelError, match="took one charge"):
        by_study(study, guard, lambda trial: Crashing(), lambda trial: 0.6, 3)
    assert states(study) == ["FAIL"]
    assert "0.123456789" not in json.dumps([study.trials[0].user_attrs, study.trials[0].system_attrs])


# ---- leaks


def test_everything_a_storage_keeps_is_the_same_for_holdouts_that_agree(tmp_path, labels, scoring):
    """The models score 0.69 on one holdout and 0.71 on the other; the prior 0.7 is near enough to both."""
    kept = []
    for score in (0.69, 0.71):
        url = f"sqlite:///{tmp_path / f'{score}.db'}"
        study = optuna.create_study(direction="maximize", storage=url, study_name="one")
        with made_guard(None, labels, tolerance=0.15, queries=20, seed=1) as guard:
            predictions = scoring(score)
            by_study(study, guard, lambda trial, p=predictions: p, lambda trial: 0.7, 2)
        connection = sqlite3.connect(tmp_path / f"{score}.db")
        tables = ("trial_user_attributes", "trial_system_attributes", "study_user_attributes")
        tables += ("study_system_attributes", "trial_values", "trial_intermediate_values", "trial_params")
        kept.append([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables])
        connection.close()
    assert kept[0] == kept[1]
    assert "0.7" in json.dumps(kept[0])


def test_no_attribute_holds_the_exact_score(study, make_guard, told, run):
    """Charged answers are told in steps: 0.6125 is nowhere."""
    objective, predict = told(0.8, 0.9, accuracies=[0.6125, 0.6125])
    run(study, make_guard(), predict, objective, 2)
    assert guard_results(study)["charged"].all()
    everything = json.dumps([study.user_attrs, *[[t.user_attrs, t.system_attrs] for t in study.trials]])
    assert "guard_answer" in everything
    assert "0.6125" not in everything + repr(study.trials)


def test_a_study_ends_with_one_final_that_names_the_best_trial(tmp_path):
    labels = np.random.default_rng(0).integers(0, 2, 3_000)

    def predictions(trial):
        wrong = np.random.default_rng(trial.number).random(3_000) > trial.params["x"]
        return np.where(wrong, 1 - labels, labels)

    guard = made_guard(None, labels, queries=20, charges=2, estimate=0.8)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
    guarded = GuardedStudy(study, guard, predictions, n_startup_trials=100)
    refuses(InputError, "completed trials", guarded.final)
    study.optimize(lambda trial: trial.suggest_float("x", 0.6, 0.9), n_trials=12)
    best = guarded.final(trials=10)
    values = {trial.number: (predictions(trial) == labels).mean() for trial in study.trials}
    assert best.answer == pytest.approx(values[best.number], abs=1e-9)
    assert best.low < study.trials[best.number].value < best.high
    assert values[best.number] == max(values.values())
    assert study.user_attrs["guard_final"]["number"] == best.number
    assert guarded.final(trials=10) == best  # a replay, free
    refuses(InputError, "the final was of 10 models; got 2 of them", guarded.final, trials=2)
    refuses(InputError, "trials must be a whole number", guarded.final, trials=-1)
    refuses(Halted, "", guarded.final, trials=2 + 10)
