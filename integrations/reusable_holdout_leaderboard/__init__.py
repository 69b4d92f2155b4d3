"""A leaderboard that survives its competitors: every score comes from a guarded holdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout.remote import RemoteHoldout
    from reusable_holdout_leaderboard.client.remote import BoardHoldout
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
else:  # the process that reads strangers' files needs none of them, nor has the memory for them
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".client.remote": ["BoardHoldout"],
            ".competition": ["Competition"],
            ".files.forms": ["Expected", "SubmissionError"],
            ".files.decoder": ["parse_submission"],
            ".rules": ["Rules"],
            "reusable_holdout.remote": ["RemoteHoldout"],
            ".store.records": [
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
            ],
        },
    )

__all__ = [
    "BoardHoldout",
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
