"""The web pages of a board."""

from reusable_holdout_leaderboard.pages.endpoints import add_pages

__all__ = ["add_pages"]
