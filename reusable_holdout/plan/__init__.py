"""The promise of a guard, computed from the owner's wish before any data are read."""

from reusable_holdout.plan.numbers import SharedBudget, choice, round_up, same_wish, whole
from reusable_holdout.plan.plan import Plan
from reusable_holdout.plan.wish import ALLOWANCE, usual_final_share

__all__ = [
    "ALLOWANCE",
    "Plan",
    "SharedBudget",
    "choice",
    "round_up",
    "same_wish",
    "usual_final_share",
    "whole",
]
