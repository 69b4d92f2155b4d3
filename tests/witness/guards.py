"""Guards with a witness, as tests make them."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
from made_guards import made_guard

from reusable_holdout import ReusableHoldout

__all__ = ["FRESH", "LABELS", "PLAN", "copy_of", "git", "made", "opened", "predictions", "run"]

LABELS, FRESH = (np.random.default_rng(seed).integers(0, 2, 2_000) for seed in (0, 5))
PLAN = {"queries": 500, "tolerance": 0.1, "estimate": 0.9}


def predictions(number, rate=0.9):
    wrong = np.random.default_rng([1, number]).random(len(LABELS)) > rate
    return np.where(wrong, 1 - LABELS, LABELS)


def made(path, place, answers=0):
    guard = made_guard(None, LABELS, ledger=path, witness=place, **PLAN)
    for number in range(answers):
        guard.evaluate(predictions(number), prior=0.9)
    return guard


def opened(path, y=LABELS, **more):
    return ReusableHoldout.open(path, None, y, **more)


def copy_of(path, name="copy.db"):
    """Copy of a ledger whose guard is open, with its key."""
    copy = path.with_name(name)
    for old in path.parent.glob(f"{name}*"):
        old.unlink()
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    shutil.copy(f"{path}.key", f"{copy}.key")
    return copy


def git(*arguments):
    made = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *made, *map(str, arguments)], check=True, capture_output=True)


def run(code, **facts):
    """Run code in an interpreter of its own, with these names; return its exit code and what it printed."""
    begun = "\n".join(f"{name} = {value!r}" for name, value in facts.items())
    imports = (
        "import os, pickle\nimport numpy as np\nfrom reusable_holdout import ReusableHoldout\n"
        "from reusable_holdout.witness import FileWitness\n"
        "labels = np.random.default_rng(0).integers(0, 2, 2_000)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}{begun}\n{code}"], check=False, capture_output=True, text=True
    )
    return done.returncode, done.stdout
