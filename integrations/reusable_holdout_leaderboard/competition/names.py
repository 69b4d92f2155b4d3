"""Names that people give: to teams, and to submissions."""

from __future__ import annotations

import unicodedata

from reusable_holdout.errors import InputError

__all__ = ["checked_team", "checked_title", "key_of"]

_MOST_TEAM, _MOST_TITLE = 64, 200
_UNSHOWN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # controls, invisible marks, unassigned


def checked_team(name: object) -> str:
    """Team's name in Unicode's composed form, without space around it.

    Raises
    ------
    InputError
        If it is not 1 to 64 printable characters.
    """
    given = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    if not 0 < len(given) <= _MOST_TEAM or any(unicodedata.category(one) in _UNSHOWN for one in given):
        raise InputError(f"a team's name must be 1 to {_MOST_TEAM} printable characters; name another")
    return given


def key_of(team: str) -> str:
    """What names that look alike have in common: case, width and space do not count."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", team).casefold()).split())


def checked_title(name: object) -> str:
    """Submission's name: printable, cut to 200 characters; a file's name is not worth an error."""
    given = unicodedata.normalize("NFC", name) if isinstance(name, str) else ""
    shown = "".join(one for one in given if unicodedata.category(one) not in _UNSHOWN)
    return shown.strip()[:_MOST_TITLE]
