"""The command ``reusable-holdout board``."""

# ruff: noqa: PLC0415, T201 - a command line prints, and starts fast: each command imports what it needs
from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.command.administration import InFolder, OverHttp
from reusable_holdout_leaderboard.command.options import (
    ALSO,
    PROGRAM,
    SIGN_UP,
    SIGN_UPS,
    WHOLE,
    add_place,
    check_extra,
    database_of,
)

__all__ = ["add_board"]

_UNNAMED: dict[str, Any] = {"default": argparse.SUPPRESS}  # what is not named stays as it is


def add_board(commands: Any) -> None:
    """Add the command and its actions."""
    text = "Run a competition, in its folder, or over HTTP with --url and the administrator's token. Answers are JSON."
    parser = commands.add_parser(
        "board",
        help="Run a competition: teams, freezing, another label set, final standings",
        description=text,
        epilog=f"Example: {PROGRAM} board add-team Blue",
    )
    actions = parser.add_subparsers(required=True, metavar="action")
    _add_action(
        actions, "status", lambda board, _: board.status(), "State, standings and teams, also while blind"
    )
    _add_action(actions, "unblind", lambda board, _: board.unblind(), "Show all scores from now on")
    _add_action(
        actions, "final", lambda board, _: board.final(), "Final standings on the fresh labels, once frozen"
    )
    _add_action(
        actions, "invite", lambda board, _: board.invite(), "Make an invitation code; the one before is void"
    )
    freeze = _add_action(
        actions, "freeze", lambda board, given: board.freeze(not given.off), "Take no new submissions"
    )
    freeze.add_argument("--off", action="store_true", help="take them again")
    _add_change(actions)
    rotate = _add_action(actions, "rotate", _rotate, "Go on with another label set")
    rotate.add_argument("--labels", type=Path, required=True, help="fresh rows of the same population")
    rotate.add_argument("--early", action="store_true", help="though there is budget left, which is lost")
    rotate.add_argument("--queries", type=int, help="of the new budget (default: as before)")
    _add_teams(actions)
    _add_backups(actions)
    _add_files(actions)
    _add_witness(actions)
    submit = _add_action(
        actions, "submit", _submit, "Send a file and print its answer; needs --url, --token-file"
    )
    submit.add_argument("file", type=Path, help="CSV or Parquet")
    submit.add_argument("--claimed", type=float, help="the team's own validation score")
    submit.add_argument(
        "--anew",
        action="store_true",
        help="on a board of claims, ask though these predictions were answered before, at the team's own expense",
    )


def _add_teams(actions: Any) -> None:
    for name, about in (
        ("add-team", "Add a team and print its token, which is shown this once"),
        ("renew-token", "Give a team another token; the old one is void"),
    ):
        action = _add_action(actions, name, _team_action(name), about)
        action.add_argument("team", help="its name")
    rename = _add_action(
        actions, "rename-team", lambda board, given: board.rename(given.team, given.name), "Rename a team"
    )
    rename.add_argument("team", help="its name")
    rename.add_argument("name", help="its new name")
    disqualify = _add_action(
        actions,
        "disqualify",
        lambda board, given: board.disqualify(given.team, not given.off),
        "Take a team off board and final; its answers stay in the ledger",
    )
    disqualify.add_argument("team", help="its name")
    disqualify.add_argument("--off", action="store_true", help="put it back")
    merge = _add_action(
        actions,
        "merge",
        lambda board, given: board.merge(given.team, given.other),
        "Let a team have what another has sent and paid for",
    )
    merge.add_argument("team", help="name of the team that stays")
    merge.add_argument("other", help="name of the one that goes; its token is void")


def _add_files(actions: Any) -> None:
    attach = _add_action(
        actions,
        "attach",
        lambda board, given: board.attach(given.file),
        "Give everyone a file: never the labels",
    )
    attach.add_argument("file", type=Path, help="one of the same name is replaced")
    detach = _add_action(
        actions, "detach", lambda board, given: board.detach(given.name), "Take a public file away"
    )
    detach.add_argument("name", help="of the file")


def _add_witness(actions: Any) -> None:
    witness = _add_action(
        actions,
        "witness",
        lambda board, given: board.witness(given.name),
        "Make a name by which this server is the witness of a ledger elsewhere",
    )
    witness.add_argument(
        "name", help="small letters, digits and hyphens; the first ledger that comes takes it"
    )


