"""How many charges are left, and whose they are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reusable_holdout.ledger import Row

__all__ = ["Allowance"]


class Allowance(NamedTuple):
    """Charges of a plan: of everybody together, or of each series of claims.

    Attributes
    ----------
    charges : int
    of_each : bool
    """

    charges: int
    of_each: bool

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Self:
        """Allowance of a plan's record."""
        return cls(min(plan["charges"], plan["queries"]), plan["policy"] == "claims")

    def left(self, charges: int) -> int:
        """Charges that are left after so many; a promise, whatever was told."""
        return max(0, self.charges - charges)

    def left_after(self, rows: Sequence[Row]) -> list[int]:
        """Charges that whoever asked has left after each answer."""
        if not self.of_each:
            return [self.left(row.charges) for row in rows]
        made: Counter[tuple[int, str]] = Counter()
        found = []
        for row in rows:
            made[row.view, row.series] += row.charged
            found.append(self.left(made[row.view, row.series]))
        return found
