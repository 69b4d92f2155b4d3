"""The examples as programs."""

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["EXAMPLES", "run"]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def run(script, *arguments, folder):
    """What a script prints; it must end well."""
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