def _add_change(actions: Any) -> None:
    about = "Change rules that the guard does not rest on, while it runs; each change is shown on the page"
    change = _add_action(actions, "change", _change, about)
    change.add_argument("--title", help="what people read", **_UNNAMED)
    change.add_argument("--description", type=Path, help="file of Markdown", **_UNNAMED)
    change.add_argument(
        "--also", action="append", metavar="NAME", help=f"{ALSO}; none to show no other", **_UNNAMED
    )
    for name in ("opens", "closes"):
        text = "date and time with a time zone, as 2026-03-01T12:00+00:00, or none"
        change.add_argument(f"--{name}", dest=f"{name}_at", type=_date_or_none, help=text, **_UNNAMED)
    change.add_argument("--sign-up", choices=SIGN_UPS, help=SIGN_UP, **_UNNAMED)
    for name in (
        "submissions-per-day",
        "submissions-per-team",
        "charges-per-team",
        "most-teams",
        "final-picks",
    ):
        change.add_argument(f"--{name}", type=_whole_or_none, help=f"{WHOLE[name]}, or none", **_UNNAMED)


def _add_backups(actions: Any) -> None:
    for name, run, about in (
        ("backup", _back_up, "Copy board, ledgers, labels and keys of one moment while servers go on"),
        ("restore", _restore, "Put a backup into a folder that is empty or not there"),
    ):
        parser = actions.add_parser(name, help=about, description=f"{about}.")
        parser.set_defaults(command=run, refuse=parser.error)
        add_place(parser)
        parser.add_argument("backup", type=Path, help="folder of the backup")


def _back_up(options: argparse.Namespace) -> int:
    check_extra()
    _check_files(options)
    from reusable_holdout_leaderboard.competition.backup import back_up

    print(json.dumps(back_up(options.folder, options.backup), indent=2))
    return 0


def _restore(options: argparse.Namespace) -> int:
    check_extra()
    _check_files(options)
    from reusable_holdout_leaderboard.competition.backup import restore

    print(json.dumps(restore(options.backup, options.folder, key_file=options.key), indent=2))
    return 0


def _check_files(options: argparse.Namespace) -> None:
    if database_of(options) is not None:
        raise InputError(
            "a board on PostgreSQL is backed up with 'pg_dump --format=custom' and restored with 'pg_restore': one "
            f"dump has board and ledgers of one moment; labels and keys lie in {options.folder}: copy that beside it"
        )


def _add_action(actions: Any, name: str, run: Callable[[Any, argparse.Namespace], Any], about: str) -> Any:
    parser = actions.add_parser(name, help=about, description=f"{about}.")
    parser.set_defaults(command=_board, refuse=parser.error, action=run, remote_only=name == "submit")
    add_place(parser)
    parser.add_argument("--url", help="of the server, in place of the folder")
    parser.add_argument(
        "--token-file", type=Path, help="of the administrator, or of the team that submits; mode 600"
    )
    return parser


def _board(options: argparse.Namespace) -> int:
    check_extra()
    administration = _administration(options)
    try:
        found = options.action(administration, options)
    finally:
        administration.close()
    print(json.dumps(found, indent=2, default=str))
    return 0


def _administration(options: argparse.Namespace) -> InFolder | OverHttp:
    from reusable_holdout_leaderboard.client.connection import Connection
    from reusable_holdout_leaderboard.command.administration import InFolder, OverHttp
    from reusable_holdout_leaderboard.competition import Competition
    from reusable_holdout_leaderboard.settings import read_token

    if options.url is None:
        if options.remote_only:
            raise InputError("a submission goes to a server; name it with --url, and the team's --token-file")
        return InFolder(
            Competition.open(
                options.folder, options.slug, database=database_of(options), key_file=options.key
            )
        )
    token = read_token(options.token_file or options.folder / "admin.token")
    url = options.url if options.slug is None else f"{options.url.rstrip('/')}/c/{options.slug}"
    return OverHttp(Connection(url, token))


def _team_action(name: str) -> Callable[[Any, argparse.Namespace], Any]:
    method = name.replace("-", "_")
    return lambda board, given: getattr(board, method)(given.team)


def _change(board: InFolder | OverHttp, given: argparse.Namespace) -> list[dict[str, Any]]:
    from reusable_holdout_leaderboard.command.serving import text_of
    from reusable_holdout_leaderboard.rules import CHANGEABLE

    changes = {name: value for name, value in vars(given).items() if name in CHANGEABLE}
    if not changes:
        raise InputError("a change must name at least one rule; got none; nothing was changed")
    if "description" in changes:
        changes["description"] = text_of(changes["description"])
    if "also" in changes:
        changes["also"] = [] if changes["also"] == ["none"] else changes["also"]
    return board.change(changes)


def _date_or_none(text: str) -> str | None:
    return None if text == "none" else text


def _whole_or_none(text: str) -> int | None:
    return None if text == "none" else int(text)


def _rotate(board: InFolder | OverHttp, given: argparse.Namespace) -> dict[str, Any]:
    return board.rotate(given.labels, early=given.early, queries=given.queries)


def _submit(board: OverHttp, given: argparse.Namespace) -> dict[str, Any]:
    return board.submit(given.file, claimed=given.claimed, anew=given.anew)
