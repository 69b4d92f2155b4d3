"""Reveal whose interval is as narrow as the rows spread little: with the cell it tells a width."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, cast

from reusable_holdout.guard.kinds.kind import FAILED, Outcome, State, Terms
from reusable_holdout.guard.kinds.reveal import Reveal
from reusable_holdout.validity import FactorCode, Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds.samples import Sample

__all__ = ["EvidenceReveal"]


class _Told(NamedTuple):
    """A cell, and how many steps its width is from the guessed one."""

    cell: str
    width: int

    @classmethod
    def parse(cls, told: str) -> Self | None:
        cell, _, width = told.partition(", width ")
        try:
            parts = cls(cell, int(width))
        except ValueError:
            return None
        return parts if parts.text() == told else None

    def text(self) -> str:
        return f"{self.cell}, width {self.width}"


class EvidenceReveal(Reveal):
    """Tell the cell of the holdout's value, and how far around it the set reaches that the rows' evidence leaves.

    Notes
    -----
    How far that is depends on all rows, so it is an outcome, too, and is paid for: as a factor of what rows of the
    guessed spread would leave, rounded up to a public grid. In its last cell nothing is said. Noise is added to the
    value alone: such reveals are for plans whose privacy says nothing, by themselves.
    """

    by_sample: ClassVar[bool] = True

    @property
    def widths(self) -> FactorCode:
        """Its widths."""
        return self.certificate.theory.widths

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "failed", or the cell and the width."""
        if told == FAILED:
            return super().outcome(told, terms)
        parts = _Told.parse(told)
        if parts is None or not -self.widths.below <= parts.width <= self.widths.above:
            raise self.unknown(told)
        cell = super().outcome(parts.cell, terms)
        return cell._replace(
            told=_Told(cell.told, parts.width).text(), nats=cell.nats + self.widths.nats(parts.width)
        )

    def least_nats(self) -> float:
        """Cost of the cheapest outcome."""
        return super().least_nats() + self.widths.nats(0)

    def worst_nats(self, candidates: int = 1) -> float:
        """Cost of the dearest outcome."""
        return super().worst_nats() + self.widths.worst

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval around the cell."""
        certificate, parts = self.certificate, _Told.parse(outcome.told)
        if parts is None or parts.width == self.widths.above:
            return Interval(certificate.lower, certificate.upper)
        low, high = self._reached(int(parts.cell.split()[1]), terms)
        around = self._guessed(terms, length) * self.widths.least(parts.width + 1)
        return Interval(max(low - around, certificate.lower), min(high + around, certificate.upper))

    def _guessed(self, terms: Terms, length: float) -> float:
        """How far beyond the cell the set reaches that rows of the guessed spread leave; in the metric's unit."""
        certificate = self.certificate
        guessed = certificate.likely_half_width(-float(certificate.log_level(length, 0.5)), terms.prior)
        covered = terms.threshold / 4.0  # on average by the cell, on the side where it covers less
        return max(guessed - covered, guessed / 2.0, certificate.grid_slack)

    # ---- rule

    def _named(
        self, measured: Sample | int | NDArray[np.int64], terms: Terms, question: bytes, state: State
    ) -> str:
        """Round a value with noise to its cell, and what the rows leave around the cell to its width."""
        certificate, sample, length = self.certificate, cast("Sample", measured), self.length(state)
        cell = self._told(self._noisy(self._resumed(State()), sample.score, question), terms)
        near, far = self._reached(int(cell.split()[1]), terms)
        ends = sample.ends(certificate.final_set(length, terms.prior))
        low, high = (certificate.lower + end * certificate.span for end in ends)
        needed = max(near - low, high - far) + certificate.grid_slack
        factor = needed / self._guessed(terms, length)
        least = self.widths.least(-self.widths.below)
        width = -self.widths.below if factor <= least else self.widths.place(factor)
        return _Told(cell, width).text()
