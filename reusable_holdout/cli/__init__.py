"""The command line: ``reusable-holdout demo``, ``plan``, ``gate``, ``box``, ``history`` and more."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn

from reusable_holdout.cli.command import PROGRAM
from reusable_holdout.cli.demo import add_demo
from reusable_holdout.cli.ledgers import add_history, add_report, add_verify, add_witness
from reusable_holdout.cli.planning import add_plan
from reusable_holdout.cli.registry import add_registry
from reusable_holdout.errors import HoldoutError, MissingExtraError
from reusable_holdout.version import __version__

__all__ = ["main"]

# Entry points of other packages: the name of a command, and the function that adds it to argparse's subparsers.
_GROUP = "reusable_holdout.commands"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line's arguments; by default those of this process.

    Returns
    -------
    int
        0 if all is well, 1 if something is wrong with the input or a ledger, 2 for a wrong command line; a gate has
        statuses of its own, which its help names.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options, unknown = _parser(arguments).parse_known_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        if unknown:
            options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
        return command(options)
    except HoldoutError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        return 0


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Keep a test set alive: plan a budget, watch a guarded search, inspect and verify ledgers.",
        epilog=f"Start with '{PROGRAM} demo'. A ledger is a SQLite file or the URL of a PostgreSQL server.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for add in (add_demo, add_plan, add_history, add_report, add_verify, add_witness, add_registry):
        add(commands)
    named = next((one for one in arguments if not one.startswith("-")), None)
    others = {found.name: found for found in sorted(entry_points(group=_GROUP), key=lambda found: found.name)}
    for name, found in others.items():
        if name == named or named not in {*others, *commands.choices}:  # unneeded commands are not imported
            _add_found(commands, found)
    return parser


def _add_found(commands: Any, found: EntryPoint) -> None:
    """Add another package's command; if a library of its extra is missing, the command only names that library."""
    try:
        add = found.load()
    except MissingExtraError as error:
        missing = error

        def refuse(*_: object) -> NoReturn:
            raise missing

        parser = commands.add_parser(found.name, help=str(missing), add_help=False)
        parser.set_defaults(command=refuse, refuse=refuse)
    else:
        add(commands)
