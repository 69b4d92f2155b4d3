"""One cell of the matrix: a loop on a backend, in one situation.

``python -m conformance.cells BACKEND`` runs all cells of a backend, one after the other, and prints a line of JSON for
each, flushed: so the last line names the cell before one that hangs.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import distributed
import joblib
import numpy as np
import pandas as pd
from conformance.loops import LOOPS, REFUSED, Loop, Stage
from made_guards import made_guard

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, HoldoutError, InputError, LedgerError, Refused

__all__ = ["SITUATIONS", "Cell", "cells", "used"]

SITUATIONS = ["fine", "wrong input", "halt", "ledger gone"]
_ROWS, _COLUMNS, _HALT_AFTER = 400, 4, 3


class Cell(NamedTuple):
    """The end of one cell.

    Attributes
    ----------
    backend, loop, situation : str
    ended : str
        "numbers", or the name of what was raised; of a refusal the error's.
    wrong : str
        What should not be; empty if all is as it must be.
    seconds : float
        From the last answer to the caller, for a halt; else of the whole loop.
    """

    backend: str
    loop: str
    situation: str
    ended: str
    wrong: str
    seconds: float


def cells(backend: str) -> Iterator[Cell]:
    """Run all cells of a backend in order, each when it is taken."""
    with used(backend) as jobs:
        for name, loop in LOOPS[backend].items():
            for situation in SITUATIONS:
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    yield _cell(backend, name, loop, situation, Path(folder), jobs)


@contextlib.contextmanager
def used(backend: str) -> Iterator[int]:
    """Use a backend of joblib, and yield the number of jobs."""
    with contextlib.ExitStack() as stack:
        if backend == "dask":
            local = {
                "host": "127.0.0.1",
                "dashboard_address": "127.0.0.1:0",
                "silence_logs": logging.CRITICAL,
            }
            wish = {"n_workers": 2, "threads_per_worker": 1, "scheduler_kwargs": {"dashboard": False}}
            cluster = stack.enter_context(distributed.LocalCluster(**wish, **local))
            stack.enter_context(distributed.Client(cluster))
        if backend not in {"serial", "pools"}:
            stack.enter_context(joblib.parallel_config(backend))
        yield 1 if backend in {"serial", "pools"} else 2


def _cell(backend: str, name: str, loop: Loop, situation: str, folder: Path, jobs: int) -> Cell:
    guard, stage = _staged(situation, folder, jobs)
    began, found, raised = time.time(), None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = loop(stage)
    except (Exception, Halted, Refused) as error:
        raised = error
    seconds = time.time() - began
    error = raised.error if isinstance(raised, Refused) else raised
    if isinstance(error, Halted):
        last = pd.to_datetime(error.history["asked_at"].iloc[-1], utc=True)
        seconds = time.time() - last.timestamp()
    wrong = _wrong(name, situation, found, error, guard)
    guard.close()
    ended = "numbers" if error is None else type(error).__name__
    return Cell(backend, name, situation, ended, wrong[:300], seconds)


def _staged(situation: str, folder: Path, jobs: int) -> tuple[ReusableHoldout, Stage]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * _ROWS, _COLUMNS))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=2 * _ROWS) > 0).astype(np.int64)
    does_not_fit = situation == "wrong input"
    exact = {"charges": 2, "threshold": 0.9, "noise": 1e-6, "vacuous": True, "seed": 0}
    guard = made_guard(
        X[_ROWS:, : _COLUMNS - does_not_fit],
        y[_ROWS:],
        queries=_HALT_AFTER if situation == "halt" else 100,
        unwitnessed=True,
        ledger=folder / "guard.db",
        **exact,
    )
    if situation == "ledger gone":
        pickle.dumps(guard)  # as it goes to workers: the holdout lies beside the ledger
        for file in folder.glob("guard.db*"):
            if not file.name.endswith((".key", ".holdout")):
                file.unlink()
    return guard, Stage(guard, X[:_ROWS], y[:_ROWS], y[_ROWS : 2 * _ROWS - does_not_fit], jobs)


def _wrong(name: str, situation: str, found: Any, error: BaseException | None, guard: Any) -> str:
    """Return what should not be; empty if all is as it must be."""
    if situation == "fine" and name not in REFUSED:
        if error is not None:
            return f"must end; got {error!r}"
        return "" if np.isfinite(np.asarray(found, dtype=np.float64)).all() else "must give numbers; gave NaN"
    if error is None:
        return "must be told; ended as if nothing were wrong"
    if situation == "halt" and name not in REFUSED:
        if not isinstance(error, Halted):
            return f"must be Halted; got {error!r}"
        asked = int(error.history["asked"].iloc[-1])
        return "" if asked == _HALT_AFTER else f"must have all answers so far; has those of {asked} queries"
    wanted = LedgerError if situation == "ledger gone" and name not in REFUSED else InputError
    if not isinstance(error, HoldoutError) or not isinstance(error, wanted):
        return f"must be {wanted.__name__}; got {error!r}"
    if name in REFUSED and "nothing was asked" not in str(error):
        return f"must say that nothing was asked; got {error!r}"
    return "" if situation == "ledger gone" or guard.queries_asked == 0 else "must ask nothing"


if __name__ == "__main__":
    os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"
    for one in cells(sys.argv[1]):
        print(json.dumps(one._asdict()), flush=True)
