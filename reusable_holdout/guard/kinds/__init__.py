"""The ways to ask; one file each."""

from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.choose import Choose, EvidenceChoose, Winner
from reusable_holdout.guard.kinds.claimed import NOT_CERTIFIED, Board
from reusable_holdout.guard.kinds.claims import Claims
from reusable_holdout.guard.kinds.compare import Compare, GateCompare, GuessAndCompare
from reusable_holdout.guard.kinds.evidence import (
    EvidenceCheck,
    EvidenceCompare,
    EvidenceGate,
    EvidenceGateCompare,
    EvidenceGuessAndCheck,
)
from reusable_holdout.guard.kinds.evidence_final import EvidenceExam, EvidenceFinal
from reusable_holdout.guard.kinds.evidence_reveal import EvidenceReveal
from reusable_holdout.guard.kinds.exam import ExamFinal, Measured, MeasuredBoth
from reusable_holdout.guard.kinds.final import Final
from reusable_holdout.guard.kinds.gate import Gate
from reusable_holdout.guard.kinds.guarded import GuardedCompare, GuardedGate
from reusable_holdout.guard.kinds.guess_and_check import GuessAndCheck
from reusable_holdout.guard.kinds.kind import AGREED, FAILED, HaltReason, Kind, Outcome, State, Terms
from reusable_holdout.guard.kinds.ladder import Ladder
from reusable_holdout.guard.kinds.parameter_free_ladder import (
    ParameterFreeLadder,
    ParameterFreeLadderWarning,
)
from reusable_holdout.guard.kinds.ratio import RatioCheck, RatioGate, RatioGuessAndCheck
from reusable_holdout.guard.kinds.reveal import Reveal
from reusable_holdout.guard.kinds.rules import Rules
from reusable_holdout.guard.kinds.samples import MeanSample, Sample, sample_of, unpacked
from reusable_holdout.guard.kinds.table import POLICIES, Ways, kinds_of, rail_of, ways_of

__all__ = [
    "AGREED",
    "FAILED",
    "NOT_CERTIFIED",
    "POLICIES",
    "Board",
    "Check",
    "Choose",
    "Claims",
    "Compare",
    "EvidenceCheck",
    "EvidenceChoose",
    "EvidenceCompare",
    "EvidenceExam",
    "EvidenceFinal",
    "EvidenceGate",
    "EvidenceGateCompare",
    "EvidenceGuessAndCheck",
    "EvidenceReveal",
    "ExamFinal",
    "Final",
    "Gate",
    "GateCompare",
    "GuardedCompare",
    "GuardedGate",
    "GuessAndCheck",
    "GuessAndCompare",
    "HaltReason",
    "Kind",
    "Ladder",
    "MeanSample",
    "Measured",
    "MeasuredBoth",
    "Outcome",
    "ParameterFreeLadder",
    "ParameterFreeLadderWarning",
    "RatioCheck",
    "RatioGate",
    "RatioGuessAndCheck",
    "Reveal",
    "Rules",
    "Sample",
    "State",
    "Terms",
    "Ways",
    "Winner",
    "kinds_of",
    "rail_of",
    "sample_of",
    "unpacked",
    "ways_of",
]
