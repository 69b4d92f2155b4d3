"""Outcomes as people read them, and the charges that an asker has left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reusable_holdout.answer import Outcome as Word
from reusable_holdout.ledger import Row
from reusable_holdout.ways.told import CELL, FAILED, MEASURED, NO, NOT_CERTIFIED, SPAN, YES, Told

__all__ = ["Allowance", "failed", "outcome_word"]

_WORDS: dict[str, Word] = {
    "agreed": "agreed",
    CELL: "corrected",
    SPAN: "corrected",
    YES: "better",
    NO: "not shown",
    MEASURED: "measured",
    NOT_CERTIFIED: "not certified",
    FAILED: "failed",
}
_OF_WAYS: dict[str, Word] = {"reveal": "revealed", "choose": "chosen", "final": "final"}


def failed(row: Row) -> bool:
    """Return True if a row records that the analyst's code failed on the holdout: it has no value to certify."""
    told = Told.parse(row.told)
    return told is not None and told.failed


def outcome_word(kind: str, told: Told) -> Word:
    """Return the outcome of an answer, in the vocabulary of answers."""
    return "failed" if told.failed else _OF_WAYS.get(kind) or _WORDS[told.word]


class Allowance(NamedTuple):
    """Charges of a plan: of everybody together, or of each series of claims."""

    charges: int
    of_each: bool

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Allowance:
        """Return the allowance of a plan's record."""
        return cls(min(plan["charges"], plan["queries"]), plan["asks"] == "claims")

    def left(self, charges: int) -> int:
        """Return the charges that are left after so many; a promise, whatever was told."""
        return max(0, self.charges - charges)

    def left_after(self, rows: Sequence[Row]) -> list[int]:
        """Return the charges that the asker has left after each answer."""
        if not self.of_each:
            return [self.left(row.charges) for row in rows]
        made: Counter[tuple[int, str]] = Counter()
        found = []
        for row in rows:
            made[row.view, row.series] += row.charged
            found.append(self.left(made[row.view, row.series]))
        return found
