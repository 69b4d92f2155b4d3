"""The commands ``reusable-holdout serve`` and ``reusable-holdout board``."""

# ruff: noqa: PLC0415, T201 - a command line prints, and starts fast: each command imports what it needs
from __future__ import annotations

import argparse
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reusable_holdout.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reusable_holdout_leaderboard.command.administration import InFolder, OverHttp

__all__ = ["add_commands"]

_PROGRAM = "reusable-holdout"
_DATABASE = "REUSABLE_HOLDOUT_DATABASE"
_EXTRA = ("fastapi", "httpx", "jinja2", "markdown_it", "pyarrow", "python_multipart", "uvicorn")
_FOLDER = Path("leaderboard-data")
_WHOLE = {
    "queries": "submissions of all teams together, for each label set (default 10,000)",
    "charges": "of each team, of claims (default 2); else deviations to pay for, in place of a tolerance",
    "submissions-per-day": "of each team",
    "submissions-per-team": "of each team, for each label set",
    "charges-per-team": "of each team, for each label set",
    "most-teams": "that sign up",
    "final-picks": "submissions that a team may pick for the final standings (default 1)",
}
_SIGN_UPS = ("closed", "code", "open")
_SIGN_UP = "who makes teams: the organiser, who has the newest invitation code, or everyone (default closed)"
_UNNAMED: dict[str, Any] = {"default": argparse.SUPPRESS}  # what is not named stays as it is
_REAL = {
    "tolerance": "how far an answer may be from the population value (default 0.05 for thresholdout)",
    "threshold": "deviation that is always told, or a ladder's step (default for a ladder: 0.02, with 50 charges)",
    "estimate": "score that is expected: it buys the most there",
    "prior-error": "how far honest claims are off (default 0.005 of the metric's range)",
    "confidence": "that all intervals hold together (default 0.95)",
}


def add_commands(commands: Any) -> None:
    """Add the commands to those of the command line.

    Parameters
    ----------
    commands : argparse subparsers
    """
    _add_serve(commands)
    _add_board(commands)


# ---- serve


def _add_serve(commands: Any) -> None:
    text = (
        "Serve a leaderboard that survives its competitors: every score comes from one guarded holdout. The first "
        "start makes the competition from its labels, later starts resume it. --example makes one on real data, with a "
        "team."
    )
    parser = commands.add_parser(
        "serve",
        help=text.split(":", maxsplit=1)[0],
        description=text,
        epilog=f"Example: {_PROGRAM} serve --labels labels.csv --metric accuracy --policy ladder",
    )
    parser.set_defaults(command=_serve, refuse=parser.error)
    parser.add_argument("--example", action="store_true", help="serve an example competition")
    _add_place(parser)
    _add_rules(parser.add_argument_group("the competition, when it is made"))
    _add_server(parser.add_argument_group("the server"))


def _add_place(parser: Any) -> None:
    parser.add_argument(
        "--folder", type=Path, default=_FOLDER, help=f"of labels, keys and SQLite files (default ./{_FOLDER})"
    )
    parser.add_argument(
        "--slug", help="name of the competition in addresses and folders (default: the only one)"
    )
    parser.add_argument(
        "--database",
        help=f"PostgreSQL URL without a password, which ~/.pgpass may hold (default: ${_DATABASE})",
    )
    parser.add_argument("--database-file", type=Path, help="file of mode 600 with the URL, password and all")
    parser.add_argument("--key", type=Path, help="file of the noise key (default: beside the labels)")


