"""The table of all ways to ask about one metric of the rows, as its plan allows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from reusable_holdout.certainty import Certificate, Decides
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.plan import Plan
from reusable_holdout.rules import Distance
from reusable_holdout.rules.evidence import ByEvidence
from reusable_holdout.rules.sets import BySets
from reusable_holdout.ways import TOLD_WORDS, State, Told, Way
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.claim import Claims
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.gate import Gate, GuardedGate
from reusable_holdout.ways.reveal import Choose, Reveal

_RULES: dict[Decides, type[Distance]] = {"distance": Distance, "evidence": ByEvidence, "sets": BySets}
_NOBODYS = KeyedNoise(bytes(32))  # for verification, which decides nothing

PAIRED = frozenset({"compare", "gate-compare", "guarded-compare"})
"""Names of the ways that ask about the difference of two models."""


class Ways:
    """The ways to ask, each made when it is used: `reveal`, `gate_compare` and so on.

    Parameters
    ----------
    plan : Plan
    noise : KeyedNoise, optional
        The guard's noise. Without it the ways serve for verification alone: their decisions do not count.
    since : State, optional
        For rows that were added later, and of which nothing was told before: the state when they were.
    """

    check: Check
    compare: Check
    gate: Gate
    gate_compare: Gate
    reveal: Reveal
    choose: Choose
    final: Final
    claim: Claims

    def __init__(self, plan: Plan, noise: KeyedNoise = _NOBODYS, since: State | None = None) -> None:
        self.plan, self.noise, self.since = plan, noise, since

    def __getattr__(self, attribute: str) -> Any:
        name = attribute.replace("_", "-")
        if name not in WAYS:
            raise AttributeError(attribute)
        way = WAYS[name].make(self, name)
        setattr(self, attribute, way)
        return way

    @property
    def main(self) -> Check:
        """Way that the plan's charges are for."""
        if self.plan.asks == "all":
            return self.check
        return self.gate if self.plan.asks == "gates" else self.claim

    def named(self, name: str) -> Way | None:
        """Return the way of this name; None if the plan has none."""
        share = self.plan.final_share
        known = name in WAYS and self.plan.asks in WAYS[name].plans
        if name in PAIRED:  # only a mean over rows has differences
            known = known and self.plan.family not in {"ratio", "bounded-difference"}
        if self.since is not None:
            known = name == "final"
        if share in {0.0, 1.0}:  # no final, or nothing but one
            known = known and (name == "final") == (share == 1.0)
        return cast("Way", getattr(self, name.replace("-", "_"))) if known else None


class Line(NamedTuple):
    """A line of the table of ways.

    Attributes
    ----------
    make : callable
        Function of the ways of a plan and of a name, which makes the way.
    plans : tuple of {"all", "gates", "claims"}
        Purposes of the plans that have it.
    word : str
        `Answer.outcome` of all its answers; if it is empty, what was told decides.
    """

    make: Callable[[Ways, str], Way]
    plans: tuple[str, ...] = ("all", "gates", "claims")
    word: str = ""


def _check(certificate: Certificate, ways: Ways, name: str) -> Check:
    return Check(certificate, name, ways.noise, _RULES[certificate.decides](certificate))


def _gate(certificate: Certificate, ways: Ways, name: str) -> Gate:
    gates = ways.plan.gates(certificate)
    return Gate(gates, name, ways.noise, _RULES[gates.decides](gates, gate=True))


def _told(way: Callable[..., Way]) -> Callable[[Ways, str], Way]:
    return lambda ways, name: way(ways.plan.told, name, ways.noise, by_rows=ways.plan.reveals_by_rows)


_ALL, _GATES = ("all",), ("all", "gates")
WAYS: dict[str, Line] = {
    "check": Line(lambda ways, name: _check(ways.plan.scores, ways, name), _ALL),
    "compare": Line(lambda ways, name: _check(ways.plan.pairs, ways, name), _ALL),
    "gate": Line(lambda ways, name: _gate(ways.plan.scores, ways, name), _GATES),
    "gate-compare": Line(lambda ways, name: _gate(ways.plan.pairs, ways, name), _GATES),
    "guarded-gate": Line(lambda ways, name: GuardedGate(ways.gate, name), _GATES),
    "guarded-compare": Line(lambda ways, name: GuardedGate(ways.gate_compare, name), _GATES),
    "claim": Line(lambda ways, name: Claims(ways.plan.scores, name, ways.noise), ("claims",)),
    "reveal": Line(_told(Reveal), word="revealed"),
    "choose": Line(_told(Choose), word="chosen"),
    "final": Line(
        lambda ways, name: Final(ways.plan.told, name, ways.plan.prior_error / ways.plan.span, ways.since),
        word="final",
    ),
}
ON_REQUEST = tuple(name for name, line in WAYS.items() if line.word)
"""Names of the ways that release a value whenever they are asked; `Question.way` has the same names."""


def outcome_word(kind: str, told: Told) -> str:
    """Return the outcome of an answer, in the vocabulary of answers."""
    line = None if told.failed else WAYS.get(kind)
    return (line and line.word) or TOLD_WORDS[told.word]
