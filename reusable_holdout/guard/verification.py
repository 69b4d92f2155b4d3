"""Verification: a ledger alone lets anyone recompute every interval, threshold and charge."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reusable_holdout.errors import HoldoutError, InputError, TamperedLedgerError
from reusable_holdout.guard import frozen
from reusable_holdout.guard.configuration import Configuration, Epoch, KeptRows, read_epochs
from reusable_holdout.guard.frozen import FrozenCertificate
from reusable_holdout.guard.views import Views
from reusable_holdout.ledger import Row, chain_problems
from reusable_holdout.rules import Floats
from reusable_holdout.slips import checked_call
from reusable_holdout.ways import FINAL, Outcome, State, Terms, Way
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.claim import Claims
from reusable_holdout.ways.told import Told

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
    another_budget : bool
        Whether rows of it had another budget when they came into it: then nothing is promised of both together.
    witnessed : bool
        Whether a witness was reached, which has seen no more than is here.
    mistake : str
        What was wrong with the certificate of a sound ledger, in words; empty if nothing is known to be.
    """

    queries: int
    charges: int
    head: str
    problems: list[str]
    another_budget: bool = False
    witnessed: bool = False
    mistake: str = ""

    def __str__(self) -> str:
        lines = self.problems or [f"sound: {self.queries} answers, {self.charges} charged"]
        if self.another_budget:
            lines = [*lines, "marked: its rows had another budget, and nothing is promised of both together"]
        if self.mistake:
            lines = [*lines, f"mistaken: {self.mistake}"]
        return "\n".join([*lines, f"head {self.head}{', as its witness has seen it' * self.witnessed}"])

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


@checked_call
def verify(
    ledger: str | Path,
    *,
    expected_head: str | None = None,
    witness: str | Path | None = None,
    certificate: FrozenCertificate | str | Path | None = None,
) -> Verification:
    """Recompute the hash chain, the budget, and every interval of a ledger, offline and without the holdout or its key.

    Parameters
    ----------
    ledger : str or Path
        SQLite file or URL.
    expected_head : str, optional
        The `head` of an earlier verification: a seal that must still be in the chain.
    witness : str or Path, optional
        By default the one that stands in the ledger, if it can be reached.
    certificate : FrozenCertificate, str or Path, optional
        Of a model that was deployed, or its file: what it says must be what this ledger answered.

    Returns
    -------
    Verification

    Raises
    ------
    LedgerError
        If there is no such ledger, or it cannot be read.
    InputError
        If the certificate is none.

    Notes
    -----
    Proves that the ledger is consistent with itself: what was released is what the plan allows, in this order. That
    the values came from the holdout is known to the holder of holdout and key only.
    """
    deployed = None if certificate is None else frozen.FrozenCertificate.read(certificate)
    epochs, seen = read_epochs(ledger, witness)
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
    if deployed is not None:
        problems += frozen.frozen_problems(deployed, epochs)
    if seen is not None and seen.seal.hex() not in chain[1:]:
        problems.append(
            f"its witness has seen {seen.query} answers of epoch {seen.epoch}, which are not here, or are others: an "
            "older copy was restored"
        )
    more = len(problems) - _MOST_PROBLEMS
    if more > 0:
        problems = [*problems[:_MOST_PROBLEMS], f"and {more} more"]
    rows = [row for epoch in epochs for row in epoch.rows]
    charges = sum(row.charged == 1 for row in rows)
    another, mistake = False, ""
    for epoch in epochs:
        with contextlib.suppress(HoldoutError):
            configuration = Configuration.parse(epoch.text)
            another = another or configuration.another_budget
    return Verification(len(rows), charges, chain[-1], problems, another, seen is not None, mistake)


