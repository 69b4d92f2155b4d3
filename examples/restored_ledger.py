"""What a ledger that can be restored is worth, and what a witness makes of it.

An analyst keeps a copy of the ledger from the day it was made. Whenever its charges are spent she puts the copy back
and asks about other predictions: the budget is whole again, and she still knows all that she was told. After ten
such days she has the vote over everything certified, by a copy that knows of none of it. Labels are coins: the vote's
population value is one half.

`verify` finds nothing: every copy is consistent with itself. A witness, a file of another owner, remembers how far the
ledger had come, and the first copy that is put back is refused.

    python examples/restored_ledger.py             # 20 runs without a witness, 100 restores with one
    python examples/restored_ledger.py --quick
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import Halted, RolledBackError

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

ROWS, DAYS = 1_000, 10
PLAN: dict[str, Any] = {"queries": 60, "charges": 10, "estimate": 0.5}


class Run(NamedTuple):
    """What one run gave.

    Attributes
    ----------
    missed : bool
        Whether the interval of the vote did not contain one half.
    told : float
        The vote's value by the holdout.
    sound : bool
        What verification said of the last copy.
    """

    missed: bool
    told: float
    sound: bool


def made(folder: Path, labels: NDArray[np.int64], witness: Path | Literal[False], **more: Any) -> Path:
    """Ledger of a new guard, and a copy of it as it is now."""
    ledger = folder / "guard.db"
    ReusableHoldout(None, labels, ledger=ledger, witness=witness, **PLAN | more).close()
    shutil.copy(ledger, folder / "copy.db")
    return ledger


def restore(ledger: Path) -> None:
    """Put the copy back."""
    for old in ledger.parent.glob("guard.db-*"):
        old.unlink()
    shutil.copy(ledger.with_name("copy.db"), ledger)


def votes_of_a_day(guard: ReusableHoldout, rng: np.random.Generator) -> NDArray[np.int64]:
    """Ask about guesses until it halts: a charge says better than one half, and no charge worse."""
    votes = np.zeros(ROWS, dtype=np.int64)
    for _ in range(guard.plan.queries):
        guess = rng.integers(0, 2, ROWS)
        spent = guard.plan.charges - guard.charges_left
        prior = 0.5 - guard.plan.threshold_at(charges=min(spent, guard.plan.charges - 1))
        try:
            answer = guard.evaluate(guess, prior=prior)
        except Halted:
            break
        votes += (2 * guess - 1) * (1 if answer.charged else -1)
    return votes


def without_witness(folder: Path, seed: int) -> Run:
    """Ten days on one ledger, restored every evening."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, ROWS)
    ledger, votes = made(folder, labels, False), np.zeros(ROWS, dtype=np.int64)
    for _ in range(DAYS):
        with ReusableHoldout.open(ledger, None, labels) as guard:
            votes += votes_of_a_day(guard, rng)
        restore(ledger)
    with ReusableHoldout.open(ledger, None, labels) as guard:
        last = guard.final((votes > 0).astype(int))
    return Run(not last.low <= 0.5 <= last.high, last.value, verify(ledger).sound)


def with_witness(folder: Path, restores: int) -> int:
    """How many of so many restored copies are refused, by opening and by verification."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, ROWS)
    ledger, refused = made(folder, labels, folder / "theirs.heads", queries=max(restores, 60)), 0
    for _ in range(restores):
        with ReusableHoldout.open(ledger, None, labels) as guard:
            guard.evaluate(rng.integers(0, 2, ROWS), prior=0.5)
        newest = ledger.read_bytes()
        restore(ledger)
        try:
            ReusableHoldout.open(ledger, None, labels)
        except RolledBackError:
            refused += not verify(ledger).sound
        for old in ledger.parent.glob("guard.db-*"):
            old.unlink()
        ledger.write_bytes(newest)
    return refused


def main(arguments: list[str] | None = None) -> None:
    """Print both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20, help="without a witness")
    parser.add_argument("--restores", type=int, default=100, help="with one")
    parser.add_argument("--quick", action="store_true", help="3 and 10")
    options = parser.parse_args(arguments)
    runs, restores = (3, 10) if options.quick else (options.runs, options.restores)
    found = []
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            found.append(without_witness(Path(folder), seed))
    print(
        f"without a witness, {DAYS} days restored: missed {sum(run.missed for run in found)} of {runs} runs, "
        f"sound by verify {sum(run.sound for run in found)}; the vote, worth .5, was told "
        f"{np.mean([run.told for run in found]):.3f}"
    )
    with tempfile.TemporaryDirectory() as folder:
        print(f"with a witness: refused {with_witness(Path(folder), restores)} of {restores} restores")


if __name__ == "__main__":
    main()
