"""Verification: a ledger alone lets anyone recompute every interval, threshold and charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reusable_holdout.errors import HoldoutError, LedgerError, TamperedLedgerError
from reusable_holdout.holdout.configuration import Configuration
from reusable_holdout.holdout.released import is_failure
from reusable_holdout.ledger import chain_problems, genesis
from reusable_holdout.validity import FAILURE_NATS, LADDERS, ThresholdTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from reusable_holdout.ledger import Row
    from reusable_holdout.validity import Certificate

__all__ = ["Verification", "verify"]

_SAME = 1e-9  # floats recomputed on another machine
_MOST_PROBLEMS = 20
_LAST_TIME = 253_402_300_799.0  # the end of the year 9999


@dataclass(frozen=True)
class Verification:
    """What a ledger was found to be.

    Attributes
    ----------
    queries, charges : int
        Answers found, of all epochs, and how many of them were charged.
    head : str
        Seal of the last commit, hex. Written down elsewhere, it lets a later verification find rows cut off the end.
    problems : list of str
        One sentence for each thing that is wrong; empty for a sound ledger.
    """

    queries: int
    charges: int
    head: str
    problems: list[str]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def check(self) -> None:
        """Raise what was found.

        Raises
        ------
        TamperedLedgerError
            If the ledger is not sound.
        """
        if self.problems:
            raise TamperedLedgerError(self.problems)


def verify(ledger: str | Path, *, expected_head: str | None = None) -> Verification:
    """Recompute the hash chain, the budget, and every interval of a ledger, offline and without the holdout or its key.

    Parameters
    ----------
    ledger : str or Path
        SQLite file or URL.
    expected_head : str, optional
        The `head` of an earlier verification: a seal that must still be in the chain.

    Returns
    -------
    Verification

    Raises
    ------
    LedgerError
        If there is no such ledger, or it cannot be read.

    Notes
    -----
    Proves that the ledger is consistent with itself: what was released is what the plan allows, in this order. That
    the values came from the holdout is known to the holder of holdout and key only.
    """
    epochs = _read(ledger)
    if not epochs:
        raise LedgerError("the ledger holds no guard: there is nothing to verify")
    problems, chain = [], [""]
    for number, epoch in enumerate(epochs, start=1):
        where = "" if len(epochs) == 1 else f"epoch {number}: "
        found = list(_epoch_problems(epoch, number, chain[-1], epochs[: number - 1]))
        problems += [where + problem for problem in found]
        chain += epoch.chain()
    if expected_head is not None and expected_head not in chain[1:]:
        problems.append(
            "the expected head is not in the chain: rows were cut off or replaced since it was written down"
        )
    more = len(problems) - _MOST_PROBLEMS
    if more > 0:
        problems = [*problems[:_MOST_PROBLEMS], f"and {more} more"]
    rows = [row for epoch in epochs for row in epoch.rows]
    return Verification(len(rows), sum(row.charged == 1 for row in rows), chain[-1], problems)


class _Epoch(NamedTuple):
    """One epoch, as it lies in the ledger."""

    text: str
    rows: list[Row]
    seals: list[tuple[int, bytes]]

    def chain(self) -> list[str]:
        """Seals in order, from that of the configuration; hex."""
        return [
            genesis(self.text).hex(),
            *(sealed.hex() for _, sealed in self.seals if isinstance(sealed, bytes)),
        ]


def _read(ledger: str | Path) -> list[_Epoch]:
    from reusable_holdout.ledger import SqlLedger  # noqa: PLC0415 - loads SQLAlchemy

    store = SqlLedger(ledger, must_exist=True)
    try:
        epochs = []
        for number, text in enumerate(store.configurations(), start=1):
            rows = store.rows(after=-(1 << 62), epoch=number)  # none is below 1 unless somebody added it
            seals = store.seals(epoch=number)
            # others were committed meanwhile
            epochs.append(_Epoch(text, rows, [one for one in seals if rows and one[0] <= rows[-1].query]))
    finally:
        store.close()
    return epochs


def _epoch_problems(epoch: _Epoch, number: int, previous: str, before: Sequence[_Epoch]) -> Iterator[str]:
    problems = chain_problems(epoch.text, epoch.rows, epoch.seals)
    if not problems:  # otherwise the columns mean nothing
        problems = _recomputed(epoch.text, epoch.rows)
    yield from problems
    try:
        this, *past = [Configuration.parse(one.text) for one in (epoch, *before)]
    except HoldoutError as error:
        if not epoch.rows:  # else it was said
            yield str(error)
        return
    if (this.epoch, this.previous) != (number, previous):
        yield "its configuration does not follow the epoch before: one was removed, or changed after its end"
    for one in past:
        if one.holdout == this.holdout:
            yield f"its holdout is that of epoch {one.epoch}, which was released"
        if one.key != this.key:
            yield f"its noise key is another than that of epoch {one.epoch}"


def _recomputed(text: str, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    try:
        configuration = Configuration.parse(text)
        certificate, states = configuration.certificate(), _States.before(rows)
        policy = configuration.plan.get("policy", "thresholdout")
        problems = list(_budget_problems(certificate, states))
        lengths = _lengths(certificate, states)
        paired = np.array([row.paired for row in rows])
        for kind in (0, 1):
            places = np.flatnonzero(paired == kind)
            if len(places):
                asked = configuration.certificate(paired=bool(kind))
                named = policy == "guess-and-check"
                problems += _content_problems(asked, rows, states, lengths, places, named=named)
        if not np.isin(paired, (0, 1)).all():
            problems.append("a row is neither a question about one model nor a comparison of two")
        if policy in LADDERS:
            problems += _ladder_problems(certificate.start, rows)
    except (HoldoutError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        return [f"the rows cannot have come from the plan in the configuration: {error}"]
    return problems


class _States(NamedTuple):
    """Charges and nats before each question, and before the first of its batch; each of shape (rows,)."""

    charges: NDArray[np.int64]
    nats: NDArray[np.float64]
    batch_charges: NDArray[np.int64]
    batch_nats: NDArray[np.float64]

    @classmethod
    def before(cls, rows: Sequence[Row]) -> _States:
        charges = np.array([0, *(row.charges for row in rows)])[:-1]
        nats = np.array([0.0, *(row.spent_nats for row in rows)])[:-1]
        start = np.array([row.batch for row in rows], dtype=np.int64) - 1
        return cls(charges, nats, charges[start], nats[start])


def _ladder_problems(start: float, rows: Sequence[Row]) -> Iterator[str]:
    """A ladder's prior is the answer before it, in its series."""
    best: dict[str, float] = {}
    for row in rows:
        if row.prior != best.get(row.series, start):
            yield f"query {row.query}: its prior is not the best answer before it"
        best[row.series] = row.value


