"""The transcript code: what one adaptively chosen question costs in nats of description length.

The analyst's i-th question is a function of the charged answers before it, because agreements return what she already
had. The questions she could ever ask therefore form a tree, fixed before the holdout is drawn once her strategy and the
noise are. A union bound over the nodes of this tree holds for any node weights that sum to at most one: at every node
``w`` the population value lies in the confidence set of level ``beta * w``, all nodes at once with probability at least
``1 - beta``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.deferred import special
from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FAILURE_NATS", "PLANNED_NATS_PER_CHARGE", "TranscriptCode", "ValueCode"]

PLANNED_NATS_PER_CHARGE = 1.2
"""Description length a plan sets aside for one charged value; the guard counts what each value really costs."""

_INNER_MASS = 0.04
_FAILURE_MASS = 0.03
_OUTER_MASS = 1.0 - _INNER_MASS - _FAILURE_MASS
_OVERFIT_SHARE = 0.8
_HEAVY_SHARE = 0.1

FAILURE_NATS = -math.log(_FAILURE_MASS)
"""Description length of "this failed on the holdout", which is an answer too."""


@dataclass(frozen=True)
class TranscriptCode:
    """Description length of the history that leads to a question.

    The weights ``exp(-length)`` of all questions an analyst could ever ask sum to at most one, whatever her strategy,
    as long as each charged value is priced by a :class:`ValueCode` fixed before the value is released.

    Parameters
    ----------
    queries : int or None
        Declared number K of questions, at least 1. ``None``: no number was declared, and a question's index and
        positions cost ``ln(i (i + 1)) + ln C(i - 1, j)``.
    charges : int or None
        Charges C after which no question is answered, at least 1. ``None``: no number was declared, and j charges
        cost ``(j + 1) ln 2``.

    Notes
    -----
    For the i-th question after j charges (counted before the batch in which it is asked) whose values cost ``nats``::

        L(i, j) = ln C(K, j + 1) + ln(1/p_j) + nats,    p_0 = 1/2,  p_j = 1 / (2 (C - 1)) for j = 1 .. C - 1

    *Kraft.* Fix j. A node is the question's index i and the positions of the j charges, a subset of the first i - 1
    questions; together they are a subset of j + 1 of the K questions, of which i is the last, so there are at most
    C(K, j + 1) of them, and the values given the positions have weights that sum to at most one. So the nodes of j
    weigh at most ``p_j``. The start of the batch does not appear: an analyst can let it depend on the answers, and
    ``C(start, j)`` would then overfill the sum. All nodes of one j weigh the same, so that no question is dearer for
    being late; that is ``ln(j + 1)`` less for the last question than paying ``ln K`` for its index and
    ``ln C(K - 1, j)`` for the positions.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "Generalization in Adaptive Data Analysis and Holdout
       Reuse", section 3 (description length).

    Examples
    --------
    >>> code = TranscriptCode(queries=1000, charges=5)
    >>> round(code.length(query=1000, charges=0), 3) == round(math.log(1000) + math.log(2), 3)
    True
    """

    queries: int | None = None
    charges: int | None = None

    def __post_init__(self) -> None:
        for name, number in (("queries", self.queries), ("charges", self.charges)):
            if number is not None and number < 1:
                msg = (
                    f"{name} must be at least 1 or None, got {number}; declare how many there will be at most"
                )
                raise InputError(msg)

    def length(self, *, query: int, charges: int, nats: float = 0.0) -> float:
        """Nats of the ``query``-th question (from 1) after ``charges`` charges whose values cost ``nats``.

        More charges than were declared cost as if so many had been.
        """
        if query < 1 or not 0 <= charges < query:
            msg = (
                f"query must be at least 1 and charges in [0, query), got query={query} and charges={charges}"
            )
            raise InputError(msg)
        if self.queries is not None and query > self.queries:
            msg = f"query must be at most the declared {self.queries}, got {query}"
            raise InputError(msg)
        if self.queries is None:
            place = math.log(query) + math.log(query + 1) + _log_choose(query - 1, charges)
        else:
            place = _log_choose(self.queries, charges + 1)
        return place + self._number_of_charges(charges) + nats

    def lengths(self, *, first: int, count: int, charges: int, nats: float = 0.0) -> NDArray[np.float64]:
        """Nats of ``count`` questions of one batch that starts at question ``first``; shape (count,)."""
        self.length(query=first, charges=charges)  # refuses more charges than there were questions before
        last = self.length(query=first + count - 1, charges=charges, nats=nats)
        if self.queries is not None:
            return np.full(count, last)
        query = np.arange(first, first + count, dtype=np.float64)
        index = np.log(query) + np.log(query + 1.0)
        positions = (
            special.gammaln(query) - math.lgamma(charges + 1) - special.gammaln(query - charges)
            if charges
            else 0.0
        )
        return np.asarray(index + positions + self._number_of_charges(charges) + nats, dtype=np.float64)

    def _number_of_charges(self, charges: int) -> float:
        if self.charges is None:
            return (charges + 1) * math.log(2.0)
        return math.log(2.0) + (math.log(max(self.charges - 1, charges)) if charges else 0.0)


def _log_choose(whole: int, chosen: int) -> float:
    if not 0 < chosen < whole:
        return 0.0
    if chosen == 1:
        return math.log(whole)
    return math.lgamma(whole + 1) - math.lgamma(chosen + 1) - math.lgamma(whole - chosen + 1)


@dataclass(frozen=True)
class ValueCode:
    """Description length of one charged value, told as a cell of an answer grid, given the prior it departed from.

    The weights ``exp(-nats)`` of cells that do not overlap, and of a failure, sum to at most one, on any grid.

    Parameters
    ----------
    threshold : float
        Threshold of the question, in the metric's unit, > 0.
    overfitting : float
        Share of the overfitting side, in [0, 1]: below the prior for scores, above it for losses. 1 where the metric's
        bounds leave no room on the other side, 0 where they leave none on this.

    Notes
    -----
    A cell's weight is what a distribution over deviations gives it, and the distribution depends on public numbers
    only: that is the whole proof. With T the threshold it has 0.03 for questions that fail on the holdout, 0.04 evenly
    on deviations below T (possible, because the answer has noise of its own), and 0.93 beyond, divided between the
    sides, on each of which a deviation d > T is exceeded with probability ``0.9 * 2 ** (1 - d / T) + 0.1 T / d``.

    The first part halves with every threshold. The second costs every charge 0.1 nats, and makes one prior that is far
    off cost two logarithms of its distance: 10 nats instead of 28 at forty thresholds.

    The cells at the ends of a grid reach to infinity.

    Examples
    --------
    >>> code = ValueCode(threshold=0.02)
    >>> code.nats(0.02, 0.04) < code.nats(-0.04, -0.02) < code.nats(-0.02, 0.0)
    True
    """

    threshold: float
    overfitting: float = _OVERFIT_SHARE

    def nats(self, low: float, high: float) -> float:
        """Cost of a cell of deviations from `low` to `high`, in the metric's unit, positive on the overfitting side."""
        inner = max(0.0, min(high, self.threshold) - max(low, -self.threshold)) / (2.0 * self.threshold)
        outer = self.overfitting * self._beyond(low, high) + (1.0 - self.overfitting) * self._beyond(
            -high, -low
        )
        return -math.log(_INNER_MASS * inner + _OUTER_MASS * outer)

    def _beyond(self, low: float, high: float) -> float:
        """Weight of the deviations of one side that lie between `low` and `high` and beyond the threshold."""
        near, far = max(low / self.threshold, 1.0), high / self.threshold
        if far <= near:
            return 0.0
        halving = math.exp2(1.0 - near) * -math.expm1(-math.log(2.0) * (far - near))
        return (1.0 - _HEAVY_SHARE) * halving + _HEAVY_SHARE * (1.0 - near / far) / near
