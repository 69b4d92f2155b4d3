"""The callback: for loops that are not one's own."""

import warnings

import optuna
import pytest
from reusable_holdout_optuna import GuardCallback, guard_results

from reusable_holdout.errors import Halted, InputError


def test_each_new_best_is_asked_about_when_it_is_finished(study, make_guard, told):
    objective, predict = told(0.6, 0.5, 0.7)
    guard = make_guard()
    confirm = GuardCallback(guard, predict)
    study.optimize(objective, n_trials=3, callbacks=[confirm])
    table = guard_results(study)
    assert table["trial"].tolist() == [0, 2]
    assert table["prior"].tolist() == guard.history()["prior"].tolist() == [0.6, 0.7]
    assert study.user_attrs.keys() == {"guard_trial_0", "guard_trial_2", "guard_best"}
    assert study.user_attrs["guard_best"]["number"] == 2
    assert repr(confirm) == f"<GuardCallback: {guard!r}>"


def test_what_is_kept_is_what_history_shows(study, make_guard, told):
    objective, predict = told(0.6, 0.9, accuracies=[0.6, 0.7])
    guard = make_guard()
    study.optimize(objective, n_trials=2, callbacks=[GuardCallback(guard, predict)])
    for number, row in enumerate(guard.history().to_dict("records")):
        kept = study.user_attrs[f"guard_trial_{number}"]
        assert kept == {
            "guard_answer": row["value"],
            "guard_replayed": False,
            **{
                f"guard_{name}": row[name]
                for name in ("low", "high", "charged", "prior", "query", "charges_left")
            },
        }


def test_trials_that_did_not_complete_are_not_asked_about(study, make_guard, told):
    objective, predict = told(optuna.TrialPruned(), float("nan"), ValueError("mine"), 0.6)
    guard = make_guard()
    confirm = GuardCallback(guard, predict, ask="all")
    study.optimize(objective, n_trials=4, callbacks=[confirm], catch=(ValueError,))
    assert guard_results(study)["trial"].tolist() == [3]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_halt_stops_the_study_with_a_warning(study, make_guard, told, n_jobs):
    objective, predict = told(0.6, 0.7, 0.8, 0.9)
    confirm = GuardCallback(make_guard(queries=2), predict, ask="all")
    with pytest.warns(RuntimeWarning, match="the study was stopped: the guard has halted: all 2 declared"):
        study.optimize(objective, n_trials=20, n_jobs=n_jobs, callbacks=[confirm], catch=(Exception,))
    assert study.user_attrs["guard_halted"] == "queries"
    assert len(study.trials) <= 1 + 2 * n_jobs
    assert {trial.state.name for trial in study.trials} == {"COMPLETE"}
    assert len(guard_results(study)) == 2


def test_a_halt_elsewhere_stops_this_study(study, make_guard, told, scoring):
    objective, predict = told(0.6)
    guard = make_guard(queries=1)
    guard.evaluate_predictions(scoring(0.5), prior=0.5)
    with pytest.warns(RuntimeWarning, match="this question was not answered"):
        study.optimize(objective, n_trials=5, callbacks=[GuardCallback(guard, predict)])
    assert len(study.trials) == 1
    assert guard_results(study).empty


def test_an_objective_may_prune_what_starts_after_a_halt(study, make_guard, told, scoring):
    objective, predict = told(0.6)
    guard = make_guard(queries=1)
    confirm = GuardCallback(guard, predict)

    def pruned(trial):
        confirm.prune_if_halted(trial)
        return objective(trial)

    guard.evaluate_predictions(scoring(0.5), prior=0.5)
    with pytest.warns(RuntimeWarning, match="halted"):
        study.optimize(pruned, n_trials=5, callbacks=[confirm])
    (trial,) = study.trials
    assert (trial.state.name, trial.user_attrs) == ("PRUNED", {"guard_halted": "queries"})


def test_a_loop_of_ask_and_tell_is_ended_by_the_halt_itself(study, make_guard, told):
    objective, predict = told(0.6, 0.7, 0.8)
    confirm = GuardCallback(make_guard(queries=2), predict)
    with pytest.raises(Halted), warnings.catch_warnings():
        for _ in range(5):
            trial = study.ask()
            confirm(study, study.tell(trial, objective(trial)))
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE"]
    assert study.user_attrs["guard_halted"] == "queries"


def test_a_study_that_does_not_fit_is_refused_at_the_first_trial(make_guard, told):
    objective, predict = told(0.6)
    guard = make_guard()
    study = optuna.create_study(direction="minimize")
    with pytest.raises(InputError, match="must maximize"):
        study.optimize(objective, n_trials=3, callbacks=[GuardCallback(guard, predict)])
    assert len(study.trials) == 1
    assert guard.queries_asked == 0