def _budget_problems(certificate: Certificate, states: _States) -> Iterator[str]:
    """Answers beyond the declared number, or after a halt."""
    if len(states.charges) > certificate.queries:
        yield f"{len(states.charges)} answers, but {certificate.queries} were declared"
    for place in np.flatnonzero(np.diff(states.charges, prepend=-1)).tolist():
        charges, nats = int(states.charges[place]), float(states.nats[place])
        if not certificate.charges_left(charges=charges, nats=nats):
            yield f"query {place + 1} was answered after the guard had to halt"
            return


def _content_problems(
    certificate: Certificate,
    rows: Sequence[Row],
    states: _States,
    lengths: NDArray[np.float64],
    places: NDArray[np.int64],
    *,
    named: bool,
) -> Iterator[str]:
    """Whatever does not follow from the plan among questions of one kind.

    Parameters
    ----------
    certificate : Certificate
        Of this kind.
    places : numpy.ndarray of int64
        Where the questions of this kind are.
    named : bool
        Whether questions may have had tolerances of their own.
    """
    rows = [rows[place] for place in places.tolist()]
    columns = {
        name: np.array([getattr(row, name) for row in rows])
        for name in ("prior", "value", "charged", "threshold", "low", "high", "nats")
    }
    prior, threshold, charged = columns["prior"], columns["threshold"], columns["charged"].astype(bool)

    def different(what: str, expected: NDArray[np.float64], name: str) -> Iterator[str]:
        return _different(what, expected, columns[name], places)

    if named:
        least = min(certificate.least_threshold, certificate.fixed_threshold or math.inf)
        expected = np.maximum(threshold, least)
    else:
        expected = _thresholds(certificate, prior, states.charges[places], states.nats[places])
    yield from different("threshold", expected, "threshold")
    agreed = np.where(charged, columns["value"], prior)
    yield from different("value of an agreed answer", agreed, "value")
    yield from _range_problems(certificate, rows)
    yield from different("description length", np.array([_nats(certificate, row) for row in rows]), "nats")
    low, high = certificate.agreed(prior, threshold, lengths[places])
    fresh_low, fresh_high = certificate.charged(columns["value"], threshold, lengths[places])
    failed = np.array([is_failure(row) for row in rows])
    low = np.where(failed, certificate.lower, np.where(charged, fresh_low, low))
    high = np.where(failed, certificate.upper, np.where(charged, fresh_high, high))
    yield from different("lower end", low, "low")
    yield from different("upper end", high, "high")


