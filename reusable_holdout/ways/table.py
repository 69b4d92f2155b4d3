"""The table of all ways to ask about one metric of the rows, by its plan."""

from __future__ import annotations

from functools import cached_property

from reusable_holdout.certainty import Certificate, Decides
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.plan import Plan
from reusable_holdout.rules import Distance, Rule
from reusable_holdout.rules.evidence import ByEvidence
from reusable_holdout.rules.sets import BySets
from reusable_holdout.ways import Way
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.claim import Claims
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.gate import Gate, GuardedGate
from reusable_holdout.ways.reveal import Choose, Reveal

__all__ = ["PAIRED", "Ways"]

_RULES: dict[Decides, type[Rule]] = {"distance": Distance, "evidence": ByEvidence, "sets": BySets}
_NOBODYS = KeyedNoise(bytes(32))  # where nothing that counts is decided

PAIRED = frozenset({"compare", "gate-compare", "guarded-compare"})
"""Names of the ways that ask about the difference of two models."""


class Ways:
    """The ways to ask, each made when it is used.

    Parameters
    ----------
    plan : Plan
    noise : KeyedNoise, optional
        The guard's. Without it the ways can be verified, and decide nothing that counts.
    """

    def __init__(self, plan: Plan, noise: KeyedNoise = _NOBODYS) -> None:
        self.plan, self.noise = plan, noise

    @cached_property
    def check(self) -> Check:
        """Comparison of one model with a prior."""
        return self._check(self.plan.scores, "check")

    @cached_property
    def compare(self) -> Check:
        """Comparison of the difference of two models with a prior."""
        return self._check(self.plan.pairs, "compare")

    @cached_property
    def gate(self) -> Gate:
        """Gate of one model."""
        return self._gate(self.plan.scores, "gate")

    @cached_property
    def gate_compare(self) -> Gate:
        """Gate of the difference of two models."""
        return self._gate(self.plan.pairs, "gate-compare")

    @cached_property
    def guarded_gate(self) -> GuardedGate:
        """Gate of one model, with guardrails."""
        return GuardedGate(self.gate, "guarded-gate")

    @cached_property
    def guarded_compare(self) -> GuardedGate:
        """Gate of the difference of two models, with guardrails."""
        return GuardedGate(self.gate_compare, "guarded-compare")

    @cached_property
    def reveal(self) -> Reveal:
        """Reveal of a value's cell."""
        return Reveal(self.plan.told, "reveal", self.noise, by_rows=self.plan.reveals_by_rows)

    @cached_property
    def choose(self) -> Choose:
        """Choice of the best of several."""
        return Choose(self.plan.told, "choose", self.noise, by_rows=self.plan.reveals_by_rows)

    @cached_property
    def final(self) -> Final:
        """Certified end."""
        return Final(self.plan.told, "final", self.plan.prior_error / self.plan.span)

    @cached_property
    def claim(self) -> Claims:
        """Claim of one of many series."""
        return Claims(self.plan.scores, "claim", self.noise)

    @property
    def main(self) -> Check:
        """Way that the plan's charges are for."""
        if self.plan.asks == "all":
            return self.check
        return self.gate if self.plan.asks == "gates" else self.claim

    def named(self, name: str) -> Way | None:
        """Return the way of this name; None if the plan has none."""
        way: Way | None = getattr(self, name.replace("-", "_")) if name in self._names else None
        return way

    @property
    def _names(self) -> set[str]:
        if self.plan.final_share == 1.0:
            return {"final"}
        told = {"reveal", "choose", *(["final"] if self.plan.final_share else [])}
        gates = {"gate", "gate-compare", "guarded-gate", "guarded-compare"}
        return (
            told | {"all": gates | {"check", "compare"}, "gates": gates, "claims": {"claim"}}[self.plan.asks]
        )

    def _check(self, certificate: Certificate, name: str) -> Check:
        return Check(certificate, name, self.noise, _RULES[certificate.decides](certificate))

    def _gate(self, certificate: Certificate, name: str) -> Gate:
        gates = self.plan.gates(certificate)
        return Gate(gates, name, self.noise, _RULES[gates.decides](gates, gate=True))
