"""Every loop on every backend ends well: with numbers, or with what the guard has to say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conformance.cells import SITUATIONS, Cell
from conformance.loops import BACKENDS, LOOPS

_PATIENCE_SECONDS = 800  # a loop that hangs is named by the last line before it
_HALT_SECONDS = 10  # to the caller, from the last answer
_ABOUT = (
    "integrations/reusable_holdout_sklearn",
    "integrations/reusable_holdout_optuna",
    "reusable_holdout/guard",
    "reusable_holdout/ledger",
    "tests/conformance",
)
_PROCESSES = ["dask", "loky", "multiprocessing"]  # their workers cost seconds each


def _run(backend):
    process = subprocess.run(
        [sys.executable, "-m", "conformance.cells", backend],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    return [Cell(**json.loads(line)) for line in process.stdout.splitlines() if line.startswith("{")]


def _check(found, backend, loops):
    assert [(cell.loop, cell.situation) for cell in found] == [
        (loop, situation) for loop in loops for situation in SITUATIONS
    ]
    assert [cell for cell in found if not cell.good] == []
    assert [cell for cell in found if cell.ended == "Halted" and cell.seconds > _HALT_SECONDS] == []


@pytest.mark.long(*_ABOUT)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("backend", sorted(set(BACKENDS) - set(_PROCESSES)))
def test_loops_end_with_numbers_or_with_what_the_guard_says(backend):
    _check(_run(backend), backend, list(LOOPS[backend]))


@pytest.mark.long(*_ABOUT)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("backend", _PROCESSES)
def test_they_do_so_where_workers_are_processes(backend):
    _check(_run(backend), backend, list(LOOPS[backend]))
