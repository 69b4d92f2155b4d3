"""The ways to ask; one file each."""

from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.choose import Choose, Winner
from reusable_holdout.guard.kinds.compare import Compare, GateCompare, GuessAndCompare
from reusable_holdout.guard.kinds.evidence import (
    EvidenceCheck,
    EvidenceCompare,
    EvidenceGate,
    EvidenceGateCompare,
    EvidenceGuessAndCheck,
)
from reusable_holdout.guard.kinds.evidence_final import EvidenceFinal, MeasuredRows
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
from reusable_holdout.guard.kinds.reveal import Reveal
from reusable_holdout.guard.kinds.table import POLICIES, Ways, kinds_of, rail_of, ways_of

__all__ = [
    "AGREED",
    "FAILED",
    "POLICIES",
    "Check",
    "Choose",
    "Compare",
    "EvidenceCheck",
    "EvidenceCompare",
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
    "Measured",
    "MeasuredBoth",
    "MeasuredRows",
    "Outcome",
    "ParameterFreeLadder",
    "ParameterFreeLadderWarning",
    "Reveal",
    "State",
    "Terms",
    "Ways",
    "Winner",
    "kinds_of",
    "rail_of",
    "ways_of",
]
