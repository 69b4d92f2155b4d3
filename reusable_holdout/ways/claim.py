"""Claims: the way in which the teams of a board ask.

A claim that the rows do not contradict stands, and costs nothing. A claim that would take the lead is measured. A wrong
claim is corrected, and costs its team one of its charges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, cast

from reusable_holdout.certainty import Certificate, Estimator, Interval, Priced
from reusable_holdout.ledger import Row
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.rules import Distance
from reusable_holdout.ways import (
    AGREED,
    ALL,
    CELL,
    FAILED,
    MEASURED,
    NOT_CERTIFIED,
    Outcome,
    State,
    Terms,
    Told,
    tidy,
)
from reusable_holdout.ways.check import Check

_NOT_CERTIFIED = Told(NOT_CERTIFIED)


class Claim(NamedTuple):
    """The public facts of a claim before the rows are read."""

    priced: Priced  # weights of its outcomes
    leads: bool  # whether it will be measured if it stands
    least_lead: float  # value that a measured one must reach to take the lead
    charges_left: int  # of its series; with none it is not certified


class ClaimTerms(NamedTuple):
    """Public numbers of one claim; a :class:`~reusable_holdout.ways.Terms` with its place on the board."""

    prior: float
    unit: float
    claim: Claim


class _Context(NamedTuple):
    """The facts that price a claim: if it may lead, the charges of its series, and if a claim of the series stood."""

    leads: bool = False
    charges: int = 0
    stood: bool = False


class Board:
    """The state of a board after all claims about one metric so far; it depends only on what was released."""

    def __init__(self, certificate: Certificate) -> None:
        self._certificate = certificate
        self.last = 0  # row of the ledger up to which it was followed
        self.lead: float | None = None  # best value that was measured
        self._series: dict[str, _Context] = {}  # after its last claim
        self._estimator = Estimator()
        code, cells = certificate.theory.claims, certificate.theory.charge.cells
        charges = {Told(CELL, place).text(): code.charge for place in range(len(cells))} | {
            FAILED: code.failed
        }
        places = range(-code.reach, code.reach + 1)
        self._measured = {
            Told(MEASURED, place).text(): code.measured[abs(place)] for place in places
        } | charges
        self._begun = [{AGREED: stands} | charges for stands in (code.stands, code.stands_again)]

    def charges_left(self, series: str) -> int:
        """Return the charges that a series has left."""
        return max(0, self._certificate.charges - self._series.get(series, _Context()).charges)

    def claim(self, prior: float, series: str) -> Claim:
        """Return the public facts of a series' next claim."""
        context = self._context(prior, series)
        begun = self._measured if context.leads else self._begun[min(context.charges, 1)]
        priced = self._estimator.at(context, begun)
        return Claim(priced, context.leads, self._least_lead, self.charges_left(series))

    def follow(self, row: Row) -> None:
        """Update the board with one claim that was answered."""
        if row.told == NOT_CERTIFIED:
            return
        context = self._context(row.prior, row.series)
        self._estimator.count(context, row.told)
        stood = context.stood or not row.charged
        self._series[row.series] = _Context(context.leads, context.charges + row.charged, stood)
        if not row.charged and context.leads:
            self.lead = row.value

    def _context(self, prior: float, series: str) -> _Context:
        margin = self._certificate.theory.claims.lead * self._unit
        leads = prior - self._least_lead >= margin
        return self._series.get(series, _Context())._replace(leads=leads)

    @property
    def _unit(self) -> float:
        """Width of a cell of measured claims: one standard deviation of an honest claim's deviation."""
        return cast("float", self._certificate.fixed_threshold) / self._certificate.theory.claims.reach

    @property
    def _least_lead(self) -> float:
        return 0.0 if self.lead is None else self.lead + self._unit


