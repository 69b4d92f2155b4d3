"""Reveal: the holdout's own value, rounded to a cell around the prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.inputs import checked_prior
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.kind import AGREED, FAILED, Outcome, State, Terms
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds.samples import Sample
    from reusable_holdout.validity import CellCode

__all__ = ["Reveal"]


class Reveal(Check):
    """Tell the cell in which the holdout's value lies.

    A value with the mechanism's answer noise is told, as a cell of deviations from the prior.

    Notes
    -----
    When a reveal happens is decided by the analyst, not by the rows: it has no position to pay for, only its cell.
    Cells are 1.1/sqrt(2) standard deviations of an honest deviation wide near the prior and grow outwards, so that none
    costs more than the theory says. One whose dearest cell would break a promise of the
    plan is refused before the rows are read; refused afterwards, that would be an outcome.
    """

    name: ClassVar[str] = "reveal"
    in_batches: ClassVar[bool] = False

    @property
    def code(self) -> CellCode:
        """Its cells."""
        return self.certificate.theory.reveal

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Unit of the cells."""
        return self.certificate.theory.reveal_unit * self.certificate.least_threshold

    def thresholds(
        self, priors: NDArray[np.float64], state: State, tolerances: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Unit of the cells, for each."""
        return np.full(len(priors), self.threshold(0.0, state, None))

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

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval around the cell."""
        certificate = self.certificate
        if outcome.told == FAILED:
            return Interval(certificate.lower, certificate.upper)
        low, high = self._reached(int(outcome.told.split()[1]), terms)
        return certificate.around(low, high, length=length, share=0.5)

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

    def decide(
        self,
        score: Sample | int | NDArray[np.int64],
        terms: Terms,
        question: bytes,
        state: State,
    ) -> Outcome:
        """Round a value with noise to its cell."""
        return self.outcome(self._named(score, terms, question, state), terms)

    def _named(
        self, measured: Sample | int | NDArray[np.int64], terms: Terms, question: bytes, state: State
    ) -> str:
        """Name of what is told of a value."""
        return self._told(self._noisy(self._resumed(State()), int(cast("int", measured)), question), terms)

    def check_affordable(self, nats: float, state: State, what: str) -> None:
        """Refuse a question whose dearest outcome would break a promise of the plan, by public numbers alone.

        Raises
        ------
        InputError
            Naming what it can cost and what is left.
        """
        left = self.certificate.room(charges=state.charges, nats=state.nats)
        if nats > left:
            raise InputError(
                f"{what} can cost {nats:.1f} nats, and {max(left, 0.0):.1f} are left beside the charges and the "
                "tolerance that the plan promises; nothing was asked and nothing was told; ask with evaluate or final, "
                "or reserve it when the guard is made (reveals=, choices=)"
            )

    def check_stated(self, prior: object, metric: str) -> float:
        """Check the prior of a reveal, or of one candidate.

        Raises
        ------
        InputError
            If it is missing or out of bounds.
        """
        if prior is None:
            raise InputError(
                "a reveal is told around a prior, the analyst's own estimate of the score; got none; pass prior=; "
                "nothing was asked"
            )
        return checked_prior(prior, self.certificate.lower, self.certificate.upper, metric)
