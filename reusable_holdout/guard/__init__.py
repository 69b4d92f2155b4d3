"""The guard and its parts."""

from reusable_holdout.answer import Price
from reusable_holdout.guard.branches import Rotation
from reusable_holdout.guard.chunks.parquet import ParquetRows
from reusable_holdout.guard.frozen import FrozenAnswer, FrozenCertificate
from reusable_holdout.guard.guard import ReusableHoldout
from reusable_holdout.guard.handle import check_is_guard, frozen_guard, guard_here
from reusable_holdout.guard.known_rows import has_most_rows
from reusable_holdout.guard.models import predictions_of
from reusable_holdout.guard.questions import Question
from reusable_holdout.guard.releases import Released, released
from reusable_holdout.guard.row_sets import CopiedRowsWarning
from reusable_holdout.guard.stores import begin_witness
from reusable_holdout.guard.subjects import Difference, Measured
from reusable_holdout.guard.training_estimate import Estimate, error_of_folds
from reusable_holdout.guard.verification import Verification, verify
from reusable_holdout.guard.walk_forward import WalkForward
from reusable_holdout.guard.wanted_plan import KeptLessWarning

__all__ = [
    "CopiedRowsWarning",
    "Difference",
    "Estimate",
    "FrozenAnswer",
    "FrozenCertificate",
    "KeptLessWarning",
    "Measured",
    "ParquetRows",
    "Price",
    "Question",
    "Released",
    "ReusableHoldout",
    "Rotation",
    "Verification",
    "WalkForward",
    "begin_witness",
    "check_is_guard",
    "error_of_folds",
    "frozen_guard",
    "guard_here",
    "has_most_rows",
    "predictions_of",
    "released",
    "verify",
]