def _epoch_problems(epoch: Epoch, number: int, previous: str, before: Sequence[Epoch]) -> Iterator[str]:
    problems = chain_problems(epoch.text, epoch.rows, epoch.seals)
    try:
        this, *past = [Configuration.parse(one.text) for one in (epoch, *before)]
    except HoldoutError as error:
        yield from [*problems, str(error)]
        return
    underived = [
        f"{fact} is not what follows from the rest of its configuration, which was changed"
        for fact in this.unfounded(epoch.text)
    ]
    yield from problems + underived
    if not problems and not underived:  # otherwise the columns mean nothing, or the plan is none
        yield from _recomputed(this, epoch.rows)
    if (this.epoch, this.previous) != (number, previous):
        yield "its configuration does not follow the epoch before: one was removed, or changed after its end"
    if KeptRows(this.known_rows, epoch.known_rows).parts() is None:
        yield "what it keeps of its rows is not what was sealed: a rotation cannot know them again"
    replanned = True  # right before this one, and unasked
    for one, its in zip(reversed(past), reversed(before), strict=True):
        same = one.holdout == this.holdout
        replanned &= same and not its.rows
        if same and not replanned:
            yield f"its holdout is that of epoch {one.epoch}, which was released"
        if one.key != this.key:
            yield f"its noise key is another than that of epoch {one.epoch}"


