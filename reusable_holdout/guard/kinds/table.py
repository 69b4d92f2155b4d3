"""Which kind a policy asks with, of one model and of two, and by which rules, that a ledger keeps for ever."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.mechanisms import KeyedNoise
from reusable_holdout.plan import SharedBudget
from reusable_holdout.validity import Certificate, ConfidenceBound, Shares, edition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reusable_holdout.guard.kinds import Kind, choose, final, gate, reveal
    from reusable_holdout.guard.kinds.check import Check
    from reusable_holdout.guard.kinds.choose import Choose
    from reusable_holdout.guard.kinds.final import Final
    from reusable_holdout.guard.kinds.gate import Gate, GuardedCompare, GuardedGate
    from reusable_holdout.guard.kinds.reveal import Reveal
    from reusable_holdout.plan import Plan
    from reusable_holdout.validity import Policy
else:  # a guard is asked in few ways
    choose, final, gate, reveal = modules_on_first_use(__package__, "choose", "final", "gate", "reveal")

__all__ = ["POLICIES", "Rules", "Ways", "rail_of"]


class Rules(NamedTuple):
    """Public numbers of one metric's ways to ask.

    A plan derives them from what was wished, and a later version may derive others: answers are certified, and
    verified, by those that stand in the ledger.
    """

    policy: Policy
    scores: Certificate  # of one model
    pairs: Certificate  # of the difference of two
    by_rows: bool  # whether what is revealed or chosen shows the set that the rows' evidence leaves

    @classmethod
    def of(cls, plan: Plan, *, greater_is_better: bool) -> Self:
        """Rules that follow from a plan."""
        scores = plan.certificate(greater_is_better=greater_is_better)
        return cls(
            plan.policy,
            scores,
            plan.paired_certificate(greater_is_better=greater_is_better),
            scores.spread is not None and plan.privacy_is_vacuous,
        )

    def record(self) -> dict[str, Any]:
        """All rules by name, as JSON can write them."""
        certificates = {"scores": self.scores, "pairs": self.pairs}
        return self._asdict() | {name: _record_of(one) for name, one in certificates.items()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what :meth:`record` wrote."""
        certificates = {name: _certificate_of(record[name]) for name in ("scores", "pairs")}
        return cls(**{**record, **certificates})

    def are_of(self, plan: Mapping[str, Any]) -> bool:
        """Whether a plan's record has the numbers that these rest on; what else follows from it, these say."""
        scores, pairs, shared = self.scores, self.pairs, plan["shared"]
        return (
            [self.policy, scores.queries, scores.charges, scores.mechanism, 1.0 - plan["confidence"]]
            == [plan["policy"], plan["queries"], plan["charges"], plan["mechanism"], scores.beta]
            and [scores.tolerance, scores.noise_scale, scores.final_noise, scores.estimate]
            == [plan["tolerance"], plan["noise_scale"], plan["final_noise"] or 0.0, plan["estimate"]]
            and [pairs.tolerance, pairs.noise_scale]
            == [plan["comparison_tolerance"], plan["comparison_noise"]]
            and [scores.bound.rows + scores.exam_rows, [scores.lower, scores.upper]]
            == [plan["rows"], plan["bounds"]]
            and [scores.view, scores.told_before, scores.noisy, scores.theory.edition]
            == [shared["view"], shared["told_before"], shared["noisy"], shared["theory"]]
        )

    def keep_to(self, first: Self) -> bool:
        """Whether rules of another metric of the same rows keep to the promises of the first one's."""
        return all(
            [one.queries, one.charges, one.beta, one.told_before, one.charge_nats, one.theory]
            == [kept.queries, kept.charges, kept.beta, kept.told_before, kept.charge_nats, kept.theory]
            and one.reserved_nats >= kept.reserved_nats
            for one, kept in ((self.scores, first.scores), (self.pairs, first.pairs))
        )

    def budget_of_view(self, view: int) -> SharedBudget:
        """Budget for a plan of another metric of the same rows, so that it breaks no promise of this one."""
        return SharedBudget(
            view=view,
            told_before=self.scores.told_before,
            charge_nats=self.scores.charge_nats,
            told_nats=self.scores.reserved_nats,
            noisy=self.scores.noise_scale > 0.0,
            theory=self.scores.theory.edition,
        )


def _record_of(certificate: Certificate) -> dict[str, Any]:
    parts = {field.name: getattr(certificate, field.name) for field in fields(certificate)}
    return parts | {
        "bound": asdict(certificate.bound),
        "shares": list(certificate.shares),
        "theory": certificate.theory.edition,
    }


def _certificate_of(record: Mapping[str, Any]) -> Certificate:
    """What a record says; raises LedgerMismatchError if this version does not know its edition of the theory."""
    parts = {
        "theory": edition(record["theory"]),
        "bound": ConfidenceBound(**record["bound"]),
        "shares": Shares(*record["shares"]),
    }
    return Certificate(**{**record, **parts})


