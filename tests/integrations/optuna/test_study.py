"""Guarded studies: what is asked, what trials keep of it, and halts that nobody can miss."""

import json
import sqlite3

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from reusable_holdout_optuna import GuardCallback, GuardedStudy, guard_results
from sklearn.linear_model import LogisticRegression

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, InputError, ModelError
from reusable_holdout.metrics import mae

ATTRIBUTES = {
    "guard_answer": "value",
    "guard_low": "low",
    "guard_high": "high",
    "guard_charged": "charged",
    "guard_prior": "prior",
    "guard_query": "query",
    "guard_charges_left": "charges_left",
}


def states(study):
    return [trial.state.name for trial in study.trials]


def asked(study):
    return [trial.number for trial in study.trials if "guard_answer" in trial.user_attrs]


# ---- what is asked


def test_each_new_best_is_asked_about_once(study, make_guard, told):
    objective, predict = told(0.6, 0.5, 0.7, 0.7, 0.65, 0.75)
    guard = make_guard()
    GuardedStudy(study, guard, predict).optimize(objective, n_trials=6)
    assert asked(study) == [0, 2, 5]
    assert guard.history()["prior"].tolist() == [0.6, 0.7, 0.75]
    assert guard.history()["name"].tolist() == ["trial 0", "trial 2", "trial 5"]


def test_all_trials_are_asked_about_if_wanted(study, make_guard, told):
    objective, predict = told(0.6, 0.5, 0.7)
    GuardedStudy(study, make_guard(), predict, ask="all").optimize(objective, n_trials=3)
    assert asked(study) == [0, 1, 2]


def test_a_smaller_loss_is_a_new_best(make_guard):
    study = optuna.create_study(direction="minimize")
    guard = make_guard(y=np.zeros(2_000), metric=mae(lower=0.0, upper=1.0), estimate=0.3)
    values = [0.5, 0.6, 0.4]
    guarded = GuardedStudy(study, guard, lambda trial: np.full(2_000, values[trial.number]))
    guarded.optimize(lambda trial: values[trial.number], n_trials=3)
    assert asked(study) == [0, 2]
    assert (guarded.best.number, guarded.best.answer) == (2, 0.4)


def test_failed_pruned_and_impossible_trials_are_not_asked_about(study, make_guard, told):
    objective, predict = told(
        optuna.TrialPruned(), float("nan"), float("-inf"), ValueError("mine"), "no number", 0.6
    )
    guard = make_guard()
    GuardedStudy(study, guard, predict, ask="all").optimize(objective, n_trials=6, catch=(ValueError,))
    assert states(study) == ["PRUNED", "FAIL", "COMPLETE", "FAIL", "FAIL", "COMPLETE"]
    assert asked(study) == [5]
    assert guard.queries_asked == 1


def test_a_study_that_is_continued_asks_about_better_trials_only(study, make_guard, told):
    objective, predict = told(0.6, 0.5, 0.55, 0.7)
    guard = make_guard()
    for _ in range(2):
        GuardedStudy(study, guard, predict).optimize(objective, n_trials=2)
    assert asked(study) == [0, 3]


def test_startup_trials_are_not_asked_about(study, make_guard, told):
    objective, predict = told(0.5, 0.55, 0.4, 0.6, 0.7)
    GuardedStudy(study, make_guard(), predict, n_startup_trials=3).optimize(objective, n_trials=5)
    assert asked(study) == [3, 4]


def test_a_best_that_nobody_asked_about_is_asked_about_at_the_end(study, make_guard, told):
    """A startup trial, or one of the study before it was guarded."""
    objective, predict = told(0.5, 0.7, 0.4, 0.6, 0.65)
    guard = make_guard()
    guarded = GuardedStudy(study, guard, predict, n_startup_trials=2)
    guarded.optimize(objective, n_trials=5)
    assert asked(study) == []
    assert guarded.guard_results["trial"].tolist() == [1]
    assert guarded.best_trial == study.best_trial
    assert study.user_attrs["guard_trial_1"]["guard_answer"] == 0.7
    guarded.optimize(objective, n_trials=1)
    assert guard.queries_asked == 1


def test_a_best_that_cannot_be_asked_about_at_the_end_is_a_halt(study, make_guard, told, scoring):
    objective, predict = told(0.7, 0.5)
    guard = make_guard(queries=1)
    with pytest.raises(Halted):
        GuardedStudy(study, guard, predict, n_startup_trials=2).optimize(
            objective,
            n_trials=2,
            callbacks=[lambda _, trial: trial.number and guard.evaluate_predictions(scoring(0.5), prior=0.5)],
        )
    assert states(study) == ["COMPLETE", "COMPLETE"]
    assert study.user_attrs == {"guard_halted": "queries"}


