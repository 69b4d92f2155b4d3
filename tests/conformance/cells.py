"""One cell of the matrix: a loop on a backend, in one situation.

``python -m conformance.cells BACKEND`` runs all cells of a backend, one after the other, and prints a line of JSON for
each, flushed: whoever waits sees which one hangs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import pickle
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from conformance.loops import BACKENDS, LOOPS, REFUSED, Stage
from made_guards import made_guard

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, HoldoutError, InputError, LedgerError, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SITUATIONS", "Cell", "cells"]

SITUATIONS = ["fine", "wrong input", "halt", "ledger gone"]
_ROWS, _COLUMNS, _HALT_AFTER = 400, 4, 3


class Cell(NamedTuple):
    """What came of one cell.

    Attributes
    ----------
    backend, loop, situation : str
    ended : str
        "numbers", or the name of what was raised; of a refusal the error's.
    good : bool
        Whether that is what must come.
    words : str
        What was raised, or what is wrong.
    seconds : float
        From the last answer to the caller, for a halt; else of the whole loop.
    """

    backend: str
    loop: str
    situation: str
    ended: str
    good: bool
    words: str
    seconds: float


def cells(backend: str, loops: list[str] | None = None) -> Iterator[Cell]:
    """All cells of a backend, in order, each run when it is taken."""
    with _used(backend) as jobs:
        for name, loop in LOOPS[backend].items():
            if loops is None or name in loops:
                for situation in SITUATIONS:
                    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                        yield _cell(backend, name, loop, situation, Path(folder), jobs)


@contextlib.contextmanager
def _used(backend: str) -> Iterator[int]:
    if backend in {"serial", "pools"}:
        yield 1
    elif backend == "dask":
        import distributed

        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config("dask"),
        ):
            yield 2
    else:
        with joblib.parallel_config(backend):
            yield 2


def _cell(backend: str, name: str, loop: Any, situation: str, folder: Path, jobs: int) -> Cell:
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
    ended = "numbers" if error is None else type(error).__name__
    if isinstance(error, Halted):
        last = pd.to_datetime(error.history["asked_at"].iloc[-1], utc=True)
        seconds = time.time() - last.timestamp()
    wrong = _wrong(name, situation, found, error, guard)
    guard.close()
    words = wrong or ("" if error is None else str(error).partition(";")[0])
    return Cell(backend, name, situation, ended, not wrong, words[:200], seconds)


def _staged(situation: str, folder: Path, jobs: int) -> tuple[ReusableHoldout, Stage]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * _ROWS, _COLUMNS))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=2 * _ROWS) > 0).astype(np.int64)
    held = X[_ROWS:] if situation != "wrong input" else X[_ROWS:, : _COLUMNS - 1]
    guard = made_guard(
        held,
        y[_ROWS:],
        queries=_HALT_AFTER if situation == "halt" else 100,
        charges=2,
        threshold=0.9,
        noise=1e-6,
        vacuous=True,
        unwitnessed=True,
        ledger=folder / "guard.db",
        seed=0,
    )
    predictions = y[_ROWS:] if situation != "wrong input" else y[_ROWS:-1]
    if situation == "ledger gone":
        pickle.dumps(guard)  # as it goes to workers: the holdout lies beside the ledger
        for file in folder.glob("guard.db*"):
            if not file.name.endswith((".key", ".holdout")):
                file.unlink()
    return guard, Stage(guard, X[:_ROWS], y[:_ROWS], predictions, jobs)


def _wrong(name: str, situation: str, found: Any, error: BaseException | None, guard: Any) -> str:
    """What should not be; empty if all is as it must be."""
    if name in REFUSED:
        if not isinstance(error, InputError) or "nothing was asked" not in str(error):
            return f"must be refused; got {error!r}"
        return "" if situation == "ledger gone" or guard.queries_asked == 0 else "must ask nothing"
    if situation == "fine":
        if error is not None:
            return f"must end; got {error!r}"
        return "" if np.isfinite(np.asarray(found, dtype=np.float64)).all() else "must give numbers; gave NaN"
    if error is None:
        return "must be told; ended as if nothing were wrong"
    if situation == "halt":
        if not isinstance(error, Halted):
            return f"must be Halted; got {error!r}"
        asked = int(error.history["asked"].iloc[-1])
        return "" if asked == _HALT_AFTER else f"must have all answers so far; has those of {asked} queries"
    wanted = InputError if situation == "wrong input" else LedgerError
    if not isinstance(error, HoldoutError) or not isinstance(error, wanted):
        return f"must be {wanted.__name__}; got {error!r}"
    return "" if situation == "ledger gone" or guard.queries_asked == 0 else "must ask nothing"


def main() -> None:
    """Run the cells of one backend."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", choices=BACKENDS)
    parser.add_argument("loops", nargs="*")
    given = parser.parse_args()
    os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"
    for cell in cells(given.backend, given.loops or None):
        print(json.dumps(cell._asdict()), flush=True)


if __name__ == "__main__":
    main()
