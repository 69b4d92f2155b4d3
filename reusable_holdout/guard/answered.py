"""What was released of a set of rows, and what is left: the rows of a ledger, written from answers and read back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import accumulate, islice, repeat
from typing import NamedTuple, cast

import numpy as np

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import BudgetError, Halted, ModelError, printable
from reusable_holdout.guard import halting, releases
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.kinds import AGREED, Allowance, Floats, Kind, Outcome, State, Terms, failed
from reusable_holdout.guard.kinds.check import Batch, Check
from reusable_holdout.ledger import Ledger, Row, Tail, Transaction
from reusable_holdout.plan import Plan

__all__ = ["Answered", "Query", "all_answered", "first_occurrences", "row_of", "rows_of_batch"]

_FEW = 16  # questions of a batch


class Query(NamedTuple):
    """What names a question in the ledger."""

    digest: bytes
    name: str = ""
    series: str = ""
    tolerance: float | None = None  # its own, if it named one


class Answered:
    """The released answers of one guard, in its ledger; all of them say whether the rows have another budget."""

    def __init__(self, ledger: Ledger, plan: Plan, *, another_budget: bool, has_exam: bool = False) -> None:
        self._ledger, self._queries, self._another_budget = ledger, plan.queries, another_budget
        self._allowance = Allowance.of(plan.record())
        self._has_exam = has_exam  # then nothing new is answered: see kinds/exam.py
        self._climbed: dict[tuple[str, int, str], tuple[int, bytes, float | None]] = {}

    @property
    def state(self) -> State:
        """What has been asked and told."""
        return self._at(self._ledger.tail())

    def _at(self, tail: Tail) -> State:
        state = State.after(tail, tail.last_charge, tail.last_charged)
        return state._replace(closed=state.closed or self._has_exam)

    def charges_left(self, charges: int) -> int:
        """Charges that are left after so many; a promise, whatever was told."""
        return self._allowance.left(charges)

    def length_of(self, kind: Kind, question: bytes) -> float:
        """Return the description length of a question that was answered."""
        row = cast("Row", self._ledger.find(question))
        before = State(charges=row.charges - row.charged, nats=row.spent_nats - row.nats)
        return kind.length(before)

    def needs_rows(self, kind: Kind, question: bytes, refuse: Callable[[State], None] | None = None) -> bool:
        """Whether an answer needs the rows: not one that was given before, and none after a halt, which is for good.

        What `refuse` raises by public numbers it raises here, too, before the rows are read; the transaction decides.
        """
        tail, row = self._ledger.look(question)
        state = self._at(tail)
        if kind.halt_reason(state) is not None or row is not None:
            return False
        if refuse is not None:
            refuse(state)
        return True

    def needs_rows_of_batch(
        self, kind: Check, questions: Sequence[bytes], priors: Floats, tolerances: Floats | None
    ) -> bool:
        """Whether a batch needs the rows: not one without a new question, and none that has no room.

        The ledger is read for more than its first question only where that decides. Raises BudgetError or InputError if
        more is new than queries are left, or a tolerance cannot be kept.
        """
        tail, row = self._ledger.look(questions[0])
        state = self._at(tail)
        if kind.halt_reason(state) is not None:
            return False
        if row is None and len(questions) <= self._queries - state.asked and tolerances is None:
            return True
        with self._ledger.transaction() as transaction:
            new = first_occurrences(questions, transaction.find(questions))
        if new:
            self.check_room(len(new), state)
            kind.check_room(priors[new], None if tolerances is None else tolerances[new], state)
        return bool(new)

    def halt(self, reason: str, answers: Sequence[Answer | None]) -> Halted:
        """Build the exception that says what was spent on what, and what to do now."""
        return halting.halted(
            self._ledger, self.state, self._queries, reason, answers, has_exam=self._has_exam
        )

    def history(self) -> pd.DataFrame:
        """Everything released, in order."""
        return releases.released_by(self._ledger, self._ledger.epoch).history

    def state_in(self, transaction: Transaction, kind: Kind, series: str = "") -> State:
        """State before a question of a kind, as a transaction finds it."""
        state = self._at(transaction.tail)
        return state._replace(value=self._last_value(transaction, kind, series)) if kind.climbs else state

    def _last_value(self, transaction: Transaction, kind: Kind, series: str) -> float | None:
        """Last value that a ladder told of a series; a process reads each row for it once at most.

        It goes on from where it looked last, if the seal there still stands: then all rows before it are the same.
        """
        place, tail = (kind.name, kind.certificate.view, series), transaction.tail
        after, sealed, value = self._climbed.get(place, (0, b"", None))
        if after and not transaction.stands(after, sealed):
            after, value = 0, None
        for row in transaction.rows(after, kind=kind.name):
            if (row.view, row.series) == place[1:]:
                value = row.value
        self._climbed[place] = (tail.query, tail.seal, value)
        return value

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
            took, best = _taken_by(row)
            raise ModelError(
                "the model or metric failed on the holdout, or X_train holds rows of the holdout, more than chance "
                "explains; which, and a failure's words, are withheld, for they may quote the holdout; either is a "
                f"fact about the holdout and took {took} (query {row.query}, after which "
                f"{self._queries - row.asked:,} of {self._queries:,} queries were left), {remain}; "
                f"try the model on training rows with the same columns, and see whence X_train came{best}"
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
            printable(row.name),
            row.kind,
            row.nats,
            row.told,
            another_budget=self._another_budget,
        )


def _taken_by(row: Row) -> tuple[str, str]:
    """Return what a failure took, and, of a choice, the best of the other candidates; in words."""
    from reusable_holdout.guard.kinds.choose import Winner  # noqa: PLC0415 - not loaded unless something fails

    took = "one charge" if row.charged else f"{row.nats:.1f} nats"
    choice = Winner.parse(row.told)
    if choice is None:
        return took, ""
    queries = f"{choice.candidates:,} {'query' if choice.candidates == 1 else 'queries'}"
    best = (
        f"; the best of the candidates that did not fail, if there is one, is number {choice.candidate + 1}"
    )
    return f"{took} and {queries}", best


# ---- answers become rows


def row_of(
    kind: Kind,
    state: State,
    question: Query,
    terms: Terms,
    outcome: Outcome,
    *,
    length: float | None = None,
    takes: int = 1,
    batch: int | None = None,
) -> Row:
    """Row of one answer, in the state before it; its description length is that of a question asked alone."""
    query = state.query + 1
    interval = kind.interval(outcome, terms, kind.length(state) if length is None else length)
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
        name=printable(question.name),
        series=question.series,
    )


def rows_of_batch(
    kind: Check,
    decided: Batch,
    questions: Sequence[bytes],
    names: Sequence[str],
    state: State,
    tolerances: Floats | None,
    series: str,
) -> list[Row]:
    """Rows of a batch that was decided, up to a halt; those that agree are certified at once."""
    stated, thresholds, outcomes = decided
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
        map(printable, names),
        repeat(series),
    )
    return list(map(Row._make, zip(*columns, strict=False)))  # questions after a halt have no row


def _agreed(
    kind: Check, priors: Floats, thresholds: Floats, length: float
) -> tuple[list[float], list[float]]:
    """Both ends of the interval of each question, should it agree; a few are faster one by one."""
    if len(priors) > _FEW:
        low, high = kind.agreed(priors, thresholds, length)
        return np.asarray(low).tolist(), np.asarray(high).tolist()
    pairs = zip(priors.tolist(), thresholds.tolist(), strict=True)
    ends = [kind.agreed(prior, threshold, length) for prior, threshold in pairs]
    return [float(low) for low, _ in ends], [float(high) for _, high in ends]


def first_occurrences(questions: Sequence[bytes], known: dict[bytes, Row]) -> list[int]:
    """Places of the questions that are new, each once."""
    if not known and len(set(questions)) == len(questions):
        return list(range(len(questions)))
    new: dict[bytes, int] = {}
    for place, question in enumerate(questions):
        if question not in known:
            new.setdefault(question, place)
    return list(new.values())


def all_answered(answers: Sequence[Answer | None]) -> list[Answer]:
    """Return the answers of a batch; a ModelError with them if an entry of it failed on the holdout."""
    given = [answer for answer in answers if answer is not None]
    if len(given) < len(answers):
        raise ModelError(
            f"the metric failed on the holdout for {len(answers) - len(given)} of {len(answers)} entries; its words "
            "are withheld, for they may quote the holdout; each failure is a fact about the holdout and took a charge, "
            "once; all others were answered: see `answers` of this error, None for what failed, and history()",
            answers,
        )
    return given
