"""Final whose interval is the set of means that the rows' evidence leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from reusable_holdout.guard.kinds.final import Final
from reusable_holdout.guard.kinds.kind import FAILED, Outcome, Terms
from reusable_holdout.queries import GRID
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds.exam import MeasuredBoth

__all__ = ["EvidenceFinal", "MeasuredRows"]


class MeasuredRows(NamedTuple):
    """What such a final measures: the score, the rows' terms on the grid, and their weights over the largest."""

    score: int
    terms: NDArray[np.int64]
    weights: NDArray[Any] | None


class _Told(NamedTuple):
    """An outcome in parts."""

    value: float
    low: float
    high: float

    @classmethod
    def parse(cls, told: str) -> Self:
        word, value, within, low, high = told.split(" ")
        if (word, within) != ("value", "within"):
            raise ValueError
        return cls(float(value), float(low), float(high))

    def text(self) -> str:
        return f"value {self.value!r} within {self.low!r} {self.high!r}"


class EvidenceFinal(Final):
    """Tell the holdout's value, and the interval that its rows leave: as narrow as they spread little.

    The interval depends on the rows in any way, and is told with the value: a final may show it, for nothing is asked
    afterwards that it could help. Both ends are rounded outwards.
    """

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "failed", or the value and its interval."""
        if told == FAILED:
            return super().outcome(told, terms)
        certificate = self.certificate
        try:
            parts = _Told.parse(told)
        except ValueError:
            raise self.unknown(told) from None
        if not certificate.lower <= parts.low <= parts.value <= parts.high <= certificate.upper:
            raise self.unknown(told)
        return Outcome(parts.text(), parts.value, False, 0.0)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """The interval that was told."""
        if outcome.told == FAILED:
            return super().interval(outcome, terms, length)
        parts = _Told.parse(outcome.told)
        return Interval(parts.low, parts.high)

    def decide(
        self,
        measured: MeasuredBoth | MeasuredRows | int | None,
        question: bytes,
        *,
        length: float = 0.0,
        answers: int = 1,
    ) -> Outcome:
        """Tell both; None if the model or metric failed on the holdout."""
        if measured is None:
            return self.outcome(FAILED, Terms(0.0, 0.0))
        certificate, rows = self.certificate, cast("MeasuredRows", measured)
        low, high = certificate.final_set(length).of_rows(rows.terms / GRID, rows.weights)
        value = certificate.tidy(certificate.lower + rows.score / GRID * certificate.span)
        slack = certificate.grid_slack
        ends = (certificate.lower + end * certificate.span for end in (low, high))
        least, most = (
            min(max(end, certificate.lower), certificate.upper)
            for end in (next(ends) - slack, next(ends) + slack)
        )
        return self.outcome(_Told(value, min(least, value), max(most, value)).text(), Terms(0.0, 0.0))
