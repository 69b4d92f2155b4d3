"""What was released of a set of rows, and what is left: the rows of a ledger, written from answers and read back."""

from __future__ import annotations

import time
from itertools import accumulate, islice, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reusable_holdout.errors import BudgetError, Halted, ModelError
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.configuration import released_by
from reusable_holdout.guard.kinds import AGREED, Allowance, Outcome, State, Terms, failed
from reusable_holdout.ledger import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds import HaltReason, Kind
    from reusable_holdout.guard.kinds.check import Check
    from reusable_holdout.ledger import Ledger, Tail, Transaction
    from reusable_holdout.plan import Plan
    from reusable_holdout.validity import Interval

__all__ = ["Answered", "Query", "agreed_rows", "first_occurrences", "row_of", "rows_of_batch"]

_HALTED = {
    "queries": "all {queries} declared queries are asked",
    "final": "a final was given, and ends what can be asked of these rows",
}
_SHOWN = 20  # of the queries that were charged
_FEW = 16  # questions of a batch


class Query(NamedTuple):
    """What names a question in the ledger."""

    digest: bytes
    name: str = ""
    series: str = ""
    tolerance: float | None = None  # its own, if it named one


class Answered:
    """The released answers of one guard, in its ledger; all of them say whether the rows have another budget."""

    def __init__(self, ledger: Ledger, plan: Plan, *, another_budget: bool) -> None:
        self._ledger, self._queries, self._another_budget = ledger, plan.queries, another_budget
        self._allowance = Allowance.of(plan.record())

    @property
    def state(self) -> State:
        """What has been asked and told."""
        return _at(self._ledger.tail())

    def charges_left(self, charges: int) -> int:
        """Charges that are left after so many; a promise, whatever was told."""
        return self._allowance.left(charges)

    def length_of(self, kind: Kind, query: int) -> float:
        """Description length of an answered question."""
        row = self._ledger.rows(after=query - 1)[0]
        before = State(charges=row.charges - row.charged, nats=row.spent_nats - row.nats)
        return kind.length(before)

    def needs_rows(self, kind: Kind, question: bytes, refuse: Callable[[State], None] | None = None) -> bool:
        """Whether an answer needs the rows: not one that was given before, and none after a halt, which is for good.

        What `refuse` raises by public numbers it raises here, too, before the rows are read; the transaction decides.
        """
        state = self.state
        if kind.halt_reason(state) is not None or self._ledger.find(question) is not None:
            return False
        if refuse is not None:
            refuse(state)
        return True

    def has_failed(self, question: bytes) -> bool:
        """Whether a question was asked before, and the model or metric failed."""
        row = self._ledger.find(question)
        return row is not None and failed(row)

    def needs_rows_of_batch(
        self,
        kind: Check,
        questions: Sequence[bytes],
        priors: NDArray[np.float64],
        tolerances: NDArray[np.float64] | None,
    ) -> bool:
        """Whether a batch needs the rows: not one without a new question, and none that has no room.

        The ledger is read for more than its first question only where that decides. Raises BudgetError or InputError if
        more is new than queries are left, or a tolerance cannot be kept.
        """
        state = self.state
        if kind.halt_reason(state) is not None:
            return False
        roomy = len(questions) <= self._queries - state.asked and tolerances is None
        if roomy and self._ledger.find(questions[0]) is None:
            return True
        with self._ledger.transaction() as transaction:
            new = first_occurrences(questions, transaction.find(questions))
        if new:
            self.check_room(len(new), state)
            kind.check_room(priors[new], None if tolerances is None else tolerances[new], state)
        return bool(new)

    def halt(self, reason: HaltReason, answers: Sequence[Answer]) -> Halted:
        """Build the exception that says what was spent on what, and what to do now."""
        history = self.history()
        unanswered = (
            "this question was not answered" if not answers else f"{len(answers)} of the batch were answered"
        )
        todo = (
            "Guard fresh rows to go on (Plan says how many, rotate keeps the ledger)."
            if reason == "final"
            else "guard.final(model) still certifies the end of the project, once; to go on, guard fresh rows (Plan "
            "says how many, rotate keeps the ledger)."
        )
        return Halted(
            f"the guard has halted: {_why(reason, history, self._queries)}; {unanswered}. What was released stays "
            f"valid: see .history; questions already asked replay free. {todo}",
            reason=reason,
            history=history,
            answers=answers,
        )

    def history(self) -> pd.DataFrame:
        """Everything released, in order."""
        return released_by(self._ledger, self._ledger.epoch).history

    def state_in(self, transaction: Transaction, kind: Kind, series: str = "") -> State:
        """State before a question of a kind, as a transaction finds it."""
        value = transaction.last_value(kind.name, kind.certificate.view, series) if kind.climbs else None
        return _at(transaction.tail)._replace(value=value)

    def check_room(self, asked: int, state: State) -> None:
        """Refuse more new questions than are left, by a BudgetError."""
        left = self._queries - state.asked
        if asked > left:
            raise BudgetError(
                f"{asked} new questions asked, {left} left of {self._queries}; "
                "nothing was answered and nothing was charged; ask fewer"
            )

    def answer_with(self, row: Row, left: int, *, replayed: bool) -> Answer:
        """Answer of a row, to whom so many charges are left."""
        if failed(row):
            remain = f"{left} charge is left" if left == 1 else f"{left} charges are left"
            raise ModelError(
                "the model or metric failed on the holdout, or X_train holds rows of the holdout, more than chance "
                "explains; which, and a failure's words, are withheld, for they may quote the holdout; either is a "
                f"fact about the holdout and took {_taken(row)} (query {row.query}, after which "
                f"{self._queries - row.asked:,} of {self._queries:,} queries were left), {remain}; "
                "try the model on training rows with the same columns, and see whence X_train came"
            )
        return Answer(
            row.value,
            row.charged == 1,
            row.low,
            row.high,
            row.prior,
            row.query,
            left,
            replayed,
            row.threshold,
            row.name,
            row.kind,
            row.nats,
            row.told,
            another_budget=self._another_budget,
        )