def _add_rules(group: Any) -> None:
    group.add_argument("--labels", type=Path, help="CSV or Parquet: one column of labels, and one of ids")
    group.add_argument("--fresh-labels", type=Path, help="labels for the final standings: other rows")
    group.add_argument("--rules", type=Path, help="JSON file of rules, which the options below change")
    group.add_argument("--title", help="what people read (default: the slug)")
    group.add_argument("--description", type=Path, help="file of Markdown")
    group.add_argument("--metric", help="a name of the catalogue (default accuracy)")
    group.add_argument(
        "--metric-parameter",
        action="append",
        metavar="NAME=NUMBER",
        help="such as the bounds of targets, for mae",
    )
    group.add_argument("--policy", choices=("claims", "ladder", "thresholdout"), help="(default claims)")
    for name, about in _WHOLE.items():
        group.add_argument(f"--{name}", type=int, help=about)
    for name, about in _REAL.items():
        group.add_argument(f"--{name}", type=float, help=about)
    group.add_argument("--id", help='column of ids (default "id"; "" for rows in order)')
    group.add_argument("--opens", help="date and time with a time zone, as 2026-03-01T12:00+00:00")
    group.add_argument("--closes", help="the same")
    group.add_argument("--sign-up", choices=_SIGN_UPS, help=_SIGN_UP)
    group.add_argument("--blind", action="store_true", default=None, help="hide scores until 'board unblind'")
    group.add_argument(
        "--vacuous",
        action="store_true",
        default=None,
        help="hold it though answers may be off by more than a quarter of the metric's range",
    )


def _add_server(group: Any) -> None:
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    group.add_argument("--port", type=int, default=8000, help="(default 8000)")
    group.add_argument("--workers", type=int, default=1, help="processes, all on one budget (default 1)")
    group.add_argument(
        "--admin-token-file", type=Path, help="made if it is not there (default: admin.token in the folder)"
    )
    numbers: dict[str, tuple[type, str]] = {
        "answer-seconds": (
            float,
            "answers leave at multiples of this time, whatever was done (default 0.05)",
        ),
        "requests-per-minute": (int, "of one address, for each worker; 0 for any (default 1200)"),
        "submissions-per-minute": (int, "of one team, for each worker; 0 for any (default 300)"),
        "max-body-bytes": (int, "largest request (default 16 MiB)"),
        "connections-per-address": (int, "open at a time, for each worker (default 100)"),
        "head-seconds": (float, "for the head of a request to come (default 10)"),
    }
    for name, (kind, about) in numbers.items():
        group.add_argument(f"--{name}", type=kind, help=about)
    group.add_argument(
        "--secure-cookies", action="store_true", default=None, help="also for who came by HTTP, as it seems"
    )
    group.add_argument(
        "--proxy-headers",
        action="append",
        metavar="ADDRESS",
        help="address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed; may be repeated",
    )
    group.add_argument("--root-path", default="", help="where a proxy shows the server, as /board")
    group.add_argument("--tls-certificate", type=Path, help="PEM file, to serve HTTPS without a proxy")
    group.add_argument("--tls-key", type=Path, help="PEM file of its private key")


def _serve(options: argparse.Namespace) -> int:
    _check_extra()
    from reusable_holdout_leaderboard.command.serving import prepare
    from reusable_holdout_leaderboard.web.server import serve

    database = database_of(options)
    prepared = prepare(options, database)
    print(prepared.text, flush=True)
    serve(
        prepared.settings,
        host=options.host,
        port=options.port,
        workers=options.workers,
        root_path=options.root_path,
        tls_certificate=options.tls_certificate,
        tls_key=options.tls_key,
    )
    return 0


# ---- board


