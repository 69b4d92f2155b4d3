"""Finals: the exact values, released once and together; nothing new is answered after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from reusable_holdout.answer import Finals
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard.questions import Posed
from reusable_holdout.guard.subjects import Subject, measured
from reusable_holdout.guard.transcript import row_of
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.ledger import Row
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.ways import State


def tell_finals(finals: Sequence[Posed]) -> list[Any]:
    """Release exact values once, durably, for one or several metrics; raise Halted after another final."""
    if any(one.question.way != "final" for one in finals):
        raise InputError("a final is the last question; got others with it; nothing was asked")
    root = finals[0].view
    if len({one.view.number for one in finals}) < len(finals):
        raise InputError(
            "a final must name each metric once; got one twice; nothing was asked; pass its models in one list"
        )
    each = [entry for one in finals for entry in _entries(one, finals)]
    alone = [entry.alone() for entry in each if entry.of.view.alone]
    digests = [entry.digest for entry in (*each, *alone)]
    transcript, final = root.transcript, root.ways.final
    ended = final.halt_reason(transcript.state) is not None
    found: list[Any] = []
    if not ended:
        for one in finals:
            one.view.holdout.try_out([model for subject in one.subjects for model in subject.models])
        found = [
            measured(one.of.view, one.of.way, [one.subject], one.of.question.X_train)[0]
            for one in (*each, *alone)
        ]
    with transcript.ledger.transaction() as transaction:
        known = transaction.find(digests)
        state = transcript.state_at(transaction.tail)
        reason = None if len(known) == len(digests) else final.halt_reason(state)
        rows = []
        if reason is None and not known and not ended:
            rows = _rows(each, found[: len(each)], state, [])
            rows = _rows(alone, found[len(each) :], state, rows)
        transaction.append(rows)
    known |= {row.digest: row for row in rows}
    if reason is not None or len(known) < len(digests):
        raise transcript.halt(reason or "final", [])
    left = root.charges_left(state.charges)
    answers: list[Any] = []
    for one in finals:
        own = [transcript.answer(known[digest], one.unit, left, replayed=not rows) for digest in one.digests]
        if one.view.alone is not None:
            of_new = [known[_digest_alone(one.view.alone, digest)] for digest in one.digests]
            own = [_left_by_both(answer, row, one.unit) for answer, row in zip(own, of_new, strict=True)]
        one.view.tell(own)
        answers.append(Finals(own, greater_is_better=one.unit.greater_is_better) if one.several else own[0])
    return answers


class _Entry(NamedTuple):
    """One model and metric of a final."""

    of: Posed
    subject: Subject
    digest: bytes
    name: str
    prior: float | None
    weight: int | None

    def alone(self) -> _Entry:
        """Return the same model about the rows that were added last."""
        view: Any = self.of.view.alone
        given = self.subject.predictions
        predictions = None if given is None else given[:, -view.holdout.bound.rows :]
        return self._replace(
            of=self.of._replace(view=view, way=view.ways.final),
            subject=self.subject._replace(predictions=predictions, found=None),
            digest=_digest_alone(view, self.digest),
        )


def _digest_alone(view: GuardedView, digest: bytes) -> bytes:
    return view.content.several(b"alone", [digest])


def _left_by_both(answer: Any, row: Row, unit: Unit) -> Any:
    """Return a final's answer with the interval that all rows and the new rows leave, as both hold."""
    if isinstance(answer, ModelError):
        return answer
    low, high = unit.ends(row.low, row.high)
    low, high = max(low, answer.low), min(high, answer.high)
    return answer._replace(low=low, high=high) if low <= high else answer


def _entries(one: Posed, finals: Sequence[Posed]) -> list[_Entry]:
    """Return the different models of one metric, each with its weight; the same model again is the same answer."""
    way: Any = one.way
    is_stated = one.question.priors is not None
    places: dict[bytes, int] = {}
    for place, digest in enumerate(one.digests):
        first = places.setdefault(digest, place)
        if one.priors[place] > one.priors[first]:
            places[digest] = place
    count = sum(len(set(other.digests)) for other in finals)
    weights = way.weights([float(one.priors[place]) for place in places.values()], count, len(finals))
    return [
        _Entry(
            one,
            one.subjects[place],
            digest,
            one.names[place],
            float(one.priors[place]) if is_stated else None,
            None if weights is None else weights[number],
        )
        for number, (digest, place) in enumerate(places.items())
    ]


def _rows(each: Sequence[_Entry], found: Sequence[Any], state: State, before: list[Row]) -> list[Row]:
    """Return the rows of finals that are released together, each certified by its weight among all, after others."""
    rows = [*before]
    for entry, value in zip(each, found, strict=True):
        way: Any = entry.of.way
        length = way.length(state, len(each))
        row = row_of(
            way,
            state._replace(query=state.query + len(rows)),
            entry.digest,
            *way.decide(value, length, entry.prior, entry.weight),
            length=length,
            takes=0,
            batch=state.query + 1,
            name=entry.name,
        )
        rows.append(row)
    return rows
