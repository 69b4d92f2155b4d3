"""A test set that survives being looked at: a guarded holdout with a durable budget and certified answers."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use
from reusable_holdout.errors import (
    BudgetError,
    Halted,
    HandleError,
    HoldoutError,
    InputError,
    LedgerError,
    LedgerKeyError,
    LedgerMismatchError,
    MissingExtraError,
    ModelError,
    NoWitnessWarning,
    OverlapError,
    PlanError,
    Refused,
    RolledBackError,
    RotatedError,
    SecondBudgetError,
    SecondBudgetWarning,
    TamperedLedgerError,
)
from reusable_holdout.version import __version__

if TYPE_CHECKING:
    from reusable_holdout.guard import (
        Answer,
        Choice,
        CopiedRowsWarning,
        FrozenCertificate,
        KeptLessWarning,
        ParameterFreeLadderWarning,
        ParquetRows,
        Price,
        ReusableHoldout,
        Rotation,
        Verification,
        verify,
    )
    from reusable_holdout.plan import Plan
    from reusable_holdout.queries import Metric, ScoreTable
    from reusable_holdout.readers import read_inspect, read_lm_eval, read_mlflow, read_scores
    from reusable_holdout.remote import RemoteHoldout
else:  # the errors alone are here at once: processes that ask nothing need no more
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".guard": [
                "Answer",
                "Choice",
                "CopiedRowsWarning",
                "FrozenCertificate",
                "KeptLessWarning",
                "ParameterFreeLadderWarning",
                "ParquetRows",
                "Price",
                "ReusableHoldout",
                "Rotation",
                "Verification",
                "verify",
            ],
            ".plan": ["Plan"],
            ".queries": ["Metric", "ScoreTable"],
            ".readers": ["read_inspect", "read_lm_eval", "read_mlflow", "read_scores"],
            ".remote": ["RemoteHoldout"],
        },
    )

__all__ = [
    "Answer",
    "BudgetError",
    "Choice",
    "CopiedRowsWarning",
    "FrozenCertificate",
    "Halted",
    "HandleError",
    "HoldoutError",
    "InputError",
    "KeptLessWarning",
    "LedgerError",
    "LedgerKeyError",
    "LedgerMismatchError",
    "Metric",
    "MissingExtraError",
    "ModelError",
    "NoWitnessWarning",
    "OverlapError",
    "ParameterFreeLadderWarning",
    "ParquetRows",
    "Plan",
    "PlanError",
    "Price",
    "Refused",
    "RemoteHoldout",
    "ReusableHoldout",
    "RolledBackError",
    "RotatedError",
    "Rotation",
    "ScoreTable",
    "SecondBudgetError",
    "SecondBudgetWarning",
    "TamperedLedgerError",
    "Verification",
    "__version__",
    "read_inspect",
    "read_lm_eval",
    "read_mlflow",
    "read_scores",
    "verify",
]
