"""The records that a competition returns, and the exceptions that it raises."""

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
]


class LimitError(HoldoutError):
    """A limit is reached, such as a team's number of submissions. Nothing was asked and nothing was charged."""


class ClosedError(HoldoutError):
    """The competition does not allow this now, because it is frozen or closed, for example. Nothing was charged."""


class AccessError(HoldoutError):
    """The token does not permit this request. Nothing was done."""


class InvitationError(HoldoutError):
    """The invitation code is not the newest one. No team was made."""


class StoreError(HoldoutError):
    """The board's database cannot be used. Send the submission again: if it was answered before, that is free."""


class Team(NamedTuple):
    """One team of a competition. Its token is not stored, only a digest of the token.

    Attributes
    ----------
    id : int
    name : str
    created_at : datetime
        UTC.
    disqualified : bool
        True if the team is left out of the board and the final standings and may send nothing new. Its answers stay in
        the ledger.
    """

    id: int
    name: str
    created_at: datetime
    disqualified: bool = False


class Submission(NamedTuple):
    """One submission. Its numbers are left out while the competition is blind.

    Attributes
    ----------
    id : int
        Number of the submission, unique in the database. A later submission has a larger number.
    team_id : int
    team : str
    epoch : int
        Number of the epoch in which it was sent, from 1.
    name : str
        Name that the team gave, or the name of the file.
    at : datetime
        Time of arrival, UTC.
    state : {"pending", "received", "scored"}
        Pending: the submission is not answered yet, perhaps because the worker process died; send it again to finish
        it. Received: it is answered, but the competition is blind, so the fields that come from the answer are None.
        Scored: everything is shown.
    value, low, high : float or None
        The guard's answer and its certified interval, in the metric's unit.
    charged : bool or None
        True if the answer cost a charge.
    threshold, prior : float or None
        The claim with which the guard compared the score is `prior`. A deviation beyond `threshold` costs a charge. The
        claim may be that of another team, which sent the same predictions first.
    claimed : float
        Score that this team claimed.
    query : int or None
        Number of the guard's question, from 1 in each epoch.
    told : str or None
        Name of the guard's outcome, such as "agreed", "measured 1" or "not certified".
    improved : bool or None
        True if the submission became the team's best.
    series : str
        The team's name in the ledger, which stays the same if the team is renamed.
    picked : bool
        True if the team has picked the submission for the final standings.
    replayed : bool
        True if the answer was recorded before and is repeated free.
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

    All intervals of an epoch contain their population values at the same time, with the competition's confidence.

    Attributes
    ----------
    rank, rank_last : int or None
        Best and worst rank that the team can have, given all intervals and certified comparisons. If they differ, the
        team is tied with others. None while the competition is blind, and for teams that are not certified.
    team : str
    team_id : int
    value, low, high : float or None
        The guard's answer to the best submission, and its certified interval. None while the competition is blind.
    submissions : int
        Number of the team's scored submissions in this epoch.
    charges : int or None
        Number of charges that the team has paid. None while the competition is blind.
    best_at : datetime or None
        Time at which the best submission arrived, UTC.
    query : int or None
        Number of the guard's answer to the best submission.
    submission_id : int or None
        Number of the best submission.
    certified : bool
        True if the guard certifies the interval. False for a team that spent its charges before any of its claims was
        accepted.
    leads : bool
        True if the team has the best measured value.
    better_than_next : bool
        True if the team is certified to be better than the team in the next row. Either their intervals do not overlap,
        or a comparison of the rows that the two predict differently shows it.
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
    """One row of the final standings: the best of a team's entered submissions, scored on the fresh labels.

    Attributes
    ----------
    rank, rank_last : int
        Best and worst rank that the team can have, given all final intervals.
    team : str
    team_id : int
    value : float
        Score on the fresh labels.
    low, high : float
        Interval of the score. All final intervals contain their population values at the same time, with the
        competition's confidence.
    public_value : float
        The guard's answer to the submission, which the board showed.
    submission_id : int
    also : dict of str to dict
        "value", "low" and "high" of the same submission, for each additional metric in the rules that is defined on the
        fresh labels.
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
    """A team's rank from one point in time on, until its next point.

    Attributes
    ----------
    at : datetime
        Time from which the rank holds, UTC.
    submission_id : int
        Submission that changed the rank. It may be another team's.
    team : str
    team_id : int
    rank, rank_last : int
        Best and worst rank that the team can have.
    place : int
        Row on the board, from 1. Tied teams have different rows.
    value, low, high : float
        The guard's answer to the team's best submission at that time, and its interval.
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
    """One event of a competition, such as an answered submission or a changed rule.

    Attributes
    ----------
    revision : int
        Number of the event, from 1, without gaps, in the order in which the events were committed.
    at : datetime
        Time of the event, UTC.
    kind : {"created", "team", "submission", "rules", "freeze", "unfreeze", "unblind", "rotate", "final", "restore",
        "attach", "detach", "rename", "disqualify", "reinstate"}
    team_id, submission_id : int or None
    detail : dict or None
        Details by name. A changed rule has "rule", "from" and "to". A restored backup has "backup" (its time) and
        "answers" (their number). A renamed team has "from" and "to"; a disqualified or reinstated one has "team". A
        public file has "file", and an added one "bytes" and "sha256", too.
    """

    revision: int
    at: datetime
    kind: str
    team_id: int | None
    submission_id: int | None
    detail: dict[str, Any] | None = None


class Status(NamedTuple):
    """State of a competition at one moment.

    Attributes
    ----------
    epoch : int
        Number of the current epoch, from 1.
    rows : int
        Number of rows that a submission predicts: those of the holdout, and the fresh ones if there are any.
    answered : int
        Number of answers to all teams in this epoch.
    queries_asked, queries_left : int
        Number of queries that all teams together have used, and number of queries that are left.
    charges : int
        Number of charges that each team has in an epoch.
    halted : bool
        True if the guard answers no new question in this epoch.
    halt_reason : {"queries", "final"} or None
        Reason of the halt.
    blind, frozen : bool
        `blind` is True if scores are hidden, `frozen` if no new submissions are taken.
    open : bool
        True if a new submission would be taken now.
    closed_reason : str
        Reason why a new submission would not be taken now. Empty if it would be taken.
    has_fresh_labels, final : bool
        `has_fresh_labels` is True if there are labels for final standings, `final` if these standings have been made.
    revision : int
        Number of the last event. While it stays the same, the board stays the same.
    confidence : float
        Probability that all intervals and certified comparisons hold at the same time.
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
    """A team's new token, which is shown only once."""

    team: str
    token: str


class Invitation(NamedTuple):
    """A new invitation code, which is shown only once."""

    code: str


class PublicFile(NamedTuple):
    """The name and the size of a file that everyone may download."""

    name: str
    bytes: int


class Overview(NamedTuple):
    """The state, the board and the teams of a competition, with the scores that a blind competition hides."""

    status: Status
    board: list[Standing]
    teams: list[Team]
