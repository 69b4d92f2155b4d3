"""The single entry point of a guard: questions in, durable certified answers out.

A question is looked up and refused if it does not fit. It is measured outside the ledger's lock, decided and certified
inside it, and committed in one transaction. A failure before the commit costs nothing. The noise is a function of the
question, so asking again returns the answer that was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from reusable_holdout.answer import Choice, Guardrail
from reusable_holdout.errors import Halted, InputError, LedgerError, ModelError
from reusable_holdout.guard import guardrails
from reusable_holdout.guard.finals import tell_finals
from reusable_holdout.guard.questions import AnswerOrError, Posed, Question, posed
from reusable_holdout.guard.subjects import Measured, check_tolerances_kept, measured, numbers_of, weighed
from reusable_holdout.guard.transcript import first_occurrences, row_of, rows_of_batch
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.ledger import Row, Transaction
from reusable_holdout.ways import Outcome, State, Terms, Told
from reusable_holdout.ways.check import Asked, Check
from reusable_holdout.ways.gate import GuardedGate


def ask(view: GuardedView, questions: Sequence[Question]) -> list[Any]:
    """Answer questions in order, each durably.

    Returns
    -------
    list
        For each question an :class:`Answer`, for a choice a :class:`Choice`, for a batch a list. A subject that failed
        on the holdout has a :class:`ModelError` in place of an answer. A halt carries the answers before it.
    """
    each = [posed(view, question) for question in questions]
    if any(one.question.way == "final" for one in each):
        return tell_finals(each)
    found: list[Any] = []
    for one in each:
        try:
            found.append(_asked(one))
        except Halted as halted:
            before = [answer for each in found for answer in (each if isinstance(each, list) else [each])]
            if before:
                raise one.view.transcript.halt(halted.reason, [*before, *halted.answers]) from None
            raise
    return found


def _asked(one: Posed) -> Any:
    way, question = one.way, one.question
    if question.anew and not way.by_series:
        raise InputError(
            "anew= is for a board of claims, where predictions that another series sent are not asked about "
            "again; leave anew= out; nothing was asked"
        )
    if way.by_series:
        answers = _claims(one)
    elif isinstance(way, GuardedGate):
        answers = [_guarded(one)]
    elif way.batches:
        answers = _batch(one) if len(one.digests) > 1 else [_checked(one)]
    elif question.way == "choose":
        return _chosen(one)
    else:
        answers = [_revealed(one, place) for place in range(len(one.subjects))]
    return answers if one.several else answers[0]


def measured_here(view: GuardedView, model: Any, prior: Any, prior_error: float, way: str) -> Measured:
    """Measure a fitted model for a question that another process asks, if this is needed; encrypt the result."""
    question = Question(way, model, prior, prior_error=prior_error)
    if way == "choose":  # a choice is among a list
        question = question._replace(subjects=[model], priors=[prior])
    one = posed(view, question)
    (subject,), kind = one.subjects, one.way
    if not subject.models:
        raise InputError("only models are measured; got predictions; nothing was asked; pass a fitted model")
    transcript = view.transcript
    alone = kind.name not in {"choose", "final"}  # these are named by all their candidates
    tail, row = transcript.ledger.look(one.digests[0])
    if kind.halt_reason(transcript.state_at(tail)) is not None or (alone and row is not None):
        return Measured(model, subject.content)
    (found,) = measured(view, kind, [subject], None)
    bound = view.holdout.bound
    most = 2 * bound.rows + 4 if bound.is_ratio else bound.rows + 1
    numbers = view.content.conceal(
        numbers_of(found), most if kind.by_rows else 1, view.about(kind, subject.content)
    )
    return Measured(subject.models[0], subject.content, numbers)


# ---- checks and gates


def _batch(one: Posed) -> list[AnswerOrError]:
    """Answer checks or gates, durably; all questions of a batch share the history before the batch."""
    way, view, digests = one.way, one.view, one.digests
    assert isinstance(way, Check)  # noqa: S101 - its caller has looked
    transcript = view.transcript
    tail, first = transcript.ledger.look(digests[0])
    state = transcript.state_at(tail)
    asked, found = None, []
    if way.halt_reason(state) is None and _needed(one, state, first):
        found = measured(view, way, one.subjects, one.question.X_train)
        asked = _asked_in(one, found, state)
    with transcript.ledger.transaction(digests[0]) as transaction:
        known = _known(transaction, digests)
        state = transcript.state_at(transaction.tail)
        new = first_occurrences(digests, known)
        reason = way.halt_reason(state) if new else None
        rows: list[Row] = []
        if new and reason is None and asked is not None:
            asked = _asked_in(one, found, state, asked)
            some = asked if len(new) == len(digests) else asked.at(new)
            stated = None if one.tolerances is None else one.tolerances[new]
            _refuse(one, new, state)
            names = [one.names[place] for place in new]
            decided = way.decide(some, state)
            rows = rows_of_batch(way, decided, some.digests, some.priors, names, state, stated)
            reason = "charges" if len(rows) < len(new) else None
            transaction.append(rows)
    return _answers(one, known, rows, state, reason)


def _asked_in(one: Posed, found: Sequence[Any], state: State, before: Asked | None = None) -> Asked:
    """Return the weighed rows for the tolerances in a state; reuse `before` if the tolerances are the same."""
    way: Any = one.way
    limits: Any = way.tolerances(one.tolerances, one.beyond, state)
    known: Any = None if before is None else before.tolerances
    if before is not None and (limits is known or np.array_equal(limits, known)):
        return before
    both = weighed(way, one.view.holdout.bound, found, one.priors, limits)
    return Asked(one.digests, one.priors, limits, *both, one.beyond)


def _known(transaction: Transaction, digests: Sequence[bytes]) -> dict[bytes, Row]:
    """Return the ledger's rows of answered questions; a single question's row came with the transaction."""
    if len(digests) > 1:
        return transaction.find(digests)
    return {} if transaction.row is None else {digests[0]: transaction.row}


def _needed(one: Posed, state: State, first: Row | None) -> bool:
    """Return True if a batch has a new question; refuse a batch without room before the rows are read.

    Questions after the first are looked up only if the result depends on them.
    """
    transcript = one.view.transcript
    roomy = len(one.digests) <= transcript.queries - state.asked and one.tolerances is None
    if roomy and first is None:
        return True
    with transcript.ledger.transaction(one.digests[0]) as transaction:
        new = first_occurrences(one.digests, _known(transaction, one.digests))
    if new:
        _refuse(one, new, state)
    return bool(new)


def _refuse(one: Posed, new: Sequence[int], state: State) -> None:
    """Refuse new questions without room, or with tolerances that cannot be kept; by public numbers alone."""
    way: Any = one.way
    one.view.transcript.check_room(len(new), state)
    if one.tolerances is not None:
        check_tolerances_kept(way, one.priors[new], one.tolerances[new], state, one.unit)


def _answers(
    one: Posed, known: dict[bytes, Row], rows: list[Row], state: State, reason: str | None
) -> list[AnswerOrError]:
    """Return the answers to a batch in which questions may repeat; raise a halt at the first without an answer."""
    view, fresh, known = one.view, {row.digest: row for row in rows}, dict(known)
    left = view.transcript.allowance.left(rows[-1].charges if rows else state.charges)
    answers: list[AnswerOrError] = []
    for digest in one.digests:
        row = fresh.pop(digest, None)  # its repetitions inside the batch are replays
        if row is None and digest not in known:
            break
        known[digest] = told = known[digest] if row is None else row
        own = left if row is None else view.transcript.allowance.left(told.charges)
        answers.append(view.transcript.answer(told, one.unit, own, replayed=row is None))
    view.tell(answers)
    if len(answers) < len(one.digests):
        raise view.transcript.halt(reason or "charges", answers)
    return answers


# ---- one at a time


def _single(
    one: Posed,
    digest: bytes,
    refuse: Callable[[State], None],
    measure: Callable[[State], Any],
    decide: Callable[[Any, State], Any],
    *,
    takes: int = 1,
    tolerance: float = 0.0,
) -> tuple[AnswerOrError, Row]:
    """Answer one question, durably; it takes one or several of the declared queries.

    `refuse` raises if there is no room, by public numbers: before the rows are read, and in the deciding transaction.
    `measure` reads the rows. It is not called for refused or replayed questions, nor after a halt.
    """
    way, transcript = one.way, one.view.transcript
    tail, row = transcript.ledger.look(digest)
    state = transcript.state_at(tail)
    found, has_measured = None, False
    if way.halt_reason(state) is None and row is None:
        refuse(state)
        found, has_measured = measure(state), True
    with transcript.ledger.transaction(digest) as transaction:
        row = transaction.row
        state = transcript.state_at(transaction.tail)
        replayed = row is not None
        reason = None if replayed else way.halt_reason(state)
        if row is None and reason is None and has_measured:
            refuse(state)
            terms, outcome = decide(found, state)
            row = row_of(
                way, state, digest, terms, outcome, takes=takes, name=one.names[0], tolerance=tolerance
            )
            transaction.append([row])
    if row is None:
        raise transcript.halt(reason or "charges", [])
    left = one.view.charges_left(state.charges if replayed else row.charges)
    answer = transcript.answer(row, one.unit, left, replayed=replayed)
    return answer, row


def _checked(one: Posed) -> AnswerOrError:
    """Answer a single check or gate: the same answer as in a batch of one, but no arrays are built."""
    way, view, tolerances = one.way, one.view, one.tolerances
    assert isinstance(way, Check)  # noqa: S101 - its caller has looked

    def measure(state: State) -> tuple[Sequence[Any], Asked]:
        found = measured(view, way, one.subjects, one.question.X_train)
        return found, _asked_in(one, found, state)

    def decide(both: tuple[Sequence[Any], Asked], state: State) -> tuple[Terms, Outcome]:
        return way.decide_one(_asked_in(one, both[0], state, both[1]), state)

    answer, _ = _single(
        one,
        one.digests[0],
        partial(_refuse, one, [0]),
        measure,
        decide,
        tolerance=0.0 if tolerances is None else float(tolerances[0]),
    )
    view.tell([answer])
    return answer


def _revealed(one: Posed, place: int) -> AnswerOrError:
    way: Any = one.way
    digest, prior = one.digests[place], float(one.priors[place])
    answer, _ = _single(
        one._replace(names=[one.names[place]]),
        digest,
        lambda state: way.check_affordable(way.worst_nats(), state, f"a {way.name}"),
        lambda _: measured(one.view, way, [one.subjects[place]], one.question.X_train)[0],
        lambda found, state: way.decide(found, prior, digest, state),
    )
    one.view.tell([answer])
    return answer


def _chosen(one: Posed) -> Choice | ModelError:
    way, count, content = one.view.ways.choose, len(one.digests), one.view.content
    digest = content.several(b"choose", one.digests)
    # a candidate of two choices must not get the same noise in both
    own = [content.several(b"noise", [digest, candidate]) for candidate in one.digests]

    def refuse(state: State) -> None:
        one.view.transcript.check_room(count, state)
        way.check_affordable(way.worst_nats(count), state, "a choice")

    answer, row = _single(
        one,
        digest,
        refuse,
        lambda _: measured(one.view, way, one.subjects, one.question.X_train),
        lambda found, state: way.choose(found, one.priors, own, state),
        takes=count,
    )
    one.view.tell([answer])
    if isinstance(answer, ModelError):
        return answer
    told = Told.parse(row.told)
    if told is None or told.winner is None:
        raise LedgerError(f"query {row.query} is not a choice; verify the ledger; nothing was asked")
    before = State(charges=row.charges - row.charged, nats=row.spent_nats - row.nats)
    others = way.others(told, Terms(row.prior, row.threshold), way.length(before))
    best = one.unit.ends(0.0, others)[1 if one.unit.greater_is_better else 0]
    return Choice(told.winner.candidate, answer, best)


def _guarded(one: Posed) -> AnswerOrError:
    way: Any = one.way
    named = guardrails.stated(one.view, one.question.guardrails, one.question.subjects)
    own = guardrails.Rail(one.view, way.gate, one.subjects[0], float(one.priors[0]), one.unit, one.digests[0])
    tolerance = None if one.tolerances is None else float(one.tolerances[0])
    digest = one.view.content.several(b"guarded", [rail.digest for rail in (own, *named)])
    answer, row = _single(
        one,
        digest,
        partial(one.view.transcript.check_room, 1 + len(named)),
        lambda _: [rail.value(one.question.X_train) for rail in (own, *named)],
        lambda found, state: way.decide(
            found, [rail.view.number for rail in named], digest, state, tolerance
        ),
        takes=1 + len(named),
        tolerance=tolerance or 0.0,
    )
    if not isinstance(answer, ModelError):
        before = State(charges=row.charges - row.charged, nats=row.spent_nats - row.nats)
        told = Told.parse(row.told)
        bounds = way.bounds(told, [rail.gate for rail in named], way.length(before), tolerance)
        each = (
            Guardrail(
                rail.view.metric.name, rail.unit.own(rail.named), *rail.unit.ends(float(low), float(high))
            )
            for rail, (low, high) in zip(named, bounds, strict=True)
        )
        answer = answer._replace(guardrails=tuple(each))
    one.view.tell([answer])
    return answer


# ---- claims


def _claims(one: Posed) -> list[AnswerOrError]:
    """Answer claims one after the other, because the outcome of one decides what the next can cost."""
    answers: list[AnswerOrError] = []
    for place, subject in enumerate(one.subjects):
        prior = float(one.priors[place])
        own = one.view.content.claim(one.digests[place], one.question.series, one.view.ways.claim.grid(prior))
        try:
            answer = one.view.boards.claim(
                one.view.ways.claim,
                one.digests[place],
                own,
                prior,
                lambda subject=subject: measured(one.view, one.way, [subject], one.question.X_train)[0],  # type: ignore[misc]
                series=one.question.series,
                name=one.names[place],
                unit=one.unit,
                anew=one.question.anew,
            )
        except Halted as halted:
            raise one.view.transcript.halt(halted.reason, answers) from None
        one.view.tell([answer])
        answers.append(answer)
    return answers
