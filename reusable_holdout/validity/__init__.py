"""What the analyst may believe: confidence bounds, the transcript code, certificates. Numbers only."""

from reusable_holdout.deferred import names_on_first_use

# what a plan does not rest on is not read
__getattr__, __dir__ = names_on_first_use(
    __name__,
    {
        ".adaptive_code": ["AdaptiveCode", "Estimator", "Priced", "lead_nats", "paired_length"],
        ".alternatives.fixed_queries": ["fixed_queries_half_width", "sample_splitting_half_width"],
        ".alternatives.naive_reuse": ["majority_attack_gain"],
        ".bound": ["ConfidenceBound", "Interval"],
        ".certificate": ["Certificate", "ThresholdTable"],
        ".evidence": ["Evidence", "EvidenceRows", "gains_of_rows", "likely_rows", "worst_rows"],
        ".evidence_set": ["EvidenceSet"],
        ".outcome_code": [
            "Cell",
            "CellCode",
            "FactorCode",
            "SpanCode",
            "StepCode",
            "choice_nats",
            "worst_choice_nats",
        ],
        ".precision_bands": ["average_precision_interval"],
        ".theory": [
            "BY_DISTANCE",
            "EDITIONS",
            "LADDERS",
            "THEORY",
            "ClaimCode",
            "Policy",
            "PolicyCode",
            "Shares",
            "Theory",
            "edition",
            "parameter_free_step",
            "policy_code",
        ],
        ".transcript_code": ["NoiseTails", "TranscriptCode"],
    },
)
