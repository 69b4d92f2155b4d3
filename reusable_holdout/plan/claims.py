"""What a board of claims is likely to tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from reusable_holdout.validity import Theory

__all__ = ["ALLOWANCE", "check_follows", "honest_nats"]

ALLOWANCE = 2
"""Charges of each series, if no other number is stated."""

_LEADS = 2.0  # nats of a new lead, of which honest claims make about ln K


def check_follows(stated: float, derived: float) -> None:
    """Refuse a tolerance of claims that is not the one that follows.

    Raises
    ------
    InputError
        With the one that does.
    """
    if stated != derived:
        raise InputError(
            f"claims have no tolerance, for their intervals grow with what is told; got tolerance={stated!r}, and "
            f"{derived:g} is what a board of honest claims keeps; leave it out"
        )


def honest_nats(claims: int, theory: Theory) -> float:
    """Nats that so many honest claims are likely to tell: what stands, new leads, and what is off by chance."""
    code = theory.claims
    others = len(theory.charge.cells) * code.charge + code.failed
    stands = sum(
        math.lgamma(claims + end) - math.lgamma(end) - math.lgamma(claims + start) + math.lgamma(start)
        for start, end in [(code.stands, code.stands + others)]
        * 2  # of series with a claim that stood, and without
    )
    by_chance = math.erfc(code.reach / math.sqrt(2.0)) * claims
    return stands + _LEADS * math.log(claims) + by_chance * (math.log(claims) + _LEADS)
