"""The transcript: questions in, durable certified answers out.

A question is looked up, decided, certified and committed in one transaction of the ledger. Whatever fails before the
commit has cost nothing, and since the noise is a function of the question, asking again gives the answer that was lost.
Which kind of question it is, only the kind knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.errors import BudgetError, Halted, ModelError
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.kinds import Outcome, State, Terms
from reusable_holdout.guard.released import failed, history_frame
from reusable_holdout.guard.rows import Query, agreed_rows, first_occurrences, row_of, rows_of_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds import Check, Choose, Final, HaltReason, Kind, Reveal
    from reusable_holdout.ledger import Ledger, Row, Transaction

__all__ = ["Transcript"]

_HALTED = {
    "charges": "all {charges} charges are spent",
    "queries": "all {queries} declared queries are asked",
    "final": "a final was given, and ends what can be asked of these rows",
}


class Transcript:
    """The released answers of one guard, in its ledger.

    Parameters
    ----------
    ledger : Ledger
        Keeps what was released.
    charges, queries : int
        The plan's.
    """

    def __init__(self, ledger: Ledger, *, charges: int, queries: int) -> None:
        self._ledger = ledger
        self._charges = charges
        self._queries = queries

    @property
    def state(self) -> State:
        """What has been asked and told."""
        tail = self._ledger.tail()
        return State(tail.query, tail.asked, tail.charges, tail.spent_nats, tail.kind == "final")

    def charges_left(self, charges: int) -> int:
        """Charges that are left after so many; a promise, whatever was told."""
        return max(0, min(self._charges, self._queries) - charges)

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

    # ---- one question

    def ask(
        self,
        kind: Check,
        score: int | NDArray[np.int64] | None,
        prior: float,
        question: Query,
        tolerance: float | None = None,
    ) -> Answer:
        """Answer one question that is compared with something, durably.

        Parameters
        ----------
        score : int, numpy.ndarray of int64 or None
            On the grid, as the kind measures it; None if the analyst's code failed on the holdout.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        ModelError
            If it failed, now or when it was first asked; that it did is recorded and charged once.
        """

        def decide(state: State) -> tuple[Terms, Outcome]:
            if tolerance is not None:
                kind.check_room(np.array([prior]), np.array([tolerance]), state)
            terms = kind.terms(prior, state, tolerance)
            if score is None:
                return terms, kind.fail(terms, state)
            return terms, kind.decide(score, terms, question.digest, state)

        return self._answered(kind, question, decide)

    def reveal(self, kind: Reveal, score: int | None, prior: float, question: Query) -> Answer:
        """Tell the cell of a value, durably.

        Raises
        ------
        InputError
            If its dearest cell would break a promise of the plan; nothing was told.
        Halted, ModelError
            As for :meth:`ask`.
        """

        def decide(state: State) -> tuple[Terms, Outcome]:
            kind.check_affordable(kind.code.worst, state, "a reveal")
            terms = kind.terms(prior, state, None)
            if score is None:
                return terms, kind.fail(terms, state)
            return terms, kind.decide(score, terms, question.digest, state)

        return self._answered(kind, question, decide)

    def choose(
        self,
        kind: Choose,
        scores: Sequence[int | None],
        priors: NDArray[np.float64],
        question: Query,
        candidates: Sequence[bytes],
    ) -> Answer:
        """Tell the best of several candidates and the cell of its value, durably.

        Raises
        ------
        BudgetError
            If there are more candidates than queries left; nothing was told.
        InputError
            If its dearest outcome would break a promise of the plan; nothing was told.
        Halted, ModelError
            As for :meth:`ask`; a model error if all candidates failed.
        """

        def decide(state: State) -> tuple[Terms, Outcome]:
            self.check_room(len(candidates), state)
            kind.check_affordable(kind.worst_nats(len(candidates)), state, "a choice")
            return kind.choose(scores, priors, candidates, state)

        return self._answered(kind, question, decide, takes=len(candidates))

    def _answered(
        self,
        kind: Kind,
        question: Query,
        decide: Callable[[State], tuple[Terms, Outcome]],
        *,
        takes: int = 1,
    ) -> Answer:
        """Look up, decide, certify and commit one answer."""
        with self._ledger.transaction() as transaction:
            row = transaction.find([question.digest]).get(question.digest)
            state = self._state(transaction, kind, question.series)
            replayed = row is not None
            reason = None if replayed else kind.halt_reason(state)
            if row is None and reason is None:
                terms, outcome = decide(state)
                interval = kind.interval(outcome, terms, kind.length(state))
                row = row_of(kind, state, question, terms, outcome, interval, takes=takes)
                transaction.append([row])
        if row is None:
            raise self.halt(reason or "charges", [])
        return self._answer(row, state.charges if replayed else row.charges, replayed=replayed)

    # ---- the final

    def final(
        self, kind: Final, scores: Sequence[int | None], questions: Sequence[Query]
    ) -> list[Answer | None]:
        """Tell values as they are, once, durably.

        Raises
        ------
        Halted
            If a final was given before and this one is new.
        """
        digests = [question.digest for question in questions]
        with self._ledger.transaction() as transaction:
            known = transaction.find(digests)
            state = self._state(transaction, kind)
            reason = None if len(known) == len(set(digests)) else kind.halt_reason(state)
            rows: list[Row] = []
            if reason is None and not known:
                length, after = kind.length(state, len(questions)), state
                for question, score in zip(questions, scores, strict=True):
                    outcome = kind.decide(score, question.digest)
                    terms = kind.terms(outcome, len(questions))
                    interval = kind.interval(outcome, terms, length)
                    row = row_of(
                        kind, after, question, terms, outcome, interval, takes=0, batch=state.query + 1
                    )
                    rows.append(row)
                    after = after._replace(query=row.query)
                transaction.append(rows)
        if reason is not None:
            raise self.halt(reason, [])
        known |= {row.digest: row for row in rows}
        told = [known[digest] for digest in digests]
        return [None if failed(row) else self._answer(row, state.charges, replayed=not rows) for row in told]

    # ---- one batch

    def ask_many(
        self,
        kind: Check,
        scores: NDArray[np.int64] | None,
        priors: NDArray[np.float64],
        questions: Sequence[bytes],
        names: Sequence[str],
        *,
        failure: bytes | None = None,
        tolerances: NDArray[np.float64] | None = None,
        series: str = "",
    ) -> list[Answer]:
        """Answer one batch, durably; all of it shares the history before the batch.

        Parameters
        ----------
        scores : numpy.ndarray or None
            On the grid, as the kind measures them, the question first; None if the analyst's metric failed on the
            holdout.
        failure : bytes, optional
            Digest under which such a failure is recorded.

        Raises
        ------
        ModelError
            If it failed, now or when it was first asked, and a question in it is new.
        BudgetError
            If it holds more new questions than are left; nothing is answered.
        Halted
            If a budget runs out on the way; what was answered before is in its `answers`.
        """
        with self._ledger.transaction() as transaction:
            known = transaction.find(questions)
            state = self._state(transaction, kind, series)
            new = first_occurrences(questions, known)
            reason = kind.halt_reason(state) if new else None
            rows: list[Row] = []
            broken: Row | None = None
            if new and reason is None:
                self.check_room(len(new), state)
                kind.check_room(priors[new], None if tolerances is None else tolerances[new], state)
            if new and reason is None and (scores is None or failure is not None):
                asked = Query(failure or questions[0], names[0], series)
                broken = transaction.find([asked.digest]).get(asked.digest)
                if broken is None:
                    tolerance = None if tolerances is None else float(tolerances[0])
                    terms = kind.terms(float(priors[0]), state, tolerance)
                    outcome = kind.fail(terms, state)
                    if outcome.charged:
                        interval = kind.interval(outcome, terms, kind.length(state))
                        broken = row_of(kind, state, asked, terms, outcome, interval)
                        transaction.append([broken])
                    else:  # where a gate may not tell it, all are rejected
                        each = [Query(questions[i], names[i], series) for i in new]
                        rows = agreed_rows(kind, state, each, priors[new])
                        transaction.append(rows)
            elif new and reason is None and scores is not None:
                if len(new) < len(questions):
                    scores, priors, names = scores[new], priors[new], [names[i] for i in new]
                    tolerances = None if tolerances is None else tolerances[new]
                fresh = [questions[i] for i in new]
                rows = rows_of_batch(kind, scores, priors, fresh, names, state, tolerances, series)
                reason = "charges" if len(rows) < len(new) else None
                transaction.append(rows)
        if broken is not None:
            return [self._answer(broken, broken.charges, replayed=False)]
        if len(new) == len(questions) and rows:
            answers = self._fresh_answers(rows)
        else:
            answers = self._mixed_answers(questions, known, rows, state)
        if len(answers) < len(questions):
            raise self.halt(reason or "charges", answers)
        return answers

    def _fresh_answers(self, rows: list[Row]) -> list[Answer]:
        """Answers of a batch in which nothing is repeated and nothing failed."""
        left = {charges: self.charges_left(charges) for charges in {row.charges for row in rows}}
        return [_answer_of(row, left[row.charges], replayed=False) for row in rows]

    def _mixed_answers(
        self, questions: Sequence[bytes], known: dict[bytes, Row], rows: list[Row], state: State
    ) -> list[Answer]:
        """Answers to a batch in which questions are repeated, up to the first that was not answered."""
        charges = rows[-1].charges if rows else state.charges
        fresh = {row.digest: row for row in rows}
        known, answers = dict(known), []
        for question in questions:
            row = fresh.pop(question, None)  # its repetitions inside the batch are replays
            if row is not None:
                known[question] = row
                answers.append(self._answer(row, row.charges, replayed=False))
            elif question in known:
                answers.append(self._answer(known[question], charges, replayed=True))
            else:
                break
        return answers

    # ---- what all share

    def halt(self, reason: HaltReason, answers: Sequence[Answer]) -> Halted:
        """Build the exception that says what was spent on what, and what to do now."""
        history = self.history()
        spent = _HALTED[reason].format(charges=int(history["charged"].sum()), queries=self._queries)
        paid = ", ".join(str(query) for query in history.loc[history["charged"], "query"].head(20))
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
            f"the guard has halted: {spent}"
            + (f" (on queries {paid}{', ...' if history['charged'].sum() > 20 else ''})" if paid else "")
            + f"; {unanswered}. What was released stays valid: see .history; questions already asked replay free. "
            + todo,
            reason=reason,
            history=history,
            answers=answers,
        )

    def history(self) -> pd.DataFrame:
        """Everything released, in order."""
        return history_frame(self._ledger.rows(), self.charges_left)

    def _state(self, transaction: Transaction, kind: Kind, series: str = "") -> State:
        tail = transaction.tail
        value = transaction.last_value(kind.name, series) if kind.climbs else None
        return State(tail.query, tail.asked, tail.charges, tail.spent_nats, tail.kind == "final", value)

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
        if failed(row):
            took = "one charge" if row.charged else f"{row.nats:.1f} nats"
            raise ModelError(
                f"the model or metric failed on the holdout; its words are withheld, for they may quote the holdout; "
                f"that it failed is a fact about the holdout and took {took} (query {row.query}), "
                f"{self.charges_left(charges)} charges are left; try it on training rows with the same columns"
            )
        return _answer_of(row, self.charges_left(charges), replayed=replayed)


def _answer_of(row: Row, charges_left: int, *, replayed: bool) -> Answer:
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
    )
