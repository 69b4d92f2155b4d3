"""The example of a release loop: one verdict and one status for each version."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long(
    "examples/release_gate.sh", "examples/release_gate_models.py", "reusable_holdout"
)

_SCRIPT = Path(__file__).parent.parent.parent / "examples" / "release_gate.sh"


def test_the_loop_is_told_verdicts_and_nothing_else(tmp_path):
    done = subprocess.run(
        ["bash", str(_SCRIPT), str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHON": sys.executable, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "v2 against v1: rejected (status 1), v1 stays",
        "v3 against v1: accepted (certified improvement: 0 to 1) (status 0), released",
        "v4 against v3: rejected (status 1), v3 stays",
    ]
    assert lines[3].startswith(
        "broken against v3: no verdict (status 3): reusable-holdout: there must be a file"
    )
    assert re.search(r"2 +accuracy +v3 less v1 +0\.0200 .* 0\.0200 +better +True", done.stdout)
    assert len(list(tmp_path.glob("v?.csv"))) == 4
