"""Which model was asked: a fingerprint of its numbers, its code and its files."""

from reusable_holdout.guard.fingerprint.content import fingerprint

__all__ = ["fingerprint"]
