"""``reusable-holdout demo``."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reusable_holdout.cli.command import add_documented, tell
from reusable_holdout.demo import run_demo


def add_demo(commands: Any) -> None:
    """Add ``demo``."""
    parser = add_documented(commands, _demo, "demo --seed 1")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the data split, the search and the noise (default 0)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-output"),
        help="folder for the ledger and the picture (default ./demo-output)",
    )


def _demo(options: argparse.Namespace) -> int:
    """Watch a search overfit a plain holdout, and not a guarded one.

    Real data (UCI Adult): a hill climb over thousands of small edits of a classifier keeps whatever raises its holdout
    score. Both results are then measured on fresh rows that no search has touched.
    """
    result = run_demo(seed=options.seed, folder=options.out, progress=sys.stderr.isatty())
    tell(asdict(result) if options.json else str(result), as_json=options.json)
    return 0
