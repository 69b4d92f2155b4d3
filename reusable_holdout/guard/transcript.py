"""The transcript: questions in, durable certified answers out.

A question is looked up, decided, certified and committed in one transaction of the ledger. Whatever fails before the
commit has cost nothing, and since the noise is a function of the question, asking again gives the answer that was lost.
Which kind of question it is, only the kind knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from reusable_holdout.guard import claiming
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.answered import Answered, Query, first_occurrences, row_of, rows_of_batch
from reusable_holdout.guard.claiming import Boards
from reusable_holdout.guard.kinds import Floats, Kind, Outcome, State, Terms, failed
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.final import Final
from reusable_holdout.guard.kinds.samples import Sample
from reusable_holdout.guard.kinds.scores import Scores
from reusable_holdout.guard.kinds.table import Ways
from reusable_holdout.guard.views import VIEW, View
from reusable_holdout.ledger import Row

__all__ = ["Transcript"]


class Transcript(Answered):
    """Questions of a set of rows, each looked up, decided, certified and committed in one transaction."""

    @cached_property
    def boards(self) -> Boards:
        """Boards of claims about these rows."""
        return claiming.Boards(self, self._ledger)

    def charges_left_of(self, kind: Kind, series: str, charges: int) -> int:
        """Charges that a series has left after so many: of all that there are, or of claims its own."""
        return (
            self.boards.charges_left(kind, series) if self._allowance.of_each else self.charges_left(charges)
        )

    # ---- views

    def opened(self, digest: bytes) -> Row | None:
        """Row that opened a view."""
        return self._ledger.find(digest)

    def views(self) -> list[View]:
        """Views that were opened, in order; without the guard's own metric."""
        return [View.parse(row.told) for row in self._ledger.rows(kind=VIEW)]

    def open(self, view: View, digest: bytes, name: str, kinds: Ways) -> Row | None:
        """Record what a view is, durably; None if another one took its number meanwhile.

        Raises InputError, and tells nothing, if what may have to be told of the class counts would break a promise of
        the ways to ask of the guard's own metric; Halted if a final was given.
        """
        with self._ledger.transaction(digest) as transaction:
            row = transaction.row
            state = self.state_in(transaction, kinds.final)
            reason = kinds.final.halt_reason(state) if row is None else None
            fits = len(transaction.rows(kind=VIEW)) + 1 == view.number
            if row is None and reason is None and fits:
                if view.tells and kinds.policy.halt_reason(state) is None:
                    kinds.reveal.check_affordable(
                        kinds.reveal.certificate.theory.counts.worst, state, f"telling {view.tells_of}"
                    )
                row = view.row(state, digest, name)
                transaction.append([row])
        if reason is not None:
            raise self.halt(reason, [])
        return row

    # ---- questions

    def answer(
        self,
        kind: Kind,
        question: Query,
        refuse: Callable[[State], None],
        decide: Callable[[State], tuple[Terms, Outcome]],
        *,
        takes: int = 1,
    ) -> Answer:
        """Look up, decide, certify and commit one answer, which takes so many of the declared queries.

        `refuse` raises where a new question has no room in a state. Raises Halted if a budget has run out and the
        question is new; ModelError if the model or metric failed, now or when it was first asked, which is recorded and
        paid for once.
        """
        with self._ledger.transaction(question.digest) as transaction:
            row = transaction.row
            state = self.state_in(transaction, kind, question.series)
            replayed = row is not None
            reason = None if replayed else kind.halt_reason(state)
            if row is None and reason is None:
                refuse(state)
                terms, outcome = decide(state)
                row = row_of(kind, state, question, terms, outcome, takes=takes)
                transaction.append([row])
        if row is None:
            raise self.halt(reason or "charges", [])
        left = self.charges_left_of(kind, row.series, state.charges if replayed else row.charges)
        return self.answer_with(row, left, replayed=replayed)

    def final(
        self,
        kinds: Sequence[Final],
        scores: Sequence[Sample | int | None],
        questions: Sequence[Query],
    ) -> list[Answer | None]:
        """Tell values as they are, once, durably; each may be of another metric; after another final it is Halted."""
        digests = [question.digest for question in questions]
        with self._ledger.transaction() as transaction:
            known = transaction.find(digests)
            state = self.state_in(transaction, kinds[0])
            reason = None if len(known) == len(set(digests)) else kinds[0].halt_reason(state)
            rows: list[Row] = []
            if reason is None and not known:
                after, count = state, len(questions)
                for kind, question, score in zip(kinds, questions, scores, strict=True):
                    length = kind.length(state, count)
                    outcome = kind.decide(score, question.digest, length=length, answers=count)
                    terms = kind.terms(outcome, count)
                    batch = state.query + 1
                    row = row_of(kind, after, question, terms, outcome, length=length, takes=0, batch=batch)
                    rows.append(row)
                    after = after._replace(query=row.query)
                transaction.append(rows)
        if reason is not None:
            raise self.halt(reason, [])
        known |= {row.digest: row for row in rows}
        answers: list[Answer | None] = []
        for kind, row in zip(kinds, [known[digest] for digest in digests], strict=True):
            left = self.charges_left_of(kind, row.series, state.charges)
            answers.append(None if failed(row) else self.answer_with(row, left, replayed=not rows))
        return answers

    def ask_many(
        self,
        kind: Check,
        scores: Scores | None,
        priors: Floats,
        questions: Sequence[bytes],
        names: Sequence[str],
        *,
        tolerances: Floats | None = None,
        series: str = "",
    ) -> list[Answer | None]:
        """Answer one batch, durably; all of it shares the history before the batch.

        An answer is None if its question failed. The scores are None if nothing in the batch needs the rows: see
        :meth:`needs_rows_of_batch`. Raises BudgetError, and answers nothing, if more is new than queries are left;
        Halted, with what was answered before in its `answers`, if a budget runs out on the way.
        """
        with self._ledger.transaction() as transaction:
            known = transaction.find(questions)
            state = self.state_in(transaction, kind, series)
            new = first_occurrences(questions, known)
            reason = kind.halt_reason(state) if new else None
            rows: list[Row] = []
            if new and reason is None:
                self.check_room(len(new), state)
                stated, limits = priors[new], None if tolerances is None else tolerances[new]
                fresh = [questions[i] for i in new]
                kind.check_room(stated, limits, state)
            if new and reason is None and scores is not None:
                measured = scores if len(new) == len(questions) else scores.at(new)
                decided = kind.decide_many(measured, stated, fresh, state, limits)
                labels = [names[i] for i in new]
                rows = rows_of_batch(kind, decided, fresh, labels, state, limits, series)
                reason = "charges" if len(rows) < len(new) else None
                transaction.append(rows)
        answers = self._answers(questions, known, rows, state)
        if len(answers) < len(questions):
            raise self.halt(reason or "charges", answers)
        return answers

    def _answers(
        self, questions: Sequence[bytes], known: dict[bytes, Row], rows: list[Row], state: State
    ) -> list[Answer | None]:
        """Answers to a batch in which questions are repeated, up to the first that was not answered."""
        left = self.charges_left(rows[-1].charges if rows else state.charges)
        fresh, known = {row.digest: row for row in rows}, dict(known)
        answers: list[Answer | None] = []
        for question in questions:
            row = fresh.pop(question, None)  # its repetitions inside the batch are replays
            if row is None and question not in known:
                break
            known[question] = told = known[question] if row is None else row
            own = left if row is None else self.charges_left(told.charges)
            answers.append(None if failed(told) else self.answer_with(told, own, replayed=row is None))
        return answers
