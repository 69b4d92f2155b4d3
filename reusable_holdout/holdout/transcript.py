"""The transcript: questions in, durable certified answers out.

A question is looked up, decided, certified and committed in one transaction of the ledger. Whatever fails before the
commit has cost nothing, and since the noise is a function of the question, asking again gives the answer that was lost.
"""

from __future__ import annotations

import time
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.errors import BudgetError, Halted, ModelError
from reusable_holdout.holdout.answer import Answer
from reusable_holdout.holdout.released import history_frame, is_failure
from reusable_holdout.holdout.thresholdout import State
from reusable_holdout.ledger import Row
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from reusable_holdout.holdout.thresholdout import Decision, Decisions, HaltReason, Thresholdout
    from reusable_holdout.ledger import Ledger, Transaction

__all__ = ["Transcript"]

_HALTED = {
    "charges": "all {charges} charges are spent",
    "code": "the charged answers have said all that the tolerance affords, with {charges} charges",
    "queries": "all {queries} declared queries are asked",
}


class Transcript:
    """One policy and one ledger.

    Parameters
    ----------
    policy : Thresholdout
        Decides questions.
    ledger : Ledger
        Keeps what was released.
    """

    def __init__(self, policy: Thresholdout, ledger: Ledger) -> None:
        self._policy = policy
        self._ledger = ledger

    @property
    def policy(self) -> Thresholdout:
        """What decides."""
        return self._policy

    @property
    def state(self) -> State:
        """What has been asked and spent."""
        return State(*self._ledger.tail()[:3], None)

    def ask(
        self,
        score: int | NDArray[np.int64] | None,
        prior: float,
        question: bytes,
        name: str,
        tolerance: float | None = None,
        series: str = "",
    ) -> Answer:
        """Answer one question, durably.

        Parameters
        ----------
        score : int, numpy.ndarray of int64 or None
            On the grid, as the policy measures it; None if the analyst's code failed on the holdout.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        ModelError
            If it failed, now or when it was first asked; that it did is recorded and charged once.
        """
        with self._ledger.transaction() as transaction:
            known = transaction.find([question]).get(question)
            state = self._state(transaction, series)
            if known is not None:
                return self._answer(known, state, replayed=True)
            reason = self._policy.halt_reason(state)
            if reason is None:
                if tolerance is not None:
                    self._policy.check_room(np.array([prior]), np.array([tolerance]), state)
                if score is None:
                    decision = self._policy.fail(prior, state, tolerance)
                else:
                    decision = self._policy.decide(score, prior, question, state, tolerance)
                row = self._certified(decision, question, name, state, series)
                transaction.append([row])
        if reason is not None:
            raise self.halt(reason, [])
        return self._answer(row, _after(row), replayed=False)

    def ask_many(
        self,
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
            On the grid, as the policy measures them, the question first; None if the analyst's metric failed on the
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
            state = self._state(transaction, series)
            new = _first_occurrences(questions, known)
            reason = self._policy.halt_reason(state) if new else None
            rows: list[Row] = []
            failed: Row | None = None
            if new and reason is None:
                self._check_room(len(new), state)
                self._policy.check_room(priors[new], None if tolerances is None else tolerances[new], state)
            if new and reason is None and (scores is None or failure is not None):
                question = failure or questions[0]
                failed = transaction.find([question]).get(question)
                if failed is None:
                    tolerance = None if tolerances is None else float(tolerances[0])
                    decision = self._policy.fail(float(priors[0]), state, tolerance)
                    failed = self._certified(decision, question, names[0], state, series)
                    transaction.append([failed])
            elif new and reason is None and scores is not None:
                if len(new) < len(questions):
                    scores, priors, names = scores[new], priors[new], [names[i] for i in new]
                    tolerances = None if tolerances is None else tolerances[new]
                asked = [questions[i] for i in new]
                decisions = self._policy.decide_many(scores, priors, asked, state, tolerances)
                rows = self._certified_batch(decisions, asked, names, state, series)
                reason = self._policy.halt_reason(_after(rows[-1]))
                transaction.append(rows)
        if failed is not None:
            return [self._answer(failed, _after(failed), replayed=False)]
        if len(new) == len(questions) and rows:
            answers = self._fresh_answers(rows)
        else:
            answers = self._mixed_answers(questions, known, rows, state)
        if len(answers) < len(questions):
            raise self.halt(reason or "charges", answers)
        return answers

    def halt(self, reason: HaltReason, answers: Sequence[Answer]) -> Halted:
        """Build the exception that says what was spent on what, and what to do now."""
        certificate, history = self._policy.certificate, self.history()
        spent = _HALTED[reason].format(charges=int(history["charged"].sum()), queries=certificate.queries)
        paid = ", ".join(str(query) for query in history.loc[history["charged"], "query"].head(20))
        unanswered = (
            "this question was not answered" if not answers else f"{len(answers)} of the batch were answered"
        )
        return Halted(
            f"the guard has halted: {spent}"
            + (f" (on queries {paid}{', ...' if history['charged'].sum() > 20 else ''})" if paid else "")
            + f"; {unanswered}. What was released stays valid: see .history; questions already asked replay free. "
            "Nothing new can be learnt from this holdout: report the certified answers, or guard fresh rows "
            "(Plan says how many).",
            reason=reason,
            history=history,
            answers=answers,
        )

    def history(self) -> pd.DataFrame:
        """Everything released, in order."""
        return history_frame(self._ledger.rows(), self._policy.charges_left)

    def _state(self, transaction: Transaction, series: str) -> State:
        value = transaction.last_value(series) if self._policy.climbs else None
        return State(*transaction.tail[:3], value)

    # ---- one batch

    def _fresh_answers(self, rows: list[Row]) -> list[Answer]:
        """Answers of new rows."""
        counts = {row.charges: row.spent_nats for row in rows}  # charges left change only at charges
        left = {charges: self._policy.charges_left(charges, nats) for charges, nats in counts.items()}
        return [
            Answer(
                value,
                charged == 1,
                low,
                high,
                prior,
                query,
                left[charges],
                False,
                threshold,
                name,
                paired == 1,
            )
            for query, _, _, prior, value, charged, threshold, low, high, _, charges, _, paired, _, name, _ in rows
        ]

    def _mixed_answers(
        self, questions: Sequence[bytes], known: dict[bytes, Row], rows: list[Row], state: State
    ) -> list[Answer]:
        """Answers to a batch in which questions are repeated, up to the first that was not answered."""
        end = _after(rows[-1]) if rows else state
        fresh = {row.digest: row for row in rows}
        known, answers = dict(known), []
        for question in questions:
            row = fresh.pop(question, None)  # its repetitions inside the batch are replays
            if row is not None:
                known[question] = row
                answers += self._fresh_answers([row])
            elif question in known:
                answers.append(self._answer(known[question], end, replayed=True))
            else:
                break
        return answers

    def _check_room(self, asked: int, state: State) -> None:
        left = self._policy.certificate.queries - state.query
        if asked > left:
            raise BudgetError(
                f"{asked} new questions asked, {left} left of {self._policy.certificate.queries}; "
                "nothing was answered and nothing was charged; ask fewer"
            )

    def _certified_batch(
        self,
        decisions: Decisions,
        questions: Sequence[bytes],
        names: Sequence[str],
        state: State,
        series: str,
    ) -> list[Row]:
        certificate, (priors, values, charged, thresholds, nats) = self._policy.certificate, decisions
        first, count = state.query + 1, len(values)
        lengths = certificate.code.lengths(first=first, count=count, charges=state.charges, nats=state.nats)
        low, high = (np.asarray(end) for end in certificate.agreed(priors, thresholds, lengths))
        if charged.any():
            low[charged], high[charged] = certificate.charged(
                values[charged], thresholds[charged], lengths[charged]
            )
        columns = (
            range(first, first + count),
            repeat(first),
            questions,
            priors.tolist(),
            values.tolist(),
            charged.astype(np.int64).tolist(),
            thresholds.tolist(),
            low.tolist(),
            high.tolist(),
            nats.tolist(),
            (state.charges + np.cumsum(charged)).tolist(),
            np.cumsum(np.concatenate([[state.nats], nats]))[1:].tolist(),
            repeat(int(self._policy.paired)),
            repeat(time.time()),
            names,
            repeat(series),
        )
        return list(map(Row._make, zip(*columns, strict=False)))  # questions after a halt have no row

    # ---- one question

    def _certified(self, decision: Decision, question: bytes, name: str, state: State, series: str) -> Row:
        certificate, query = self._policy.certificate, state.query + 1
        length = certificate.code.length(query=query, charges=state.charges, nats=state.nats)
        if decision.failed:
            interval = Interval(certificate.lower, certificate.upper)
        elif decision.charged:
            interval = certificate.charged(decision.value, decision.threshold, length)
        else:
            interval = certificate.agreed(decision.prior, decision.threshold, length)
        return Row(
            query=query,
            batch=query,
            digest=question,
            prior=decision.prior,
            value=decision.value,
            charged=int(decision.charged),
            threshold=decision.threshold,
            low=float(interval.low),
            high=float(interval.high),
            nats=decision.nats,
            charges=state.charges + int(decision.charged),
            spent_nats=state.nats + decision.nats,
            paired=int(self._policy.paired),
            asked_at=time.time(),
            name=name,
            series=series,
        )

    def _answer(self, row: Row, state: State, *, replayed: bool) -> Answer:
        if is_failure(row):
            raise ModelError(
                f"the model or metric failed on the holdout; its words are withheld, for they may quote the holdout; "
                f"that it failed is a fact about the holdout and took one charge (query {row.query}), "
                f"{self._policy.charges_left(state.charges, state.nats)} are left; try it on training rows with the "
                "same columns"
            )
        return Answer(
            row.value,
            bool(row.charged),
            row.low,
            row.high,
            row.prior,
            row.query,
            self._policy.charges_left(state.charges, state.nats),
            replayed,
            row.threshold,
            row.name,
            row.paired == 1,
        )


def _after(row: Row) -> State:
    return State(row.query, row.charges, row.spent_nats, row.value)


def _first_occurrences(questions: Sequence[bytes], known: dict[bytes, Row]) -> list[int]:
    """Places of the questions that are new, each once."""
    seen: set[bytes] = set(known)
    if not seen and len(set(questions)) == len(questions):
        return list(range(len(questions)))
    new = []
    for place, question in enumerate(questions):
        if question not in seen:
            seen.add(question)
            new.append(place)
    return new
