"""Command-line options that several commands share: for folders, databases and rules."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from reusable_holdout_evals.readers.files import file_text

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.private_files import check_private
from reusable_holdout_leaderboard.rules import CHANGEABLE, SIGN_UPS
from reusable_holdout_leaderboard.settings import checked_database

__all__ = ["add_place", "add_rules", "database_of", "stated_rules"]

_DATABASE = "REUSABLE_HOLDOUT_DATABASE"
_FOLDER = Path("leaderboard-data")
_NONE = "none"  # this value of an option removes a limit or a date
_DATE = "date and time with a time zone, such as 2026-03-01T12:00+00:00"


def _parameter(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be NAME=NUMBER; got {text!r}") from None


class _Rule(NamedTuple):
    """The command-line option for a rule.

    Attributes
    ----------
    kind : callable
        Function that converts the text of the option.
    about : str
        Help text.
    option : str
        Name of the option. Empty if it is the name of the rule.
    more : dict
        Further arguments for argparse.
    """

    kind: Callable[[str], Any]
    about: str
    option: str = ""
    more: dict[str, Any] = {}  # noqa: RUF012 - never changed


_RULES = {
    "title": _Rule(str, "title for people (default: the slug)"),
    "description": _Rule(Path, "file with a description in Markdown"),
    "metric": _Rule(str, "name of a metric in the catalogue (default accuracy)"),
    "metric_parameters": _Rule(
        _parameter,
        "such as the bounds of the targets for mae; may be repeated",
        "metric-parameter",
        {"action": "append", "metavar": "NAME=NUMBER"},
    ),
    "queries": _Rule(int, "submissions of all teams together in a round (default 10,000)"),
    "charges": _Rule(int, "charges of each team (default 2)"),
    "estimate": _Rule(float, "expected score; the plan is narrowest there"),
    "prior_error": _Rule(
        float, "expected error of honest claims (default: about that of a score from 10,000 rows)"
    ),
    "confidence": _Rule(float, "probability that all intervals hold together (default 0.95)"),
    "id_column": _Rule(str, 'column of ids (default "id" if there is one; "" for rows in order)', "id"),
    "submissions_per_day": _Rule(int, "limit of each team"),
    "submissions_per_team": _Rule(int, "limit of each team in a round (default: a hundredth of queries)"),
    "sign_up": _Rule(
        str,
        "people who may make teams: only the organiser, holders of the newest invitation code, or everyone "
        "(default closed)",
        more={"choices": SIGN_UPS},
    ),
    "most_teams": _Rule(int, "largest number of teams"),
    "final_picks": _Rule(int, "submissions that a team may pick for the final (default 1)"),
    "also": _Rule(
        str,
        "another metric of the same predictions in the final; may be repeated",
        more={"action": "append", "metavar": "NAME"},
    ),
    "opens_at": _Rule(str, _DATE, "opens"),
    "closes_at": _Rule(str, _DATE, "closes"),
    "blind": _Rule(bool, "hide all scores until 'board unblind'"),
    "vacuous": _Rule(bool, "allow answers that may be off by more than a quarter of the metric's range"),
}


def add_rules(parser: Any, *, change: bool) -> None:
    """Add an option for each rule.

    Parameters
    ----------
    parser : argparse parser or group
    change : bool
        True to add only the rules that can be changed while a competition runs. The value "none" then removes a limit
        or a date.
    """
    for name, rule in _RULES.items():
        if change and name not in CHANGEABLE:
            continue
        more: dict[str, Any] = {"type": rule.kind, **rule.more}
        if rule.kind is bool:
            more = {"action": "store_true"}
        elif change and rule.kind is int:
            more["type"] = _whole_or_none
        option = rule.option or name.replace("_", "-")
        about = f"{rule.about}, or {_NONE}" if change and rule.kind is int else rule.about
        parser.add_argument(f"--{option}", dest=name, default=argparse.SUPPRESS, help=about, **more)


def _whole_or_none(text: str) -> int | None:
    return None if text == _NONE else int(text)


def stated_rules(options: argparse.Namespace) -> dict[str, Any]:
    """Return the rules that were stated on a command line. Rules that were not stated are left out.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    stated = {name: value for name, value in vars(options).items() if name in _RULES}
    if "description" in stated:
        stated["description"] = file_text(stated["description"], what="a description")
    if "metric_parameters" in stated:
        stated["metric_parameters"] = dict(stated["metric_parameters"])
    empty = {"id_column": "", "also": [_NONE], "opens_at": _NONE, "closes_at": _NONE}
    for name, text in empty.items():
        if stated.get(name) == text:
            stated[name] = [] if name == "also" else None
    return stated


def add_place(parser: Any) -> None:
    """Add the options that tell where a competition is: folder, name, database and noise key."""
    parser.add_argument(
        "--folder",
        type=Path,
        default=_FOLDER,
        help=f"folder of labels, keys and SQLite files (default ./{_FOLDER})",
    )
    parser.add_argument("--slug", help="name of the competition in addresses (default: the only one)")
    parser.add_argument("--database", help=f"PostgreSQL URL without a password (default: ${_DATABASE})")
    parser.add_argument("--database-file", type=Path, help="file of mode 600 with the URL")
    parser.add_argument("--key", type=Path, help="file of the noise key (default: beside the labels)")


def database_of(options: argparse.Namespace) -> str | None:
    """Return the URL of the database, or None if the competition uses SQLite files.

    The URL comes from the file or the URL on the command line, or else from the environment.

    Raises
    ------
    InputError
        If the URL cannot be used, or the command line states it in two ways.
    """
    if options.database is not None and options.database_file is not None:
        raise InputError("a database is named by --database or by --database-file, not by both")
    if options.database_file is not None:
        return checked_database(check_private(options.database_file).read_text().strip(), secret=True)
    if options.database is not None:
        return checked_database(options.database, secret=False)
    stated = os.environ.get(_DATABASE)
    return checked_database(stated, secret=True) if stated else None
