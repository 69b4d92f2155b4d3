"""The ways to ask: each has public outcomes with public costs and intervals, and picks one outcome by the rows.

Before the rows are read, a question has a public list of outcomes. Each has a public weight, and the weights sum to at
most one. The released outcome costs minus the logarithm of its weight, in nats. The code that picks the outcome may use
the holdout in any way. In this package all scores are rescaled to [0, 1], and greater is better.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, Self

from reusable_holdout.certainty import Certificate, Interval
from reusable_holdout.errors import InputError
from reusable_holdout.ledger import Row, Tail
from reusable_holdout.metrics import GRID

__all__ = [
    "AGREED",
    "ALL",
    "CELL",
    "FAILED",
    "FINAL",
    "MEASURED",
    "NO",
    "NOT_CERTIFIED",
    "SPAN",
    "TOLD_WORDS",
    "VALUE",
    "YES",
    "Allowance",
    "HaltReason",
    "Outcome",
    "State",
    "Terms",
    "Told",
    "Way",
    "Winner",
    "failed",
    "tidy",
]

AGREED = "agreed"
FAILED = "failed"
YES = "yes"
NO = "no"
CELL = "cell"
SPAN = "span"
MEASURED = "measured"
VALUE = "value"
STEPS = "steps"
"""The outcome of a ladder; only earlier versions have ladders."""
NOT_CERTIFIED = "not certified"

_PLACED, _NAMED = {CELL, SPAN, MEASURED, STEPS}, {AGREED, FAILED, YES, NO, NOT_CERTIFIED}
_WINNER = re.compile(r"candidate (\d+) of (\d+), rank (\d+), (.+)")
_WIDTH, _WITHIN, _WITH, _WEIGHT = ", width ", " within ", " with ", ", weight "


class Winner(NamedTuple):
    """Winner of a choice.

    Attributes
    ----------
    candidate : int
        Place of the winner among the candidates, from 0.
    candidates : int
    rank : int
        Rank of its prior among the candidates' priors, from 1, the best; equal ones in their order.
    """

    candidate: int
    candidates: int
    rank: int

    @property
    def fits(self) -> bool:
        """True if the place and the rank are possible for so many candidates."""
        return self.candidate < self.candidates and 1 <= self.rank <= self.candidates


class Told(NamedTuple):
    """An outcome.

    Attributes
    ----------
    word : str
        One of the words above.
    place : int, optional
        Place of a cell, a span or a measured claim.
    width : int, optional
        Steps on the public grid of widths, from the guessed width.
    value : float, optional
        Value of a final, in [0, 1].
    ends : tuple of float, optional
        Ends of the interval that a final released.
    winner : Winner, optional
        Winner of a choice.
    rails : tuple of (int, float)
        View of each guardrail, and its named value, in [0, 1].
    weight : int, optional
        Weight of an answer of a final, where there are several, in units of 2**-20.
    """

    word: str
    place: int | None = None
    width: int | None = None
    value: float | None = None
    ends: tuple[float, float] | None = None
    winner: Winner | None = None
    rails: tuple[tuple[int, float], ...] = ()
    weight: int | None = None

    @property
    def failed(self) -> bool:
        """True if the model or metric failed on the holdout: then there is no value."""
        return self.word == FAILED

    @property
    def says_a_value(self) -> bool:
        """True if it releases a value of the rows, rounded or not; an agreement and a gate's verdict do not."""
        return not self.failed and (self.place is not None or self.value is not None)

    def text(self) -> str:
        """Return the outcome as a ledger writes it; :meth:`parse` reads it."""
        text = self.word
        if self.place is not None:
            text += f" {self.place}"
        if self.value is not None:
            text += f" {self.value!r}"
        if self.width is not None:
            text += f"{_WIDTH}{self.width}"
        if self.ends is not None:
            text += f"{_WITHIN}{self.ends[0]!r} {self.ends[1]!r}"
        if self.weight is not None:
            text += f"{_WEIGHT}{self.weight}"
        if self.rails:
            text += _WITH + " ".join(f"{view}:{named!r}" for view, named in self.rails)
        if self.winner is not None:
            one = self.winner
            text = f"candidate {one.candidate} of {one.candidates}, rank {one.rank}, {text}"
        return text

    @classmethod
    @lru_cache(maxsize=1024)  # most answers are told in few words
    def parse(cls, text: str) -> Self | None:
        """Read an outcome; None if no outcome is written like this."""
        try:
            told = cls._parsed(text)
        except ValueError:
            return None
        return told if told.text() == text and (told.winner is None or told.winner.fits) else None

    @classmethod
    def _parsed(cls, text: str) -> Self:
        winner, found = None, _WINNER.fullmatch(text)
        if found is not None:
            *numbers, text = found.groups()
            winner = Winner(*map(int, numbers))
        text, _, rails = text.partition(_WITH)
        named = (one.split(":") for one in rails.split())
        pairs = tuple((int(view), float(number)) for view, number in named)
        text, _, given = text.partition(_WEIGHT)
        weight = int(given) if given else None
        text, _, within = text.partition(_WITHIN)
        ends = tuple(map(float, within.split())) or None
        text, _, width = text.partition(_WIDTH)
        steps = int(width) if width else None
        if text in _NAMED:
            return cls(text, None, steps, None, None, winner, pairs, weight)
        word, _, number = text.partition(" ")
        place, value = (int(number), None) if word in _PLACED else (None, float(number))
        if word not in _PLACED | {VALUE} or (ends is not None and len(ends) != 2):
            raise ValueError
        return cls(word, place, steps, value, ends, winner, pairs, weight)


