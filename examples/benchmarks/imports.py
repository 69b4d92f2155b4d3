"""Seconds until a fresh interpreter has imported the library, and answered, as ratios to importing NumPy.

Every child process of a worker pool pays this once. Each round starts one interpreter per line, in turn, because
machines are noisy; medians over rounds are shown. All bytecode is in a cache of its own, made by a round that is not
counted, as an installer makes it.
Run with ``python examples/benchmarks/imports.py``; ``--json`` for programs, ``--quick`` for a rough look.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

_LEAST = "import numpy"
_ASKED = """
from reusable_holdout import ReusableHoldout
labels = [0, 1] * 5_000
guard = ReusableHoldout({arguments})
guard.evaluate(labels, prior=0.9)
"""
_NEW = "None, labels, tolerance=0.1, queries=100, allow={'no witness'}"
_INTEGRATIONS = {
    "sklearn": "reusable_holdout_sklearn",
    "optuna": "reusable_holdout_optuna",
    "mlflow": "reusable_holdout_mlflow",
    "fastapi": "reusable_holdout_leaderboard",
}


class Cost(NamedTuple):
    """Start of one process."""

    what: str
    milliseconds: float
    ratio: float
    goal: float | None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, without the integrations")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = core(Path(folder)) | ({} if options.quick else integrations())
        costs = measured(programs, Path(folder), rounds=3 if options.quick else 15)
    if options.json:
        print(json.dumps([cost._asdict() for cost in costs], indent=2))
        return
    print("| what | ms | ratio | goal |\n|---|---|---|---|")
    for what, milliseconds, ratio, goal in costs:
        print(f"| {what} | {milliseconds:.0f} | {ratio:.2f} | {'' if goal is None else f'<= {goal}'} |")


def core(folder: Path) -> dict[str, str]:
    """Program of each line about the library itself."""
    opened = (
        "from reusable_holdout import ReusableHoldout; labels = [0, 1] * 5_000; "
        f"guard = ReusableHoldout.open({_ledger(folder)!r}, None, labels)"
    )
    return {
        "an interpreter": "pass",
        _LEAST: _LEAST,
        "import reusable_holdout": "import reusable_holdout",
        "the guard's class": "from reusable_holdout import ReusableHoldout",
        "a guard in memory answers": _ASKED.format(arguments=_NEW),
        "a guard is opened from its ledger": opened,
        "a guard is opened and answers": f"{opened}; guard.evaluate(labels, prior=0.9)",
    }


def integrations() -> dict[str, str]:
    """The same of the integrations that can be imported here, beside the libraries they are for."""
    names = [
        name
        for library, ours in _INTEGRATIONS.items()
        if find_spec(library) is not None
        for name in (library, ours)
    ]
    return {f"import {name}": f"import {name}" for name in names}


def measured(programs: dict[str, str], folder: Path, *, rounds: int) -> list[Cost]:
    """Medians of all lines; ratios are medians of the rounds' ratios."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    _seconds(_ASKED.format(arguments=f"{_NEW}, ledger={_ledger(folder)!r}"), environment)
    seconds: dict[str, list[float]] = {what: [] for what in programs}
    for turn in range(rounds + 1):
        for what, program in programs.items():
            taken = _seconds(program, environment)
            if turn:  # the first has written the bytecode
                seconds[what].append(taken)
    return [
        Cost(
            what,
            1e3 * statistics.median(times),
            statistics.median(ours / least for ours, least in zip(times, seconds[_LEAST], strict=True)),
            2.5 if what == "import reusable_holdout" else None,
        )
        for what, times in seconds.items()
    ]


def _seconds(program: str, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)  # noqa: S603 - our own
    return time.perf_counter() - start


def _ledger(folder: Path) -> str:
    return str(folder / "guard.db")


if __name__ == "__main__":
    main()
