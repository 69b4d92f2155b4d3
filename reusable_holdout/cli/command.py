"""What the commands share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

__all__ = ["PROGRAM", "add", "tell"]

PROGRAM = "reusable-holdout"


def add(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str, example: str) -> Any:
    """Add a command, with an example and ``--json``."""
    parser = commands.add_parser(
        name,
        help=text.split(".", maxsplit=1)[0],
        description=text,
        epilog=f"Example: {PROGRAM} {example}",
    )
    parser.set_defaults(command=run, refuse=parser.error)
    parser.add_argument("--json", action="store_true", help="write JSON, for programs")
    return parser


def tell(value: Any, *, as_json: bool) -> None:
    """Print something, as JSON for programs."""
    print(json.dumps(value, indent=2) if as_json else value)
