"""The adaptive code: every outcome, agreement too, is priced by what was public before it.

Where charges come from few askers, and early, a code that counts by public context is far cheaper than one that gives
every place of a charge the same weight.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from reusable_holdout.validity.theory import THEORY, Theory

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

__all__ = ["AdaptiveCode", "Estimator", "Priced"]


@dataclass(frozen=True)
class AdaptiveCode:
    """Description length of a history whose every outcome was priced, agreement included.

    Parameters
    ----------
    queries : int
        Declared number K of questions.
    theory : Theory
        Its `final_share` phi.

    Notes
    -----
    When all outcomes so far, up to the start of the batch, cost ``nats``::

        question   ln K + nats + ln(1/(1 - phi))
        final      nats + ln(1/phi) + ln m

    *Kraft.* Fix an index i below K + 1. Before the rows are read, each question of the strategy has outcomes whose
    weights, conditional on the public history, sum to at most one; so by induction the histories before the batch in
    which i lies, which are prefixes of one tree of which none continues another, weigh at most one together; and there
    are K indices. A final is called where the strategy says so: again prefixes of which none continues another.
    """

    queries: int
    theory: Theory = THEORY

    def length(self, *, query: int, charges: int, nats: float = 0.0) -> float:
        """Nats of a question; the number of charges has been paid with their outcomes."""
        return math.log(self.queries) + nats - math.log1p(-self.theory.final_share)

    def final_length(
        self, *, charges: int, nats: float = 0.0, answers: int = 1, last_charge: int | None = None
    ) -> float:
        """Nats of a final of several answers."""
        return nats - math.log(self.theory.final_share) + math.log(answers)


class Priced(NamedTuple):
    """Counts of one context, from which its outcomes have their weights.

    Attributes
    ----------
    begun : mapping of str to float
        What each outcome's count begins with; public, and above 0.
    seen : Counter of str
        How often each was told.
    """

    begun: Mapping[str, float]
    seen: Counter[str]

    def nats(self, told: str) -> float:
        """Cost of an outcome."""
        total = sum(self.begun.values()) + self.seen.total()
        return math.log(total / (self.begun[told] + self.seen[told]))


class Estimator:
    """Krichevsky and Trofimov's estimator of what will be told, in public contexts.

    References
    ----------
    .. [1] Krichevsky and Trofimov (1981), "The performance of universal encoding", IEEE Transactions on Information
       Theory 27.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, Counter[str]] = {}

    def at(self, context: Hashable, begun: Mapping[str, float]) -> Priced:
        """Counts of a context as they are now; `begun` is the same whenever it comes."""
        return Priced(begun, Counter(self._seen.get(context)))

    def count(self, context: Hashable, told: str) -> None:
        """Count what was told in a context."""
        self._seen.setdefault(context, Counter())[told] += 1
