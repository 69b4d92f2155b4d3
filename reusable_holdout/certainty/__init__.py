"""Confidence bounds, description lengths of questions (the transcript code), and certificates.

They use numbers only, never data.
"""

from reusable_holdout.certainty.adaptive_code import AdaptiveCode, Estimator, Priced, lead_nats, paired_length
from reusable_holdout.certainty.bound import ConfidenceBound, Interval, fixed_queries_half_width
from reusable_holdout.certainty.certificate import GRID_SLACK, Certificate, Decides, ThresholdTable
from reusable_holdout.certainty.evidence import (
    Evidence,
    EvidenceRows,
    SuitedNull,
    gains_of_rows,
    likely_rows,
    worst_rows,
)
from reusable_holdout.certainty.evidence_set import EvidenceSet
from reusable_holdout.certainty.exact_ratios import matthews_interval, ratio_interval
from reusable_holdout.certainty.final_weights import WEIGHT_UNITS, final_weights, weight_nats
from reusable_holdout.certainty.matchings import Matchings, matched
from reusable_holdout.certainty.outcome_code import (
    Cell,
    CellCode,
    FactorCode,
    SpanCode,
    choice_nats,
    worst_choice_nats,
)
from reusable_holdout.certainty.precision_bands import average_precision_interval
from reusable_holdout.certainty.theory import (
    EDITIONS,
    IN_TIME_ORDER,
    THEORY,
    ClaimCode,
    Shares,
    Theory,
    edition,
)
from reusable_holdout.certainty.transcript_code import NoiseTails, TranscriptCode

__all__ = [
    "EDITIONS",
    "GRID_SLACK",
    "IN_TIME_ORDER",
    "THEORY",
    "WEIGHT_UNITS",
    "AdaptiveCode",
    "Cell",
    "CellCode",
    "Certificate",
    "ClaimCode",
    "ConfidenceBound",
    "Decides",
    "Estimator",
    "Evidence",
    "EvidenceRows",
    "EvidenceSet",
    "FactorCode",
    "Interval",
    "Matchings",
    "NoiseTails",
    "Priced",
    "Shares",
    "SpanCode",
    "SuitedNull",
    "Theory",
    "ThresholdTable",
    "TranscriptCode",
    "average_precision_interval",
    "choice_nats",
    "edition",
    "final_weights",
    "fixed_queries_half_width",
    "gains_of_rows",
    "lead_nats",
    "likely_rows",
    "matched",
    "matthews_interval",
    "paired_length",
    "ratio_interval",
    "weight_nats",
    "worst_choice_nats",
    "worst_rows",
]
