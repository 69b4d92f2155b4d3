"""The differences that a gate of so many rows can show, in plain words: to be read before anyone hopes for more."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from reusable_holdout.plan import Plan

__all__ = ["Possible", "what_is_possible"]

_LIKELY = 1.645  # standard errors: a normal variable stays above minus so many with probability 0.95


class Possible(NamedTuple):
    """The differences that a gate can show.

    Attributes
    ----------
    rows : int
        Rows, or groups if there are some.
    queries, charges : int
        Releases that can be asked about, and accepted.
    shown : float
        Smallest improvement to name so that an accepted release is certified to be better at all.
    needed : float
        True improvement with which a release is accepted at least nine times in ten.
    fixed : float
        The same as `shown` for a single comparison that is fixed in advance.
    """

    rows: int
    queries: int
    charges: int
    shown: float
    needed: float
    fixed: float

    def record(self) -> dict[str, Any]:
        """Return the numbers for programs."""
        return self._asdict()

    def __str__(self) -> str:
        accepted = "1 release" if self.charges == 1 else f"{self.charges:,} releases"
        return "\n".join(
            [
                f"What {self.rows:,} rows can show",
                f"  {accepted} can be accepted, of {self.queries:,} that can be asked about",
                f"  name an improvement of {self.shown:.3g} or more: then what is accepted is certified to be better",
                f"  a release that is truly better by {self.needed:.3g} is accepted nine times in ten",
                f"  a release that is truly better by less than {self.shown:.3g} is mostly rejected",
                f"  (a single comparison, fixed in advance, would certify from {self.fixed:.3g} on)",
            ]
        )


def what_is_possible(plan: Plan) -> Possible:
    """Return the differences that a gate can show.

    Parameters
    ----------
    plan : Plan
        Plan of differences, of policy "gate". Its tolerance is the improvement to name; a release needs 1.645 standard
        errors more, at the spread that was guessed, or else at the largest possible spread.
    """
    spread = plan.span / 2.0 if plan.stated_spread is None else plan.stated_spread
    return Possible(
        rows=plan.rows,
        queries=plan.queries,
        charges=plan.charges,
        shown=plan.tolerance,
        needed=plan.tolerance + _LIKELY * spread / math.sqrt(plan.rows),
        fixed=plan.one_look,
    )
