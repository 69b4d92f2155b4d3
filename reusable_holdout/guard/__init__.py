"""The guard and what it is made of."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout.guard.absent import check_is_guard
    from reusable_holdout.guard.answer import Answer, Choice, Guardrail
    from reusable_holdout.guard.asking import has_most_rows
    from reusable_holdout.guard.batches import Asked, MeasuredModel
    from reusable_holdout.guard.chunks.parquet import ParquetRows
    from reusable_holdout.guard.copies import CopiedRowsWarning
    from reusable_holdout.guard.frozen import FrozenAnswer, FrozenCertificate
    from reusable_holdout.guard.guard import ReusableHoldout
    from reusable_holdout.guard.history import Released, released
    from reusable_holdout.guard.kinds.ladder import ParameterFreeLadderWarning
    from reusable_holdout.guard.models import predictions_of
    from reusable_holdout.guard.overview import Price
    from reusable_holdout.guard.rotation import Rotation
    from reusable_holdout.guard.stores import begin_witness
    from reusable_holdout.guard.verification import Verification, verify
    from reusable_holdout.guard.whereabouts import ForWorkers, Whereabouts
else:
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".absent": ["check_is_guard"],
            ".answer": ["Answer", "Choice", "Guardrail"],
            ".asking": ["has_most_rows"],
            ".batches": ["Asked", "MeasuredModel"],
            ".chunks.parquet": ["ParquetRows"],
            ".copies": ["CopiedRowsWarning"],
            ".frozen": ["FrozenAnswer", "FrozenCertificate"],
            ".guard": ["ReusableHoldout"],
            ".kinds.ladder": ["ParameterFreeLadderWarning"],
            ".models": ["predictions_of"],
            ".overview": ["Price"],
            ".history": ["Released", "released"],
            ".rotation": ["Rotation"],
            ".stores": ["begin_witness"],
            ".verification": ["Verification", "verify"],
            ".whereabouts": ["ForWorkers", "Whereabouts"],
        },
    )

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
