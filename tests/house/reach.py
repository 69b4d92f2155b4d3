"""What a process reads of the package when it does something: its modules, in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from house.tree import modules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from house.tree import Module

__all__ = ["Reach", "reach_of_a_guard"]

_PROGRAM = """
import sys
import numpy as np
from sklearn.linear_model import LogisticRegression
from reusable_holdout import Plan, ReusableHoldout, verify

X = np.random.default_rng(0).normal(size=(2_000, 3))
y = (X[:, 0] > 0).astype(int)
Plan(rows=1_000, tolerance=0.1, queries=100)
settings = dict(metric="accuracy", tolerance=0.1, queries=100, ledger=sys.argv[1], witness=False)
with ReusableHoldout(X[:1_000], y[:1_000], **settings) as guard:
    guard.evaluate(LogisticRegression().fit(X[1_000:], y[1_000:]), prior=0.95)
assert verify(sys.argv[1]).queries == 1
print(*(name for name in sys.modules if name.split(".")[0] == "reusable_holdout"))
"""


class Reach(NamedTuple):
    """What was read.

    Attributes
    ----------
    modules : tuple of str
    lines : int
    """

    modules: tuple[str, ...]
    lines: int


def reach_of_a_guard(folder: Path, known: Mapping[str, Module] | None = None) -> Reach:
    """A plan, a guard of accuracy on 1,000 rows with a ledger on the disk, one model asked about, and
    `verify`; with a registry of budgets.
    """
    known = modules() if known is None else known
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder / "guard.db")],
        env=os.environ | {"REUSABLE_HOLDOUT_REGISTRY": str(folder / "registry")},
        capture_output=True,
        text=True,
        check=True,
    )
    names = tuple(sorted(done.stdout.split()))
    return Reach(names, sum(known[name].lines for name in names))
