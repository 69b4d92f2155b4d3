"""Claims: what stands is agreed, what would lead is measured, and who is wrong spends an allowance of his own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, cast

from reusable_holdout.certainty import Certificate, Estimator, Interval
from reusable_holdout.errors import InputError
from reusable_holdout.guard.kinds import (
    AGREED,
    FAILED,
    NOT_CERTIFIED,
    Claim,
    Integers,
    Outcome,
    Posed,
    State,
    Terms,
)
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.stated import checked_names
from reusable_holdout.ledger import Row

__all__ = ["Board", "Claims"]


MEASURED = "measured"


class _Context(NamedTuple):
    """What a claim is priced by: would it lead, and was its series charged, has a claim of its stood."""

    leads: bool = False
    charges: int = 0
    stood: bool = False


class Board:
    """A fold of all claims about one metric, in order: a function of what was released."""

    def __init__(self, certificate: Certificate) -> None:
        self._certificate = certificate
        self.last = 0  # row of the ledger up to which it was followed
        self.lead: float | None = None  # best value that was measured
        self._series: dict[str, _Context] = {}  # after its last claim
        self._estimator = Estimator()
        code, cells = certificate.theory.claims, certificate.theory.charge.cells
        charges = {f"cell {place}": code.charge for place in range(len(cells))} | {FAILED: code.failed}
        places = range(-code.reach, code.reach + 1)
        self._measured = {f"{MEASURED} {place}": code.measured[abs(place)] for place in places} | charges
        self._begun = [{AGREED: stands} | charges for stands in (code.stands, code.stands_again)]

    def charges_left(self, series: str) -> int:
        """Charges that a series has left."""
        return max(0, self._certificate.charges - self._series.get(series, _Context()).charges)

    def claim(self, prior: float, series: str) -> Claim:
        """What is public of a series' next claim."""
        context = self._context(prior, series)
        begun = self._measured if context.leads else self._begun[min(context.charges, 1)]
        priced = self._estimator.at(context, begun)
        return Claim(priced, context.leads, self._least_lead, self.charges_left(series))

    def follow(self, row: Row) -> None:
        """Go on by one claim that was answered."""
        if row.told == NOT_CERTIFIED:
            return
        context = self._context(row.prior, row.series)
        self._estimator.count(context, row.told)
        stood = context.stood or not row.charged
        self._series[row.series] = _Context(context.leads, context.charges + row.charged, stood)
        if not row.charged and context.leads:
            self.lead = row.value

    def _context(self, prior: float, series: str) -> _Context:
        certificate = self._certificate
        margin = certificate.theory.claims.lead * self._unit
        leads = certificate.better * (prior - self._least_lead) >= margin
        return self._series.get(series, _Context())._replace(leads=leads)

    @property
    def _unit(self) -> float:
        """A cell of measured claims: one standard deviation of an honest one's deviation."""
        return cast("float", self._certificate.fixed_threshold) / self._certificate.theory.claims.reach

    @property
    def _least_lead(self) -> float:
        certificate = self._certificate
        worst = certificate.lower if certificate.greater_is_better else certificate.upper
        return worst if self.lead is None else self.lead + certificate.better * self._unit


