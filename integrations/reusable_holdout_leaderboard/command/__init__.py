"""The command ``reusable-holdout board``, which serves a board and runs its competitions."""

from reusable_holdout_leaderboard.command.board import add_board

__all__ = ["add_board"]