def _range_problems(certificate: Certificate, rows: Sequence[Row]) -> Iterator[str]:
    """Whatever no guard releases: values out of bounds or beside the answer grid, times that are none."""
    lower, upper = certificate.lower, certificate.upper
    for row in rows:
        failed = is_failure(row) and row.value == certificate.failed_value(row.prior)
        beside = (
            row.charged
            and not failed
            and not certificate.is_answer(row.value, prior=row.prior, threshold=row.threshold)
        )
        if beside or not (lower <= row.value <= upper and lower <= row.prior <= upper):
            yield f"query {row.query}: prior or value is out of bounds or beside the answer grid"
        if not 0.0 <= row.asked_at <= _LAST_TIME:
            yield f"query {row.query}: it was asked at no time"


def _nats(certificate: Certificate, row: Row) -> float:
    if not row.charged:
        return 0.0
    if is_failure(row) and row.value == certificate.failed_value(row.prior):
        return FAILURE_NATS
    return certificate.value_nats(row.value, prior=row.prior, threshold=row.threshold)


def _thresholds(
    certificate: Certificate,
    priors: NDArray[np.float64],
    charges: NDArray[np.int64],
    nats: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Threshold of each question, from the state it was asked in."""
    expected = np.empty(len(priors))
    starts = np.flatnonzero(np.diff(charges, prepend=-1)).tolist()
    for start, end in zip(starts, [*starts[1:], len(priors)], strict=True):
        table = ThresholdTable(certificate, charges=int(charges[start]), nats=float(nats[start]))
        expected[start:end] = table.at_each(priors[start:end])
    return expected


def _lengths(certificate: Certificate, states: _States) -> NDArray[np.float64]:
    """Description length of each question, given the charges before its batch."""
    lengths = np.empty(len(states.charges))
    starts = np.flatnonzero(np.diff(states.batch_charges, prepend=-1)).tolist()
    for start, end in zip(starts, [*starts[1:], len(lengths)], strict=True):
        lengths[start:end] = certificate.code.lengths(
            first=start + 1,
            count=end - start,
            charges=int(states.batch_charges[start]),
            nats=float(states.batch_nats[start]),
        )
    return lengths


def _different(
    what: str, expected: NDArray[np.float64], found: NDArray[np.float64], places: NDArray[np.int64]
) -> Iterator[str]:
    wrong = np.flatnonzero(~(np.abs(expected - found) <= _SAME * np.maximum(1.0, np.abs(expected))))
    for i in wrong.tolist():
        yield f"query {places[i] + 1}: the {what} must be {expected[i]:.9g}, the ledger says {found[i]:.9g}"
