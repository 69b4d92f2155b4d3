"""The guard and what it is made of."""

from reusable_holdout.deferred import names_on_first_use

__getattr__, __dir__ = names_on_first_use(
    __name__,
    {
        ".absent": ["check_is_guard"],
        ".answer": ["Answer", "Choice", "Guardrail"],
        ".asking": ["has_most_rows"],
        ".batches": ["Asked", "MeasuredModel"],
        ".chunks.parquet": ["ParquetRows"],
        ".releases": ["Released", "released"],
        ".endings": ["Rotation"],
        ".frozen": ["FrozenAnswer", "FrozenCertificate"],
        ".guard": ["ReusableHoldout"],
        ".kinds.ladder": ["ParameterFreeLadderWarning"],
        ".lost_witness": ["begin_witness"],
        ".models": ["predictions_of"],
        ".overview": ["Price"],
        ".pricing": ["KeptLessWarning"],
        ".row_sets": ["CopiedRowsWarning"],
        ".verification": ["Verification", "verify"],
        ".whereabouts": ["ForWorkers", "Whereabouts"],
    },
)
