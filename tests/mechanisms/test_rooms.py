"""What a guard draws with, and what only researchers use: no guard imports the second."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import reusable_holdout.mechanisms

GUARDS = {
    "calibration",
    "cores",
    "cores.conditional_release",
    "cores.guard_core",
    "cores.sparse_vector",
    "noise",
    "noise.discrete_laplace",
    "noise.geometric",
    "noise.keyed",
    "null_charges",
}
_PREFIX = "reusable_holdout.mechanisms."

_EVERYTHING = """
import sys
import numpy as np
from reusable_holdout import ReusableHoldout, verify

labels = np.arange(4_000) % 2
worse = np.where(np.arange(4_000) % 10 == 0, 1 - labels, labels)
guard = ReusableHoldout(
    None, labels, queries=100, charges=5, choices=[3], reveals=1, estimate=0.9, prior_error=0.006,
    ledger={ledger!r}, witness=False, seed=0, {more}
)
print(guard.plan)
guard.plan.epsilons, guard.plan.expected_null_charges
guard.evaluate_predictions(worse, prior=0.9)
guard.evaluate_predictions(labels, prior=0.5)
guard.price("reveal")
guard.reveal_predictions(worse, prior=0.9)
guard.choose_predictions([labels, worse], priors=[0.99, 0.9])
guard.final_predictions(worse)
assert verify({ledger!r}).sound
sys.stdout.write("\\n".join(["modules:", *(name for name in sys.modules if name.startswith({prefix!r}))]))
"""


@pytest.mark.parametrize("mechanism", ["numeric-sparse", "standard-svt"])
def test_a_guard_reaches_none_of_the_researchers_rooms(mechanism: str, tmp_path: Path) -> None:
    """Whatever it is asked, and whoever verifies it: what it imports is what it draws with."""
    program = _EVERYTHING.format(
        ledger=str(tmp_path / "guard.db"), prefix=_PREFIX, more=f"mechanism={mechanism!r}"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    reached = done.stdout.split("modules:\n")[1].split()
    assert {name.removeprefix(_PREFIX) for name in reached} <= GUARDS


def test_the_guards_rooms_are_there() -> None:
    folder = Path(reusable_holdout.mechanisms.__file__).parent
    for room in GUARDS:
        path = folder / room.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), room
