"""``reusable-holdout demo``."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reusable_holdout.cli.command import add, tell
from reusable_holdout.demo import run_demo

__all__ = ["add_demo"]


def add_demo(commands: Any) -> None:
    """Add ``demo``."""
    parser = add(
        commands,
        "demo",
        _demo,
        "Watch a search overfit a plain holdout, and not a guarded one. Real data (UCI Adult): a hill climb over "
        "thousands of small edits of a classifier keeps whatever raises its holdout score. Both results are then "
        "measured on fresh rows that no search has touched. Charges and halts go to MLflow, if it is installed.",
        "demo --seed 1",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the data split, the search and the noise (default 0)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-output"),
        help="folder for the ledger, the picture and the MLflow database (default ./demo-output)",
    )
    parser.add_argument("--no-mlflow", action="store_true", help="do not track the guard in MLflow")


def _demo(options: argparse.Namespace) -> int:
    watch = None if options.no_mlflow else _mlflow_watch(options.out)
    result = run_demo(seed=options.seed, folder=options.out, progress=sys.stderr.isatty(), watch=watch)
    tell(result.as_dict() if options.json else str(result), as_json=options.json)
    if watch is not None and not options.json:
        print(f"mlflow   mlflow ui --backend-store-uri {_mlflow_uri(options.out)}")
    return 0


def _mlflow_watch(folder: Path) -> Any:
    """Track the demo in a database of its own, if MLflow is installed."""
    found = entry_points(group="reusable_holdout.demo", name="mlflow")
    if find_spec("mlflow") is None or not found:
        return None
    (tracking,) = found
    return tracking.load()(folder, _mlflow_uri(folder))


def _mlflow_uri(folder: Path) -> str:
    return f"sqlite:///{folder.absolute() / 'mlflow.db'}"