def _taken(row: Row) -> str:
    """What a failure took: of the budget, and, of a choice, of the declared queries."""
    from reusable_holdout.guard.kinds.choose import Winner  # noqa: PLC0415 - not loaded unless something fails

    took = "one charge" if row.charged else f"{row.nats:.1f} nats"
    choice = Winner.parse(row.told)
    if choice is None:
        return took
    return f"{took} and {choice.candidates:,} {'query' if choice.candidates == 1 else 'queries'}"


def _why(reason: HaltReason, history: pd.DataFrame, queries: int) -> str:
    """Why it has halted, and what was paid for what."""
    paid = history.loc[history["charged"], "query"].tolist()
    numbers = ", ".join(map(str, paid[:_SHOWN])) + ", ..." * (len(paid) > _SHOWN)
    on = f"on {'query' if len(paid) == 1 else 'queries'} {numbers}"
    if reason == "charges":
        return f"{'the only charge is' if len(paid) == 1 else f'all {len(paid)} charges are'} spent ({on})"
    return _HALTED[reason].format(queries=queries) + (f" (charges were paid {on})" if paid else "")


def _at(tail: Tail) -> State:
    return State.after(tail, tail.last_charge, tail.last_charged)


# ---- answers become rows


def row_of(
    kind: Kind,
    state: State,
    question: Query,
    terms: Terms,
    outcome: Outcome,
    interval: Interval,
    *,
    takes: int = 1,
    batch: int | None = None,
) -> Row:
    """Row of one answer, in the state before it."""
    query = state.query + 1
    return Row(
        query=query,
        batch=query if batch is None else batch,
        digest=question.digest,
        prior=terms.prior,
        value=outcome.value,
        charged=int(outcome.charged),
        threshold=terms.threshold,
        tolerance=question.tolerance or 0.0,
        low=float(interval.low),
        high=float(interval.high),
        nats=outcome.nats,
        charges=state.charges + int(outcome.charged),
        spent_nats=state.nats + outcome.nats,
        asked=state.asked + takes,
        asked_at=time.time(),
        view=kind.certificate.view,
        kind=kind.name,
        told=outcome.told,
        name=question.name,
        series=question.series,
    )


