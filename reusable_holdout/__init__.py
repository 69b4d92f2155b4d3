"""A test set that survives being looked at: a guarded holdout with a durable budget and certified answers."""

from reusable_holdout.errors import (
    BudgetError,
    Halted,
    HandleError,
    HoldoutError,
    InputError,
    LedgerError,
    LedgerKeyError,
    LedgerMismatchError,
    ModelError,
    PlanError,
    RotatedError,
    TamperedLedgerError,
)
from reusable_holdout.holdout import (
    Answer,
    ParameterFreeLadderWarning,
    ParquetRows,
    ReusableHoldout,
    Rotation,
    Verification,
    verify,
)
from reusable_holdout.plan import Plan
from reusable_holdout.queries import Metric

__all__ = [
    "Answer",
    "BudgetError",
    "Halted",
    "HandleError",
    "HoldoutError",
    "InputError",
    "LedgerError",
    "LedgerKeyError",
    "LedgerMismatchError",
    "Metric",
    "ModelError",
    "ParameterFreeLadderWarning",
    "ParquetRows",
    "Plan",
    "PlanError",
    "ReusableHoldout",
    "RotatedError",
    "Rotation",
    "TamperedLedgerError",
    "Verification",
    "verify",
]
