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
        ".configuration": ["Released", "released"],
        ".endings": ["Rotation"],
        ".frozen": ["FrozenAnswer", "FrozenCertificate"],
        ".guard": ["ReusableHoldout"],
        ".kinds.ladder": ["ParameterFreeLadderWarning"],
        ".models": ["predictions_of"],
        ".overview": ["Price"],
        ".row_sets": ["CopiedRowsWarning"],
        ".stores": ["begin_witness"],
        ".verification": ["Verification", "verify"],
        ".whereabouts": ["ForWorkers", "Whereabouts"],
    },
)
