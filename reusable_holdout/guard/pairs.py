"""Who of two series on a board of claims is better for certain, by what was told of both; nothing new is asked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.validity import lead_nats, paired_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reusable_holdout.validity import Certificate

__all__ = ["Pairs", "Reached"]


class Reached(NamedTuple):
    """Where an answered claim says that the holdout's own value lies.

    Attributes
    ----------
    query : int
        Number of the answer.
    asked : int
        Which of the declared queries it was, from 1.
    low, high : float
        In the metric's unit.
    nats : float
        Of all that was told before it.
    """

    query: int
    asked: int
    low: float
    high: float
    nats: float


class Pairs:
    """Pairs of answered claims about one metric, a mean over rows.

    With probability at least ``1 - beta`` no pair of a board is ever certified the wrong way, whatever was sent, and
    whichever pairs are looked at: all of them hold together.

    Parameters
    ----------
    certificate : Certificate
        Of the guard's plan.
    beta : float
        Failure probability of all pairs together, beside that of the guard's intervals.
    read : callable
        What was told of answers, by their numbers.
    """

    def __init__(
        self,
        certificate: Certificate,
        beta: float,
        read: Callable[[Sequence[int]], list[Reached | None]],
    ) -> None:
        if not 0.0 < beta < 1.0:
            raise InputError(f"beta must be a probability above 0 and below 1; got {beta!r}; name another")
        self._certificate, self._beta, self._read = certificate, beta, read
        self._greater = certificate.greater_is_better

    def reached(self, queries: Sequence[int]) -> list[Reached | None]:
        """Where the holdout's own value lies by each of some answers; None of one that says nothing of it."""
        return self._read(queries)

    def apart(self, first: Reached, second: Reached) -> bool:
        """Whether the holdout's value of the first is the better for sure, be it by chance."""
        return first.low > second.high if self._greater else first.high < second.low

    def may_lead(self, first: Reached, second: Reached) -> bool:
        """Whether the first can be certified to be better, if the two differ on as few rows as they may."""
        lead = self._lead(first, second)
        return lead > 0 and self._suffices(first, second, lead, math.ceil(lead))

    def leads(self, first: Reached, second: Reached, differing: int) -> bool:
        """Whether the first is better for certain.

        Parameters
        ----------
        first, second : Reached
        differing : int
            Rows of which they predict different things.
        """
        lead = self._lead(first, second)
        return lead > 0 and self._suffices(first, second, lead, differing)

    def _suffices(self, first: Reached, second: Reached, lead: float, differing: int) -> bool:
        return lead_nats(lead, differing) >= self._needed(first, second)

    def _needed(self, first: Reached, second: Reached) -> float:
        """Nats that certify them: those of the later one's place."""
        later = max(first, second, key=lambda one: one.asked)
        nats = later.nats + self._certificate.told_before
        length = paired_length(queries=self._certificate.queries, question=max(later.asked, 2), nats=nats)
        return length - math.log(self._beta)

    def _lead(self, first: Reached, second: Reached) -> float:
        """Rows by which the holdout's value of the first is the better, at least."""
        certificate = self._certificate
        gap = (first.low - second.high if self._greater else second.low - first.high) / certificate.span
        return gap * certificate.bound.rows
