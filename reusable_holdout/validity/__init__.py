"""What the analyst may believe: confidence bounds, the transcript code, certificates. Numbers only."""

from reusable_holdout.validity.alternatives.fixed_queries import (
    fixed_queries_half_width,
    sample_splitting_half_width,
)
from reusable_holdout.validity.alternatives.naive_reuse import majority_attack_gain
from reusable_holdout.validity.certificate import Certificate, Interval, NoiseTails, nice_step
from reusable_holdout.validity.confidence import ConfidenceBound
from reusable_holdout.validity.one_sided import (
    LADDERS,
    GateCertificate,
    LadderCertificate,
    ParameterFreeLadderCertificate,
    Policy,
    certificate_of,
)
from reusable_holdout.validity.paired import PairedBound, paired_rate
from reusable_holdout.validity.threshold_table import ThresholdTable
from reusable_holdout.validity.transcript_code import (
    FAILURE_NATS,
    PLANNED_NATS_PER_CHARGE,
    TranscriptCode,
    ValueCode,
)

__all__ = [
    "FAILURE_NATS",
    "LADDERS",
    "PLANNED_NATS_PER_CHARGE",
    "Certificate",
    "ConfidenceBound",
    "GateCertificate",
    "Interval",
    "LadderCertificate",
    "NoiseTails",
    "PairedBound",
    "ParameterFreeLadderCertificate",
    "Policy",
    "ThresholdTable",
    "TranscriptCode",
    "ValueCode",
    "certificate_of",
    "fixed_queries_half_width",
    "majority_attack_gain",
    "nice_step",
    "paired_rate",
    "sample_splitting_half_width",
]
