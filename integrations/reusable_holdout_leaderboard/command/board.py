"""The command ``reusable-holdout board`` with its subcommands: serve, backup, restore and organisers' actions."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.actions import ACTIONS, Action, Field, File
from reusable_holdout_leaderboard.client.connection import Connection
from reusable_holdout_leaderboard.command.options import add_place, add_rules, database_of, stated_rules
from reusable_holdout_leaderboard.command.serving import prepare
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.competition.backup import back_up, restore
from reusable_holdout_leaderboard.settings import Settings, read_token
from reusable_holdout_leaderboard.web.server import serve
from reusable_holdout_leaderboard.web.wire import as_json

__all__ = ["add_board"]

_PROGRAM = "reusable-holdout board"


def add_board(commands: Any) -> None:
    """Add the command ``board`` and its subcommands to a command line.

    Parameters
    ----------
    commands : argparse subparsers
    """
    parser = commands.add_parser(
        "board",
        help="Serve a leaderboard, and run its competitions",
        description="Serve a leaderboard whose every score comes from one guarded holdout, and run its competitions: "
        "in their folder, or over HTTP with --url and the administrator's token. Answers are JSON.",
        epilog=f"Examples: {_PROGRAM} serve --example; {_PROGRAM} add-team Blue",
    )
    actions = parser.add_subparsers(required=True, metavar="action")
    _add_serve(actions)
    for action in ACTIONS.values():
        _add_action(actions, action)
    for name, run, about in (
        ("backup", _back_up, "Copy board, ledgers, labels and keys at one moment; servers keep running"),
        ("restore", _restore, "Put a backup into an empty or missing folder"),
    ):
        _add(actions, name, run, about).add_argument("backup", type=Path, help="folder of the backup")


def _add(actions: Any, name: str, run: Any, about: str, **more: Any) -> Any:
    parser = actions.add_parser(name, help=about, description=f"{about}.", **more)
    parser.set_defaults(command=run, refuse=parser.error)
    add_place(parser)
    return parser


# ---- serve


def _add_serve(actions: Any) -> None:
    about = (
        "Serve a leaderboard; the first start makes the competition from its labels, later starts resume it"
    )
    example = f"Example: {_PROGRAM} serve --labels labels.csv --metric accuracy"
    parser = _add(actions, "serve", _serve, about, epilog=example)
    parser.add_argument("--example", action="store_true", help="serve an example competition on real data")
    parser.add_argument(
        "--witness",
        help="witness of the ledger, so that an older copy of the folder is refused: file of another owner, "
        "or git:repository (default: the one that the competition was made with)",
    )
    made = parser.add_argument_group("the competition, when it is made")
    made.add_argument("--labels", type=Path, help="CSV or Parquet: one column of labels, and one of ids")
    made.add_argument("--fresh-labels", type=Path, help="labels for the final standings: other rows")
    made.add_argument("--rules", type=Path, help="JSON file of rules; options take precedence")
    add_rules(made, change=False)
    server = parser.add_argument_group("the server")
    server.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    server.add_argument("--port", type=int, default=8000, help="(default 8000)")
    server.add_argument("--workers", type=int, default=1, help="processes that share one budget (default 1)")
    server.add_argument(
        "--admin-token-file", type=Path, help="made if it does not exist (default: admin.token in the folder)"
    )
    server.add_argument(
        "--proxy-headers",
        action="append",
        metavar="ADDRESS",
        help="address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed; may be repeated",
    )
    server.add_argument(
        "--root-path", default="", help="path under which a proxy shows the server, as /board"
    )
    for one in fields(Settings):
        if "help" in one.metadata:
            kind = type(one.default)
            more: dict[str, Any] = {"action": "store_true"} if kind is bool else {"type": kind}
            option = f"--{one.name.replace('_', '-')}"
            server.add_argument(option, default=one.default, help=one.metadata["help"], **more)


def _serve(options: argparse.Namespace) -> int:
    prepared = prepare(options, database_of(options))
    print(prepared.text, flush=True)
    serve(
        prepared.settings,
        host=options.host,
        port=options.port,
        workers=options.workers,
        root_path=options.root_path,
    )
    return 0


# ---- actions of organisers


def _add_action(actions: Any, action: Action) -> None:
    parser = _add(actions, action.name, _act, action.about)
    parser.set_defaults(action=action)
    parser.add_argument("--url", help="address of the server, in place of the folder")
    parser.add_argument("--token-file", type=Path, help="file of mode 600 with the administrator's token")
    for one in action.fields:
        kind: Any = Path if one.kind is File else one.kind
        if one.kind is dict:
            add_rules(parser, change=True)
        elif one.kind is bool:
            parser.add_argument(f"--{one.name}", action="store_true", help=one.about)
        else:
            name = one.name if one.default is ... else f"--{one.name}"
            parser.add_argument(name, type=kind, help=one.about)


def _act(options: argparse.Namespace) -> int:
    action: Action = options.action
    given = {one.name: _value(one, options) for one in action.fields}
    if options.url is not None:
        token = read_token(options.token_file or options.folder / "admin.token")
        url = options.url if options.slug is None else f"{options.url.rstrip('/')}/c/{options.slug}"
        with Connection(url, token) as connection:
            return _print(connection.post(f"admin/{action.name}", **_content(action, given)))
    opened = Competition.open(
        options.folder, options.slug, database=database_of(options), key_file=options.key
    )
    with opened as competition:
        return _print(as_json(action.run(competition, **given)))


def _value(field: Field, options: argparse.Namespace) -> Any:
    if field.kind is dict:
        return stated_rules(options)
    value = getattr(options, field.name)
    if field.kind is not File:
        return value
    try:
        return File(value.name, value.read_bytes())
    except OSError as error:
        raise InputError(f"{value} must be a file that can be read; {error.strerror}") from None


def _content(action: Action, given: dict[str, Any]) -> dict[str, Any]:
    """Return the body of the request for an action: JSON, or a form if the action takes a file."""
    file = next((one for one in given.values() if isinstance(one, File)), None)
    if not given or file is None:
        return {"json": given} if given else {}
    name = next(one.name for one in action.fields if one.kind is File)
    texts = {one: value for one, value in given.items() if one != name and value not in {None, False}}
    return {"files": {name: tuple(file)}, "data": {one: str(value) for one, value in texts.items()}}


# ---- backups


def _back_up(options: argparse.Namespace) -> int:
    _check_files(options)
    return _print(back_up(options.folder, options.backup))


def _restore(options: argparse.Namespace) -> int:
    _check_files(options)
    return _print(restore(options.backup, options.folder, key_file=options.key))


def _check_files(options: argparse.Namespace) -> None:
    if database_of(options) is not None:
        raise InputError(
            "a board on PostgreSQL is backed up with 'pg_dump --format=custom' and restored with 'pg_restore'; nothing "
            "was done; one dump contains board and ledgers at one moment; also "
            f"copy {options.folder}, because it holds labels and keys"
        )


def _print(found: Any) -> int:
    print(json.dumps(found, indent=2, default=str))
    return 0