def test_a_study_of_impossible_trials_has_nothing_to_confirm(study, make_guard, told):
    objective, predict = told(float("-inf"), float("nan"))
    guard = make_guard()
    GuardedStudy(study, guard, predict).optimize(objective, n_trials=2)
    GuardedStudy(optuna.create_study(direction="maximize"), guard, predict).optimize(objective, n_trials=0)
    assert guard.queries_asked == 0


def test_models_are_asked_about_with_the_holdouts_features(study, make_guard):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2_600, 3))
    y = (X[:, 0] > 0).astype(int)
    guard = make_guard(X=X[600:], y=y[600:], estimate=0.9)
    model = LogisticRegression().fit(X[:600], y[:600])
    GuardedStudy(study, guard, lambda trial: model).optimize(lambda trial: 0.95, n_trials=2)
    (row,) = guard_results(study).to_dict("records")
    assert (row["trial"], row["answer"], row["charged"]) == (0, 0.95, False)


def test_a_ladder_takes_no_prior(study, make_guard, told):
    objective, predict = told(0.5, 0.52, 0.75)
    guard = make_guard(policy="ladder", charges=8)
    guarded = GuardedStudy(study, guard, predict)
    guarded.optimize(objective, n_trials=3)
    assert guarded.guard_results["answer"].tolist() == [0.5, 0.5, 0.7]
    assert guarded.best.number == 2


def test_the_values_the_sampler_sees_are_the_objectives(study, make_guard, told):
    objective, predict = told(0.9, 0.95, accuracies=[0.6, 0.6])
    GuardedStudy(study, make_guard(), predict).optimize(objective, n_trials=2)
    assert [trial.value for trial in study.trials] == [0.9, 0.95]
    assert study.trials[0].user_attrs["guard_charged"]


# ---- what is kept


def test_attributes_of_a_trial_are_what_history_shows(study, make_guard, told):
    objective, predict = told(0.6, 0.9, 0.95, accuracies=[0.6, 0.7, 0.7])
    guard = make_guard()
    GuardedStudy(study, guard, predict).optimize(objective, n_trials=3)
    history = guard.history()
    assert history["charged"].tolist() == [False, True, True]
    for trial, row in zip(study.trials, history.to_dict("records"), strict=True):
        released = {name: row[column] for name, column in ATTRIBUTES.items()}
        assert trial.user_attrs == released | {"guard_replayed": False}
        assert trial.system_attrs == {}


def test_the_best_is_the_one_with_the_best_answer(study, make_guard, told):
    objective, predict = told(0.7, 0.9, accuracies=[0.7, 0.5])
    guarded = GuardedStudy(study, make_guard(), predict)
    assert guarded.best is None
    assert guarded.best_trial is None
    guarded.optimize(objective, n_trials=2)
    assert study.best_trial.number == 1
    assert guarded.best_trial == study.trials[0]
    best = guarded.best
    assert (best.number, best.answer) == (0, 0.7)
    assert study.user_attrs == {"guard_best": best._asdict()}


def test_results_are_in_the_order_of_the_questions(study, make_guard, told):
    objective, predict = told(0.6, 0.7)
    guarded = GuardedStudy(study, make_guard(), predict)
    assert guarded.guard_results.empty
    guarded.optimize(objective, n_trials=2)
    table = guarded.guard_results
    assert table["query"].tolist() == [1, 2]
    assert table["trial"].tolist() == [0, 1]
    assert list(table) == [
        *("trial", "params", "prior", "answer", "charged", "low", "high", "query", "replayed", "charges_left")
    ]
    assert repr(guarded).startswith("<GuardedStudy: 'no-name")


def test_the_same_model_again_is_a_replay(study, make_guard, scoring):
    guard = make_guard()
    guarded = GuardedStudy(study, guard, lambda trial: scoring(0.6), ask="all")
    guarded.optimize(lambda trial: 0.6, n_trials=3)
    assert guarded.guard_results["replayed"].tolist() == [False, True, True]
    assert guard.queries_asked == 1


# ---- halts


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("catch", [(), (Exception,)])
def test_a_halt_ends_the_study_and_is_raised(study, make_guard, told, n_jobs, catch):
    objective, predict = told(*np.linspace(0.84, 0.86, 20).tolist(), accuracies=[0.7] * 20)
    guard = make_guard(charges=2)
    guarded = GuardedStudy(study, guard, predict, ask="all")
    with pytest.raises(Halted) as raised:
        guarded.optimize(objective, n_trials=20, n_jobs=n_jobs, catch=catch)
    assert raised.value.reason == guard.halt_reason
    assert raised.value.history["charged"].sum() == 2
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
            guard.evaluate_predictions(scoring(0.5), prior=0.5)
        return value

    with pytest.raises(Halted):
        GuardedStudy(study, guard, predict).optimize(slow, n_trials=5)
    assert states(study) == ["COMPLETE", "COMPLETE"]
    assert study.trials[1].user_attrs == {"guard_halted": "queries"}
    assert study.trials[1].value == 0.7


