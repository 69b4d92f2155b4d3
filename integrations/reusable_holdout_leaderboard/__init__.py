"""A leaderboard that survives its competitors: every score comes from a guarded holdout."""

from __future__ import annotations

from reusable_holdout_box import RemoteHoldout

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.files.decoder import parse_submission
from reusable_holdout_leaderboard.files.forms import Expected, SubmissionError
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import (
    ClosedError,
    Event,
    FinalStanding,
    InvitationError,
    LimitError,
    RankPoint,
    Standing,
    Status,
    StoreError,
    Submission,
    Team,
)

__all__ = [
    "ClosedError",
    "Competition",
    "Event",
    "Expected",
    "FinalStanding",
    "InvitationError",
    "LimitError",
    "RankPoint",
    "RemoteHoldout",
    "Rules",
    "Standing",
    "Status",
    "StoreError",
    "Submission",
    "SubmissionError",
    "Team",
    "parse_submission",
]
