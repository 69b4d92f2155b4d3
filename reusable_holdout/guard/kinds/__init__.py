"""The ways to ask; one file each."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
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
    from reusable_holdout.guard.kinds.exam import ExamFinal
    from reusable_holdout.guard.kinds.final import EvidenceExam, EvidenceFinal, Final
    from reusable_holdout.guard.kinds.gate import Gate, GuardedCompare, GuardedGate
    from reusable_holdout.guard.kinds.guess_and_check import GuessAndCheck
    from reusable_holdout.guard.kinds.kind import (
        AGREED,
        APART,
        FAILED,
        HaltReason,
        Kind,
        Outcome,
        State,
        Terms,
    )
    from reusable_holdout.guard.kinds.ladder import Ladder, ParameterFreeLadder, ParameterFreeLadderWarning
    from reusable_holdout.guard.kinds.ratio import RatioCheck, RatioGate, RatioGuessAndCheck
    from reusable_holdout.guard.kinds.reveal import EvidenceReveal, Reveal
    from reusable_holdout.guard.kinds.samples import (
        MeanSample,
        Measured,
        MeasuredBoth,
        Sample,
        sample_of,
        unpacked,
    )
    from reusable_holdout.guard.kinds.table import POLICIES, Rules, Ways, rail_of
else:  # a guard is asked in few ways
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".check": ["Check"],
            ".choose": ["Choose", "EvidenceChoose", "Winner"],
            ".claimed": ["NOT_CERTIFIED", "Board"],
            ".claims": ["Claims"],
            ".compare": ["Compare", "GateCompare", "GuessAndCompare"],
            ".evidence": [
                "EvidenceCheck",
                "EvidenceCompare",
                "EvidenceGate",
                "EvidenceGateCompare",
                "EvidenceGuessAndCheck",
            ],
            ".exam": ["ExamFinal"],
            ".final": ["EvidenceExam", "EvidenceFinal", "Final"],
            ".gate": ["Gate", "GuardedCompare", "GuardedGate"],
            ".guess_and_check": ["GuessAndCheck"],
            ".kind": ["AGREED", "APART", "FAILED", "HaltReason", "Kind", "Outcome", "State", "Terms"],
            ".ladder": ["Ladder", "ParameterFreeLadder", "ParameterFreeLadderWarning"],
            ".ratio": ["RatioCheck", "RatioGate", "RatioGuessAndCheck"],
            ".reveal": ["EvidenceReveal", "Reveal"],
            ".samples": ["MeanSample", "Measured", "MeasuredBoth", "Sample", "sample_of", "unpacked"],
            ".table": ["POLICIES", "Rules", "Ways", "rail_of"],
        },
    )

__all__ = [
    "AGREED",
    "APART",
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
    "rail_of",
    "sample_of",
    "unpacked",
]
