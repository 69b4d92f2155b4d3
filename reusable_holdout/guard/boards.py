"""Boards of claims: they answer claims, durably, and tell which of two series is certified to be better.

The state of a board is computed from all answers that were released to it, in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from reusable_holdout.answer import Answer
from reusable_holdout.certainty import Certificate, lead_nats, paired_length
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard.transcript import Transcript, row_of
from reusable_holdout.ledger import Transaction
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.ways import NOT_CERTIFIED, Told
from reusable_holdout.ways.claim import Board, Claims


class Reached(NamedTuple):
    """The interval of the holdout's own value that an answered claim implies."""

    query: int  # number of the answer
    asked: int  # which of the declared queries it was, from 1
    low: float  # in [0, 1], where greater is better; so is the other end
    high: float
    nats: float  # cost of everything that was released before it


class Boards:
    """The boards of one ledger, one for each metric that is asked about."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript, self._ledger = transcript, transcript.ledger
        self._boards: dict[int, Board] = {}
        self._told: dict[int, tuple[int, dict[int, Reached]]] = {}  # up to which row, and by query

    def claim(
        self,
        way: Claims,
        digest: bytes,
        own: bytes,
        prior: float,
        measure: Callable[[], Any],
        *,
        series: str,
        name: str,
        unit: Unit,
        anew: bool,
    ) -> Answer | ModelError:
        """Answer one claim, durably: look it up, decide, certify and commit it in one transaction.

        `digest` names the question about the predictions, for every series and every claim. `own` names this series'
        own claim. With `anew` that claim is asked even if another series has an answer. `measure` gives the score on
        the grid, or None if the analyst's code failed on the holdout. It is not called for an answered question, for
        one that will not be certified, nor after a halt. Raises Halted for a new claim once all queries are asked or a
        final was given.
        """
        digests = [own] if anew else [digest, own]
        found = measure() if self._needs_rows(way, digests, series) else None
        score = None if found is None else int(found[0])
        with self._ledger.transaction() as transaction:
            known = transaction.find(digests)
            row = next((known[one] for one in digests if one in known), None)
            state = self._transcript.state_at(transaction.tail)
            replayed = row is not None
            reason = None if replayed else way.halt_reason(state)
            board = self._board(transaction, way)
            left = board.charges_left(series)
            if row is None and reason is None:
                terms = way.claimed(prior, series, board)
                outcome = way.decide_claim(score, terms, digest)
                named = own if outcome.told.word == NOT_CERTIFIED else digests[0]
                takes = way.takes(outcome.told)
                row = row_of(way, state, named, terms, outcome, takes=takes, name=name, series=series)  # type: ignore[arg-type]
                transaction.append([row])
                left -= row.charged
        if row is None:
            raise self._transcript.halt(reason or "queries", [])
        return self._transcript.answer(row, unit, left, replayed=replayed)

    def _needs_rows(self, way: Claims, digests: Sequence[bytes], series: str) -> bool:
        with self._ledger.transaction() as transaction:
            state = self._transcript.state_at(transaction.tail)
            if transaction.find(digests) or way.halt_reason(state):
                return False
            return self._board(transaction, way).charges_left(series) > 0

    def charges_left(self, kind: Claims, series: str) -> int:
        """Return the charges that a series has left for claims about the view of this kind."""
        with self._ledger.transaction() as transaction:
            return self._board(transaction, kind).charges_left(series)

    def pairs(self, kind: Claims, beta: float, unit: Unit) -> Pairs:
        """Return the pairs of answered claims; see :class:`Pairs`."""
        return Pairs(kind.certificate, beta, partial(self._reached, kind), unit)

    def _reached(self, kind: Claims, queries: Sequence[int]) -> list[Reached | None]:
        """Return the interval of the holdout's own value that each of some answers implies, without a lock.

        Only rows that were added since the last call are read. Two threads that read the same rows write the same
        values.
        """
        view, end = kind.certificate.view, self._ledger.tail().query
        last, reached = self._told.get(view, (0, {}))
        if last > end:  # the ledger was replaced by one with fewer rows
            last, reached = 0, {}
        for row in self._ledger.rows(after=last) if last < end else []:
            if (row.view, row.kind) == (view, kind.name):
                said = Told.parse(row.told)
                ends = None if said is None else kind.reached(said, row.prior)
                if ends is not None:
                    before = row.spent_nats - row.nats
                    reached[row.query] = Reached(
                        row.query, row.asked, float(ends.low), float(ends.high), before
                    )
            last = row.query
        self._told[view] = last, reached
        return [reached.get(query) for query in queries]

    def _board(self, transaction: Transaction, kind: Claims) -> Board:
        """Return the board after all committed answers, including the answers of other processes."""
        view, end = kind.certificate.view, transaction.tail.query
        board = self._boards.get(view)
        if board is None or board.last > end:  # the ledger was replaced by one with fewer rows
            board = self._boards[view] = Board(kind.certificate)
        if board.last < end:
            for row in transaction.rows(board.last):
                if (row.view, row.kind) == (view, kind.name):
                    board.follow(row)
            board.last = end
        return board


# ---- two of them


class Pairs:
    """Pairs of answered claims about one metric, a mean over rows.

    With probability at least ``1 - beta``, no pair of a board is ever certified the wrong way, for all submissions and
    all pairs together. `beta` adds to the failure probability of the guard's intervals.
    """

    def __init__(
        self,
        certificate: Certificate,
        beta: float,
        read: Callable[[Sequence[int]], list[Reached | None]],
        unit: Unit,
    ) -> None:
        if not 0.0 < beta < 1.0:
            raise InputError(f"beta must be a probability above 0 and below 1; got {beta!r}; name another")
        self._certificate, self._beta, self.unit = certificate, beta, unit
        #: Gives the interval of the holdout's own value that each answer implies; None if it implies none.
        self.reached = read

    def apart(self, first: Reached, second: Reached) -> bool:
        """Return True if the first is certainly better on the holdout; this may still be by chance."""
        return first.low > second.high

    def may_lead(self, first: Reached, second: Reached) -> bool:
        """Return True if the first claim is certified better where the two differ on the fewest possible rows."""
        return self.leads(first, second, math.ceil(self._lead(first, second)))

    def leads(self, first: Reached, second: Reached, differing: int) -> bool:
        """Return True if the first is certified to be better, given the number of rows on which the two differ."""
        lead, certificate = self._lead(first, second), self._certificate
        if lead <= 0.0:
            return False
        later = max(first, second, key=lambda one: one.asked)  # where a pair is certified
        nats = later.nats + certificate.told_before
        length = paired_length(queries=certificate.queries, question=max(later.asked, 2), nats=nats)
        return lead_nats(lead, differing) >= length - math.log(self._beta)

    def _lead(self, first: Reached, second: Reached) -> float:
        """Return a lower bound, by released answers, on how many more rows the first claim gets right."""
        return (first.low - second.high) * self._certificate.bound.rows
