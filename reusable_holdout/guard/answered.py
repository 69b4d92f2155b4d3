"""What was released of a set of rows, and what is left: the ledger as a guard reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reusable_holdout.errors import BudgetError, Halted, ModelError
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.history import failed, history_frame
from reusable_holdout.guard.kinds.kind import State
from reusable_holdout.guard.rows import first_occurrences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from reusable_holdout.guard.history import Allowance
    from reusable_holdout.guard.kinds.check import Check
    from reusable_holdout.guard.kinds.kind import HaltReason, Kind
    from reusable_holdout.ledger import Ledger, Row, Tail, Transaction

__all__ = ["Answered", "answer_of"]

_HALTED = {
    "queries": "all {queries} declared queries are asked",
    "final": "a final was given, and ends what can be asked of these rows",
}
_SHOWN = 20  # of the queries that were charged


class Answered:
    """The released answers of one guard, in its ledger.

    Parameters
    ----------
    ledger : Ledger
        Keeps what was released.
    allowance : Allowance
        Charges of the plan.
    queries : int
        The plan's.
    metric : str
        Name of the guard's own.
    another_budget : bool
        Whether the rows have another one, too: every answer says so.
    """

    def __init__(
        self, ledger: Ledger, *, allowance: Allowance, queries: int, metric: str, another_budget: bool = False
    ) -> None:
        self._ledger = ledger
        self.another_budget = another_budget
        self._metric = metric
        self._allowance = allowance
        self._queries = queries

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

        The ledger is read for more than its first question only where that decides.

        Raises
        ------
        BudgetError, InputError
            If more is new than queries are left, or a tolerance cannot be kept; nothing was answered.
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

    # ---- what all share

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
        return history_frame(self._ledger.rows(), self._allowance, self._metric)

    def state_in(self, transaction: Transaction, kind: Kind, series: str = "") -> State:
        """State before a question of a kind, as a transaction finds it."""
        value = transaction.last_value(kind.name, kind.certificate.view, series) if kind.climbs else None
        return _at(transaction.tail)._replace(value=value)

    def check_room(self, asked: int, state: State) -> None:
        """Refuse more new questions than are left.

        Raises
        ------
        BudgetError
        """
        left = self._queries - state.asked
        if asked > left:
            raise BudgetError(
                f"{asked} new questions asked, {left} left of {self._queries}; "
                "nothing was answered and nothing was charged; ask fewer"
            )

    def _answer(self, row: Row, charges: int, *, replayed: bool) -> Answer:
        return self.answer_with(row, self.charges_left(charges), replayed=replayed)

    def answer_with(self, row: Row, left: int, *, replayed: bool) -> Answer:
        """Answer of a row, to whom so many charges are left."""
        if failed(row):
            took = "one charge" if row.charged else f"{row.nats:.1f} nats"
            remain = f"{left} charge is left" if left == 1 else f"{left} charges are left"
            raise ModelError(
                "the model or metric failed on the holdout, or X_train holds rows of the holdout, more than chance "
                "explains; which, and a failure's words, are withheld, for they may quote the holdout; either is a "
                f"fact about the holdout and took {took} (query {row.query}), {remain}; "
                "try the model on training rows with the same columns, and see whence X_train came"
            )
        return answer_of(row, left, replayed=replayed, another_budget=self.another_budget)


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


def answer_of(row: Row, charges_left: int, *, replayed: bool, another_budget: bool = False) -> Answer:
    """Answer of a row."""
    return Answer(
        row.value,
        row.charged == 1,
        row.low,
        row.high,
        row.prior,
        row.query,
        charges_left,
        replayed,
        row.threshold,
        row.name,
        row.kind,
        row.nats,
        row.told,
        another_budget=another_budget,
    )
