"""``reusable-holdout gate-init`` and ``gate``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from reusable_holdout.cli.command import PROGRAM, add, add_classes

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
        "Make a release gate from labelled rows that no model has seen, or from ids of rows whose outputs are scored. "
        "What so many rows can show comes first. Beside the ledger lie from then on its noise key and a copy of the "
        "labels, both readable by you alone. With the same labels and settings again, it stays as it is.",
        "gate-init --ledger guard.db --labels labels.csv --queries 200 --tolerance 0.05 --spread 0.3",
    )
    rows = parser.add_mutually_exclusive_group(required=True)
    rows.add_argument("--labels", type=Path, help="CSV, Parquet or JSON: one column, and one of ids")
    rows.add_argument(
        "--ids", type=Path, help="of rows that are scored: CSV, Parquet or JSON with a column of ids"
    )
    _add_evaluations(parser, rows, "whose rows these are")
    parser.add_argument("--groups", help="what a row belongs to: a column, or a key of Inspect's metadata")
    parser.add_argument(
        "--metric", help="a plain mean over rows (default accuracy, of ids score; or pass@3, pass^3)"
    )
    parser.add_argument(
        "--bounds",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="of targets or scores, for mae, mse, score; targets outside are moved to them, and nothing says so",
    )
    add_classes(parser)
    _add_wish(parser)


def _add_wish(parser: Any) -> None:
    """Add what a gate shall keep, and what watches it."""
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
        "with the certified improvement, rejected or halted; notes a named improvement that noise can pass. Exit "
        "status: 0 accepted, 1 rejected, 2 halted (the budget is spent: nothing was told), 3 "
        "bad input (nothing was asked, and nothing was charged). The same question again has the same verdict, free.",
        "gate --ledger guard.db --predictions new.csv --incumbent old.csv --improvement 0.05",
    )
    new = parser.add_mutually_exclusive_group(required=True)
    new.add_argument("--predictions", type=Path, help="of the new model: CSV, Parquet or JSON")
    _add_evaluations(parser, new, "of the new model")
    parser.add_argument(
        "--incumbent",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="the same of the model it would replace",
    )
    parser.add_argument(
        "--no-worse",
        action="append",
        metavar="SCORE:AMOUNT",
        help="accept only what is no worse by another score of the files, but for so much; may be repeated",
    )
    parser.add_argument(
        "--improvement",
        type=float,
        required=True,
        help="of the metric, positive if better, also for losses: what gate-init shows, or more; less accepts noise",
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


def _add_evaluations(parser: Any, sources: Any, whose: str) -> None:
    """Add files of scores, and how they are read."""
    files = {"inspect": "logs of Inspect", "lm-eval": "samples_*.jsonl of lm-evaluation-harness"}
    for name, text in files.items():
        sources.add_argument(
            f"--{name}", type=Path, nargs="+", metavar="FILE", help=f"{text}, {whose}; several are repeats"
        )
    sources.add_argument(
        "--scores",
        type=Path,
        nargs=1,
        metavar="FILE",
        help=f"CSV, Parquet or JSON of ids and scores, {whose}",
    )
    parser.add_argument(
        "--score", help="scorer, metric or column, where there are several; style[clarity] of a dict"
    )
    parser.add_argument("--filter", help="of lm-evaluation-harness, where there are several")
    parser.add_argument("--missing", type=float, help="what counts where there is no score (default: refuse)")


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
