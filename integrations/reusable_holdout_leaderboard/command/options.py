"""What all commands share: where a competition lies, its database, and what must be installed."""

# ruff: noqa: PLC0415 - a command line starts fast: each command imports what it needs
from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reusable_holdout.errors import InputError, MissingExtraError

__all__ = [
    "ALSO",
    "FOLDER",
    "PROGRAM",
    "SIGN_UP",
    "SIGN_UPS",
    "WHOLE",
    "add_place",
    "check_extra",
    "database_of",
]

PROGRAM = "reusable-holdout"
DATABASE = "REUSABLE_HOLDOUT_DATABASE"
_EXTRA = (
    *("confusable_homoglyphs", "fastapi", "httpx", "jinja2", "markdown_it", "pyarrow", "python_multipart"),
    *("regex", "uvicorn"),
)
FOLDER = Path("leaderboard-data")
WHOLE = {
    "queries": "submissions of all teams together, for each label set (default 10,000)",
    "charges": "of each team, of claims (default 2); else deviations to pay for, in place of a tolerance",
    "submissions-per-day": "of each team",
    "submissions-per-team": "of each team, for each label set",
    "charges-per-team": "of each team, for each label set",
    "most-teams": "that sign up",
    "final-picks": "submissions that a team may pick for the final standings (default 1)",
}
ALSO = "another metric that the final standings show, of the same predictions; may be repeated"
SIGN_UPS = ("closed", "code", "open")
SIGN_UP = "who makes teams: the organiser, who has the newest invitation code, or everyone (default closed)"


def add_place(parser: Any) -> None:
    """Let a command say where a competition lies."""
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help=f"of labels, keys and SQLite files (default ./{FOLDER})"
    )
    parser.add_argument(
        "--slug", help="name of the competition in addresses and folders (default: the only one)"
    )
    parser.add_argument(
        "--database",
        help=f"PostgreSQL URL without a password, which ~/.pgpass may hold (default: ${DATABASE})",
    )
    parser.add_argument("--database-file", type=Path, help="file of mode 600 with the URL, password and all")
    parser.add_argument("--key", type=Path, help="file of the noise key (default: beside the labels)")


def check_extra() -> None:
    """Refuse to go on without the libraries of a leaderboard.

    Raises
    ------
    MissingExtraError
    """
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
    stated = os.environ.get(DATABASE)
    return checked_database(stated, secret=True) if stated else None
