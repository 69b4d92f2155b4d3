"""The shared parts of the commands."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from reusable_holdout.errors import printable

PROGRAM = "reusable-holdout"


def add(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str, example: str) -> Any:
    """Add a command, with an example and ``--json``."""
    parser = commands.add_parser(
        name, help=text.split(".", maxsplit=1)[0], description=text, epilog=f"Example: {PROGRAM} {example}"
    )
    parser.set_defaults(command=run, refuse=parser.error)
    parser.add_argument("--json", action="store_true", help="write JSON, for programs")
    return parser


def add_documented(commands: Any, run: Callable[[argparse.Namespace], int], example: str) -> Any:
    """Add a command that is named as its function, and whose help is the function's docstring."""
    return add(commands, run.__name__.strip("_"), run, " ".join((run.__doc__ or "").split()), example)


def add_classes(parser: Any) -> None:
    """Add the option that makes a set of labels public."""
    parser.add_argument(
        "--classes",
        nargs="+",
        metavar="LABEL",
        help="all labels that may occur; everyone who asks may know them (default: those of the file if there is at "
        "most one for 50 rows; others are private, and only exact match is measured)",
    )


def tell(value: Any, *, as_json: bool) -> None:
    """Print a value: as JSON, for programs, or as text."""
    print(json.dumps(value, indent=2) if as_json else printable_lines(str(value)))


def printable_lines(text: str) -> str:
    """Return each line of a text without control and invisible characters."""
    return "\n".join(map(printable, text.split("\n")))