class _OnUse(dict["Policy", "Any"]):
    """Kinds by their policies, each by its file and name: the file is read when it is asked for."""

    def __getitem__(self, policy: Policy) -> type[Check]:
        file, name = super().__getitem__(policy).split(".")
        found: type[Check] = getattr(import_module(f"{__package__}.{file}"), name)
        return found


POLICIES = _OnUse(
    {
        "thresholdout": "check.Check",
        "ladder": "ladder.Ladder",
        "guess-and-check": "guess_and_check.GuessAndCheck",
        "gate": "gate.Gate",
        "parameter-free-ladder": "ladder.ParameterFreeLadder",
        "claims": "claims.Claims",
    }
)
_COMPARISONS = _OnUse(
    {
        "thresholdout": "check.Compare",
        "guess-and-check": "guess_and_check.GuessAndCompare",
        "gate": "gate.GateCompare",
    }
)
_RATIOS = _OnUse(
    {
        "thresholdout": "ratio.RatioCheck",
        "guess-and-check": "ratio.RatioGuessAndCheck",
        "gate": "ratio.RatioGate",
    }
)
_BY_EVIDENCE = _OnUse(
    {
        "thresholdout": "evidence.EvidenceCheck",
        "guess-and-check": "evidence.EvidenceGuessAndCheck",
        "gate": "evidence.EvidenceGate",
    }
)
_COMPARED_BY_EVIDENCE = _OnUse(
    {
        "thresholdout": "evidence.EvidenceCompare",
        "guess-and-check": "evidence.EvidenceCompare",
        "gate": "evidence.EvidenceGateCompare",
    }
)
_NAMED = {  # every other name is that of a policy
    "compare": "comparison",
    "gate-compare": "comparison",
    "guess-and-compare": "comparison",
    "reveal": "reveal",
    "choose": "choose",
    "final": "final",
    "guarded-gate": "guarded",
    "guarded-compare": "guarded_comparison",
}


class Ways:
    """The ways to ask one guard, each made when it is used.

    Without the guard's noise they can be verified, and decide nothing that counts.
    """

    def __init__(self, rules: Rules, noise: KeyedNoise | None = None) -> None:
        self._rules = rules
        self._noise = KeyedNoise(bytes(32)) if noise is None else noise
        self._told = replace(rules.scores, shares=Shares(0.5, 0.5))

    @cached_property
    def policy(self) -> Check:
        """What is compared with a prior, as the plan's policy says."""
        return _of_scores(self._rules.policy, self._rules.scores, self._noise)

    @cached_property
    def comparison(self) -> Check | None:
        """What is compared with the prior of a comparison of two models; a ladder has none."""
        return _of_differences(self._rules.policy, self._rules.pairs, self._noise)

    @cached_property
    def reveal(self) -> Reveal:
        """What tells a value's cell."""
        return (reveal.EvidenceReveal if self._rules.by_rows else reveal.Reveal)(self._told, self._noise)

    @cached_property
    def choose(self) -> Choose:
        """What tells the best of several."""
        return (choose.EvidenceChoose if self._rules.by_rows else choose.Choose)(self._told, self._noise)

    @cached_property
    def final(self) -> Final:
        """What ends it."""
        made: type[Final]
        if self._told.exam_rows:
            made = final.EvidenceExam if self._told.final_by_evidence else final.ExamFinal
        else:
            made = final.EvidenceFinal if self._told.final_by_evidence else final.Final
        return made(self._told, self._noise)

    @cached_property
    def guarded(self) -> GuardedGate | None:
        """A gate's, with guardrails."""
        return gate.GuardedGate(cast("Gate", self.policy), self._noise) if self._gates else None

    @cached_property
    def guarded_comparison(self) -> GuardedCompare | None:
        """A gate's comparison of two models, with guardrails."""
        return gate.GuardedCompare(cast("Gate", self.comparison), self._noise) if self._gates else None

    @property
    def _gates(self) -> bool:
        return self._rules.policy == "gate"

    def named(self, name: str) -> Kind | None:
        """Way to ask of this name; None if there is none."""
        kind: Kind | None = getattr(self, _NAMED.get(name, "policy"))
        return kind if kind is not None and kind.name == name else None


def rail_of(rules: Rules, noise: KeyedNoise, *, paired: bool) -> Gate:
    """Make the guardrail that a metric is for a gate of another one."""
    rail = replace(rules.pairs if paired else rules.scores, shares=Shares(1.0, 1.0), fixed_threshold=0.0)
    return cast("Gate", (_of_differences if paired else _of_scores)("gate", rail, noise))


def _of_scores(policy: Policy, certificate: Certificate, noise: KeyedNoise) -> Check:
    table = _RATIOS if certificate.of_ratio else _BY_EVIDENCE if certificate.by_evidence else POLICIES
    return table[policy](certificate, noise)


def _of_differences(policy: Policy, certificate: Certificate, noise: KeyedNoise) -> Check | None:
    table = _COMPARED_BY_EVIDENCE if certificate.by_evidence else _COMPARISONS
    return table[policy](certificate, noise) if policy in table else None