def test_trials_that_start_after_a_halt_are_pruned_and_not_run(study, make_guard, told):
    objective, predict = told(0.6, 0.7, 0.8)
    ran = []

    def counted(trial):
        ran.append(trial.number)
        return objective(trial)

    with pytest.raises(Halted):
        GuardedStudy(study, make_guard(queries=2), predict).optimize(counted, n_trials=10)
    assert ran == [0, 1]
    assert states(study) == ["COMPLETE", "COMPLETE", "PRUNED"]
    assert study.trials[2].user_attrs == {"guard_halted": "queries"}


def test_a_budget_that_is_just_enough_is_no_halt(study, make_guard, told):
    objective, predict = told(0.6, 0.7)
    guard = make_guard(queries=2)
    GuardedStudy(study, guard, predict).optimize(objective, n_trials=2)
    assert guard.halted
    assert states(study) == ["COMPLETE", "COMPLETE"]
    assert "guard_halted" not in study.user_attrs


def test_a_guard_that_has_halted_starts_no_trial(study, make_guard, told):
    objective, predict = told(0.6, 0.7)
    guarded = GuardedStudy(study, make_guard(queries=2), predict)
    guarded.optimize(objective, n_trials=2)
    with pytest.raises(Halted, match="all 2 declared queries are asked"):
        guarded.optimize(objective, n_trials=2)
    assert len(study.trials) == 2


def test_an_objective_that_is_halted_by_itself_is_pruned(study, make_guard, told, scoring):
    _, predict = told(0.6)
    guard = make_guard(queries=1)
    guard.evaluate_predictions(scoring(0.5), prior=0.5)
    other = make_guard()

    def objective(trial):
        return guard.evaluate_predictions(scoring(0.6), prior=0.6).value

    with pytest.raises(Halted):
        GuardedStudy(study, other, predict).optimize(objective, n_trials=3, catch=(Exception,))
    assert states(study) == ["PRUNED"]


def test_an_interrupt_is_no_halt(study, make_guard, told):
    objective, predict = told(0.6, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        GuardedStudy(study, make_guard(), predict).optimize(objective, n_trials=3)
    assert states(study) == ["COMPLETE", "FAIL"]


# ---- wrong use


@pytest.mark.parametrize(
    ("directions", "message"),
    [
        (["minimize"], "must maximize it; this one is to minimize"),
        (["maximize"] * 2, "this one has 2; nothing was asked; pass objective=0"),
    ],
)
def test_a_study_that_does_not_fit_is_refused(make_guard, told, directions, message):
    guard = make_guard()
    with pytest.raises(InputError, match=message):
        GuardedStudy(optuna.create_study(directions=directions), guard, told(0.6)[1])


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (2, "objective must be from 0 to 1"),
        (-1, "from 0 to 1"),
        (True, "a whole number"),
        (0, "must maximize"),
    ],
)
def test_the_guarded_objective_is_one_of_the_studys_and_in_the_guards_direction(
    make_guard, told, objective, message
):
    with pytest.raises(InputError, match=message):
        GuardedStudy(
            optuna.create_study(directions=["minimize", "maximize"]),
            make_guard(),
            told(0.6)[1],
            objective=objective,
        )


@pytest.mark.parametrize("by_callback", [False, True])
def test_of_several_objectives_the_guarded_one_decides_what_is_asked(make_guard, told, by_callback):
    guard, values = make_guard(), [0.6, 0.5, 0.7, 0.65]
    objective, predict = told(*values)
    study = optuna.create_study(directions=["minimize", "maximize"])

    def with_costs(trial):
        return 100.0 - trial.number, objective(trial)

    if by_callback:
        study.optimize(with_costs, n_trials=4, callbacks=[GuardCallback(guard, predict, objective=1)])
    else:
        GuardedStudy(study, guard, predict, objective=1).optimize(with_costs, n_trials=4)
    assert guard.history()["prior"].tolist() == [0.6, 0.7]
    assert guard_results(study)["trial"].tolist() == [0, 2]
    assert study.user_attrs["guard_best"]["number"] == 2
    assert [trial.number for trial in study.best_trials] == [2, 3]


