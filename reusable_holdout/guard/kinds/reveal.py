"""Reveal: the holdout's own value, rounded to a cell around the prior; or with the set that its rows leave."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self, cast

from reusable_holdout.certainty import CellCode, FactorCode, Interval
from reusable_holdout.errors import InputError
from reusable_holdout.guard.kinds import AGREED, FAILED, Integers, Outcome, State, Terms
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.samples import Sample
from reusable_holdout.guard.kinds.stated import checked_prior

__all__ = ["EvidenceReveal", "Reveal"]


class Reveal(Check):
    """Tell the cell in which the holdout's value lies: with the answer's noise, as a deviation from the prior.

    When a reveal happens is decided by the analyst, not by the rows: it has no position to pay for, only its cell.
    Cells are 1.1/sqrt(2) standard deviations of an honest deviation wide near the prior and grow outwards, so that none
    costs more than the theory says. One whose dearest cell would break a promise of the plan is refused before the rows
    are read; refused afterwards, that would be an outcome.
    """

    name: ClassVar[str] = "reveal"
    in_batches: ClassVar[bool] = False
    by_table: ClassVar[bool] = False

    @property
    def code(self) -> CellCode:
        """Code of a reveal's cells."""
        return self.certificate.theory.reveal

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Unit of the cells."""
        return self.certificate.theory.reveal_unit * self.certificate.least_threshold

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name; none is a charge."""
        if told == AGREED:
            raise self.unknown(told)
        return super().outcome(told, terms)._replace(charged=False)

    def least_nats(self) -> float:
        """Cost of the cheapest outcome."""
        return min(self.code.nats)

    def worst_nats(self, candidates: int = 1) -> float:
        """Cost of the dearest outcome."""
        return self.code.worst

    def _cell(self, place: int, terms: Terms) -> tuple[float, float]:
        cell = self.code.cells[place]
        if cell.side:
            return super()._cell(place, terms)
        half = cell.far * terms.threshold
        lower, upper = self.certificate.lower, self.certificate.upper
        return max(terms.prior - half, lower), min(terms.prior + half, upper)

    def _reached(self, place: int, terms: Terms) -> tuple[float, float]:
        near, far = self._cell(place, terms)
        tail = self.certificate.answer_tail
        return min(near, far) - tail, max(near, far) + tail

    # ---- rule

    def decide(self, score: Sample | int | Integers, terms: Terms, question: bytes, state: State) -> Outcome:
        """Round a value with noise to its cell."""
        return self.outcome(self._named(score, terms, question, state), terms)

    def _named(self, measured: Sample | int | Integers, terms: Terms, question: bytes, state: State) -> str:
        """Name of what is told of a value."""
        return self._told(self._noisy(self._resumed(State()), int(cast("int", measured)), question), terms)

    def check_affordable(self, nats: float, state: State, what: str) -> None:
        """Refuse a question whose dearest outcome would break a promise of the plan, by public numbers alone."""
        left = self.certificate.room(charges=state.charges, nats=state.nats)
        if nats > left:
            raise InputError(
                f"{what} can cost {nats:.1f} nats, and {max(left, 0.0):.1f} are left beside the charges and the "
                "tolerance that the plan promises; nothing was asked and nothing was told; ask with evaluate or final, "
                "or reserve it when the guard is made (reveals=, choices=)"
            )

    def check_stated(self, prior: object, metric: str) -> float:
        """Check the prior of a reveal, or of one candidate: InputError if it is missing or out of bounds."""
        if prior is None:
            raise InputError(
                "a reveal is told around a prior, the analyst's own estimate of the score; got none; pass prior=; "
                "nothing was asked"
            )
        return checked_prior(prior, self.certificate.lower, self.certificate.upper, metric)


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

    How far that is depends on all rows, so it is an outcome, too, and is paid for: as a factor of what rows of the
    guessed spread would leave, rounded up to a public grid. In its last cell nothing is said. Noise is added to the
    value alone: such reveals are for plans whose privacy says nothing, by themselves.
    """

    by_sample: ClassVar[bool] = True

    @property
    def widths(self) -> FactorCode:
        """Code of how far around its cell a reveal reaches."""
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
            return self.all_values
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

    def _named(self, measured: Sample | int | Integers, terms: Terms, question: bytes, state: State) -> str:
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
