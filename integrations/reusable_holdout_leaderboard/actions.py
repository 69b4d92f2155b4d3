"""The table of organisers' actions, from which the command line, the API and the organisers' page are made."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.private_files import write_private
from reusable_holdout_leaderboard.rules import CHANGEABLE
from reusable_holdout_leaderboard.store.names import key_of
from reusable_holdout_leaderboard.store.records import (
    Event,
    FinalStanding,
    Invitation,
    Overview,
    PublicFile,
    Status,
    Team,
    Token,
)

__all__ = ["ACTIONS", "Action", "Field", "File"]


class File(NamedTuple):
    """A file that is given to an action."""

    name: str
    content: bytes


class Field(NamedTuple):
    """An argument of an action.

    Attributes
    ----------
    name : str
    kind : type
        Type of the value: str, int, bool, dict or :class:`File`.
    about : str
        Help text on the command line, and label on the page.
    default : object
        Value if none is given. ``...`` means that a value must be given.
    """

    name: str
    kind: type
    about: str
    default: Any = ...


class Action(NamedTuple):
    """One action that organisers can take.

    Attributes
    ----------
    name : str
        Name of the action: ``board NAME`` on the command line, ``/api/v1/admin/NAME`` in the API.
    about : str
        Help text.
    answer : type
        Type of the record that the action returns.
    run : callable
        Function that carries out the action; it is called with the competition and the values of the fields.
    fields : tuple of Field
        Arguments of the action.
    several : bool
        True if the action returns a list of records.
    final : str
        Sentence that says why the action cannot be undone; a page then asks for confirmation. Empty if the
        action can be undone.
    """

    name: str
    about: str
    answer: type
    run: Callable[..., Any]
    fields: tuple[Field, ...] = ()
    several: bool = False
    final: str = ""


def _team_of(competition: Competition, name: str) -> int:
    """Return the number of the team with this name, or with a name that looks like it."""
    sought = key_of(name)
    for team in competition.teams():
        if key_of(team.name) == sought:
            return team.id
    raise InputError(
        "there must be a team of this name; there is none; nothing was changed; look at the status"
    )


def _status(competition: Competition) -> Overview:
    return Overview(competition.status(), competition.board(reveal=True), competition.teams())


def _add_team(competition: Competition, team: str) -> Token:
    return _named(competition, competition.add_team(team))


def _renew_token(competition: Competition, team: str) -> Token:
    return _named(competition, competition.renew_token(_team_of(competition, team)))


def _named(competition: Competition, token: str) -> Token:
    team = competition.authenticate(token)
    return Token("" if team is None else team.name, token)


def _rename_team(competition: Competition, team: str, name: str) -> list[Team]:
    competition.rename_team(_team_of(competition, team), name)
    return competition.teams()


def _disqualify(competition: Competition, team: str, *, off: bool) -> list[Team]:
    competition.disqualify(_team_of(competition, team), not off)
    return competition.teams()


def _invite(competition: Competition) -> Invitation:
    return Invitation(competition.invite())


def _change(competition: Competition, changes: dict[str, Any]) -> list[Event]:
    if not changes:
        raise InputError(
            f"a change must name at least one rule; got none; nothing was changed; name one of "
            f"{', '.join(sorted(CHANGEABLE))}"
        )
    return competition.change_rules(changes)


def _freeze(competition: Competition, *, off: bool) -> Status:
    competition.freeze(not off)
    return competition.status()


def _unblind(competition: Competition) -> Status:
    competition.unblind()
    return competition.status()


def _rotate(competition: Competition, labels: File, *, early: bool, queries: int | None) -> Status:
    """Begin the next epoch with uploaded labels. They lie in a private file, which is deleted after it was read."""
    suffix = ".parquet" if labels.name.endswith((".parquet", ".pq")) else ".csv"
    path = competition.home / f"uploaded-{secrets.token_hex(8)}{suffix}"
    try:
        write_private(path, labels.content)
        competition.rotate(path, early=early, queries=queries)
    finally:
        path.unlink(missing_ok=True)
    return competition.status()


def _attach(competition: Competition, file: File) -> PublicFile:
    return competition.attach(file.name, file.content)


def _detach(competition: Competition, name: str) -> list[PublicFile]:
    competition.detach(name)
    return competition.public_files()


_TEAM = Field("team", str, "name of the team")
_ALL = (
    Action("status", "Show state, standings and teams, also while blind", Overview, _status),
    Action("add-team", "Add a team and show its token, this once", Token, _add_team, (_TEAM,)),
    Action(
        "renew-token",
        "Give a team another token and show it, this once",
        Token,
        _renew_token,
        (_TEAM,),
        final="The earlier token and its sessions are void.",
    ),
    Action(
        "rename-team",
        "Rename a team; in the ledger it keeps its name",
        Team,
        _rename_team,
        (_TEAM, Field("name", str, "new name")),
        several=True,
    ),
    Action(
        "disqualify",
        "Take a team off board and final, or put it back",
        Team,
        _disqualify,
        (_TEAM, Field("off", bool, "put it back", False)),
        several=True,
    ),
    Action("invite", "Make an invitation code; the earlier one is void", Invitation, _invite),
    Action(
        "change",
        "Change rules that the guard does not depend on; every change is public",
        Event,
        _change,
        (Field("changes", dict, "new values by the names of rules; null removes a limit or a date"),),
        several=True,
    ),
    Action(
        "freeze",
        "Take no new submissions, or take them again",
        Status,
        _freeze,
        (Field("off", bool, "take them again", False),),
    ),
    Action("unblind", "Show all scores", Status, _unblind, final="Everyone will know the scores."),
    Action(
        "rotate",
        "Begin a new round with fresh rows and a new budget",
        Status,
        _rotate,
        (
            Field("labels", File, "fresh rows of the same population"),
            Field(
                "early",
                bool,
                "rotate although the guard has not halted; the rest of its budget is lost",
                False,
            ),
            Field("queries", int, "number of queries of the new budget (default: as before)", None),
        ),
        final="The board begins anew, and nothing new is answered in the earlier round.",
    ),
    Action(
        "final",
        "Make the final standings of a frozen competition; later calls show the same",
        FinalStanding,
        lambda competition: competition.final_standings(),
        several=True,
        final="The competition stays frozen.",
    ),
    Action(
        "attach",
        "Give everyone a file, never the labels; it replaces a file of the same name",
        PublicFile,
        _attach,
        (Field("file", File, "public data, examples or notebooks"),),
    ),
    Action(
        "detach",
        "Remove a public file",
        PublicFile,
        _detach,
        (Field("name", str, "name of the file"),),
        several=True,
    ),
)

ACTIONS: dict[str, Action] = {one.name: one for one in _ALL}
"""All actions that organisers can take, by name."""
