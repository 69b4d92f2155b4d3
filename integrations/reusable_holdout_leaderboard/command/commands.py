"""The commands ``reusable-holdout serve`` and ``reusable-holdout board``."""

# ruff: noqa: PLC0415, T201 - a command line prints, and starts fast: each command imports what it needs
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from reusable_holdout_leaderboard.command.board import add_board
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

__all__ = ["add_commands"]

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
    add_board(commands)


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
        epilog=f"Example: {PROGRAM} serve --labels labels.csv --metric accuracy --policy ladder",
    )
    parser.set_defaults(command=_serve, refuse=parser.error)
    parser.add_argument("--example", action="store_true", help="serve an example competition")
    parser.add_argument(
        "--witness",
        help="file of another owner, git:repository or URL that remembers how far the ledger has come, so that an "
        "older copy of the folder is refused (default: the one that the competition was made with)",
    )
    add_place(parser)
    _add_rules(parser.add_argument_group("the competition, when it is made"))
    _add_server(parser.add_argument_group("the server"))


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
        help="such as the bounds of targets, for mae; targets outside are moved to them, and nothing says so",
    )
    group.add_argument("--policy", choices=("claims", "ladder", "thresholdout"), help="(default claims)")
    for name, about in WHOLE.items():
        group.add_argument(f"--{name}", type=int, help=about)
    for name, about in _REAL.items():
        group.add_argument(f"--{name}", type=float, help=about)
    group.add_argument("--id", help='column of ids (default "id"; "" for rows in order)')
    group.add_argument("--opens", help="date and time with a time zone, as 2026-03-01T12:00+00:00")
    group.add_argument("--closes", help="the same")
    group.add_argument("--sign-up", choices=SIGN_UPS, help=SIGN_UP)
    group.add_argument("--also", action="append", metavar="NAME", help=f"{ALSO}; needs --fresh-labels")
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
        "newcomers-per-minute": (
            int,
            "teams that sign up and witness names that are taken, of one address, for each worker; of all addresses "
            "ten times as many; 0 for any (default 12)",
        ),
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
    check_extra()
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
