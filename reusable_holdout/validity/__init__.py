"""What the analyst may believe: confidence bounds, the transcript code, certificates. Numbers only."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout.validity.adaptive_code import AdaptiveCode, Estimator, Priced
    from reusable_holdout.validity.alternatives.fixed_queries import (
        fixed_queries_half_width,
        sample_splitting_half_width,
    )
    from reusable_holdout.validity.alternatives.naive_reuse import majority_attack_gain
    from reusable_holdout.validity.bound import ConfidenceBound, Interval
    from reusable_holdout.validity.certificate import Certificate
    from reusable_holdout.validity.evidence import (
        Evidence,
        EvidenceRows,
        gains_of_rows,
        likely_rows,
        worst_rows,
    )
    from reusable_holdout.validity.evidence_set import EvidenceSet
    from reusable_holdout.validity.noise_tails import NoiseTails
    from reusable_holdout.validity.outcome_code import (
        Cell,
        CellCode,
        FactorCode,
        SpanCode,
        StepCode,
        choice_nats,
        worst_choice_nats,
    )
    from reusable_holdout.validity.paired import lead_nats, paired_length
    from reusable_holdout.validity.precision_bands import average_precision_interval
    from reusable_holdout.validity.theory import (
        BY_DISTANCE,
        EDITIONS,
        LADDERS,
        THEORY,
        ClaimCode,
        Policy,
        PolicyCode,
        Shares,
        Theory,
        edition,
        parameter_free_step,
        policy_code,
    )
    from reusable_holdout.validity.threshold_table import ThresholdTable
    from reusable_holdout.validity.transcript_code import TranscriptCode
else:  # what a plan does not rest on is not read
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".adaptive_code": ["AdaptiveCode", "Estimator", "Priced"],
            ".alternatives.fixed_queries": ["fixed_queries_half_width", "sample_splitting_half_width"],
            ".alternatives.naive_reuse": ["majority_attack_gain"],
            ".bound": ["ConfidenceBound", "Interval"],
            ".certificate": ["Certificate"],
            ".evidence": ["Evidence", "EvidenceRows", "gains_of_rows", "likely_rows", "worst_rows"],
            ".evidence_set": ["EvidenceSet"],
            ".noise_tails": ["NoiseTails"],
            ".outcome_code": [
                "Cell",
                "CellCode",
                "FactorCode",
                "SpanCode",
                "StepCode",
                "choice_nats",
                "worst_choice_nats",
            ],
            ".paired": ["lead_nats", "paired_length"],
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
            ".threshold_table": ["ThresholdTable"],
            ".transcript_code": ["TranscriptCode"],
        },
    )

__all__ = [
    "BY_DISTANCE",
    "EDITIONS",
    "LADDERS",
    "THEORY",
    "AdaptiveCode",
    "Cell",
    "CellCode",
    "Certificate",
    "ClaimCode",
    "ConfidenceBound",
    "Estimator",
    "Evidence",
    "EvidenceRows",
    "EvidenceSet",
    "FactorCode",
    "Interval",
    "NoiseTails",
    "Policy",
    "PolicyCode",
    "Priced",
    "Shares",
    "SpanCode",
    "StepCode",
    "Theory",
    "ThresholdTable",
    "TranscriptCode",
    "average_precision_interval",
    "choice_nats",
    "edition",
    "fixed_queries_half_width",
    "gains_of_rows",
    "lead_nats",
    "likely_rows",
    "majority_attack_gain",
    "paired_length",
    "parameter_free_step",
    "policy_code",
    "sample_splitting_half_width",
    "worst_choice_nats",
    "worst_rows",
]
