"""The guard and what it is made of."""

from reusable_holdout.guard.answer import Answer, Choice, Guardrail
from reusable_holdout.guard.batches import Asked, MeasuredModel
from reusable_holdout.guard.chunks import ParquetRows
from reusable_holdout.guard.copies import CopiedRowsWarning
from reusable_holdout.guard.expected_guard import check_is_guard
from reusable_holdout.guard.frozen import FrozenAnswer, FrozenCertificate
from reusable_holdout.guard.guard import ReusableHoldout
from reusable_holdout.guard.kinds import ParameterFreeLadderWarning
from reusable_holdout.guard.models import predictions_of
from reusable_holdout.guard.record import Price
from reusable_holdout.guard.released import Released, released
from reusable_holdout.guard.rotation import Rotation
from reusable_holdout.guard.stores import begin_witness
from reusable_holdout.guard.trained import has_most_rows
from reusable_holdout.guard.verification import Verification, verify
from reusable_holdout.guard.whereabouts import ForWorkers, Whereabouts

__all__ = [
    "Answer",
    "Asked",
    "Choice",
    "CopiedRowsWarning",
    "ForWorkers",
    "FrozenAnswer",
    "FrozenCertificate",
    "Guardrail",
    "MeasuredModel",
    "ParameterFreeLadderWarning",
    "ParquetRows",
    "Price",
    "Released",
    "ReusableHoldout",
    "Rotation",
    "Verification",
    "Whereabouts",
    "begin_witness",
    "check_is_guard",
    "has_most_rows",
    "predictions_of",
    "released",
    "verify",
]