def _add_board(commands: Any) -> None:
    text = "Run a competition, in its folder, or over HTTP with --url and the administrator's token. Answers are JSON."
    parser = commands.add_parser(
        "board",
        help="Run a competition: teams, freezing, another label set, final standings",
        description=text,
        epilog=f"Example: {_PROGRAM} board add-team Blue",
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
    for name, about in (
        ("add-team", "Add a team and print its token, which is shown this once"),
        ("renew-token", "Give a team another token; the old one is void"),
    ):
        action = _add_action(actions, name, _team_action(name), about)
        action.add_argument("team", help="its name")
    freeze = _add_action(
        actions, "freeze", lambda board, given: board.freeze(not given.off), "Take no new submissions"
    )
    freeze.add_argument("--off", action="store_true", help="take them again")
    _add_change(actions)
    rotate = _add_action(actions, "rotate", _rotate, "Go on with another label set")
    rotate.add_argument("--labels", type=Path, required=True, help="fresh rows of the same population")
    rotate.add_argument("--early", action="store_true", help="though there is budget left, which is lost")
    rotate.add_argument("--queries", type=int, help="of the new budget (default: as before)")
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
    _add_backups(actions)
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
    submit = _add_action(
        actions, "submit", _submit, "Send a file and print its answer; needs --url, --token-file"
    )
    submit.add_argument("file", type=Path, help="CSV or Parquet")
    submit.add_argument("--claimed", type=float, help="the team's own validation score")


def _add_change(actions: Any) -> None:
    about = "Change rules that the guard does not rest on, while it runs; each change is shown on the page"
    change = _add_action(actions, "change", _change, about)
    change.add_argument("--title", help="what people read", **_UNNAMED)
    change.add_argument("--description", type=Path, help="file of Markdown", **_UNNAMED)
    for name in ("opens", "closes"):
        text = "date and time with a time zone, as 2026-03-01T12:00+00:00, or none"
        change.add_argument(f"--{name}", dest=f"{name}_at", type=_date_or_none, help=text, **_UNNAMED)
    change.add_argument("--sign-up", choices=_SIGN_UPS, help=_SIGN_UP, **_UNNAMED)
    for name in (
        "submissions-per-day",
        "submissions-per-team",
        "charges-per-team",
        "most-teams",
        "final-picks",
    ):
        change.add_argument(f"--{name}", type=_whole_or_none, help=f"{_WHOLE[name]}, or none", **_UNNAMED)


def _add_backups(actions: Any) -> None:
    for name, run, about in (
        ("backup", _back_up, "Copy board, ledgers, labels and keys of one moment while servers go on"),
        ("restore", _restore, "Put a backup into a folder that is empty or not there"),
    ):
        parser = actions.add_parser(name, help=about, description=f"{about}.")
        parser.set_defaults(command=run, refuse=parser.error)
        _add_place(parser)
        parser.add_argument("backup", type=Path, help="folder of the backup")


def _back_up(options: argparse.Namespace) -> int:
    _check_extra()
    _check_files(options)
    from reusable_holdout_leaderboard.competition.backup import back_up

    print(json.dumps(back_up(options.folder, options.backup), indent=2))
    return 0


def _restore(options: argparse.Namespace) -> int:
    _check_extra()
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
    _add_place(parser)
    parser.add_argument("--url", help="of the server, in place of the folder")
    parser.add_argument(
        "--token-file", type=Path, help="of the administrator, or of the team that submits; mode 600"
    )
    return parser


def _board(options: argparse.Namespace) -> int:
    _check_extra()
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
    return board.change(changes)


def _date_or_none(text: str) -> str | None:
    return None if text == "none" else text


def _whole_or_none(text: str) -> int | None:
    return None if text == "none" else int(text)


def _rotate(board: InFolder | OverHttp, given: argparse.Namespace) -> dict[str, Any]:
    return board.rotate(given.labels, early=given.early, queries=given.queries)


def _submit(board: OverHttp, given: argparse.Namespace) -> dict[str, Any]:
    return board.submit(given.file, claimed=given.claimed)


def _check_extra() -> None:
    for name in _EXTRA:
        if find_spec(name) is None:
            raise MissingExtraError("a leaderboard", name, "leaderboard")


def database_of(options: argparse.Namespace) -> str | None:
    """URL of the database, from a file, the command line without a password, or the environment; None for SQLite.

    Raises
    ------
    InputError
        If it cannot be used.
    """
    from reusable_holdout_leaderboard.settings import check_private, checked_database

    if options.database is not None and options.database_file is not None:
        raise InputError("a database is named by --database or by --database-file, not by both")
    if options.database_file is not None:
        return checked_database(check_private(options.database_file).read_text().strip(), secret=True)
    if options.database is not None:
        return checked_database(options.database, secret=False)
    stated = os.environ.get(_DATABASE)
    return checked_database(stated, secret=True) if stated else None
