"""Reveal and choose: release the holdout's own value, rounded to a cell around the prior, of one model or the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from reusable_holdout.certainty import GRID_SLACK, Certificate, Interval, choice_nats, worst_choice_nats
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import KeyedNoise, SparseVector
from reusable_holdout.rules import Floats, cell_ends
from reusable_holdout.rules.samples import Sample
from reusable_holdout.ways import ALL, CELL, FAILED, Outcome, State, Terms, Told, Winner, tidy
from reusable_holdout.ways.check import Noisy


class Reveal(Noisy):
    """A released cell that holds the holdout's value with the answer's noise, as a deviation from the prior.

    The analyst decides when a reveal happens, not the rows: so it pays for its cell, and not for its position. Cells
    near the prior are 1.1/sqrt(2) standard deviations of an honest deviation wide. They grow outwards, so that none
    costs more than the theory says. If the most expensive cell would break a promise of the plan, the reveal is refused
    before the rows are read; a later refusal would be an outcome.

    If rows are measured, it also releases how far the confidence set of their evidence reaches around the cell. It is a
    ratio to the reach for rows of the guessed spread, rounded up to a public grid, whose last cell says nothing. Noise
    is added to the value alone: such reveals are for plans whose privacy guarantee is vacuous anyway.
    """

    def __init__(self, certificate: Certificate, name: str, noise: KeyedNoise, *, by_rows: bool) -> None:
        super().__init__(certificate, name, noise)
        self.by_rows = by_rows
        self._code, self._widths = certificate.theory.reveal, certificate.theory.widths

    # ---- public

    def unit(self, prior: float, state: State, tolerance: float | None) -> float:
        """Return the unit of the cells."""
        return self.certificate.theory.reveal_unit * self.certificate.least_threshold

    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return an outcome: "failed", or the cell, and where rows are measured the width; none is a charge."""
        if told == Told(FAILED):
            return Outcome(told, 0.0, False, self._code.failure_nats)
        width, place = told.width, told.place
        known = told == Told(CELL, place, width) and place in range(len(self._code.cells))
        if not known or place is None or (width is None) == self.by_rows:
            raise self.unknown(told)
        nats = self._code.nats[place]
        if width is not None:
            if not -self._widths.below <= width <= self._widths.above:
                raise self.unknown(told)
            nats += self._widths.nats(width)
        near, far = self._cell(place, terms)
        value = near if np.isinf(self._code.cells[place].far) else (near + far) / 2.0
        return Outcome(told, tidy(value), False, nats)

    def least_nats(self, candidates: int = 1) -> float:
        """Return the cost of the cheapest outcome."""
        return min(self._code.nats) + (self._widths.nats(0) if self.by_rows else 0.0)

    def worst_nats(self, candidates: int = 1) -> float:
        """Return the cost of the most expensive outcome."""
        return self._code.worst + (self._widths.worst if self.by_rows else 0.0)

    def interval(self, told: Told, terms: Terms, length: float) -> Interval:
        """Return the interval around the cell."""
        if told.place is None or told.width == self._widths.above:
            return ALL
        low, high = self._reached(told.place, terms)
        if told.width is None:
            return self.certificate.around(low, high, length=length, share=self.certificate.shares.charged)
        around = self._guessed(terms, length) * self._widths.least(told.width + 1)
        return Interval(max(low - around, 0.0), min(high + around, 1.0))

    def _cell(self, place: int, terms: Terms) -> tuple[float, float]:
        cell = self._code.cells[place]
        if cell.side:
            return cell_ends(cell.near, cell.far, cell.side, terms.prior, terms.unit)
        half = cell.far * terms.unit
        return max(terms.prior - half, 0.0), min(terms.prior + half, 1.0)

    def _reached(self, place: int, terms: Terms) -> tuple[float, float]:
        near, far = self._cell(place, terms)
        tail = self.certificate.answer_tail
        return min(near, far) - tail, max(near, far) + tail

    def _guessed(self, terms: Terms, length: float) -> float:
        """Return how far the interval reaches beyond the cell if the rows vary as much as was guessed."""
        guessed = self.certificate.likely_half_width(self.certificate.needed(length, 0.5), terms.prior)
        covered = terms.unit / 4.0  # on average by the cell, on the side where it covers less
        return max(guessed - covered, guessed / 2.0, GRID_SLACK)

    # ---- private

    def decide(
        self, measured: Sample | int | None, prior: float, digest: bytes, state: State
    ) -> tuple[Terms, Outcome]:
        """Release the cell of the noisy value and, if rows are measured, the width that they leave around the cell."""
        terms = Terms(prior, self.unit(prior, state, None))
        told = Told(FAILED)
        if measured is not None:
            told = self._told(self.core(State()), measured, terms, digest, state)
        return terms, self.outcome(told, terms)

    def _told(
        self, core: SparseVector, measured: Sample | int, terms: Terms, digest: bytes, state: State
    ) -> Told:
        noisy = self.noisy(core, _score(measured), digest)
        told = Told(CELL, self._code.place((terms.prior - noisy) / terms.unit))
        if not self.by_rows:
            return told
        length = self.length(state)
        near, far = self._reached(cast("int", told.place), terms)
        low, high = cast("Sample", measured).ends(self.certificate.final_set(length, terms.prior))
        factor = (max(near - low, high - far) + GRID_SLACK) / self._guessed(terms, length)
        least = -self._widths.below
        return told._replace(
            width=least if factor <= self._widths.least(least) else self._widths.place(factor)
        )


