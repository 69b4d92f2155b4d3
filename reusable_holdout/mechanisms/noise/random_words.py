"""Moved to `samplers.random_words`."""

from reusable_holdout.mechanisms.samplers.random_words import RandomWords

__all__ = ["RandomWords"]
