"""What can be promised, computed from the wish before any data is read."""

from reusable_holdout.plan.plan import Plan

__all__ = ["Plan"]
