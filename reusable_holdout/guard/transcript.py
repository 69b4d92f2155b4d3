"""The released answers about a set of rows, what is left of the budget, and the ledger rows made from answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import accumulate, count, repeat
from typing import Any

import numpy as np

from reusable_holdout.answer import Answer
from reusable_holdout.errors import BudgetError, Halted, ModelError, printable
from reusable_holdout.guard import halts
from reusable_holdout.ledger import Ledger, Row, Tail
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.rules import Floats
from reusable_holdout.ways import Allowance, Outcome, State, Terms, Told, Way
from reusable_holdout.ways.check import Batch, Check
from reusable_holdout.ways.table import outcome_word


class Transcript:
    """The released answers of one guard, in its ledger."""

    def __init__(self, ledger: Ledger, plan: Mapping[str, Any], *, another_budget: bool) -> None:
        self.ledger, self.queries, self.another_budget = ledger, plan["queries"], another_budget
        self.allowance = Allowance.of(plan)

    @property
    def state(self) -> State:
        """The number of questions asked, and the outcomes released."""
        return self.state_at(self.ledger.tail())

    @staticmethod
    def state_at(tail: Tail) -> State:
        """Return the state at the end of a ledger."""
        return State.after(tail, tail.last_charge, tail.last_charged)

    def halt(self, reason: str, answers: Sequence[Answer | ModelError]) -> Halted:
        """Build the exception that says which queries used up the budget, and what to do now."""
        given = [None if isinstance(one, ModelError) else one for one in answers]
        return halts.halted(self.ledger, self.state, self.queries, reason, given)

    def check_room(self, asked: int, state: State) -> None:
        """Raise a BudgetError if more new questions are asked than queries are left."""
        left = self.queries - state.asked
        if asked > left:
            raise BudgetError(
                f"{asked} new questions asked, {left} left of {self.queries}; "
                "nothing was answered and nothing was charged; ask fewer"
            )

    def answer(self, row: Row, unit: Unit, left: int, *, replayed: bool) -> Answer | ModelError:
        """Return the answer that a ledger row records, or its error; `left` is how many charges the asker has left."""
        told = Told.parse(row.told)
        if told is None or told.failed:
            return self._failure(row, told, left)
        word = outcome_word(row.kind, told)
        low, high = unit.ends(row.low, row.high)
        value = unit.own(row.value)
        return Answer(
            value=value,
            low=low,
            high=high,
            outcome=word,
            measured=value if told.says_a_value else None,
            charged=row.charged == 1,
            charges_left=left,
            replayed=replayed,
            prior=unit.own(row.prior),
            query=row.query,
            nats=row.nats,
            name=printable(row.name) if row.name else "",
            way=row.kind,
            threshold=row.threshold * unit.span,
            told=row.told,
            another_budget=self.another_budget,
        )

    def _failure(self, row: Row, told: Told | None, left: int) -> ModelError:
        remain = f"{left} charge is left" if left == 1 else f"{left} charges are left"
        took, best = "one charge" if row.charged else f"{row.nats:.1f} nats", ""
        if told is not None and told.winner is not None:
            took += f" and {told.winner.candidates:,} {'query' if told.winner.candidates == 1 else 'queries'}"
            best = (
                "; the best of the candidates that did not fail, if there is one, is number "
                f"{told.winner.candidate + 1}"
            )
        if row.kind == "final":
            took = "the final, which was given"
        return ModelError(
            "the model or metric failed on the holdout, or X_train holds rows of the holdout, more than chance "
            "explains; which of the two, and the error text, are withheld to protect the holdout; either is a "
            f"fact about the holdout and took {took} (query {row.query}, after which "
            f"{self.queries - row.asked:,} of {self.queries:,} queries were left), {remain}; "
            f"try the model on training rows with the same columns, and check where X_train came from{best}"
        )


# ---- answers become rows


def row_of(
    way: Way,
    state: State,
    digest: bytes,
    terms: Terms,
    outcome: Outcome,
    *,
    length: float | None = None,
    takes: int = 1,
    batch: int | None = None,
    name: str = "",
    series: str = "",
    tolerance: float = 0.0,
) -> Row:
    """Return the ledger row of an answer, given the state before it; by default its question was asked alone."""
    query = state.query + 1
    low, high = way.interval(outcome.told, terms, way.length(state) if length is None else length)
    return Row(
        query=query,
        batch=query if batch is None else batch,
        digest=digest,
        prior=terms.prior,
        value=outcome.value,
        charged=int(outcome.charged),
        threshold=terms.unit,
        tolerance=tolerance,
        low=float(low),
        high=float(high),
        nats=outcome.nats,
        charges=state.charges + int(outcome.charged),
        spent_nats=state.nats + outcome.nats,
        asked=state.asked + takes,
        asked_at=time.time(),
        view=way.certificate.view,
        kind=way.name,
        told=outcome.told.text(),
        name=printable(name) if name else "",
        series=series,
    )


def rows_of_batch(
    way: Check,
    decided: Batch,
    digests: Sequence[bytes],
    priors: Floats,
    names: Sequence[str],
    state: State,
    tolerances: Floats | None,
) -> list[Row]:
    """Return the ledger rows of a decided batch, up to a halt; all intervals are computed from the state before it."""
    units, outcomes = decided
    length, first, size = way.length(state), state.query + 1, len(outcomes)
    priors = priors[:size]
    lows, highs = (np.asarray(ends).tolist() for ends in way.calm_intervals(priors, units, length))
    stated, thresholds = priors.tolist(), units.tolist()
    values, charged, nats, told = list(stated), [0] * size, [0.0] * size, [way.calm.text()] * size
    for place, outcome in enumerate(outcomes):
        if outcome is not None:
            told[place], values[place], _, nats[place] = outcome._replace(told=outcome.told.text())  # type: ignore[arg-type,call-overload]
            charged[place] = 1
            low, high = way.interval(outcome.told, Terms(stated[place], thresholds[place]), length)
            lows[place], highs[place] = float(low), float(high)
    charges = list(accumulate(charged, initial=state.charges))[1:]
    spent = list(accumulate(nats, initial=state.nats))[1:]
    own = [0.0] * size if tolerances is None else tolerances.tolist()
    shown = [printable(name) if name else "" for name in names]
    numbers = (stated, values, charged, thresholds, own, lows, highs, nats, charges, spent)
    same = map(repeat, (time.time(), way.certificate.view, way.name))
    columns = zip(count(first), repeat(first), digests, *numbers, count(state.asked + 1), *same, told, shown)
    return [Row(*row) for row in columns]


def first_occurrences(digests: Sequence[bytes], known: Mapping[bytes, Row]) -> list[int]:
    """Return the positions of the questions that are not `known`; equal questions count once, at the first position."""
    if not known and len(set(digests)) == len(digests):
        return list(range(len(digests)))
    new: dict[bytes, int] = {}
    for place, digest in enumerate(digests):
        if digest not in known:
            new.setdefault(digest, place)
    return list(new.values())
