"""The commands that serve a board and run its competitions."""

from reusable_holdout_leaderboard.command.commands import add_commands

__all__ = ["add_commands"]
