"""Choose: which of several candidates is best by the holdout, and its value, rounded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from reusable_holdout.certainty import Interval, choice_nats, worst_choice_nats
from reusable_holdout.guard.kinds import FAILED, Floats, Outcome, State, Terms
from reusable_holdout.guard.kinds.reveal import EvidenceReveal, Reveal
from reusable_holdout.guard.kinds.samples import Sample
from reusable_holdout.metrics import GRID

__all__ = ["Choose", "EvidenceChoose", "Winner"]

_TOLD = re.compile(r"candidate (\d+) of (\d+), rank (\d+), (cell \d+(?:, width -?\d+)?|failed)")


def _place(cell: str) -> int:
    """Place of a cell, by its name or that of a cell with a width."""
    return int(cell.removeprefix("cell ").partition(",")[0])


class Winner(NamedTuple):
    """What the name of a choice's outcome says."""

    candidate: int  # place of the winner among the candidates, from 0
    candidates: int
    rank: int  # of its prior among the candidates', from 1, the best; equal ones in their order
    cell: str  # its name, as a reveal's

    @classmethod
    def parse(cls, told: str) -> Winner | None:
        """Read the name of an outcome; None if it is none of a choice."""
        found = _TOLD.fullmatch(told)
        if found is None:
            return None
        candidate, candidates, rank, cell = found.groups()
        winner = cls(int(candidate), int(candidates), int(rank), cell)
        fits = winner.candidate < winner.candidates and 1 <= winner.rank <= winner.candidates
        return winner if fits else None

    def told(self) -> str:
        """Name of the outcome."""
        return f"candidate {self.candidate} of {self.candidates}, rank {self.rank}, {self.cell}"


class Choose(Reveal):
    """Tell which candidate is best by the holdout, by report-noisy-max, and the cell of its value.

    Of the other candidates nothing is told but that, up to the noise, they are no better than the winner's cell. Where
    one failed on the holdout, the choice has failed: it names the best of the others, and tells no value. Each
    candidate is one of the declared queries. The winner's name costs by the rank of its prior, public before the rows
    are read: a favourite that wins costs little. Its cell costs what a reveal's does.
    """

    name: ClassVar[str] = "choose"

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name."""
        winner = self._winner(told)
        cell = super().outcome(winner.cell, terms)
        nats = cell.nats + choice_nats(winner.rank, winner.candidates)
        return Outcome(winner._replace(cell=cell.told).told(), cell.value, False, nats)

    def takes(self, told: str) -> int:
        """One for each candidate."""
        return self._winner(told).candidates

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval around the winner's cell."""
        return super().interval(outcome._replace(told=self._winner(outcome.told).cell), terms, length)

    def others(self, outcome: Outcome, terms: Terms, length: float) -> float:
        """Good end of the interval of the population value of every other candidate; none of a choice that failed."""
        winner, certificate = self._winner(outcome.told), self.certificate
        if winner.cell == FAILED:
            return self.best
        low, high = self._reached(_place(winner.cell), terms)
        more = 2.0 * certificate.comparison_tail  # the winner's noise, and the other's
        interval = certificate.around(low - more, high + more, length=length, share=0.5)
        return float(interval.high if certificate.greater_is_better else interval.low)

    def worst_nats(self, candidates: int = 1) -> float:
        """Cost of the dearest outcome."""
        return worst_choice_nats(candidates) + super().worst_nats(candidates)

    def _winner(self, told: str) -> Winner:
        winner = Winner.parse(told)
        if winner is None:
            raise self.unknown(told)
        return winner

    # ---- rule

    def choose(
        self,
        measured: Sequence[Sample | int | None],
        priors: Floats,
        questions: Sequence[bytes],
        state: State,
    ) -> tuple[Terms, Outcome]:
        """Find the winner, and its terms; a candidate that failed on the holdout is None, and wins if all are."""
        core, better = self._resumed(State()), self.certificate.better
        noise = core.query_noise(questions).tolist()
        noisy = [
            -GRID * GRID if one is None else better * _score(one) + own
            for one, own in zip(measured, noise, strict=True)
        ]
        best = max(range(len(noisy)), key=lambda place: (noisy[place], better * priors[place]))
        terms = self.terms(float(priors[best]), state, None)
        winner = measured[best]
        if winner is None or any(one is None for one in measured):
            cell = FAILED
        else:
            cell = self._named(winner, terms, questions[best], state)
        return terms, self.outcome(Winner(best, len(noisy), self._rank(priors, best), cell).told(), terms)

    def _rank(self, priors: Floats, place: int) -> int:
        order = np.argsort(-self.certificate.better * priors, kind="stable")
        return int(np.flatnonzero(order == place)[0]) + 1


def _score(measured: Sample | int) -> int:
    return measured if isinstance(measured, int) else measured.score


class EvidenceChoose(Choose, EvidenceReveal):
    """A choice that also tells how far around its cell the winner's value can lie; of a ratio nothing of the others."""

    def others(self, outcome: Outcome, terms: Terms, length: float) -> float:
        """Good end of what is known of every other candidate."""
        return self.best if self.certificate.of_ratio else super().others(outcome, terms, length)
