"""A test set that survives being looked at: a guarded holdout with a durable budget and certified answers."""

from reusable_holdout.answer import Answer, Choice
from reusable_holdout.guard import (
    CopiedRowsWarning,
    Difference,
    FrozenCertificate,
    KeptLessWarning,
    ParquetRows,
    Price,
    Question,
    ReusableHoldout,
    Rotation,
    Verification,
    WalkForward,
    verify,
)
from reusable_holdout.metrics import Metric, ScoreTable
from reusable_holdout.plan import Plan
from reusable_holdout.rows import Rows
from reusable_holdout.version import __version__

__all__ = [
    "Answer",
    "Choice",
    "CopiedRowsWarning",
    "Difference",
    "FrozenCertificate",
    "KeptLessWarning",
    "Metric",
    "ParquetRows",
    "Plan",
    "Price",
    "Question",
    "ReusableHoldout",
    "Rotation",
    "Rows",
    "ScoreTable",
    "Verification",
    "WalkForward",
    "__version__",
    "verify",
]
