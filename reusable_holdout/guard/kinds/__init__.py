"""The ways to ask: public outcomes with public costs, a rule that picks one from the rows, and its interval.

What every way is stands here; each has a file of its own, and `table` says which is asked when.

Before the rows are read, a question has a public list of outcomes, each with a public weight, the weights summing to at
most one. The outcome that is told costs minus the logarithm of its weight. Any function of the holdout may pick it.
Everything else (transcript, ledger, history, verification) works on this interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import Certificate, Interval, Priced
from reusable_holdout.errors import InputError
from reusable_holdout.ledger import Row, Tail

Floats = NDArray[np.float64]


Integers = NDArray[np.int64]


Prepared = NDArray[np.generic]  # predictions as a metric takes them, the question first

__all__ = [
    "AGREED",
    "FAILED",
    "FINAL",
    "NOT_CERTIFIED",
    "Allowance",
    "Claim",
    "HaltReason",
    "Kind",
    "Outcome",
    "Posed",
    "State",
    "Terms",
    "failed",
]


AGREED = "agreed"
FINAL = "final"
FAILED = "failed"
NOT_CERTIFIED = "not certified"
"""Outcome of a claim whose series has spent its charges: nothing was asked, and it may be anything."""

HaltReason = Literal["charges", "queries", "final"]


class Outcome(NamedTuple):
    """What is told, and what it costs."""

    told: str  # its public name
    value: float  # in the metric's unit
    charged: bool
    nats: float


def failed(row: Row) -> bool:
    """Whether a row records that the analyst's code failed on the holdout: then it has no value to certify."""
    return row.told.startswith(FAILED) or row.told.endswith(FAILED)


class State(NamedTuple):
    """What has been asked and told: public, and all that a decision depends on besides the holdout."""

    query: int = 0  # answers released
    asked: int = 0  # declared queries that they took
    charges: int = 0
    nats: float = 0.0  # cost of all outcomes that were told
    closed: bool = False  # whether a final was given: nothing new is answered any more
    value: float | None = None  # the last one told in the question's series
    last_charge: int | None = None  # queries asked up to the last charge; None, not known, is the dearest
    last_charged: bytes = b""  # digest of the question that was charged last; empty if none was

    @classmethod
    def after(cls, row: Row | Tail, last_charge: int | None = None, last_charged: bytes = b"") -> Self:
        """State after an answer, or at the end of a ledger."""
        closed = row.kind == FINAL
        return cls(row.query, row.asked, row.charges, row.spent_nats, closed, None, last_charge, last_charged)


class Allowance(NamedTuple):
    """Charges of a plan: of everybody together, or of each series of claims."""

    charges: int
    of_each: bool

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Self:
        """Allowance of a plan's record."""
        return cls(min(plan["charges"], plan["queries"]), plan["policy"] == "claims")

    def left(self, charges: int) -> int:
        """Charges that are left after so many; a promise, whatever was told."""
        return max(0, self.charges - charges)

    def left_after(self, rows: Sequence[Row]) -> list[int]:
        """Charges that whoever asked has left after each answer."""
        if not self.of_each:
            return [self.left(row.charges) for row in rows]
        made: Counter[tuple[int, str]] = Counter()
        found = []
        for row in rows:
            made[row.view, row.series] += row.charged
            found.append(self.left(made[row.view, row.series]))
        return found


class Claim(NamedTuple):
    """What is public of a claim before the rows are read."""

    priced: Priced  # weights of its outcomes
    leads: bool  # whether it will be measured if it stands
    least_lead: float  # value that a measured one must reach to take the lead, in the metric's unit
    charges_left: int  # of its series; with none it is not certified


class Terms(NamedTuple):
    """Public numbers of one question, once its state is known."""

    prior: float  # what it is compared with
    threshold: (
        float  # unit of its outcomes, in the metric's: the deviation that is charged, or a cell's width
    )
    claim: Claim | None = None  # of a claim: where it stands on its board


class Posed(NamedTuple):
    """A question as it is decided: by its digest, at its description length."""

    terms: Terms
    question: bytes
    length: float


class Kind(ABC):
    """One way to ask, by the certificate of a plan and a metric."""

    #: Name in the ledger.
    name: ClassVar[str]
    #: Whether several are asked together, and certified by the state before all of them.
    in_batches: ClassVar[bool] = True
    #: Whether the rows' own confidence set is needed, not the score alone; see `samples`.
    by_sample: ClassVar[bool] = False
    #: Whether a question is compared with the last answer of its series.
    climbs: ClassVar[bool] = False
    #: Whether it is asked on a board, where every series has an allowance of its own; see `claiming`.
    on_board: ClassVar[bool] = False
    #: Whether it ends what is asked, and all of it are told together.
    ends: ClassVar[bool] = False

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate

    @property
    def worst(self) -> float:
        """The worst value that there is: what is told of what failed on the holdout."""
        return self.certificate.lower if self.certificate.greater_is_better else self.certificate.upper

    @property
    def best(self) -> float:
        """The best value that there is: no other is better."""
        return self.certificate.upper if self.certificate.greater_is_better else self.certificate.lower

    @property
    def all_values(self) -> Interval:
        """Interval of an outcome that says nothing of the value."""
        return Interval(self.certificate.lower, self.certificate.upper)

    # ---- public

    @abstractmethod
    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Value, charge and cost of an outcome, from its name; InputError if these terms have no such outcome."""

    @abstractmethod
    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of the population value after an outcome, at a question of the given description length."""

    def recalled(self, rows: Sequence[Row]) -> list[Terms]:
        """Public numbers of all questions of this kind that were answered, in their order."""
        return [Terms(row.prior, row.threshold) for row in rows]

    def length(self, state: State, answers: int = 1) -> float:
        """Description length of a question in a state."""
        return self.certificate.length(charges=state.charges, nats=state.nats)

    def worst_nats(self, candidates: int = 1) -> float:
        """Cost of its dearest outcome beside charges, which must be affordable before it is asked."""
        return 0.0

    def takes(self, told: str) -> int:
        """How many of the declared queries a question with this outcome takes."""
        return 1

    def halt_reason(self, state: State) -> HaltReason | None:
        """Why nothing new of this kind is answered any more, if so."""
        if state.closed:
            return "final"
        if not self.certificate.adaptive and state.charges >= self.certificate.charges:
            return "charges"
        return "queries" if state.asked >= self.certificate.queries else None

    def numbered(self, told: str, word: str, numbers: range) -> int:
        """Number in an outcome's name, such as "cell 3"; InputError if it is none of this kind."""
        said, _, number = told.partition(" ")
        if said != word or not number.isdecimal() or int(number) not in numbers:
            raise self.unknown(told)
        return int(number)

    def unknown(self, told: str) -> InputError:
        """Error for an outcome that this kind does not have."""
        return InputError(f"{self.name} has no outcome {told!r}")
