"""The adaptive code, which prices every outcome by the public history before it, and comparisons of past questions.

The code counts how often each outcome has occurred in the same public context. If few teams are charged, and early, it
is far cheaper than the transcript code, which gives each position of a charge the same weight.

Two questions about one set of rows are compared by their released answers: nothing new is asked. The answers confine
the difference of the two holdout values. The number of rows that can differ is public, because rows for which both
submissions predict the same value contribute nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from reusable_holdout.errors import InputError

_ROUNDING = 1e-9  # nats, and rows: both sides of a comparison are sums of a few logarithms


@dataclass(frozen=True)
class AdaptiveCode:
    """The description length of a history in which every outcome has a price, "agreed" too.

    Parameters
    ----------
    queries : int
        Declared number K of questions.
    final_share : float
        Share phi of the failure probability that is kept for the final, in [0, 1).

    Notes
    -----
    When all outcomes so far, up to the start of the batch, cost ``nats``::

        question   ln K + nats + ln(1/(1 - phi))
        final      nats + ln(1/phi)

    *Kraft.* Fix an index i below K + 1. Before the rows are read, each question of the strategy has outcomes whose
    weights, conditional on the public history, sum to at most one. Take the histories before the batch that holds
    i: they are prefixes in one tree, and none continues another. So, by induction, they weigh at most one together.
    There are K indices. A final is called where the strategy says so: again no such history continues another.
    """

    queries: int
    final_share: float

    def length(self, *, query: int, charges: int, nats: float = 0.0) -> float:
        """Return the description length of a question, in nats; `nats` has the cost of all outcomes, charges too."""
        return math.log(self.queries) + nats - math.log1p(-self.final_share)

    def final_length(self, *, charges: int, nats: float = 0.0, last_charge: int | None = None) -> float:
        """Return the description length of a final, in nats; infinite if no share is kept for one."""
        return nats - math.log(self.final_share) if self.final_share else math.inf


class Priced(NamedTuple):
    """The counts of one context, which give its outcomes their weights.

    Attributes
    ----------
    begun : mapping of str to float
        Count of each outcome at the beginning; public, and above 0.
    seen : Counter of str
        Number of times that each outcome was released.
    """

    begun: Mapping[str, float]
    seen: Counter[str]

    def nats(self, told: str) -> float:
        """Return the cost of an outcome, in nats."""
        total = sum(self.begun.values()) + self.seen.total()
        return math.log(total / (self.begun[told] + self.seen[told]))


class Estimator:
    """Krichevsky and Trofimov's estimator of outcomes in public contexts.

    References
    ----------
    .. [1] Krichevsky and Trofimov (1981), "The performance of universal encoding", IEEE Transactions on Information
       Theory 27.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, Counter[str]] = {}

    def at(self, context: Hashable, begun: Mapping[str, float]) -> Priced:
        """Return the current counts of a context; `begun` must be the same at every call."""
        return Priced(begun, Counter(self._seen.get(context)))

    def count(self, context: Hashable, told: str) -> None:
        """Count an outcome in a context."""
        self._seen.setdefault(context, Counter())[told] += 1


# ---- pairs


def paired_length(*, queries: int, question: int, nats: float) -> float:
    """Return the description length of a pair of questions, charged at the later one.

    It pays for naming the later question, the earlier question, and the better of the two.

    Parameters
    ----------
    queries : int
        Declared number K of questions.
    question : int
        Number of the later question, from 2.
    nats : float
        Cost of all outcomes that were released before the later question, all of them priced.

    Raises
    ------
    InputError
        If there is no earlier question.

    Notes
    -----
    ``ln K + nats + ln(i - 1) + ln 2`` for the i-th question. *Kraft.* Fix i: the histories before it weigh at most one
    together, at each of them there are i - 1 earlier questions, and either of the two may seem the better; and there
    are K indices. The certified statement depends on the later question's outcome, too, but only through a number that
    the holdout's difference reaches. That it reaches the smallest sufficient number is one event for all outcomes.

    Examples
    --------
    >>> round(paired_length(queries=10_000, question=501, nats=20.0), 2)
    36.12
    """
    if not 2 <= question <= queries:
        raise InputError(
            f"the later question of a pair must be one of 2 to {queries}; got {question}; name the later one"
        )
    return math.log(queries) + nats + math.log(question - 1) + math.log(2.0)


def lead_nats(lead: float, differing: int) -> float:
    """Return the evidence, in nats, that the model with the larger sum is better in the population.

    If it were not better, it would lead by this much with probability at most ``exp(-nats)``.

    Parameters
    ----------
    lead : float
        A lower bound of the sum, over the rows, of its advantage in loss or score; each row's is in [-1, 1].
    differing : int
        Number of rows that can have an advantage: on all other rows both models predict the same.

    Returns
    -------
    float
        The evidence in nats; 0 if there is no lead.

    Notes
    -----
    With m rows that differ and a lead of s, ``m kl((1 + s/m) / 2, 1/2)``: by Hoeffding's theorem 1 for independent
    terms, of whatever distributions, whose expectations sum to at most 0. Which rows differ is fixed by the features:
    given these, labels are independent draws.

    References
    ----------
    .. [1] Hoeffding (1963), Theorem 1, inequality (2.1).

    Examples
    --------
    >>> round(lead_nats(60, 400), 2), round(lead_nats(60, 4_000), 2), lead_nats(-3, 400)
    (4.52, 0.45, 0.0)
    """
    if differing <= 0:
        return 0.0
    share = min(max(lead - _ROUNDING, 0.0) / differing, 1.0)
    right, wrong = (1.0 + share) / 2.0, (1.0 - share) / 2.0
    entropy = right * math.log(2.0 * right) + (wrong * math.log(2.0 * wrong) if wrong > 0.0 else 0.0)
    return max(0.0, differing * entropy - _ROUNDING)