FINAL = "final"
ALL = Interval(0.0, 1.0)
"""Interval of an outcome that says nothing of the value."""

HaltReason = Literal["charges", "queries", "final"]

_DIGITS = 9  # coarser than the grid of scores, within its slack


def tidy(value: float) -> float:
    """Return a value without the digits below the noise grid, in [0, 1]."""
    return min(max(round(value, _DIGITS), 0.0), 1.0)


class Outcome(NamedTuple):
    """A released outcome, and its cost."""

    told: Told
    value: float  # in [0, 1]
    charged: bool
    nats: float


class State(NamedTuple):
    """The questions asked and outcomes released so far; with the holdout, all that a decision depends on."""

    query: int = 0  # answers released
    asked: int = 0  # declared queries that they took
    charges: int = 0
    nats: float = 0.0  # cost of all outcomes that were told
    closed: bool = False  # True after a final: nothing new is answered any more
    last_charge: int | None = None  # queries asked up to the last charge; None if not known, which costs most
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
    """One way to ask, with its certificate; the ledger stores its name.

    The public methods of a way use no rows: :func:`verify` calls them, too. Every way has `outcome` and `interval`. A
    way that costs nats, and no charge, also has `least_nats`, `worst_nats` and one private method, ``decide(measured,
    prior, digest, state)``. It picks the outcome from the rows, and returns `Terms` and an `Outcome`. `measured` is
    None if the model failed; else it is the score on the grid, or with `by_rows` a sample, whose `ends` bound the
    population value at the level that ``self.length(state)`` leaves.
    """

    #: True if several questions are asked together, and certified by the state before all of them.
    batches: ClassVar[bool] = False
    #: True if no question may follow; its answers are released together.
    ends: ClassVar[bool] = False
    #: True if each series has an allowance of charges of its own.
    by_series: ClassVar[bool] = False
    #: True if a question may state a tolerance of its own.
    takes_tolerances: bool = False
    #: True if the rows of a question are measured, and not its score alone.
    by_rows: bool = False

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

    def grid(self, prior: float) -> int:
        """Return a prior on the grid: priors that are the same there are the same question."""
        return round(prior * GRID)

    def keeps(self, prior: float, tolerance: float, length: float) -> bool:
        """Return True if an answer whose history costs this many nats (its description length) can keep a tolerance."""
        return False

    def length(self, state: State, answers: int = 1) -> float:
        """Return the description length of a question in a state."""
        return self.certificate.length(charges=state.charges, nats=state.nats)

    def least_nats(self, candidates: int = 1) -> float:
        """Return the cost of its cheapest outcome that is not a charge."""
        return 0.0

    def worst_nats(self, candidates: int = 1) -> float:
        """Return the cost of its most expensive outcome that is not a charge; a question must be able to afford it."""
        return 0.0

    def takes(self, told: Told) -> int:
        """Return the number of declared queries that a question with this outcome takes."""
        return 1

    def halt_reason(self, state: State) -> HaltReason | None:
        """Return why nothing new is answered any more, if so."""
        if state.closed:
            return "final"
        if not self.certificate.adaptive and state.charges >= self.certificate.charges:
            return "charges"
        return "queries" if state.asked >= self.certificate.queries else None

    def check_affordable(self, nats: float, state: State, what: str) -> None:
        """Refuse a question whose most expensive outcome would break the plan's promise, by public numbers."""
        left = self.certificate.room(charges=state.charges, nats=state.nats)
        if nats > left:
            raise InputError(
                f"{what} can cost {nats:.1f} nats, and {max(left, 0.0):.1f} are left after what the charges and "
                "the tolerance of the plan need; nothing was asked and nothing was told; ask with evaluate or final, "
                "or reserve it when the guard is made: Plan(reveals=..., choices=...)"
            )

    def unknown(self, told: Told) -> InputError:
        """Return the error for an outcome that this way does not have."""
        return InputError(f"{self.name} has no outcome {told.text()!r}")


TOLD_WORDS = {
    "agreed": "agreed",
    CELL: "corrected",
    SPAN: "corrected",
    YES: "better",
    NO: "not shown",
    MEASURED: "measured",
    NOT_CERTIFIED: "not certified",
    FAILED: "failed",
}
"""The outcome of an answer by the word that was told, for ways that do not name their outcome themselves."""


def failed(row: Row) -> bool:
    """Return True if a row records that the analyst's code failed on the holdout: it has no value to certify."""
    told = Told.parse(row.told)
    return told is not None and told.failed


class Allowance(NamedTuple):
    """The charges of a plan: shared by everybody, or separate for each series of claims."""

    charges: int
    of_each: bool

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> Allowance:
        """Read the allowance of charges from the record of a plan in a ledger."""
        return cls(min(plan["charges"], plan["queries"]), plan["asks"] == "claims")

    def left(self, charges: int) -> int:
        """Return the charges left after `charges`; other releases do not change them, as the plan promises."""
        return max(0, self.charges - charges)

    def left_after(self, rows: Sequence[Row]) -> list[int]:
        """Return the charges that the asker has left after each answer."""
        if not self.of_each:
            return [self.left(row.charges) for row in rows]
        made: Counter[tuple[int, str]] = Counter()
        found = []
        for row in rows:
            made[row.view, row.series] += row.charged
            found.append(self.left(made[row.view, row.series]))
        return found
