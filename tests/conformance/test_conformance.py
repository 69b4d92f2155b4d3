"""Every loop on every backend ends well: with numbers, or with what the guard has to say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conformance.cells import SITUATIONS, Cell
from conformance.loops import BACKENDS, LOOPS

_PATIENCE_SECONDS = 800  # the last line names the loop before one that hangs
_HALT_SECONDS = 10  # to the caller, from the last answer


@pytest.mark.long(
    *(f"integrations/reusable_holdout_{name}" for name in ("sklearn", "optuna", "callbacks")),
    *("reusable_holdout/guard", "reusable_holdout/ledger", "tests/conformance"),
)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("backend", BACKENDS)
def test_loops_end_with_numbers_or_with_what_the_guard_says(backend):
    process = subprocess.run(
        [sys.executable, "-m", "conformance.cells", backend],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    found = [Cell(**json.loads(line)) for line in process.stdout.splitlines() if line.startswith("{")]
    run = [(cell.loop, cell.situation) for cell in found]
    assert run == [(loop, situation) for loop in LOOPS[backend] for situation in SITUATIONS], process.stderr
    assert [cell for cell in found if cell.wrong] == []
    assert [cell for cell in found if cell.ended == "Halted" and cell.seconds > _HALT_SECONDS] == []
