"""The client side needs no more of MLflow than mlflow-skinny has; what it lacks is taken away from a process."""

import subprocess
import sys

import pytest
from long_tests import LEDGER
from mlflow import MlflowClient

# what mlflow requires beyond mlflow-skinny, but for packages that this library itself requires
LACKING = [
    "alembic",
    "aiohttp",
    "docker",
    "flask",
    "flask_cors",
    "graphene",
    "gunicorn",
    "huey",
    "matplotlib",
    "pyarrow",
]

SCRIPT = """
import sys
lacking = set(sys.argv[1].split(","))
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in lacking:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import numpy as np
from reusable_holdout import ReusableHoldout
from reusable_holdout_mlflow import best_run, sync, track
labels = np.random.default_rng(0).integers(0, 2, 4_000)
guard = ReusableHoldout(None, labels, tolerance=0.1, queries=30, ledger=sys.argv[3], seed=21)
with track(guard, experiment="skinny", tracking_uri=sys.argv[2]) as tracked:
    for k in range(3):
        guard.evaluate_predictions(labels ^ (np.arange(4_000) < 400 + k), prior=0.9)
assert sync(guard, tracking_uri=sys.argv[2]).added == 0
assert best_run(guard, tracking_uri=sys.argv[2]).run_id == tracked.run_id
assert not lacking & {name.split(".")[0] for name in sys.modules}
print(tracked.run_id)
"""


@pytest.mark.long(*LEDGER, "integrations/reusable_holdout_mlflow")
def test_answers_are_tracked_without_what_skinny_lacks(server, tmp_path):
    uri, _ = server
    command = [sys.executable, "-c", SCRIPT, ",".join(LACKING), uri, str(tmp_path / "guard.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = done.stdout.split()[-1]
    assert len(MlflowClient(uri).get_metric_history(run, "holdout_answer")) == 3
