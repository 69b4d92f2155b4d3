"""What each policy tells at a charge, and what that costs at most: all that a plan needs to know of it."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

from reusable_holdout.validity.outcome_code import StepCode
from reusable_holdout.validity.theory import THEORY, ClaimCode, Shares, Theory

__all__ = ["BY_DISTANCE", "LADDERS", "Policy", "PolicyCode", "parameter_free_step", "policy_code"]

Policy: TypeAlias = Literal[
    "thresholdout", "ladder", "guess-and-check", "gate", "parameter-free-ladder", "claims"
]

LADDERS: frozenset[Policy] = frozenset({"ladder", "parameter-free-ladder"})
"""Policies whose prior is the best score so far."""

BY_DISTANCE: frozenset[Policy] = LADDERS | {"claims"}
"""Policies that a distance decides, of any metric: never the rows' own evidence."""


class PolicyCode(NamedTuple):
    """Public numbers of a policy.

    Attributes
    ----------
    charge_nats : float
        What the dearest charge costs; of a gate what a "yes" does.
    shares : Shares
        How the sides of an interval divide a question's failure probability.
    """

    charge_nats: float
    shares: Shares


def policy_code(
    policy: Policy, *, places: float, by_evidence: bool = False, theory: Theory = THEORY
) -> PolicyCode:
    """Look up a policy's public numbers.

    Parameters
    ----------
    policy : {"thresholdout", "ladder", "guess-and-check", "gate", "parameter-free-ladder", "claims"}
    places : float
        Of a ladder: how many of its smallest steps the metric's range has. Of claims: how many are declared.
    by_evidence : bool
        Whether the rows' evidence decides.
    theory : Theory
    """
    if policy in LADDERS:
        return PolicyCode(StepCode(max(1, math.ceil(places)), theory.steps_failed).worst, Shares(0.5, 0.5))
    if policy == "claims":
        return PolicyCode(dearest_claim(round(places), theory.claims), Shares(0.5, 0.5))
    if policy == "gate":
        return PolicyCode(theory.gate.nats[0], Shares(1.0, 1.0))
    dearest = max(theory.charge.worst, theory.spans.worst)  # of any metric of the rows
    return PolicyCode(dearest, theory.by_evidence if by_evidence else theory.scores)


def dearest_claim(claims: int, code: ClaimCode) -> float:
    """Nats of the dearest outcome that one of so many claims can have."""
    begun = code.stands + len(THEORY.charge.cells) * code.charge + code.failed + 2.0 * sum(code.measured)
    return math.log((claims + begun) / code.failed)


def parameter_free_step(rows: int) -> float:
    """Largest step that a parameter-free ladder can take, as a fraction of the metric's range: ``1/sqrt(rows)``.

    It is public: its own step, the standard error of a mean difference, depends on the rows and is never told.
    """
    return 1.0 / math.sqrt(rows)