def _recomputed(configuration: Configuration, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    try:
        states = _States.before(rows)
        views = Views(configuration.view)
        problems = list(views.opened(rows, states.own))
        if problems:
            return problems
        for way, places in views.places(rows):
            problems += _halt_problems(way, rows, states, places)
            problems += _content_problems(way, rows, states, places)
    except (HoldoutError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        return [f"the rows cannot have come from the plan in the configuration: {error}"]
    return problems


class _States(NamedTuple):
    """Before each question: its own, in which it was asked, and that of its batch, by which it is certified."""

    own: list[State]
    batch: list[State]

    @classmethod
    def before(cls, rows: Sequence[Row]) -> _States:
        own, last = [State(last_charge=0)], 0
        for row in rows:
            last = row.asked if row.charged else last
            own.append(State.after(row, last))
        return cls(own[:-1], [own[row.batch - 1] for row in rows])


def _halt_problems(way: Way, rows: Sequence[Row], states: _States, places: Sequence[int]) -> Iterator[str]:
    """Yield answers beyond the declared number, after a halt, or that could have broken a promise."""
    certificate = way.certificate
    for place in places:
        row, state, began = rows[place], states.own[place], states.batch[place]
        told = _told(row)
        takes, own = row.asked - state.asked, way.takes(told)
        if way.halt_reason(began if way.ends else state) is not None:
            yield f"query {row.query} was answered after the guard had to halt"
        if row.asked > certificate.queries:
            yield f"query {row.query}: {row.asked} queries were asked, but {certificate.queries} were declared"
        if takes != own:
            yield f"query {row.query} must take {own} of the declared queries, but took {takes}"
        worst = way.worst_nats(own)
        if worst and worst > certificate.room(charges=state.charges, nats=state.nats) + _SAME:
            yield f"query {row.query} could have broken a promise of the plan, and had to be refused"
        if rows[row.batch - 1].kind != row.kind:
            yield f"query {row.query} is in a batch that was asked in another way"
        elif row.batch != row.query and not (way.batches or way.ends):
            yield f"query {row.query} is in a batch, which its way to ask does not have"


def _told(row: Row) -> Told:
    """Return what a row says was told; InputError if it is spelled as no outcome is."""
    told = Told.parse(row.told)
    if told is None:
        raise InputError(f"query {row.query}: {row.told!r} is no outcome")
    return told


def _content_problems(way: Way, rows: Sequence[Row], states: _States, places: Sequence[int]) -> Iterator[str]:
    """Yield whatever does not follow from the plan among questions of one way."""
    mine = [rows[place] for place in places]
    own, began = [states.own[place] for place in places], [states.batch[place] for place in places]
    for row, before in zip(mine, began, strict=True):
        yield from _column_problems(way, row, before)

    def different(what: str, expected: Floats, name: str) -> Iterator[str]:
        found = np.array([getattr(row, name) for row in mine])
        wrong = ~(np.abs(expected - found) <= _SAME * np.maximum(1.0, np.abs(expected)))
        for i in np.flatnonzero(wrong).tolist():
            yield f"query {mine[i].query}: the {what} must be {expected[i]:.9g}, the ledger says {found[i]:.9g}"

    yield from different("threshold", _units(way, mine, own), "threshold")
    terms: list[Any] = [Terms(row.prior, row.threshold) for row in mine]
    if isinstance(way, Claims):
        terms = list(way.recalled(mine))
    outcomes = [way.outcome(_told(row), one) for row, one in zip(mine, terms, strict=True)]
    values = np.array([one.value for one in outcomes])
    yield from different("value", values, "value")
    if way.ends:
        yield from different("prior", values, "prior")
    yield from different("number of charges", np.array([float(one.charged) for one in outcomes]), "charged")
    yield from different("description length", np.array([one.nats for one in outcomes]), "nats")
    finals = sum(row.kind == FINAL for row in rows)
    low, high = _intervals(way, mine, terms, outcomes, began, finals)
    yield from different("lower end", low, "low")
    yield from different("upper end", high, "high")


def _column_problems(way: Way, row: Row, began: State) -> Iterator[str]:
    """Yield values that a column may not hold, whatever the others do."""
    if not (0.0 <= row.value <= 1.0 and 0.0 <= row.prior <= 1.0):
        yield f"query {row.query}: prior or value is out of bounds"
    if not 0.0 <= row.asked_at <= _LAST_TIME:
        yield f"query {row.query}: it was asked at no time"
    if row.series and not way.by_series:
        yield f"query {row.query}: it names a series, which its way to ask does not have"
    if not row.tolerance:
        return
    if not isinstance(way, Check) or way.by_series:
        yield f"query {row.query}: it names a tolerance, which its way to ask does not have"
    elif not 0.0 < row.tolerance <= 1.0:
        yield f"query {row.query}: it names a tolerance that is out of bounds"
    elif not way.rule.keeps(row.prior, row.tolerance, way.length(began)):
        yield f"query {row.query}: it names a tolerance that could not be kept"


def _units(way: Way, rows: Sequence[Row], states: Sequence[State]) -> Floats:
    """Return the unit of each question's outcomes, from the state it was asked in."""
    priors = np.array([row.prior for row in rows])
    if not isinstance(way, Check):
        each = zip(priors.tolist(), states, strict=True)
        return np.array([way.unit(prior, state, None) for prior, state in each])
    expected, own = np.empty(len(rows)), np.array([row.tolerance for row in rows])
    for start, end in _runs(states):
        run, state = slice(start, end), states[start]
        expected[run] = way.rule.units(priors[run], state.charges, state.nats, None)
        named = start + np.flatnonzero(own[run])
        if len(named):
            expected[named] = way.rule.units(priors[named], state.charges, state.nats, own[named])
    return expected


def _intervals(
    way: Way,
    rows: Sequence[Row],
    terms: Sequence[Any],
    outcomes: Sequence[Outcome],
    began: Sequence[State],
    finals: int,
) -> tuple[Floats, Floats]:
    """Return the interval of each answer; those that were not charged at once."""
    low, high = np.empty(len(rows)), np.empty(len(rows))
    for start, end in _runs(began):
        length = way.length(began[start], finals if way.ends else 1)
        here = np.arange(start, end)
        calm = np.array([isinstance(way, Check) and one.told == way.calm for one in outcomes[start:end]])
        if isinstance(way, Check) and calm.any():
            chosen = here[calm]
            priors = np.array([rows[place].prior for place in chosen])
            units = np.array([rows[place].threshold for place in chosen])
            low[chosen], high[chosen] = way.calm_intervals(priors, units, length)
        for place in here[~calm].tolist():
            low[place], high[place] = way.interval(outcomes[place].told, terms[place], length)
    return low, high


def _runs(states: Sequence[State]) -> Iterator[tuple[int, int]]:
    """Yield stretches of states in which the same was told."""
    start = 0
    for _, run in itertools.groupby(states, key=lambda state: (state.charges, state.nats)):
        end = start + sum(1 for _ in run)
        yield start, end
        start = end