def rows_of_batch(
    kind: Check,
    scores: NDArray[np.int64],
    priors: NDArray[np.float64],
    questions: Sequence[bytes],
    names: Sequence[str],
    state: State,
    tolerances: NDArray[np.float64] | None,
    series: str,
) -> list[Row]:
    """Decide a batch, up to a halt, and make its rows; those that agree are certified at once."""
    stated, thresholds, outcomes = kind.decide_many(scores, priors, questions, state, tolerances)
    length, first, count = kind.length(state), state.query + 1, len(outcomes)
    lows, highs = _agreed(kind, stated, thresholds, length)
    values, charged, nats, told = stated.tolist(), [0] * count, [0.0] * count, [AGREED] * count
    for place, outcome in enumerate(outcomes):
        if outcome is not None:
            terms = Terms(float(stated[place]), float(thresholds[place]))
            told[place], values[place], _, nats[place] = outcome
            charged[place] = 1
            low, high = kind.interval(outcome, terms, length)
            lows[place], highs[place] = float(low), float(high)
    columns = (
        range(first, first + count),
        repeat(first),
        questions,
        stated.tolist(),
        values,
        charged,
        thresholds.tolist(),
        repeat(0.0) if tolerances is None else tolerances.tolist(),
        lows,
        highs,
        nats,
        islice(accumulate(charged, initial=state.charges), 1, None),
        islice(accumulate(nats, initial=state.nats), 1, None),
        range(state.asked + 1, state.asked + count + 1),
        repeat(time.time()),
        repeat(kind.certificate.view),
        repeat(kind.name),
        told,
        names,
        repeat(series),
    )
    return list(map(Row._make, zip(*columns, strict=False)))  # questions after a halt have no row


def _agreed(
    kind: Check, priors: NDArray[np.float64], thresholds: NDArray[np.float64], length: float
) -> tuple[list[float], list[float]]:
    """Both ends of the interval of each question, should it agree; a few are faster one by one."""
    if len(priors) > _FEW:
        low, high = kind.agreed(priors, thresholds, length)
        return np.asarray(low).tolist(), np.asarray(high).tolist()
    pairs = zip(priors.tolist(), thresholds.tolist(), strict=True)
    ends = [kind.agreed(prior, threshold, length) for prior, threshold in pairs]
    return [float(low) for low, _ in ends], [float(high) for _, high in ends]


def agreed_rows(
    kind: Check, state: State, queries: Sequence[Query], priors: NDArray[np.float64]
) -> list[Row]:
    """Rows of a batch of which nothing is told but that it agrees."""
    rows, after, length = [], state, kind.length(state)
    for query, prior in zip(queries, priors.tolist(), strict=True):
        terms = kind.terms(prior, state, None)
        outcome = kind.outcome(AGREED, terms)
        interval = kind.interval(outcome, terms, length)
        rows.append(row_of(kind, after, query, terms, outcome, interval, batch=state.query + 1))
        after = after._replace(query=rows[-1].query, asked=rows[-1].asked)
    return rows


def first_occurrences(questions: Sequence[bytes], known: dict[bytes, Row]) -> list[int]:
    """Places of the questions that are new, each once."""
    if not known and len(set(questions)) == len(questions):
        return list(range(len(questions)))
    new: dict[bytes, int] = {}
    for place, question in enumerate(questions):
        if question not in known:
            new.setdefault(question, place)
    return list(new.values())
