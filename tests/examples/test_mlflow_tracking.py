"""The MLflow example: the training story and the holdout part ways, and the guard halts."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long(
    "examples/mlflow_tracking.py", "integrations/reusable_holdout_mlflow", "reusable_holdout"
)

SCRIPT = Path(__file__).parents[2] / "examples" / "mlflow_tracking.py"


def test_it_tracks_a_growing_tree_until_the_guard_halts(tmp_path):
    command = [sys.executable, str(SCRIPT), "--quick", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True, cwd=tmp_path)
    assert "HALTED" in done.stdout
    assert "; halted: budget spent" in done.stdout
    assert "best certified answer: query" in done.stdout
