"""The ways to ask: public outcomes with public costs, a choice among them by the rows, and an interval for each.

Before the rows are read, a question has a public list of outcomes, each with a public weight, and the weights sum to at
most one. The outcome that is told costs minus the logarithm of its weight. Any function of the holdout may pick it.
Everything inside lies in [0, 1], and greater is better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple, Self

from reusable_holdout.certainty import Certificate, Interval
from reusable_holdout.errors import InputError
from reusable_holdout.ledger import Row, Tail
from reusable_holdout.ways.told import Told

__all__ = ["ALL", "FINAL", "HaltReason", "Outcome", "State", "Terms", "Way", "tidy"]

FINAL = "final"
ALL = Interval(0.0, 1.0)
"""Interval of an outcome that says nothing of the value."""

HaltReason = Literal["charges", "queries", "final"]

_DIGITS = 9  # coarser than the grid of scores, within its slack


def tidy(value: float) -> float:
    """Return a value without the digits below the noise grid, in [0, 1]."""
    return min(max(round(value, _DIGITS), 0.0), 1.0)


class Outcome(NamedTuple):
    """What is told, and its cost."""

    told: Told
    value: float  # in [0, 1]
    charged: bool
    nats: float


class State(NamedTuple):
    """What has been asked and told: public, and all that a decision depends on besides the holdout."""

    query: int = 0  # answers released
    asked: int = 0  # declared queries that they took
    charges: int = 0
    nats: float = 0.0  # cost of all outcomes that were told
    closed: bool = False  # whether a final was given: nothing new is answered any more
    last_charge: int | None = None  # queries asked up to the last charge; None, not known, is the dearest
    last_charged: bytes = b""  # digest of the question that was charged last; empty if none was

    @classmethod
    def after(cls, row: Row | Tail, last_charge: int | None = None, last_charged: bytes = b"") -> Self:
        """Return the state after an answer, or at the end of a ledger."""
        closed = row.kind == FINAL
        return cls(row.query, row.asked, row.charges, row.spent_nats, closed, last_charge, last_charged)


class Terms(NamedTuple):
    """Public numbers of one question, once its state is known."""

    prior: float  # what it is compared with
    unit: float = 0.0  # unit of its outcomes: the deviation that is charged, or a cell's width


class Way(ABC):
    """One way to ask, by a certificate; its name stands in the ledger."""

    #: Whether several questions are asked together, and certified by the state before all of them.
    batches: ClassVar[bool] = False
    #: Whether it ends what is asked; all of its answers are released together.
    ends: ClassVar[bool] = False
    #: Whether each series has an allowance of charges of its own.
    by_series: ClassVar[bool] = False
    #: Whether a question may state a tolerance of its own.
    takes_tolerances: bool = False

    def __init__(self, certificate: Certificate, name: str) -> None:
        self.certificate, self.name = certificate, name

    @abstractmethod
    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return value, charge and cost of an outcome; InputError if these terms have no such outcome."""

    @abstractmethod
    def interval(self, told: Told, terms: Terms, length: float) -> Interval:
        """Return the interval of the population value, at a question of the given description length."""

    def unit(self, prior: float, state: State, tolerance: float | None) -> float:
        """Return the unit of a question's outcomes."""
        return 0.0

    def keeps(self, prior: float, tolerance: float, length: float) -> bool:
        """Return True if an answer at a description length can keep a tolerance."""
        return False

    def length(self, state: State, answers: int = 1) -> float:
        """Return the description length of a question in a state."""
        return self.certificate.length(charges=state.charges, nats=state.nats)

    def worst_nats(self, candidates: int = 1) -> float:
        """Return the cost of its dearest outcome beside charges, which must be affordable before it is asked."""
        return 0.0

    def takes(self, told: Told) -> int:
        """Return how many of the declared queries a question with this outcome takes."""
        return 1

    def halt_reason(self, state: State) -> HaltReason | None:
        """Return why nothing new is answered any more, if so."""
        if state.closed:
            return "final"
        if not self.certificate.adaptive and state.charges >= self.certificate.charges:
            return "charges"
        return "queries" if state.asked >= self.certificate.queries else None

    def check_affordable(self, nats: float, state: State, what: str) -> None:
        """Refuse a question whose dearest outcome would break a promise of the plan, by public numbers alone."""
        left = self.certificate.room(charges=state.charges, nats=state.nats)
        if nats > left:
            raise InputError(
                f"{what} can cost {nats:.1f} nats, and {max(left, 0.0):.1f} are left beside the charges and the "
                "tolerance that the plan promises; nothing was asked and nothing was told; ask with evaluate or final, "
                "or reserve it when the guard is made: Plan(reveals=..., choices=...)"
            )

    def unknown(self, told: Told) -> InputError:
        """Return the error for an outcome that this way does not have."""
        return InputError(f"{self.name} has no outcome {told.text()!r}")
