"""Which kind a policy asks with, of one model and of two."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.choose import Choose, EvidenceChoose
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
from reusable_holdout.guard.kinds.exam import ExamFinal
from reusable_holdout.guard.kinds.final import Final
from reusable_holdout.guard.kinds.gate import Gate
from reusable_holdout.guard.kinds.guarded import GuardedCompare, GuardedGate
from reusable_holdout.guard.kinds.guess_and_check import GuessAndCheck
from reusable_holdout.guard.kinds.ladder import Ladder
from reusable_holdout.guard.kinds.parameter_free_ladder import ParameterFreeLadder
from reusable_holdout.guard.kinds.ratio import RatioCheck, RatioGate, RatioGuessAndCheck
from reusable_holdout.guard.kinds.reveal import Reveal
from reusable_holdout.mechanisms import KeyedNoise
from reusable_holdout.validity import Shares

if TYPE_CHECKING:
    from reusable_holdout.guard.kinds.kind import Kind
    from reusable_holdout.guard.kinds.rules import Rules
    from reusable_holdout.validity import Certificate, Policy

__all__ = ["COMPARISONS", "POLICIES", "Ways", "kinds_of", "rail_of", "ways_of"]

POLICIES: dict[Policy, type[Check]] = {
    "thresholdout": Check,
    "ladder": Ladder,
    "guess-and-check": GuessAndCheck,
    "gate": Gate,
    "parameter-free-ladder": ParameterFreeLadder,
    "claims": Claims,
}

COMPARISONS: dict[Policy, type[Check]] = {
    "thresholdout": Compare,
    "guess-and-check": GuessAndCompare,
    "gate": GateCompare,
}

_RATIOS: dict[Policy, type[Check]] = {
    "thresholdout": RatioCheck,
    "guess-and-check": RatioGuessAndCheck,
    "gate": RatioGate,
}

_BY_EVIDENCE: dict[Policy, tuple[type[Check], type[Check]]] = {
    "thresholdout": (EvidenceCheck, EvidenceCompare),
    "guess-and-check": (EvidenceGuessAndCheck, EvidenceCompare),
    "gate": (EvidenceGate, EvidenceGateCompare),
}


class Ways(NamedTuple):
    """The ways to ask one guard.

    Attributes
    ----------
    policy : Check
        What is compared with a prior, as the plan's policy says.
    comparison : Check or None
        The same of two models; a ladder has none.
    reveal, choose, final
        What is asked for.
    guarded, guarded_comparison : GuardedGate or None
        A gate's, with guardrails.
    """

    policy: Check
    comparison: Check | None
    reveal: Reveal
    choose: Choose
    final: Final
    guarded: GuardedGate | None
    guarded_comparison: GuardedCompare | None


def kinds_of(rules: Rules, noise: KeyedNoise | None = None) -> dict[str, Kind]:
    """Every way to ask a guard, by its name."""
    ways = ways_of(rules, noise)
    return {kind.name: kind for kind in ways if kind is not None}


def ways_of(rules: Rules, noise: KeyedNoise | None = None) -> Ways:
    """Make the ways to ask a guard; without its noise they can be verified, and decide nothing that counts."""
    noise = KeyedNoise(bytes(32)) if noise is None else noise
    policy = _of_scores(rules.policy, rules.scores, noise)
    comparison = _of_differences(rules.policy, rules.pairs, noise)
    told = replace(rules.scores, shares=Shares(0.5, 0.5))
    return Ways(
        policy,
        comparison,
        (EvidenceReveal if rules.by_rows else Reveal)(told, noise),
        (EvidenceChoose if rules.by_rows else Choose)(told, noise),
        _final_of(told)(told, noise),
        GuardedGate(policy, noise) if isinstance(policy, Gate) else None,
        GuardedCompare(comparison, noise) if isinstance(comparison, Gate) else None,
    )


def _final_of(certificate: Certificate) -> type[Final]:
    if certificate.exam_rows:
        return EvidenceExam if certificate.final_by_evidence else ExamFinal
    return EvidenceFinal if certificate.final_by_evidence else Final


def rail_of(rules: Rules, noise: KeyedNoise, *, paired: bool) -> Gate:
    """Make the guardrail that a metric is for a gate of another one."""
    rail = replace(rules.pairs if paired else rules.scores, shares=Shares(1.0, 1.0), fixed_threshold=0.0)
    return cast("Gate", (_of_differences if paired else _of_scores)("gate", rail, noise))


def _of_scores(policy: Policy, certificate: Certificate, noise: KeyedNoise) -> Check:
    if certificate.of_ratio:
        return _RATIOS[policy](certificate, noise)
    made = POLICIES[policy] if not certificate.by_evidence else _BY_EVIDENCE[policy][0]
    return made(certificate, noise)


def _of_differences(policy: Policy, certificate: Certificate, noise: KeyedNoise) -> Check | None:
    if policy not in COMPARISONS:
        return None
    made = COMPARISONS[policy] if not certificate.by_evidence else _BY_EVIDENCE[policy][1]
    return made(certificate, noise)
