"""The answers that a guard releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from reusable_holdout.errors import ModelError

__all__ = ["Answer", "Choice", "Drift", "Finals", "Guardrail", "Price", "in_words"]


class Guardrail(NamedTuple):
    """The result of one guardrail of a gate.

    Attributes
    ----------
    metric : str
    prior : float
        The value that the gate's question named for this metric.
    low, high : float
        The interval of the metric's population value; all possible values, unless the gate said "better".
    """

    metric: str
    prior: float
    low: float
    high: float


class Answer(NamedTuple):
    """One released answer.

    With the guard's confidence, the intervals of all its answers together contain the population values.

    Attributes
    ----------
    value : float
        The answer, in the metric's unit: the prior if the holdout agrees; the middle of the released cell if it does
        not, or if the value was asked for; for a final, the holdout's own value.
    low, high : float
        The interval of the population value.
    outcome : str
        "agreed", "corrected", "better", "worse" and "not shown" (of a gate), "revealed", "chosen", "final", "measured"
        and "not certified" (of a claim).
    measured : float or None
        The value released from the holdout; None if the holdout only agreed, or only yes or no was released.
    charged : bool
        True if a charge was paid.
    charges_left : int
        Charges still affordable; at 0 the guard has halted.
    replayed : bool
        True if the same question was answered before: then this answer repeats the earlier one, and was free.
    prior : float
        The analyst's own estimate, given with the question, or a gate's named value; a final repeats its value.
    query : int
        Number of the question, from 1.
    nats : float
        Cost of the answer, in description length; it widens later intervals.
    name : str
        The analyst's name of the question; may be empty.
    way : str
        The way in which the question was asked, as the ledger names it: "check", "compare", "gate", "gate-compare",
        "guarded-gate", "guarded-compare", "reveal", "choose", "final", "claim".
    threshold : float
        Deviation beyond which this question would be charged, before noise; for a reveal or choice the unit of its
        cells.
    told : str
        Name of the outcome in the ledger: "agreed", "cell 3" ...
    guardrails : tuple of Guardrail
        The results of a gate's guardrails; empty if it has none.
    another_budget : bool
        True if the rows also had another budget: then the two sets of intervals are no longer jointly valid.
    """

    value: float
    low: float
    high: float
    outcome: str
    measured: float | None
    charged: bool
    charges_left: int
    replayed: bool
    prior: float
    query: int
    nats: float
    name: str
    way: str = "check"
    threshold: float = 0.0
    told: str = "agreed"
    guardrails: tuple[Guardrail, ...] = ()
    another_budget: bool = False

    @property
    def paired(self) -> bool:
        """True if two models were compared: then value, prior and interval are differences."""
        return self.way.endswith("compare")

    def __str__(self) -> str:
        interval = f"[{self.low:.4f}, {self.high:.4f}]"
        said = f"{self.value:.4f} in {interval} ({self.outcome}"
        if self.outcome == "agreed":
            said = f"your {self.prior:.4f} stands: the truth is in {interval} (agreed"
        elif self.outcome in {"better", "worse", "not shown"}:
            said = f"{self.outcome}: {self.prior:.4f} was named, the truth is in {interval} (gate"
        said += ", charged" * self.charged + ", replayed" * self.replayed
        said += ", of rows with another budget" * self.another_budget
        return f"{said}; query {self.query}, {in_words(self.charges_left)} left)"

    def __format__(self, spec: str) -> str:
        """Return the answer as text, or only its value if a number format is given."""
        return format(self.value, spec) if spec else str(self)


@dataclass(frozen=True, slots=True)
class Choice:
    """The result of a choice.

    Attributes
    ----------
    index : int
        Place of the winner among the candidates, from 0.
    answer : Answer
        The winner's value, with its interval.
    others : float
        With the guard's confidence, the population value of no other candidate is better than this.
    """

    index: int
    answer: Answer
    others: float


class Drift(NamedTuple):
    """The difference of one model's scores on two slices: new minus old; see :meth:`ReusableHoldout.drift`.

    Attributes
    ----------
    value, low, high : float
        The difference of both answers, and its interval, in the metric's unit.
    new, old : Answer
    """

    value: float
    low: float
    high: float
    new: Answer
    old: Answer


class Finals(list["Answer | ModelError"]):
    """The answers of a final about several models, in their order; all intervals hold together.

    A model that failed on the holdout has a :class:`~reusable_holdout.errors.ModelError` in its place.

    Attributes
    ----------
    best_index : int
        Place of the best model, from 0: the one whose interval has the best worse end.
    best : Answer
        The answer about the best model.

    Raises
    ------
    ModelError
        From `best_index` and `best`, if every model failed.
    """

    def __init__(self, answers: Sequence[Answer | ModelError], *, greater_is_better: bool = True) -> None:
        super().__init__(answers)
        self._sign = 1.0 if greater_is_better else -1.0

    @property
    def best_index(self) -> int:
        """Place of the best model, from 0."""
        worse = [
            -math.inf if isinstance(one, ModelError) else min(self._sign * one.low, self._sign * one.high)
            for one in self
        ]
        place = max(range(len(self)), key=worse.__getitem__)
        if isinstance(self[place], ModelError):
            raise cast("ModelError", self[place])
        return place

    @property
    def best(self) -> Answer:
        """Answer of the best model."""
        return cast("Answer", self[self.best_index])


def in_words(charges: int) -> str:
    """Return a text such as "1 charge" or "2,000 charges"."""
    return f"{charges:,} charge{'s' * (charges != 1)}"


class Price(NamedTuple):
    """The possible cost of a question.

    Attributes
    ----------
    least, most : float
        Nats, at its cheapest and at its most expensive outcome.
    final_width : float
        Half-width that a final would certify after the most expensive outcome, at the plan's `estimate`.
    allowed : bool
        True if it would be answered now: the guard has not halted, enough queries are left (a choice takes one for each
        candidate), and no outcome would break a promise of the plan.
    """

    least: float
    most: float
    final_width: float
    allowed: bool
