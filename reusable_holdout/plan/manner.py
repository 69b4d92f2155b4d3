"""What goes together in a plan: policy, mechanism, family, and what is kept for the final."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from reusable_holdout.errors import InputError
from reusable_holdout.plan.numbers import checked_exam, choice
from reusable_holdout.validity import BY_DISTANCE, Policy

__all__ = ["BY_ROWS", "Family", "MechanismChoice", "checked_exam_of", "checked_manner"]

Family: TypeAlias = Literal["binomial", "mean", "bounded", "bounded-difference", "paired", "ratio"]
BY_ROWS: frozenset[Family] = frozenset({"mean", "paired", "ratio"})
"""Families whose rows decide, by their evidence."""

MechanismChoice: TypeAlias = Literal[
    "numeric-sparse", "standard-svt", "target-charging", "noiseless", "tightest"
]

_FOR_NOISE = frozenset({"standard-svt", "target-charging", "tightest"})


def checked_exam_of(family: Family, exam: float | None, final_noise: float, rows: int | None) -> float:
    """Rows, or their share, that are kept for the final of so many; 0 without an exam.

    Raises
    ------
    InputError
        If it is no such number, or does not go with the rest of the plan.
    """
    kept = checked_exam(exam)
    if kept and (final_noise or family == "paired"):
        raise InputError(
            "an exam goes with a final without noise, of a model's own score; got exam= and "
            f"{'final_noise=' if final_noise else 'family=paired'}; leave one of them out"
        )
    if final_noise and family == "ratio":
        raise InputError(f"the final of a ratio has no noise; got final_noise={final_noise!r}; leave it out")
    if rows is not None and kept >= rows:
        raise InputError(f"an exam of {kept:,.0f} of {rows:,} rows leaves none to ask; keep fewer")
    return kept


def checked_manner(
    family: Family,
    mechanism: MechanismChoice,
    policy: Policy,
    *,
    threshold: float | None,
    noise_scale: float | None,
    comparison_noise: float | None,
    spread: float | None,
) -> MechanismChoice:
    """Mechanism of a policy; refuses what does not go together."""
    choice("family", family, get_args(Family))
    choice("mechanism", mechanism, get_args(MechanismChoice))
    choice("policy", policy, get_args(Policy))
    if policy == "parameter-free-ladder":
        mechanism = _without_noise(mechanism, family, threshold)
    if policy == "claims":
        mechanism = _of_claims(mechanism, threshold)
    if mechanism == "noiseless" and (noise_scale or comparison_noise):
        stated = noise_scale or comparison_noise
        raise InputError(f"without noise its scale is 0 or left out; got {stated!r}; leave it out")
    if policy == "gate" and threshold is not None:
        raise InputError(f"a gate has no threshold, but names a score; got {threshold!r}; leave it out")
    if family == "ratio" and (policy in BY_DISTANCE or threshold or noise_scale or mechanism in _FOR_NOISE):
        raise InputError(
            "a ratio is decided by its rows' evidence, without noise or a threshold, not by a ladder or claims; got "
            f"policy={policy!r}, threshold={threshold!r}, noise_scale={noise_scale!r}, mechanism={mechanism!r}; leave "
            "them out, or use family 'bounded-difference'"
        )
    if spread is not None and family not in BY_ROWS:
        raise InputError(
            "spread is a guess of how much the rows of a mean of graded losses differ; that of 0/1 losses follows from "
            f"the estimate, and other metrics have none; got spread={spread!r}; leave it out"
        )
    return mechanism


def _of_claims(mechanism: MechanismChoice, threshold: float | None) -> MechanismChoice:
    """Mechanism of claims, whose threshold follows from how far honest ones are off."""
    if threshold is not None:
        raise InputError(
            f"claims may be off by four standard deviations of an honest one; got threshold={threshold!r}; leave it "
            "out, and name prior_error="
        )
    if mechanism not in {"numeric-sparse", "noiseless"}:  # the default, or what it is
        raise InputError(f"claims are decided without noise; got mechanism {mechanism!r}; leave it out")
    return "noiseless"


def _without_noise(mechanism: MechanismChoice, family: Family, threshold: float | None) -> MechanismChoice:
    """Mechanism of a parameter-free ladder, which leaves no choice: its step is a standard error of the rows."""
    if threshold is not None:
        raise InputError("a parameter-free ladder chooses its own step; got threshold; leave it out")
    if mechanism not in {"numeric-sparse", "noiseless"}:  # the default, or what it is
        raise InputError(f"a parameter-free ladder has no noise; got mechanism {mechanism!r}; leave it out")
    if family not in {"binomial", "mean", "bounded"}:
        raise InputError(
            "a parameter-free ladder compares losses row by row, of a metric that is a plain mean over rows; got "
            f'family {family!r}; use accuracy or a mean loss, or policy="ladder"'
        )
    return "noiseless"