class Claims(Check):
    """A board of many series, such as teams, each of which states a value for each of its submissions.

    With the plan's confidence, every interval contains its population value, for any submissions. Differential privacy
    is not given. The rule and its threshold T, four standard deviations of an honest claim's deviation, are public:

    - a claim within T of the holdout's value *stands*, and is the answer: "agreed";
    - a claim farther off takes a charge from its series' own allowance, and releases a cell;
    - a claim that stands and is above the lead by three standard deviations is *measured*: it releases a cell that is
      one wide. If the cell is above the lead by a cell or more, it is the new lead; if not, it is charged, too;
    - a series whose allowance is spent is told nothing more: its claims are "not certified", and cost nothing.

    The lead is the best measured value: a claim alone does not lead. No series halts another, but intervals grow with
    all outcomes that were released to all. Each outcome is priced by its past frequency in the same public context:
    whether the claim would lead, whether its series has been charged, and whether one of its claims has stood. So a
    board whose claims stand costs next to nothing, and a board with false claims pays once for each series that makes
    them.

    The same predictions are one question, for every sender and every claim; asked anew they are another. See Dwork,
    Feldman, Hardt, Pitassi, Reingold, Roth (2015), "Generalization in Adaptive Data Analysis and Holdout Reuse",
    section 3 (description length), and Krichevsky and Trofimov (1981), "The performance of universal encoding".
    """

    batches: ClassVar[bool] = False
    by_series: ClassVar[bool] = True

    def __init__(self, certificate: Certificate, name: str, noise: KeyedNoise) -> None:
        super().__init__(certificate, name, noise, Distance(certificate))

    # ---- public

    def takes(self, told: Told) -> int:
        """Return 1, or 0 for a claim that is not certified: the rows are not used."""
        return int(told != _NOT_CERTIFIED)

    def board(self) -> Board:
        """Return a board without a claim."""
        return Board(self.certificate)

    def claimed(self, prior: float, series: str, board: Board) -> ClaimTerms:
        """Return the public numbers of a claim."""
        unit = cast("float", self.certificate.fixed_threshold)
        return ClaimTerms(prior, unit, board.claim(prior, series))

    def recalled(self, rows: Sequence[Row]) -> list[ClaimTerms]:
        """Return the terms of all claims that were answered: the public numbers with which their outcomes are read."""
        board, terms = self.board(), []
        for row in rows:
            terms.append(self.claimed(row.prior, row.series, board))
            board.follow(row)
        return terms

    def outcome(self, told: Told, terms: Terms | ClaimTerms) -> Outcome:
        """Return an outcome: "agreed", "measured" and its cell, a cell of a charge, "failed" or "not certified"."""
        claim = cast("ClaimTerms", terms).claim
        if told == _NOT_CERTIFIED and not claim.charges_left:
            return Outcome(told, terms.prior, False, 0.0)
        text = told.text()
        if not claim.charges_left or text not in claim.priced.begun:
            raise self.unknown(told)
        nats = claim.priced.nats(text)
        if told.word != MEASURED:
            return super().outcome(told, Terms(terms.prior, terms.unit))._replace(nats=nats)
        value = tidy(self._middle(told, terms))
        return Outcome(told, value, value < claim.least_lead, nats)

    def interval(self, told: Told, terms: Terms | ClaimTerms, length: float) -> Interval:
        """Return the interval around the claim, or around the released cell."""
        if told == _NOT_CERTIFIED:
            return ALL
        if told.word != MEASURED:
            return super().interval(told, Terms(terms.prior, terms.unit), length)
        low, high = self._measured(told, terms)
        return self.certificate.around(low, high, length=length, share=self.certificate.shares.charged)

    def reached(self, told: Told, prior: float) -> Interval | None:
        """Return the interval of the holdout's own value that an outcome implies; None if it implies none."""
        terms = Terms(prior, cast("float", self.certificate.fixed_threshold))
        if told.word in {FAILED, NOT_CERTIFIED} or (told.place is None and told.word != AGREED):
            return None
        if told.place is None:
            reach = terms.unit + self.certificate.comparison_tail
            return Interval(prior - reach, prior + reach)
        if told.word == MEASURED:
            return self._measured(told, terms)
        return Interval(*self.rule.reached(told.place, prior, terms.unit))

    def _measured(self, told: Told, terms: Terms | ClaimTerms) -> Interval:
        middle, half = self._middle(told, terms), self._cell(terms) / 2.0 + self.certificate.answer_tail
        return Interval(middle - half, middle + half)

    def _cell(self, terms: Terms | ClaimTerms) -> float:
        return terms.unit / self.certificate.theory.claims.reach

    def _middle(self, told: Told, terms: Terms | ClaimTerms) -> float:
        return terms.prior + cast("int", told.place) * self._cell(terms)

    # ---- private

    def decide_claim(self, score: int | None, terms: ClaimTerms, digest: bytes) -> Outcome:
        """Decide one claim from its score on the holdout, which is None if the model or metric failed there."""
        if not terms.claim.charges_left:
            return self.outcome(_NOT_CERTIFIED, terms)
        if score is None:
            return self.outcome(Told(FAILED), terms)
        core = self.core(State())
        deviation, limit = abs(score - self.grid(terms.prior)), int(terms.unit * GRID)
        if core.is_above(deviation, limit, digest):
            noisy = self.noisy(core, score, digest)
            place = self.certificate.theory.charge.place((terms.prior - noisy) / terms.unit)
            return self.outcome(Told(CELL, place), terms)
        if not terms.claim.leads:
            return self.outcome(self.calm, terms)
        noisy, most = self.noisy(core, score, digest), self.certificate.theory.claims.reach
        place = min(max(round((noisy - terms.prior) / self._cell(terms)), -most), most)
        return self.outcome(Told(MEASURED, place), terms)
