"""The public records of a competition, and its errors."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NamedTuple

from reusable_holdout.errors import HoldoutError

__all__ = [
    "AccessError",
    "ClosedError",
    "Event",
    "FinalStanding",
    "Invitation",
    "InvitationError",
    "LimitError",
    "Overview",
    "PublicFile",
    "RankPoint",
    "Standing",
    "Status",
    "StoreError",
    "Submission",
    "Team",
    "Token",
    "WitnessName",
]


class LimitError(HoldoutError):
    """The team has no submission left; nothing was asked and nothing was charged."""


class ClosedError(HoldoutError):
    """The competition takes no submissions now; nothing was asked and nothing was charged."""


class AccessError(HoldoutError):
    """The token does not allow this; nothing was done."""


class InvitationError(HoldoutError):
    """The invitation code is not the newest one; no team was made."""


class StoreError(HoldoutError):
    """The board's database cannot be used; an answered submission is not lost: sent again, it is answered free."""


class Team(NamedTuple):
    """One team. Its token is stored as a digest alone.

    Attributes
    ----------
    id : int
    name : str
    created_at : datetime
        UTC.
    disqualified : bool
        True if it is on no board and in no final, and may send nothing new. Its answers stay in the ledger.
    """

    id: int
    name: str
    created_at: datetime
    disqualified: bool = False


class Submission(NamedTuple):
    """One submission, as it may be shown now.

    Attributes
    ----------
    id : int
        Unique in the database, growing.
    team_id : int
    team : str
    epoch : int
        Label set it was scored on, from 1.
    name : str
        File name, or a name that the team gave.
    at : datetime
        Time of arrival, UTC.
    state : {"pending", "received", "scored"}
        Pending: not answered yet, perhaps because its worker died; send it again to finish it. Received: answered, but
        hidden while the competition is blind; then all numbers below are None. Scored: everything is shown.
    value, low, high : float or None
        The guard's answer and its certified interval, in the metric's unit.
    charged : bool or None
        True if the answer took a charge.
    threshold, prior : float or None
        The claim that the guard compared the score with, and how closely. The claim may be another team's, which asked
        the same question first.
    claimed : float
        Score that this team claimed.
    query : int or None
        Number of the guard's question, from 1 in each epoch.
    told : str or None
        Name of the guard's outcome, such as "agreed", "measured 1" or "not certified".
    improved : bool or None
        True if it became the team's best.
    series : str
        The team's name in the ledger; renaming the team does not change it.
    picked : bool
        True if the team has picked it for the final standings.
    replayed : bool
        True if this call repeats a recorded answer, free.
    """

    id: int
    team_id: int
    team: str
    epoch: int
    name: str
    at: datetime
    state: Literal["pending", "received", "scored"]
    value: float | None
    low: float | None
    high: float | None
    charged: bool | None
    threshold: float | None
    prior: float | None
    claimed: float
    query: int | None
    told: str | None
    improved: bool | None
    series: str
    picked: bool = False
    replayed: bool = False


class Standing(NamedTuple):
    """One row of the board: a team's best submission.

    With the competition's confidence, all intervals of an epoch together contain the population values.

    Attributes
    ----------
    rank, rank_last : int or None
        First and last place that the team can have, given all intervals and certified marks. If they differ, the team
        is tied. None while the board is blind, and for teams that are not certified.
    team : str
    team_id : int
    value, low, high : float or None
        Answer to its best submission; None while blind.
    submissions : int
        Number of scored submissions of this epoch.
    charges : int or None
        Number of charges that the team has paid; None while blind.
    best_at : datetime or None
        Arrival of the best submission, UTC.
    query : int or None
        Number of the guard's question that the value answers.
    submission_id : int or None
        Number of the best submission.
    certified : bool
        True if the guard certifies the interval. It is false for a team that spent its charges before any of its claims
        was accepted.
    leads : bool
        True if the team has the best measured value.
    better_than_next : bool
        True if it is certified to be better than the next row, by their intervals, or by their answers and the rows
        that they predict differently.
    """

    rank: int | None
    rank_last: int | None
    team: str
    team_id: int
    value: float | None
    low: float | None
    high: float | None
    submissions: int
    charges: int | None
    best_at: datetime | None
    query: int | None
    submission_id: int | None
    certified: bool = True
    leads: bool = False
    better_than_next: bool = False


