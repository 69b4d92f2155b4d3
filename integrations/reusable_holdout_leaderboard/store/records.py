"""What a competition shows, and what it refuses with."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NamedTuple

from reusable_holdout.errors import HoldoutError

__all__ = [
    "ClosedError",
    "Event",
    "FinalStanding",
    "InvitationError",
    "LimitError",
    "RankPoint",
    "Standing",
    "Status",
    "StoreError",
    "Submission",
    "Team",
]


class LimitError(HoldoutError):
    """The team has no submission or charge left; nothing was asked and nothing was charged."""


class ClosedError(HoldoutError):
    """The competition takes no submissions now, or not any more; nothing was asked and nothing was charged."""


class InvitationError(HoldoutError):
    """The invitation code is not the organiser's newest; no team was made."""


class StoreError(HoldoutError):
    """The board's database cannot be used; a submission that was answered is not lost: sent again, it replays free."""


class Team(NamedTuple):
    """One team; its token is not kept, only a digest of it.

    Attributes
    ----------
    id : int
    name : str
    created_at : datetime
        UTC.
    disqualified : bool
        Whether it is on no board, in no final, and sends nothing new. What it was answered stays in the ledger.
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
        Unique in the store, growing.
    team_id : int
    team : str
    epoch : int
        Label set it was scored on, from 1.
    name : str
        File name, or what the team called it.
    at : datetime
        When it came, UTC.
    state : {"pending", "received", "scored"}
        Pending: not answered yet, or its worker died; sent again, it goes on where it was. Received: answered, and
        hidden while the competition is blind; then all numbers below are None. Scored: all is shown.
    value, low, high : float or None
        The guard's answer and its certified interval, in the metric's unit. A ladder answers a submission that is no
        new best of its team with the team's best, and an interval that is open to the bad side.
    charged : bool or None
        Whether it deviated from its prior, and was paid for.
    threshold, prior : float or None
        What it was compared with, and how closely.
    claimed : float or None
        Validation score the team claimed.
    query : int or None
        Number of the guard's question, from 1 in each epoch.
    told : str or None
        Name of the guard's outcome, such as "agreed", "measured 1" or "not certified".
    improved : bool or None
        Whether it became the team's best.
    series : str
        Name of its team in the ledger, which stays when the team is renamed or merged.
    picked : bool
        Whether its team has picked it for the final standings.
    replayed : bool
        Whether this call repeats an answer that was recorded before, free.
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
    claimed: float | None
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
        First and last place the team can have: 1 and the teams whose intervals lie wholly above its own, and all teams
        but those whose intervals lie wholly below; teams that are certified to be better than a neighbour, and all that
        follows from it, are among them. Where they differ the team is tied. None while blind, and of whoever is not
        certified.
    team : str
    team_id : int
    value, low, high : float or None
        Of its best submission; None while blind.
    submissions : int
        Scored ones of this epoch.
    charges : int or None
        It has paid for; None while blind.
    best_at : datetime or None
        When the best submission came, UTC.
    query : int or None
        The guard's question that the value answers.
    submission_id : int or None
        Of the best submission.
    certified : bool
        Whether the guard stands for the interval: not for that of a team of claims that has spent its charges before
        any of its claims stood.
    leads : bool
        Whether it has the best value that was measured, on a board of claims.
    better_than_next : bool
        Whether it is certified to be better than the next row, by their intervals or, on a board of claims, by what
        both were told and the rows that they predict differently.
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
    """One row of the final standings: of what a team picked, or its best, the one that is best on fresh labels.

    Attributes
    ----------
    rank, rank_last : int
        As in :class:`Standing`, by the intervals below.
    team : str
    team_id : int
    value : float
        Plain score on the fresh labels.
    low, high : float
        With the competition's confidence, all of these together contain the population values.
    public_value : float
        What the board said.
    submission_id : int
    also : dict of str to dict
        By the names of the other metrics that the rules name: "value", "low" and "high" of the same submission. They
        hold together with all of the above.
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
        Which moved it: this team's, or another's.
    team : str
    team_id : int
    rank, rank_last : int
    place : int
        Its row on the board, from 1; different for tied teams.
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
    """Something that happened.

    Attributes
    ----------
    revision : int
        From 1, without gaps, in the order of the commits.
    at : datetime
        UTC.
    kind : {"created", "team", "submission", "rules", "freeze", "unfreeze", "unblind", "rotate", "final", "restore",
        "attach", "detach", "rename", "merge", "disqualify", "reinstate"}
    team_id, submission_id : int or None
    detail : dict or None
        What was changed: of rules "rule", "from" and "to"; of what was restored "backup", its moment, and "answers";
        of teams "from" and "to", or "team"; of public files "file", and what was attached "bytes" and "sha256".
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
        Label set it stands at, from 1.
    rows : int
        Rows of a submission: those of the holdout, and of the fresh labels if there are any.
    answered : int
        Answers to all teams together: the number of the last one.
    queries_asked, queries_left : int
        Of all teams together.
    charges : int
        The whole budget of this epoch.
    charges_left : int or None
        None while blind: it would tell which submissions were charged.
    halted : bool
        Whether this label set answers nothing new any more. It stays so until :meth:`Competition.rotate`.
    halt_reason : {"charges", "queries", "final"} or None
    blind, frozen : bool
    open : bool
        Whether a new submission would be taken now: within the dates, not frozen, not halted.
    closed_reason : str
        Why not; empty if it would.
    has_fresh_labels, final : bool
        Whether final standings can be had, and whether they were made.
    revision : int
        Number of the last event; a board that has the same revision is the same.
    confidence : float
        Of the rules: that of all intervals, and of all that is certified of neighbours, together.
    tolerance : float
        Of the guard's plan.
    """

    epoch: int
    rows: int
    answered: int
    queries_asked: int
    queries_left: int
    charges: int
    charges_left: int | None
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
    tolerance: float