class Choose(Reveal):
    """The best candidate by the holdout, by report-noisy-max, and the cell of its value.

    A cell is one of the public intervals around a prior. About the other candidates it releases only that, up to the
    noise, they are no better than the winner's cell. If a candidate fails on the holdout, the choice fails: it names
    the best of the others, and releases no value. Each candidate takes one of the declared queries. Naming the winner
    costs the less, the higher its prior ranks among the priors, which are public. The cell costs what a reveal does.
    """

    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return value and cost of a winner and its cell, or of a failed choice; none is a charge."""
        if told.winner is None:
            raise self.unknown(told)
        cell = super().outcome(told._replace(winner=None), terms)
        return cell._replace(
            told=told, nats=cell.nats + choice_nats(told.winner.rank, told.winner.candidates)
        )

    def takes(self, told: Told) -> int:
        """Return one query for each candidate."""
        return 1 if told.winner is None else told.winner.candidates

    def length(self, state: State, answers: int = 1) -> float:
        """Return the description length of the winner's interval; a test that bounds the others adds to it."""
        tests = self.by_rows and self.certificate.decides != "sets"
        return super().length(state) + (self.certificate.theory.others_nats if tests else 0.0)

    def least_nats(self, candidates: int = 1) -> float:
        """Return the cost of the cheapest outcome."""
        return super().least_nats() + choice_nats(1, candidates)

    def worst_nats(self, candidates: int = 1) -> float:
        """Return the cost of the most expensive outcome."""
        return worst_choice_nats(candidates) + super().worst_nats()

    def others(self, told: Told, terms: Terms, length: float) -> float:
        """Return an upper bound of all other candidates' population values; 1 for a failed choice or a ratio."""
        if told.place is None or self.certificate.decides == "sets":
            return 1.0
        low, high = self._reached(told.place, terms)
        more = 2.0 * self.certificate.comparison_tail  # the winner's noise, and the other's
        return float(self.certificate.around(low - more, high + more, length=length, share=0.5).high)

    def choose(
        self, measured: Sequence[Sample | int | None], priors: Floats, digests: Sequence[bytes], state: State
    ) -> tuple[Terms, Outcome]:
        """Find the winner, and its terms; a candidate that failed is None, and wins only if all did."""
        core = self.core(State())
        noise = core.query_noise(digests).tolist()
        noisy = [
            -GRID * GRID if one is None else _score(one) + own
            for one, own in zip(measured, noise, strict=True)
        ]
        best = max(range(len(noisy)), key=lambda place: (noisy[place], priors[place]))
        prior, one = float(priors[best]), measured[best]
        terms = Terms(prior, self.unit(prior, state, None))
        told = Told(FAILED)
        if one is not None and all(each is not None for each in measured):
            told = self._told(core, one, terms, digests[best], state)
        order = np.argsort(-priors, kind="stable")
        rank = int(np.flatnonzero(order == best)[0]) + 1
        return terms, self.outcome(told._replace(winner=Winner(best, len(noisy), rank)), terms)


def _score(measured: Sample | int) -> int:
    return measured if isinstance(measured, int) else measured.score
