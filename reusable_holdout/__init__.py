"""A test set that survives being looked at: a guarded holdout with a durable budget and certified answers."""

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
from reusable_holdout.metrics import Metric, ScoreTable
from reusable_holdout.plan import Plan
from reusable_holdout.version import __version__

__all__ = [
    "Answer",
    "Choice",
    "CopiedRowsWarning",
    "FrozenCertificate",
    "KeptLessWarning",
    "Metric",
    "ParameterFreeLadderWarning",
    "ParquetRows",
    "Plan",
    "Price",
    "ReusableHoldout",
    "Rotation",
    "ScoreTable",
    "Verification",
    "__version__",
    "verify",
]
