"""Claims in, durable certified answers out: a board is a fold of what all of it were told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from reusable_holdout.guard.answered import Answered
from reusable_holdout.guard.kinds.claims import NOT_CERTIFIED, Board, Claims
from reusable_holdout.guard.kinds.kind import Terms
from reusable_holdout.guard.pairs import Reached
from reusable_holdout.guard.rows import Query, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from reusable_holdout.guard.answer import Answer
    from reusable_holdout.guard.kinds.kind import Kind
    from reusable_holdout.ledger import Row, Transaction

__all__ = ["Claimed", "Claiming"]


class Claimed(NamedTuple):
    """A claim as it is asked.

    Attributes
    ----------
    question : Query
        About the predictions, whoever claims what of them.
    own : bytes
        Digest of this series' own claim about them.
    anew : bool
        Whether to ask though the question was answered to somebody.
    """

    question: Query
    own: bytes
    anew: bool = False

    def found_in(self, known: dict[bytes, Row]) -> Row | None:
        """Answer that it has, if it has one."""
        shared = None if self.anew else known.get(self.question.digest)
        return shared or known.get(self.own)


@dataclass(slots=True)
class _Seen:
    board: Board
    last: int = 0


@dataclass(slots=True)
class _Told:
    reached: dict[int, Reached] = field(default_factory=dict)
    last: int = 0


class Claiming(Answered):
    """The claims about a set of rows, each looked up, decided, certified and committed in one transaction."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._boards: dict[int, _Seen] = {}
        self._told_of: dict[int, _Told] = {}

    def claim(
        self, kind: Claims, score: int | NDArray[np.int64] | None, prior: float, claimed: Claimed
    ) -> Answer:
        """Answer one claim, durably.

        Parameters
        ----------
        score : int, numpy.ndarray of int64 or None
            On the grid; None if the analyst's code failed on the holdout.

        Raises
        ------
        Halted
            If all declared queries are asked and the claim is new, or a final was given.
        ModelError
            If it failed, now or when it was first asked.
        """
        question = claimed.question
        with self._ledger.transaction() as transaction:
            row = claimed.found_in(transaction.find([question.digest, claimed.own]))
            state = self._state(transaction, kind)
            replayed = row is not None
            reason = None if replayed else kind.halt_reason(state)
            board = self._board(transaction, kind)
            left = board.charges_left(question.series)
            if row is None and reason is None:
                terms = kind.claimed(prior, question.series, board)
                outcome = (
                    kind.fail(terms, state)
                    if score is None
                    else kind.decide(score, terms, question.digest, state)
                )
                certified = outcome.told != NOT_CERTIFIED
                digest = question.digest if certified and not claimed.anew else claimed.own
                interval = kind.interval(outcome, terms, kind.length(state))
                row = row_of(
                    kind,
                    state,
                    question._replace(digest=digest),
                    terms,
                    outcome,
                    interval,
                    takes=kind.takes(outcome.told),
                )
                transaction.append([row])
                left -= row.charged
        if row is None:
            raise self.halt(reason or "queries", [])
        return self._answer_with(row, left, replayed=replayed)

    def claim_needs_rows(self, kind: Claims, claimed: Claimed) -> bool:
        """Whether the answer needs the rows: not one that was given before, none after a halt, and none uncertified."""
        with self._ledger.transaction() as transaction:
            known = transaction.find([claimed.question.digest, claimed.own])
            if claimed.found_in(known) is not None or kind.halt_reason(self._state(transaction, kind)):
                return False
            return self._board(transaction, kind).charges_left(claimed.question.series) > 0

    def charges_left_of(self, kind: Kind, series: str) -> int:
        """Charges that a series has left among the claims of a kind's view."""
        with self._ledger.transaction() as transaction:
            return self._board(transaction, kind).charges_left(series)

    def charges_left_now(self, kind: Kind, row: Row, charges: int) -> int:
        """Charges that are left after so many: all that there are, or of claims those of who asked for a row."""
        return (
            self.charges_left_of(kind, row.series) if self._allowance.of_each else self.charges_left(charges)
        )

    def reached(self, kind: Claims, queries: Sequence[int]) -> list[Reached | None]:
        """Where the holdout's own value lies by each of some answers, without waiting for writers.

        Only rows that came since the last call are read; two threads that read the same ones note the same.
        """
        view, end = kind.certificate.view, self._ledger.tail().query
        told = self._told_of.get(view)
        if told is None or told.last > end:  # the ledger was replaced by one that has less
            told = self._told_of[view] = _Told()
        rows = self._ledger.rows(after=told.last) if told.last < end else []
        for row in rows:
            if (row.view, row.kind) == (view, Claims.name):
                ends = kind.reached(row.told, Terms(row.prior, row.threshold))
                if ends is not None:
                    before = row.spent_nats - row.nats
                    told.reached[row.query] = Reached(
                        row.query, row.asked, float(ends.low), float(ends.high), before
                    )
            told.last = max(told.last, row.query)
        return [told.reached.get(query) for query in queries]

    def _board(self, transaction: Transaction, kind: Kind) -> Board:
        """Board after all that is committed: of what other processes were told, too."""
        view, end = kind.certificate.view, transaction.tail.query
        seen = self._boards.get(view)
        if seen is None or seen.last > end:  # the ledger was replaced by one that has less
            seen = self._boards[view] = _Seen(Board(kind.certificate))
        if seen.last < end:
            for row in transaction.rows(seen.last):
                if (row.view, row.kind) == (view, Claims.name):
                    seen.board.follow(row)
            seen.last = end
        return seen.board
