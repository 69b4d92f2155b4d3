"""Which kind a policy asks with, of one model and of two, and by which rules, that a ledger keeps for ever."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, Self, cast

from reusable_holdout.certainty import Certificate, ConfidenceBound, Policy, Shares, edition
from reusable_holdout.guard.kinds import Kind, choose, exam, final, gate, reveal
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.choose import Choose
from reusable_holdout.guard.kinds.final import Final
from reusable_holdout.guard.kinds.gate import Gate, GuardedCompare, GuardedGate
from reusable_holdout.guard.kinds.reveal import Reveal
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.plan import Plan, SharedBudget

__all__ = ["POLICIES", "Rules", "Ways", "differing", "rail_of"]

_SAME = 1e-9  # of floats that were computed on another machine
_SPARE_OF_VIEWS = (
    1024.0 - 2.0**-7
)  # nats: what version 0.2.0 wrote beside the guard's own in the rules of views
_NOBODYS = KeyedNoise(bytes(32))  # where nothing that counts is decided


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
    def of(cls, plan: Plan, *, greater_is_better: bool, reserved_nats: float | None = None) -> Self:
        """Rules that follow from a plan; so many nats may be told beside the charges, by default all that it allows."""
        scores = plan.certificate(greater_is_better=greater_is_better, reserved_nats=reserved_nats)
        return cls(
            plan.policy,
            scores,
            plan.paired_certificate(greater_is_better=greater_is_better, reserved_nats=reserved_nats),
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

    @classmethod
    def underived(cls, record: Mapping[str, Any], plan: Plan, *, greater_is_better: bool) -> Iterator[str]:
        """Name what of a record are not the rules that follow from a plan's numbers and its edition.

        What may be told beside the charges is solved, and stands in the record alone: that it bears it is checked.
        """
        reserved = record["scores"]["reserved_nats"]
        if type(reserved) is not float:
            yield "rules.scores.reserved_nats"
            return
        derived = cls.of(plan, greater_is_better=greater_is_better, reserved_nats=reserved)
        others = list(differing(record, derived.record(), "rules"))
        yield from others
        if not others and not _may_be_told(plan, derived.scores):
            yield "rules.scores.reserved_nats"

    def within(self, told_nats: float) -> Self:
        """Same rules, by which no more is told beside the charges than the guard's own plan allows.

        Those that version 0.2.0 wrote for views allow more, which would break that plan's promises.
        """
        least = min(self.scores.reserved_nats, told_nats or math.inf)
        scores, pairs = (replace(one, reserved_nats=least) for one in (self.scores, self.pairs))
        return self._replace(scores=scores, pairs=pairs)

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


def differing(stored: object, derived: object, name: str) -> Iterator[str]:
    """Name the places at which stored facts are not the derived ones: in kind, in number, or in value but rounding."""
    if isinstance(derived, dict) and isinstance(stored, dict):
        for part in derived | stored:
            if part in derived and part in stored:
                yield from differing(stored[part], derived[part], f"{name}.{part}")
            else:
                yield f"{name}.{part}"
    elif isinstance(derived, list | tuple) and isinstance(stored, list) and len(derived) == len(stored):
        for place, (one, other) in enumerate(zip(stored, derived, strict=True)):
            yield from differing(one, other, f"{name}[{place}]")
    elif type(stored) is not type(derived) or not (_close(stored, derived) or stored == derived):
        yield name


def _close(stored: object, derived: object) -> bool:
    numbers = isinstance(stored, float) and isinstance(derived, float)
    return numbers and math.isclose(
        cast("float", stored), cast("float", derived), rel_tol=_SAME, abs_tol=1e-15
    )


def _may_be_told(plan: Plan, certificate: Certificate) -> bool:
    """Return True if a plan keeps its tolerance up to the last charge, though so much is told beside.

    By nothing that a later version may plan by.
    """
    least, spare = plan.set_aside, certificate.reserved_nats - plan.set_aside
    if abs(spare) <= _SAME * (1.0 + least):
        return True
    if plan.shared.view and plan.shared.told_nats:
        return math.isclose(spare, _SPARE_OF_VIEWS, rel_tol=_SAME)
    if spare < 0.0 or certificate.adaptive:
        return False
    at, length, slack = plan.estimate, certificate.affordable_length, 2.0 * _SAME * plan.span
    if certificate.fixed_threshold is not None and not certificate.by_evidence:
        reach = certificate.fixed_threshold + certificate.comparison_tail
        low, high = certificate.around(at - reach, at + reach, length=length, share=certificate.shares.agreed)
        return bool(max(at - low, high - at) <= plan.tolerance + slack)
    threshold = certificate.threshold_of_length(at, length, least=-math.inf)
    return bool(threshold >= (0.0 if plan.policy == "gate" else plan.deviation_sd) - slack)


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

    def __init__(self, rules: Rules, noise: KeyedNoise = _NOBODYS) -> None:
        self._rules, self._noise = rules, noise
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
            made = exam.EvidenceExam if self._told.final_by_evidence else exam.ExamFinal
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
