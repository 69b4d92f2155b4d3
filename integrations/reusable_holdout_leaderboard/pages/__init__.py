"""The pages of a board in a browser."""

from reusable_holdout_leaderboard.pages.endpoints import add_pages

__all__ = ["add_pages"]
