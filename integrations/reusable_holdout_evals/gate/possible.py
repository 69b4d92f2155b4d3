"""What a gate of so many rows can show, in plain words: before anyone hopes for more."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from reusable_holdout.plan import Plan

__all__ = ["Possible", "what_is_possible"]

_LIKELY = (
    1.645  # standard errors of the difference; a release so much better passes at least nine times in ten
)


class Possible(NamedTuple):
    """What a gate can show.

    Attributes
    ----------
    rows : int
        Groups, if there are some.
    queries, charges : int
        Releases that can be asked about, and accepted.
    shown : float
        Smallest improvement to name so that what is accepted is certified to be better at all.
    needed : float
        How much better a release must truly be to be accepted then at least nine times in ten.
    fixed : float
        The same as `shown` of one release alone, fixed in advance.
    """

    rows: int
    queries: int
    charges: int
    shown: float
    needed: float
    fixed: float

    def record(self) -> dict[str, Any]:
        """For programs."""
        return self._asdict()

    def __str__(self) -> str:
        accepted = "1 release" if self.charges == 1 else f"{self.charges:,} releases"
        return "\n".join(
            [
                f"What {self.rows:,} rows can show",
                f"  {accepted} can be accepted, of {self.queries:,} that can be asked about",
                f"  to certify that what is accepted is better at all, name an improvement of {self.shown:.3g} or more",
                f"  a release passes that nine times in ten if it is truly better by {self.needed:.3g}",
                f"  what is truly better by less than {self.shown:.3g} is mostly rejected: it may still be better",
                f"  (one single comparison, fixed in advance, would certify from {self.fixed:.3g} on)",
            ]
        )


def what_is_possible(plan: Plan) -> Possible:
    """What a gate can show, by its plan of differences.

    `shown` is the plan's tolerance. Beyond it a release needs 1.645 standard errors of its measured difference, at the
    spread that was guessed, or the largest there is.

    Parameters
    ----------
    plan : Plan
        Of differences, of policy "gate".
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
