"""``reusable-holdout plan``."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from reusable_holdout.cli.command import add_documented, tell
from reusable_holdout.plan import Plan


def add_plan(commands: Any) -> None:
    """Add ``plan``."""
    example = "plan --rows 10000 --queries 1000 --tolerance 0.05 --estimate 0.9 --reveals 2 --choices 100"
    parser = add_documented(commands, _plan, example)
    whole = {
        "rows": "holdout rows",
        "queries": "questions that will be asked",
        "charges": "deviations to pay for",
        "reveals": "reveals whose dearest outcomes are set aside beside the charges (default 0)",
    }
    for name, text in whole.items():
        parser.add_argument(f"--{name}", type=int, help=text)
    parser.add_argument(
        "--choices",
        type=int,
        nargs="+",
        metavar="CANDIDATES",
        help="candidates of each choice that is set aside, such as 100 20 (default: one among 100, where the tolerance "
        "leaves a charge beside it and neither charges nor reveals are named)",
    )
    real = {
        "tolerance": "how far an answer may be from the population value",
        "threshold": "deviation that is always charged (default: derived)",
        "noise": "scale of the noise, 0 for none (default: derived)",
        "prior-error": "how far honest priors are off (default: one public standard error)",
        "confidence": "that every interval holds (default 0.95)",
        "estimate": "score near which the plan must hold (default: the worst case); naming 0.9 buys several times the "
        "charges",
        "delta": "of differential privacy (default: 1 / rows^2)",
    }
    for name, text in real.items():
        parser.add_argument(f"--{name}", type=float, help=text)
    parser.add_argument("--board", choices=["claims"], help="plan a board of many series, such as teams")
    parser.add_argument("--gates", action="store_true", help="plan for gates alone")


def _plan(options: argparse.Namespace) -> int:
    """Say what a holdout can promise. Give three of rows, queries, charges and tolerance; the fourth is derived."""
    names = inspect.signature(Plan).parameters
    stated = {name: value for name, value in vars(options).items() if name in names and value is not None}
    plan = Plan(**stated)
    derived = ("threshold", "epsilon", "vacuous", "privacy_is_vacuous")
    record = plan.record() | {name: getattr(plan, name) for name in derived}
    tell(record if options.json else str(plan), as_json=options.json)
    return 0
