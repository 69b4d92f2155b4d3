"""One competition: the guards of its epochs, its board, its teams, and the actions of its organisers."""

from reusable_holdout_leaderboard.competition.competition import Competition

__all__ = ["Competition"]