def test_of_several_objectives_the_best_startup_trial_is_asked_about_at_the_end(make_guard, told):
    guard = make_guard()
    objective, predict = told(0.7, 0.6)
    study = optuna.create_study(directions=["maximize", "minimize"])
    guarded = GuardedStudy(study, guard, predict, n_startup_trials=2, objective=0)
    guarded.optimize(lambda trial: (objective(trial), 1.0), n_trials=2)
    assert guard.history()["prior"].tolist() == [0.7]
    assert guarded.best.number == 0


def test_a_loss_is_to_be_minimized(study, make_guard, told):
    guard = make_guard(metric="zero_one_loss", estimate=0.3)
    with pytest.raises(InputError, match="smaller is better, so the study must minimize it"):
        GuardedStudy(study, guard, told(0.6)[1])


def test_a_gate_a_wrong_word_and_no_function_are_refused(study, make_guard, told):
    predict = told(0.6)[1]
    gate = make_guard(policy="gate", threshold=None)
    with pytest.raises(InputError, match="a gate says yes or no"):
        GuardedStudy(study, gate, predict)
    with pytest.raises(InputError, match='"new-best" or "all"'):
        GuardedStudy(study, make_guard(), predict, ask="best")
    for trials in (-1, 2.5, True):
        with pytest.raises(InputError, match="n_startup_trials must be a whole number"):
            GuardedStudy(study, make_guard(), predict, n_startup_trials=trials)
    with pytest.raises(InputError, match="got ndarray"):
        GuardedStudy(study, make_guard(), np.zeros(3))


@pytest.mark.parametrize(
    ("value", "predictions", "message"),
    [(70.0, np.zeros(2_000, dtype=int), r"a prior must be a number in \[0, 1\]"), (0.7, [0, 1], "shape")],
)
def test_what_does_not_fit_fails_the_trial_and_costs_nothing(study, make_guard, value, predictions, message):
    guard = make_guard()
    guarded = GuardedStudy(study, guard, lambda trial: predictions)
    with pytest.raises(InputError, match=message):
        guarded.optimize(lambda trial: value, n_trials=3)
    assert states(study) == ["FAIL"]
    assert guard.queries_asked == 0


class Crashing:
    """A model that fails on the holdout, and says what it saw."""

    def predict(self, X):
        raise RuntimeError(f"row {X[0]}")


def test_a_model_that_fails_on_the_holdout_fails_its_trial(study, make_guard):
    guard = make_guard(X=np.full((2_000, 1), 0.123456789))
    with pytest.raises(ModelError, match="took one charge"):
        GuardedStudy(study, guard, lambda trial: Crashing()).optimize(lambda trial: 0.6, n_trials=3)
    assert states(study) == ["FAIL"]
    assert "0.123456789" not in json.dumps([study.trials[0].user_attrs, study.trials[0].system_attrs])


# ---- leaks


def test_everything_a_storage_keeps_is_the_same_for_holdouts_that_agree(tmp_path, labels, scoring):
    """The models score 0.66 on one holdout and 0.73 on the other; the prior 0.7 is near enough to both."""
    kept = []
    for score in (0.66, 0.73):
        url = f"sqlite:///{tmp_path / f'{score}.db'}"
        study = optuna.create_study(direction="maximize", storage=url, study_name="one")
        with ReusableHoldout(None, labels, tolerance=0.15, queries=20, seed=1) as guard:
            predictions = scoring(score)
            GuardedStudy(study, guard, lambda trial, p=predictions: p).optimize(lambda trial: 0.7, n_trials=2)
        connection = sqlite3.connect(tmp_path / f"{score}.db")
        tables = ("trial_user_attributes", "trial_system_attributes", "study_user_attributes")
        tables += ("study_system_attributes", "trial_values", "trial_intermediate_values", "trial_params")
        kept.append([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables])
        connection.close()
    assert kept[0] == kept[1]
    assert "0.7" in json.dumps(kept[0])


def test_no_attribute_holds_the_exact_score(study, make_guard, told):
    """Charged answers are told in steps: 0.6125 is nowhere."""
    objective, predict = told(0.8, 0.9, accuracies=[0.6125, 0.6125])
    guarded = GuardedStudy(study, make_guard(), predict)
    guarded.optimize(objective, n_trials=2)
    assert guarded.guard_results["charged"].all()
    everything = json.dumps([study.user_attrs, *[[t.user_attrs, t.system_attrs] for t in study.trials]])
    assert "guard_answer" in everything
    assert "0.6125" not in everything
    assert "0.6125" not in repr(study.trials)
    assert study.trials[0].state == TrialState.COMPLETE
