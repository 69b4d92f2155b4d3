"""What the analyst may believe: confidence bounds, the transcript code, certificates. Numbers only."""

from reusable_holdout.certainty.adaptive_code import AdaptiveCode, Estimator, Priced, lead_nats, paired_length
from reusable_holdout.certainty.bound import ConfidenceBound, Interval
from reusable_holdout.certainty.certificate import Certificate, ThresholdTable
from reusable_holdout.certainty.evidence import Evidence, EvidenceRows, gains_of_rows, likely_rows, worst_rows
from reusable_holdout.certainty.evidence_set import EvidenceSet
from reusable_holdout.certainty.fixed_queries import fixed_queries_half_width, sample_splitting_half_width
from reusable_holdout.certainty.naive_reuse import majority_attack_gain
from reusable_holdout.certainty.outcome_code import (
    Cell,
    CellCode,
    FactorCode,
    SpanCode,
    StepCode,
    choice_nats,
    worst_choice_nats,
)
from reusable_holdout.certainty.precision_bands import average_precision_interval
from reusable_holdout.certainty.theory import (
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
from reusable_holdout.certainty.transcript_code import NoiseTails, TranscriptCode

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
