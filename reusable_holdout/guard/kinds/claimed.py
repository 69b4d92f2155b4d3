"""What a board of claims knows of itself: who has been charged, who leads, and what each outcome costs next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from reusable_holdout.guard.kinds.told import AGREED, FAILED
from reusable_holdout.validity import Estimator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reusable_holdout.ledger import Row
    from reusable_holdout.validity import Certificate, Priced

__all__ = ["MEASURED", "NOT_CERTIFIED", "Board", "Claim"]

MEASURED = "measured"
NOT_CERTIFIED = "not certified"


class Claim(NamedTuple):
    """What is public of a claim before the rows are read.

    Attributes
    ----------
    priced : Priced
        Weights of its outcomes.
    leads : bool
        Whether it will be measured if it stands.
    least_lead : float
        Value that a measured one must reach to take the lead, in the metric's unit.
    charges_left : int
        Of its series; with none it is not certified.
    """

    priced: Priced
    leads: bool
    least_lead: float
    charges_left: int


@dataclass(slots=True)
class _Series:
    charges: int = 0
    stood: bool = False


class _Context(NamedTuple):
    leads: bool
    charges: int
    stood: bool


class Board:
    """A fold of all claims about one metric, in order: a function of what was released.

    Parameters
    ----------
    certificate : Certificate
        Of the plan.
    """

    def __init__(self, certificate: Certificate) -> None:
        self._certificate = certificate
        self._lead: float | None = None
        self._series: dict[str, _Series] = {}
        self._estimator = Estimator()
        code, cells = certificate.theory.claims, certificate.theory.charge.cells
        charges = {f"cell {place}": code.charge for place in range(len(cells))} | {FAILED: code.failed}
        places = range(-code.reach, code.reach + 1)
        self._measured = {f"{MEASURED} {place}": code.measured[abs(place)] for place in places} | charges
        self._begun = [{AGREED: stands} | charges for stands in (code.stands, code.stands_again)]

    @property
    def lead(self) -> float | None:
        """Best value that was measured; None if none was."""
        return self._lead

    def charges_left(self, series: str) -> int:
        """Charges that a series has left."""
        return max(0, self._certificate.charges - self._of(series).charges)

    def claim(self, prior: float, series: str) -> Claim:
        """What is public of a series' next claim."""
        context = self._context(prior, series)
        priced = self._estimator.at(context, self._begun_at(context))
        return Claim(priced, context.leads, self._least_lead, self.charges_left(series))

    def follow(self, row: Row) -> None:
        """Go on by one claim that was answered."""
        if row.told == NOT_CERTIFIED:
            return
        context = self._context(row.prior, row.series)
        self._estimator.count(context, row.told)
        series = self._series.setdefault(row.series, _Series())
        series.charges += row.charged
        if not row.charged:
            series.stood = True
            if context.leads:
                self._lead = row.value

    def _of(self, series: str) -> _Series:
        return self._series.get(series) or _Series()

    def _context(self, prior: float, series: str) -> _Context:
        certificate, known = self._certificate, self._of(series)
        margin = certificate.theory.claims.lead * self._unit
        leads = certificate.better * (prior - self._least_lead) >= margin
        return _Context(leads, known.charges, known.stood)

    def _begun_at(self, context: _Context) -> Mapping[str, float]:
        return self._measured if context.leads else self._begun[min(context.charges, 1)]

    @property
    def _unit(self) -> float:
        """A cell of measured claims: one standard deviation of an honest one's deviation."""
        return cast("float", self._certificate.fixed_threshold) / self._certificate.theory.claims.reach

    @property
    def _least_lead(self) -> float:
        certificate = self._certificate
        worst = certificate.lower if certificate.greater_is_better else certificate.upper
        return worst if self._lead is None else self._lead + certificate.better * self._unit
