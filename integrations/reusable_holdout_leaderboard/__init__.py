"""A leaderboard that survives its competitors: every score comes from a guarded holdout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.files.expected import Expected, SubmissionError
from reusable_holdout_leaderboard.files.submissions import parse_submission
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

if TYPE_CHECKING:
    from reusable_holdout_leaderboard.client.remote import RemoteHoldout

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


def __getattr__(name: str) -> Any:
    """Import what needs httpx when it is asked for."""
    if name == "RemoteHoldout":
        from reusable_holdout_leaderboard.client.remote import RemoteHoldout  # noqa: PLC0415

        return RemoteHoldout
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
