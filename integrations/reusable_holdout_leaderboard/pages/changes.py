"""What was changed while a competition ran, in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from markupsafe import Markup

from reusable_holdout_leaderboard.pages.times import moment
from reusable_holdout_leaderboard.store.records import Event

__all__ = ["RULES", "Change", "changes_of"]

RULES = {
    "title": "Title",
    "description": "Description",
    "opens_at": "Opens",
    "closes_at": "Closes",
    "submissions_per_day": "Submissions of a team a day (UTC)",
    "submissions_per_team": "Submissions of a team",
    "charges_per_team": "Charges of a team",
    "sign_up": "Sign-up",
    "most_teams": "Teams at most",
    "final_picks": "Picks of a team for the final",
    "also": "Other metrics in the final",
}
_DATES = {"opens_at", "closes_at"}


class Change(NamedTuple):
    """One change, as it is shown.

    Attributes
    ----------
    at : datetime
    name : str
        Of what was changed.
    before, after : str
        Empty where they are too long to be shown in a line.
    text : str
        What it was before, if it is long.
    """

    at: datetime
    name: str
    before: str
    after: str
    text: str = ""


def changes_of(events: Sequence[Event]) -> list[Change]:
    """Changes, the newest first."""
    return [_OF[one.kind](one.at, one.detail) for one in reversed(events) if one.detail and one.kind in _OF]


def _of_rule(at: datetime, detail: dict[str, Any]) -> Change:
    name = detail["rule"]
    if name == "description":
        return Change(at, RULES[name], "", "", detail["from"])
    return Change(at, RULES.get(name, name), *(_shown(name, detail[end]) for end in ("from", "to")))


def _of_backup(at: datetime, detail: dict[str, Any]) -> Change:
    """A restored board is of an earlier moment: what was answered after that is forgotten."""
    moment_of_it = moment(datetime.fromisoformat(detail["backup"]))
    words = Markup("the backup of {}, with {} answers; what was answered after that is forgotten")
    return Change(at, "Restored", "", words.format(moment_of_it, f"{detail['answers']:,}"))


def _of_file(at: datetime, detail: dict[str, Any]) -> Change:
    if "bytes" not in detail:
        return Change(at, "File removed", "", detail["file"])
    return Change(at, "File added", "", f"{detail['file']}, {detail['bytes']:,} bytes")


def _of_names(at: datetime, detail: dict[str, Any]) -> Change:
    return Change(at, "Team renamed", detail["from"], detail["to"])


def _of_merger(at: datetime, detail: dict[str, Any]) -> Change:
    return Change(at, "Teams merged", detail["from"], detail["to"])


def _of_judgement(at: datetime, detail: dict[str, Any]) -> Change:
    return Change(at, "Disqualified", "", detail["team"])


def _of_pardon(at: datetime, detail: dict[str, Any]) -> Change:
    return Change(at, "Reinstated", "", detail["team"])


_OF = {
    "rename": _of_names,
    "merge": _of_merger,
    "disqualify": _of_judgement,
    "reinstate": _of_pardon,
    "attach": _of_file,
    "detach": _of_file,
    "rules": _of_rule,
    "restore": _of_backup,
}


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if name in _DATES:
        return moment(datetime.fromisoformat(value))
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
