"""The guard and what it is made of."""

from reusable_holdout.holdout.answer import Answer
from reusable_holdout.holdout.chunks import ParquetRows
from reusable_holdout.holdout.guard import ReusableHoldout
from reusable_holdout.holdout.ladders import ParameterFreeLadderWarning
from reusable_holdout.holdout.models import predictions_of
from reusable_holdout.holdout.released import Released, released
from reusable_holdout.holdout.rotation import Rotation
from reusable_holdout.holdout.verification import Verification, verify

__all__ = [
    "Answer",
    "ParameterFreeLadderWarning",
    "ParquetRows",
    "Released",
    "ReusableHoldout",
    "Rotation",
    "Verification",
    "predictions_of",
    "released",
    "verify",
]
