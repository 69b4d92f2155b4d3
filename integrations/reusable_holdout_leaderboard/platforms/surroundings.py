"""What a platform's worker says of a run, on the command line or in the environment, and never in the submission."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.settings import check_private, checked_database

__all__ = ["DATABASE_FILE", "LEDGER", "TEAM", "database_of", "ledger_folder", "plain_name", "team_of"]

LEDGER = "REUSABLE_HOLDOUT_LEDGER"  # the folder
TEAM = "REUSABLE_HOLDOUT_TEAM"  # whose submission it is
DATABASE_FILE = "REUSABLE_HOLDOUT_DATABASE_FILE"  # the file with a server's URL


def ledger_folder(given: str | Path | None) -> Path:
    """Folder that lasts.

    Raises
    ------
    InputError
        If none is named.
    """
    named = given or os.environ.get(LEDGER)
    if not named:
        raise InputError(f"a folder that lasts must be named by --ledger or {LEDGER}; none is")
    return Path(named)


def database_of(given: Path | None) -> str | None:
    """URL of a server; None for SQLite files in the folder.

    Raises
    ------
    InputError
        If the file can be read by others, or holds another database's.
    """
    named = given or os.environ.get(DATABASE_FILE)
    return checked_database(check_private(Path(named)).read_text().strip(), secret=True) if named else None


def team_of(given: str | None) -> str | None:
    """Whose submission it is; None if the platform does not say."""
    return given or os.environ.get(TEAM) or None


def plain_name(team: str) -> str:
    """Return a platform's name of a team without what is no difference there: case, width and space."""
    return " ".join(unicodedata.normalize("NFKC", team).casefold().split())
