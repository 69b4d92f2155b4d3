"""What the guard releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from reusable_holdout import markup
from reusable_holdout.guard.kinds import NOT_CERTIFIED

__all__ = ["Answer", "Choice", "Guardrail"]


class Guardrail(NamedTuple):
    """What a gate tells of one of its guardrails.

    Attributes
    ----------
    metric : str
    prior : float
        What was named for it.
    low, high : float
        The interval of its population value; all values there are, if the gate said "no".
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
        The answer, in the metric's unit: the prior if the holdout agrees; the middle of the cell that was told if it
        does not, or if the value was asked for; of a final, the holdout's own, with noise if the plan names some.
    charged : bool
        Whether the prior deviated and a charge was paid.
    low, high : float
        The interval of the population value.
    prior : float
        The training estimate the question came with; a final has none, and repeats its value.
    query : int
        Number of the question, from 1.
    charges_left : int
        Charges still affordable; at 0 the guard has halted.
    replayed : bool
        Whether the same question had been answered before: then this is that answer, and it cost nothing.
    threshold : float
        Deviation beyond which this question would be charged, before noise; of a reveal or choice the unit of its
        cells, of a final the reach of its noise: 0 without.
    name : str
        What the analyst called the question; may be empty.
    kind : str
        Which way it was asked: "check", "ladder", "gate", "guess-and-check", "compare", "reveal", "choose", "final" ...
    nats : float
        What the answer cost of the description length that widens later intervals.
    told : str
        Name of the outcome: "agreed", "cell 3" ...
    guardrails : tuple of Guardrail
        Of a gate that was asked with some.
    another_budget : bool
        Whether the rows had another budget besides: then nothing is promised of both together.
    """

    value: float
    charged: bool
    low: float
    high: float
    prior: float
    query: int
    charges_left: int
    replayed: bool
    threshold: float
    name: str
    kind: str = "check"
    nats: float = 0.0
    told: str = "agreed"
    guardrails: tuple[Guardrail, ...] = ()
    another_budget: bool = False

    @property
    def paired(self) -> bool:
        """Whether two models were compared: then value, prior and interval are differences."""
        return self.kind.endswith("compare")

    def __str__(self) -> str:
        how = "charged" if self.charged else "agreed" if self.told == "agreed" else self.kind
        how = NOT_CERTIFIED if self.told == NOT_CERTIFIED else how
        again = ", replayed" if self.replayed else ""
        again += ", of rows with another budget" if self.another_budget else ""
        return (
            f"{self.value:.4f} in [{self.low:.4f}, {self.high:.4f}] ({how}{again}; "
            f"query {self.query}, {_in_words(self.charges_left)} left)"
        )

    def __format__(self, spec: str) -> str:
        """As text; with a format of numbers the value alone."""
        return format(self.value, spec) if spec else str(self)

    def _repr_html_(self) -> str:
        return markup.facts_table(self.name or "Answer", _facts(self))


@dataclass(frozen=True, slots=True)
class Choice:
    """What a choice tells.

    Attributes
    ----------
    index : int
        Place of the winner among the candidates, from 0.
    answer : Answer
        Its value, with its interval.
    others : float
        With the guard's confidence, the population value of no other candidate is better than this. It is the best
        value there is where one failed on the holdout: the answer's `told` says that one did, and not which.
    """

    index: int
    answer: Answer
    others: float

    def _repr_html_(self) -> str:
        facts = [
            ("winner", f"candidate {self.index}"),
            *_facts(self.answer),
            ("others", f"none is better than {self.others:.4f}"),
        ]
        return markup.facts_table(self.answer.name or "Choice", facts)


def _facts(answer: Answer) -> list[tuple[str, str]]:
    marks = ", replayed" * answer.replayed + ", of rows with another budget" * answer.another_budget
    facts = [
        ("difference" if answer.paired else "answer", f"{answer.value:.4f}"),
        ("interval", f"[{answer.low:.4f}, {answer.high:.4f}]"),
        ("prior", f"{answer.prior:.4f}"),
        ("told", f"{answer.told}{', charged' * answer.charged} ({answer.kind}{marks})"),
        ("query", f"{answer.query:,}, {_in_words(answer.charges_left)} left"),
    ]
    return facts + [
        (f"guardrail {rail.metric}", f"[{rail.low:.4f}, {rail.high:.4f}], named {rail.prior:.4f}")
        for rail in answer.guardrails
    ]


def _in_words(charges: int) -> str:
    return f"{charges:,} charge{'s' * (charges != 1)}"
