"""What can be promised, computed from the wish before any data is read."""

from reusable_holdout.plan.claims import ALLOWANCE
from reusable_holdout.plan.numbers import checked_exam, choice, exam_count, round_up, whole
from reusable_holdout.plan.plan import Plan
from reusable_holdout.plan.renewal import renewed
from reusable_holdout.plan.shared import SharedBudget
from reusable_holdout.plan.stated import same_wish
from reusable_holdout.plan.wish import MechanismChoice

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
