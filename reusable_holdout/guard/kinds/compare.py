"""Compare: the same questions about the difference of two models, new less old, on the same rows.

Certificate, prior and score are those of differences; which question it is, the guard's policy says.
"""

from __future__ import annotations

from typing import ClassVar

from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.gate import Gate
from reusable_holdout.guard.kinds.guess_and_check import GuessAndCheck

__all__ = ["Compare", "GateCompare", "GuessAndCompare"]


class Compare(Check):
    """A check of the difference of two models."""

    name: ClassVar[str] = "compare"


class GateCompare(Gate):
    """A gate on the difference of two models: whether the new one is better by what was named."""

    name: ClassVar[str] = "gate-compare"


class GuessAndCompare(GuessAndCheck):
    """Guess and check of the difference of two models."""

    name: ClassVar[str] = "guess-and-compare"
