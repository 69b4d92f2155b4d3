"""Finals: the exact values, released once and together; nothing new is answered after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout.guard.questions import Posed
from reusable_holdout.guard.subjects import measured
from reusable_holdout.guard.transcript import row_of
from reusable_holdout.ledger import Row
from reusable_holdout.ways import State

__all__ = ["tell_finals"]


def tell_finals(finals: Sequence[Posed]) -> list[Any]:
    """Tell values as they are, once, durably; each may be of another metric; after another final it is Halted."""
    if any(one.question.way != "final" for one in finals):
        raise InputError("a final ends what is asked; got other questions beside it; nothing was asked")
    root = finals[0].view
    each = [(one, place) for one in finals for place in range(len(one.subjects))]
    digests = [one.digests[place] for one, place in each]
    if len(set(digests)) < len(digests):
        raise InputError("a final is of different models; two are the same; nothing was told; name each once")
    transcript, final = root.transcript, root.ways.final
    ended = final.halt_reason(transcript.state) is not None
    found: list[Any] = []
    if not ended:
        for one in finals:
            one.view.holdout.try_out([model for subject in one.subjects for model in subject.models])
        found = [measured(one.view, one.way, [one.subjects[place]], None)[0] for one, place in each]
    with transcript.ledger.transaction() as transaction:
        known = transaction.find(digests)
        state = transcript.state_at(transaction.tail)
        reason = None if len(known) == len(digests) else final.halt_reason(state)
        rows = _rows(each, found, state) if reason is None and not known and not ended else []
        transaction.append(rows)
    known |= {row.digest: row for row in rows}
    if reason is not None or len(known) < len(digests):
        raise transcript.halt(reason or "final", [])
    left = root.charges_left(state.charges)
    answers: list[Any] = []
    for one in finals:
        own = [transcript.answer(known[digest], one.unit, left, replayed=not rows) for digest in one.digests]
        one.view.tell(own)
        answers.append(own if one.several else own[0])
    return answers


def _rows(each: Sequence[tuple[Posed, int]], found: Sequence[Any], state: State) -> list[Row]:
    """Return the rows of finals that are released together, each certified as one of all."""
    rows: list[Row] = []
    for (one, place), value in zip(each, found, strict=True):
        way: Any = one.way
        length = way.length(state, len(each))
        row = row_of(
            way,
            state._replace(query=state.query + len(rows)),
            one.digests[place],
            *way.decide(value, length),
            length=length,
            takes=0,
            batch=state.query + 1,
            name=one.names[place],
        )
        rows.append(row)
    return rows
