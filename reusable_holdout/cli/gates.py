"""``reusable-holdout gate-init`` and ``gate``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from reusable_holdout.cli.command import PROGRAM, add

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from reusable_holdout.release_gate.command import Outcome

__all__ = ["add_gate", "add_gate_init"]


def add_gate_init(commands: Any) -> None:
    """Add ``gate-init``."""
    parser = _add_gate_command(
        commands,
        "gate-init",
        _gate_init,
        "Make a release gate from labelled rows that no model has seen. Beside the ledger lie from then on its noise "
        "key and a copy of the labels, both readable by you alone. With the same labels and settings again, it stays "
        "as it is.",
        "gate-init --ledger guard.db --labels labels.csv --queries 200 --tolerance 0.05 --spread 0.3",
    )
    parser.add_argument(
        "--labels", type=Path, required=True, help="CSV or Parquet: one column, and one of ids"
    )
    parser.add_argument("--metric", default="accuracy", help="a plain mean over rows (default accuracy)")
    parser.add_argument(
        "--bounds", type=float, nargs=2, metavar=("LOW", "HIGH"), help="of the targets, for mae and mse"
    )
    parser.add_argument("--queries", type=int, required=True, help="releases that will be asked about")
    parser.add_argument(
        "--charges", type=int, help="releases that can be accepted (default: what the tolerance affords)"
    )
    real = {
        "tolerance": "how far below the named improvement an accepted one can be",
        "spread": "guess of how much two models differ on a row: of accuracies, the root of the share of rows",
        "confidence": "that every verdict's interval holds (default 0.95)",
    }
    for name, text in real.items():
        parser.add_argument(f"--{name}", type=float, help=text)
    parser.add_argument(
        "--witness",
        help="remembers how far the ledger had come, so that a restored copy is refused: a file of another owner, "
        "git:repository@remote, or a URL",
    )
    parser.add_argument(
        "--vacuous",
        action="store_true",
        help="make it though an accepted release can be worse by more than a quarter of the range of differences",
    )


def _gate_init(options: argparse.Namespace) -> int:
    from reusable_holdout.release_gate.command import run_gate_init

    return _end(run_gate_init(options))


def add_gate(commands: Any) -> None:
    """Add ``gate``."""
    parser = _add_gate_command(
        commands,
        "gate",
        _gate,
        "Say whether a new model is better than the incumbent by what was named, and nothing else. Prints accepted, "
        "rejected or halted. Exit status: 0 accepted, 1 rejected, 2 halted (the budget is spent: nothing was told), 3 "
        "bad input (nothing was asked, and nothing was charged). The same question again has the same verdict, free.",
        "gate --ledger guard.db --predictions new.csv --incumbent old.csv --improvement 0.005",
    )
    for name, model in (("predictions", "the new model"), ("incumbent", "the model it would replace")):
        parser.add_argument(f"--{name}", type=Path, required=True, help=f"of {model}: CSV or Parquet")
    parser.add_argument(
        "--improvement",
        type=float,
        required=True,
        help="of the metric, positive if better, also for losses; negative to accept what is not much worse",
    )
    parser.add_argument("--labels", type=Path, help="of the gate (default: the copy beside the ledger)")
    parser.add_argument("--name", help="what history calls the question (default: the predictions' file)")


def _gate(options: argparse.Namespace) -> int:
    from reusable_holdout.release_gate.command import run_gate

    return _end(run_gate(options))


def _add_gate_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str, example: str
) -> Any:
    parser = add(commands, name, run, text, example)

    def refuse(message: str) -> NoReturn:  # argparse's own status is that of a halt
        from reusable_holdout.release_gate.command import BAD_INPUT

        parser.print_usage(sys.stderr)
        print(f"{parser.prog}: error: {message}", file=sys.stderr)
        raise SystemExit(BAD_INPUT)

    parser.error = refuse
    parser.set_defaults(refuse=refuse)
    parser.add_argument("--ledger", required=True, help="SQLite file or URL")
    parser.add_argument("--key", type=Path, help="key file (default: beside the ledger)")
    parser.add_argument("--id", help="column of ids, by which rows are aligned (default: by their order)")
    return parser


def _end(outcome: Outcome) -> int:
    """Print, and end with a gate's status even if nobody reads what is printed."""
    problem = outcome.problem and f"{PROGRAM}: {outcome.problem}"
    for stream, text in ((sys.stderr, problem), (sys.stdout, outcome.text)):
        try:
            if text:
                print(text, file=stream, flush=True)
        except (OSError, ValueError):  # what is left in its buffer would fail again, and end with status 120
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return outcome.status