class FinalStanding(NamedTuple):
    """One row of the final standings: the entered submission of a team that is best on the fresh labels.

    Attributes
    ----------
    rank, rank_last : int
        As in :class:`Standing`, by the intervals below.
    team : str
    team_id : int
    value : float
        Score on the fresh labels.
    low, high : float
        With the competition's confidence, all final intervals together contain the population values.
    public_value : float
        Value on the board.
    submission_id : int
    also : dict of str to dict
        For each other metric of the rules that is defined on the fresh labels: "value", "low" and "high" of the same
        submission.
    """

    rank: int
    rank_last: int
    team: str
    team_id: int
    value: float
    low: float
    high: float
    public_value: float
    submission_id: int
    also: dict[str, dict[str, float]]


class RankPoint(NamedTuple):
    """A team's place from a moment on.

    Attributes
    ----------
    at : datetime
        UTC.
    submission_id : int
        Submission that changed it, of this team or another.
    team : str
    team_id : int
    rank, rank_last : int
    place : int
        Row on the board, from 1; different for tied teams.
    value, low, high : float
    """

    at: datetime
    submission_id: int
    team: str
    team_id: int
    rank: int
    rank_last: int
    place: int
    value: float
    low: float
    high: float


class Event(NamedTuple):
    """One event of a competition.

    Attributes
    ----------
    revision : int
        From 1, without gaps, in the order of the commits.
    at : datetime
        UTC.
    kind : {"created", "team", "submission", "rules", "freeze", "unfreeze", "unblind", "rotate", "final", "restore",
        "attach", "detach", "rename", "disqualify", "reinstate"}
    team_id, submission_id : int or None
    detail : dict or None
        For rules "rule", "from" and "to"; for a restored backup "backup" and "answers"; for teams "from" and "to", or
        "team"; for public files "file", "bytes" and "sha256".
    """

    revision: int
    at: datetime
    kind: str
    team_id: int | None
    submission_id: int | None
    detail: dict[str, Any] | None = None


class Status(NamedTuple):
    """State of a competition.

    Attributes
    ----------
    epoch : int
        Present label set, from 1.
    rows : int
        Rows of a submission: those of the holdout, and of the fresh labels if there are any.
    answered : int
        Number of answers to all teams.
    queries_asked, queries_left : int
        Of all teams together.
    charges : int
        Charges of each team.
    halted : bool
        True if this label set answers nothing new any more.
    halt_reason : {"queries", "final"} or None
    blind, frozen : bool
    open : bool
        True if a new submission would be taken now.
    closed_reason : str
        Reason why not; empty if it would.
    has_fresh_labels, final : bool
        True if final standings are possible, and if they are made.
    revision : int
        Number of the last event. A board with the same revision is the same.
    confidence : float
        Probability that all intervals and certified marks hold together.
    """

    epoch: int
    rows: int
    answered: int
    queries_asked: int
    queries_left: int
    charges: int
    halted: bool
    halt_reason: str | None
    blind: bool
    frozen: bool
    open: bool
    closed_reason: str
    has_fresh_labels: bool
    final: bool
    revision: int
    confidence: float


# ---- answers to organisers


class Token(NamedTuple):
    """A team's token; it is shown this once."""

    team: str
    token: str


class Invitation(NamedTuple):
    """An invitation code; it is shown this once."""

    code: str


class PublicFile(NamedTuple):
    """A file that everyone may download."""

    name: str
    bytes: int


class WitnessName(NamedTuple):
    """A name that a ledger on another machine may claim at this server."""

    name: str


class Overview(NamedTuple):
    """State, board and teams, also while the competition is blind."""

    status: Status
    board: list[Standing]
    teams: list[Team]
