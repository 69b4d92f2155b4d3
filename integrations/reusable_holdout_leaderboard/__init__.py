"""A competition leaderboard whose every score comes from one guarded holdout, so it cannot be overfitted."""

from importlib.util import find_spec

from reusable_holdout.errors import MissingExtraError

for _library in (
    *("confusable_homoglyphs", "fastapi", "httpx", "jinja2", "markdown_it", "pyarrow", "python_multipart"),
    *("regex", "uvicorn"),
):
    if find_spec(_library) is None:
        raise MissingExtraError("a leaderboard", _library, "leaderboard")

# ruff: noqa: E402 - what follows needs these libraries
from reusable_holdout_box import RemoteHoldout

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.files.forms import Expected, SubmissionError
from reusable_holdout_leaderboard.files.predictions import parse_submission
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
