"""What type checkers see of this package; `__init__.py` says when it is imported."""

from reusable_holdout.validity.adaptive_code import AdaptiveCode as AdaptiveCode
from reusable_holdout.validity.adaptive_code import Estimator as Estimator
from reusable_holdout.validity.adaptive_code import Priced as Priced
from reusable_holdout.validity.adaptive_code import lead_nats as lead_nats
from reusable_holdout.validity.adaptive_code import paired_length as paired_length
from reusable_holdout.validity.alternatives.fixed_queries import (
    fixed_queries_half_width as fixed_queries_half_width,
)
from reusable_holdout.validity.alternatives.fixed_queries import (
    sample_splitting_half_width as sample_splitting_half_width,
)
from reusable_holdout.validity.alternatives.naive_reuse import majority_attack_gain as majority_attack_gain
from reusable_holdout.validity.bound import ConfidenceBound as ConfidenceBound
from reusable_holdout.validity.bound import Interval as Interval
from reusable_holdout.validity.certificate import Certificate as Certificate
from reusable_holdout.validity.certificate import ThresholdTable as ThresholdTable
from reusable_holdout.validity.evidence import Evidence as Evidence
from reusable_holdout.validity.evidence import EvidenceRows as EvidenceRows
from reusable_holdout.validity.evidence import gains_of_rows as gains_of_rows
from reusable_holdout.validity.evidence import likely_rows as likely_rows
from reusable_holdout.validity.evidence import worst_rows as worst_rows
from reusable_holdout.validity.evidence_set import EvidenceSet as EvidenceSet
from reusable_holdout.validity.outcome_code import Cell as Cell
from reusable_holdout.validity.outcome_code import CellCode as CellCode
from reusable_holdout.validity.outcome_code import FactorCode as FactorCode
from reusable_holdout.validity.outcome_code import SpanCode as SpanCode
from reusable_holdout.validity.outcome_code import StepCode as StepCode
from reusable_holdout.validity.outcome_code import choice_nats as choice_nats
from reusable_holdout.validity.outcome_code import worst_choice_nats as worst_choice_nats
from reusable_holdout.validity.precision_bands import average_precision_interval as average_precision_interval
from reusable_holdout.validity.theory import BY_DISTANCE as BY_DISTANCE
from reusable_holdout.validity.theory import EDITIONS as EDITIONS
from reusable_holdout.validity.theory import LADDERS as LADDERS
from reusable_holdout.validity.theory import THEORY as THEORY
from reusable_holdout.validity.theory import ClaimCode as ClaimCode
from reusable_holdout.validity.theory import Policy as Policy
from reusable_holdout.validity.theory import PolicyCode as PolicyCode
from reusable_holdout.validity.theory import Shares as Shares
from reusable_holdout.validity.theory import Theory as Theory
from reusable_holdout.validity.theory import edition as edition
from reusable_holdout.validity.theory import parameter_free_step as parameter_free_step
from reusable_holdout.validity.theory import policy_code as policy_code
from reusable_holdout.validity.transcript_code import NoiseTails as NoiseTails
from reusable_holdout.validity.transcript_code import TranscriptCode as TranscriptCode
