"""Rows that answers become in the ledger."""

from __future__ import annotations

import time
from itertools import accumulate, islice, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reusable_holdout.guard.kinds.kind import AGREED, Outcome, State, Terms
from reusable_holdout.ledger import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds.check import Check
    from reusable_holdout.guard.kinds.kind import Kind
    from reusable_holdout.validity import Interval

__all__ = ["Query", "agreed_rows", "first_occurrences", "row_of", "rows_of_batch"]

_FEW = 16  # questions of a batch


class Query(NamedTuple):
    """What names a question in the ledger.

    Attributes
    ----------
    digest : bytes
    name, series : str
    tolerance : float, optional
        Its own, if it named one.
    """

    digest: bytes
    name: str = ""
    series: str = ""
    tolerance: float | None = None


def row_of(
    kind: Kind,
    state: State,
    question: Query,
    terms: Terms,
    outcome: Outcome,
    interval: Interval,
    *,
    takes: int = 1,
    batch: int | None = None,
) -> Row:
    """Row of one answer, in the state before it."""
    query = state.query + 1
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
        name=question.name,
        series=question.series,
    )


def rows_of_batch(
    kind: Check,
    scores: NDArray[np.int64],
    priors: NDArray[np.float64],
    questions: Sequence[bytes],
    names: Sequence[str],
    state: State,
    tolerances: NDArray[np.float64] | None,
    series: str,
) -> list[Row]:
    """Decide a batch, up to a halt, and make its rows; those that agree are certified at once."""
    stated, thresholds, outcomes = kind.decide_many(scores, priors, questions, state, tolerances)
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
        names,
        repeat(series),
    )
    return list(map(Row._make, zip(*columns, strict=False)))  # questions after a halt have no row


def _agreed(
    kind: Check, priors: NDArray[np.float64], thresholds: NDArray[np.float64], length: float
) -> tuple[list[float], list[float]]:
    """Both ends of the interval of each question, should it agree; a few are faster one by one."""
    if len(priors) > _FEW:
        low, high = kind.agreed(priors, thresholds, length)
        return np.asarray(low).tolist(), np.asarray(high).tolist()
    pairs = zip(priors.tolist(), thresholds.tolist(), strict=True)
    ends = [kind.agreed(prior, threshold, length) for prior, threshold in pairs]
    return [float(low) for low, _ in ends], [float(high) for _, high in ends]


def agreed_rows(
    kind: Check, state: State, queries: Sequence[Query], priors: NDArray[np.float64]
) -> list[Row]:
    """Rows of a batch of which nothing is told but that it agrees."""
    rows, after, length = [], state, kind.length(state)
    for query, prior in zip(queries, priors.tolist(), strict=True):
        terms = kind.terms(prior, state, None)
        outcome = kind.outcome(AGREED, terms)
        interval = kind.interval(outcome, terms, length)
        rows.append(row_of(kind, after, query, terms, outcome, interval, batch=state.query + 1))
        after = after._replace(query=rows[-1].query, asked=rows[-1].asked)
    return rows


def first_occurrences(questions: Sequence[bytes], known: dict[bytes, Row]) -> list[int]:
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
