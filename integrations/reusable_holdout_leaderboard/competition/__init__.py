"""One competition: its label sets and their guards, its standings, and what teams and organisers do."""

from reusable_holdout_leaderboard.competition.competition import Competition

__all__ = ["Competition"]
