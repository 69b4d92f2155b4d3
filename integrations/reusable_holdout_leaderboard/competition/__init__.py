"""One competition: its label sets and their guards, its board, its teams and its organisers."""

from reusable_holdout_leaderboard.competition.competition import Competition

__all__ = ["Competition"]
