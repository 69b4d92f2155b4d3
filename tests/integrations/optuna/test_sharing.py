"""Threads and processes on one study and one ledger have one budget."""

import optuna
from children import Child
from reusable_holdout_optuna import guard_results

WORKER = """
import sys, numpy as np, optuna
from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted
from reusable_holdout_optuna import GuardedStudy
optuna.logging.set_verbosity(optuna.logging.ERROR)
labels = np.random.default_rng(0).integers(0, 2, 2_000)
patient = {"connect_args": {"timeout": 60}}  # both write at the same time
storage = optuna.storages.RDBStorage("sqlite:///study.db", engine_kwargs=patient)
study = optuna.load_study(study_name="shared", storage=storage)
guard = ReusableHoldout.open("guard.db", None, labels)
def predictions(trial):
    return np.where(np.arange(2_000) >= 1_400, 1 - labels, labels) ^ (np.arange(2_000) == trial.number)
try:
    GuardedStudy(study, guard, predictions, ask="all").optimize(lambda trial: 0.7, n_trials=40, catch=(Exception,))
except Halted as halted:
    print(halted.reason, len(halted.history))
    sys.exit(7)
"""


def test_two_processes_share_one_budget_and_both_end(tmp_path, make_guard):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(direction="maximize", study_name="shared", storage=storage)
    guard = make_guard(queries=8, ledger=tmp_path / "guard.db")
    workers = [Child(WORKER, folder=tmp_path) for _ in range(2)]
    printed = [worker.communicate() for worker in workers]
    assert [worker.returncode for worker in workers] == [7, 7]
    assert printed == ["queries 8\n"] * 2
    study = optuna.load_study(study_name="shared", storage=storage)
    states = [trial.state.name for trial in study.trials]
    assert set(states) == {"COMPLETE", "PRUNED"}
    assert states.count("PRUNED") <= 2
    assert guard_results(study)["query"].tolist() == list(range(1, 9))
    assert guard.queries_asked == 8
