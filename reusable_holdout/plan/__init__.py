"""What can be promised, computed from the wish before any data is read."""

from reusable_holdout.plan.numbers import MechanismChoice, checked_exam, choice, exam_count, round_up, whole
from reusable_holdout.plan.plan import Plan
from reusable_holdout.plan.stated import SharedBudget, renewed, same_wish
from reusable_holdout.plan.wish import ALLOWANCE

__all__ = [
    "ALLOWANCE",
    "MechanismChoice",
    "Plan",
    "SharedBudget",
    "checked_exam",
    "choice",
    "exam_count",
    "renewed",
    "round_up",
    "same_wish",
    "whole",
]