class Claims(Check):
    """A board of many series, such as teams, each of which says what it believes of each of its submissions.

    With the plan's confidence, every interval contains its population value, whatever the series send. Differential
    privacy is not given. The rule and its threshold T, four standard deviations of an honest claim's deviation, are
    public:

    - a claim within T of the holdout's value *stands*, and is the answer: "agreed";
    - one that is farther off is a charge of its series' own allowance, told as a cell;
    - one that stands and is above the lead by three standard deviations is *measured*: told as a cell of one. If that
      is above the lead by a cell or more it is the new lead, else a charge, too;
    - a series whose allowance is spent is told nothing more: its claims are "not certified", and cost nothing.

    The lead is the best value that was measured: nobody leads on a claim. Nobody is halted by others, but intervals
    grow with what all have been told. Each outcome is priced by how often it was told in the same public context: would
    it lead, has its series been charged, has a claim of its stood. So a board whose claims stand pays next to nothing,
    and one with liars pays for who they are, once each. The unit of information is not the number of submissions.

    The same predictions are one question, whoever sends them and whatever is claimed; asked anew they are another. See
    Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "Generalization in Adaptive Data Analysis and Holdout Reuse",
    section 3 (description length), and Krichevsky and Trofimov (1981), "The performance of universal encoding".
    """

    name: ClassVar[str] = "claim"
    in_batches: ClassVar[bool] = False
    on_board: ClassVar[bool] = True
    by_table: ClassVar[bool] = False
    by_prior: ClassVar[bool] = False

    # ---- what is asked

    def series_unit(self, series: object) -> int:
        """Another series asks the same question."""
        checked_names([series], 1)  # type: ignore[list-item]
        return 0

    def takes(self, told: str) -> int:
        """None, of what is not certified: the rows are not asked."""
        return int(told != NOT_CERTIFIED)

    # ---- terms

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Deviation beyond which a claim is charged; it is one for all claims."""
        return cast("float", self.certificate.fixed_threshold)

    def board(self) -> Board:
        """A board without a claim."""
        return Board(self.certificate)

    def claimed(self, prior: float, series: str, board: Board) -> Terms:
        """Public numbers of a claim."""
        return Terms(prior, self.threshold(prior, State(), None), board.claim(prior, series))

    def recalled(self, rows: Sequence[Row]) -> list[Terms]:
        """Terms of all claims that were answered: public numbers that their outcomes are read by."""
        board, terms = self.board(), []
        for row in rows:
            terms.append(self.claimed(row.prior, row.series, board))
            board.follow(row)
        return terms

    # ---- code and interval

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "agreed", "measured" and its cell, "cell" and its place, "failed" or "not certified"."""
        claim = _claim(terms)
        if told == NOT_CERTIFIED and not claim.charges_left:
            return Outcome(NOT_CERTIFIED, terms.prior, False, 0.0)
        if not claim.charges_left or told not in claim.priced.begun:
            raise self.unknown(told)
        nats = claim.priced.nats(told)
        if not told.startswith(MEASURED):
            return super().outcome(told, terms)._replace(nats=nats)
        value = self.certificate.tidy(self._middle(told, terms))
        better = self.certificate.better
        return Outcome(told, value, better * (value - claim.least_lead) < 0.0, nats)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval around the claim, or around the cell that was told."""
        certificate = self.certificate
        if outcome.told == NOT_CERTIFIED:
            return self.all_values
        if not outcome.told.startswith(MEASURED):
            return super().interval(outcome, terms, length)
        low, high = self._cell_measured(outcome.told, terms)
        return certificate.around(low, high, length=length, share=certificate.shares.charged)

    def reached(self, told: str, terms: Terms) -> Interval | None:
        """Where the holdout's own value lies if this was told; None if that says nothing of it."""
        if told in {FAILED, NOT_CERTIFIED}:
            return None
        certificate = self.certificate
        if told == AGREED:
            reach = terms.threshold + certificate.comparison_tail
            return Interval(terms.prior - reach, terms.prior + reach)
        if told.startswith(MEASURED):
            return self._cell_measured(told, terms)
        return Interval(*self._reached(int(told.split()[1]), terms))

    def _cell_measured(self, told: str, terms: Terms) -> Interval:
        middle, half = self._middle(told, terms), self._unit(terms) / 2.0 + self.certificate.answer_tail
        return Interval(middle - half, middle + half)

    def _unit(self, terms: Terms) -> float:
        return terms.threshold / self.certificate.theory.claims.reach

    def _middle(self, told: str, terms: Terms) -> float:
        return terms.prior + int(told.split()[1]) * self._unit(terms)

    # ---- rule

    def decide(self, score: int | Integers, terms: Terms, question: bytes, state: State) -> Outcome:
        """Decide one claim, by the holdout's value."""
        claim = _claim(terms)
        if not claim.charges_left:
            return self.outcome(NOT_CERTIFIED, terms)
        mechanism, posed = self._resumed(State()), Posed(terms, question, 0.0)
        if self._deviates(mechanism, score, posed):
            return self._charge(mechanism, score, posed)
        if not claim.leads:
            return self.outcome(AGREED, terms)
        value = self._noisy(mechanism, self._score(score), question)
        most = self.certificate.theory.claims.reach
        place = min(max(round((value - terms.prior) / self._unit(terms)), -most), most)
        return self.outcome(f"{MEASURED} {place}", terms)

    def fail(self, terms: Terms, state: State) -> Outcome:
        """Decide a claim about what failed on the holdout."""
        return self.outcome(FAILED if _claim(terms).charges_left else NOT_CERTIFIED, terms)


def _claim(terms: Terms) -> Claim:
    if terms.claim is None:
        raise InputError(
            "a claim's outcome needs its place on the board; got none; pass the terms of claimed()"
        )
    return terms.claim
