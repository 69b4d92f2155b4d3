"""The recomputation of a ledger's rows, which finds every answer of an epoch that does not follow from its plan."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, cast

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.views import OF_ROWS, UNREADABLE, VIEW, View
from reusable_holdout.ledger import Row
from reusable_holdout.rules import Floats
from reusable_holdout.ways import FINAL, Outcome, State, Terms, Told, Way
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.claim import Claims
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.table import PAIRED, Ways

_SAME = 1e-9  # floats recomputed on another machine
_LAST_TIME = 253_402_300_799.0  # the end of the year 9999


def problems_of_ways(
    ways: Iterable[tuple[Way, list[int]]], rows: Sequence[Row], states: States, *, same: float = _SAME
) -> Iterator[str]:
    """Yield the problems of rows, given each way to ask with the places of its rows.

    Numbers may differ by `same`, or by the part `same` of the expected number if that is larger than one.
    """
    each = list(ways)
    of_all = [place for way, own in each if isinstance(way, Final) and way.since is None for place in own]
    for way, places in each:
        yield from _halt_problems(way, rows, states, places)
        yield from _content_problems(way, rows, states, places, same)
        if isinstance(way, Final) and places:
            yield from _weight_problems(way, rows, places, of_all)


class Views:
    """The views of one epoch: the guard's own metric, then the views that are recorded in the ledger's rows."""

    def __init__(self, first: View) -> None:
        self._views = [first]
        self._ways = [first.ways()]
        self._opened, self._since = 0, cast("State | None", None)

    def opened(self, rows: Sequence[Row], states: Sequence[State]) -> Iterator[str]:
        """Yield problems of the rows that open views, and of questions that no view opened before can have asked."""
        for row, state in zip(rows, states, strict=True):
            if row.kind == VIEW:
                yield from (f"query {row.query}: {problem}" for problem in self._problems(row, state))
            elif self._named(row.view, row.kind) is None:
                yield f"query {row.query}: it was asked in a way that this guard does not have"
            elif not self._fits(row):
                yield f"query {row.query}: its guardrails must be other views of the rows, each with a score to reach"

    def _fits(self, row: Row) -> bool:
        """Return True if a row's guardrails are other views, each named once, or if it has no guardrails."""
        told = Told.parse(row.told)
        rails = told.rails if told else ()
        views, gate = (
            {row.view, *(view for view, _ in rails)},
            "gate-compare" if row.kind in PAIRED else "gate",
        )
        named = [self._named(view, gate) for view, _ in rails]
        return (
            len(views) > len(rails) and None not in named and all(0.0 <= least <= 1.0 for _, least in rails)
        )

    def places(self, rows: Sequence[Row]) -> Iterator[tuple[Way, list[int]]]:
        """Yield every way in which questions were asked, with the positions of their rows."""
        found: dict[tuple[int, str], list[int]] = {}
        for place, row in enumerate(rows):
            if row.kind != VIEW:
                found.setdefault((row.view, row.kind), []).append(place)
        for (view, name), places in found.items():
            yield cast("Way", self._named(view, name)), places

    def ways(self, view: int) -> Ways:
        """Return the ways to ask about a view."""
        return self._ways[view]

    def _named(self, view: int, name: str) -> Way | None:
        return self._ways[view].named(name) if 0 <= view < len(self._ways) else None

    def _problems(self, row: Row, state: State) -> Iterator[str]:
        number, first = len(self._ways), self._ways[0].plan
        try:
            view = View.parse(row.told)
            yield from (f"{fact} of the metric that it opens does not follow" for fact in view.underived())
            self._since = self._since or (State.after(row) if view.adds else None)
            ways = view.ways(self._since)
        except UNREADABLE as error:
            yield str(error)
            return
        self._ways.append(ways)
        if row.told != view.text():
            yield "its spelling"
        kept = [
            getattr(one, name)
            for one in (ways.plan, first)
            for name in ("queries", "charges", "confidence", "asks", "final_share", "growth_share")
        ]
        if view.is_alone:
            kept[8], kept[11] = first.confidence_of_added, 0.0
            if row.query != self._opened + 1:
                yield "the rows alone that a view adds must have a view right after it"
        self._opened = row.query
        plain = view.is_alone and OF_ROWS.isdisjoint(view.metric)
        if plain and first.rows + ways.plan.rows != self._ways[-2].plan.rows:
            yield "all rows must be the guard's own and those that were added"
        if view.plan["shared"] != asdict(first.shared_with(number)) or kept[:6] != kept[6:]:
            yield "the view that it opens is not on the budget of the guard"
        yield from view.misopened(row, state, self._views, self._ways[0])
        self._views.append(view)


class States(NamedTuple):
    """Two states for each question: `own`, just before it, and `batch`, before its batch, which certifies it."""

    own: list[State]
    batch: list[State]

    @classmethod
    def before(cls, rows: Sequence[Row]) -> States:
        """Return the states before the rows of an epoch."""
        own, last = [State(last_charge=0)], 0
        for row in rows:
            last = row.asked if row.charged else last
            own.append(State.after(row, last))
        return cls(own[:-1], [own[row.batch - 1] for row in rows])


def _halt_problems(way: Way, rows: Sequence[Row], states: States, places: Sequence[int]) -> Iterator[str]:
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
            yield f"query {row.query} had to be refused, because it could have broken a promise of the plan"
        if rows[row.batch - 1].kind != row.kind:
            yield f"query {row.query} is in a batch of another kind of question"
        elif row.batch != row.query and not (way.batches or way.ends):
            yield f"query {row.query} is in a batch, but its kind of question has no batches"


def _told(row: Row) -> Told:
    """Return the released outcome of a row; InputError if its text is no outcome."""
    told = Told.parse(row.told)
    if told is None:
        raise InputError(f"query {row.query}: {row.told!r} is not an outcome")
    return told


def _content_problems(
    way: Way, rows: Sequence[Row], states: States, places: Sequence[int], same: float
) -> Iterator[str]:
    """Yield the facts that do not follow from the plan among questions of one way."""
    mine = [rows[place] for place in places]
    own, began = [states.own[place] for place in places], [states.batch[place] for place in places]
    for row, before in zip(mine, began, strict=True):
        yield from _column_problems(way, row, before)

    def different(what: str, expected: Floats, name: str) -> Iterator[str]:
        found = np.array([getattr(row, name) for row in mine])
        wrong = ~(np.abs(expected - found) <= same * np.maximum(1.0, np.abs(expected)))
        for i in np.flatnonzero(wrong).tolist():
            yield f"query {mine[i].query}: the {what} must be {expected[i]:.9g}, the ledger says {found[i]:.9g}"

    units = _units(way, mine, own, began)
    if way.name == "check" and way.certificate.threshold_sds:  # a prior's own error may have made it wider
        stated = np.array([0.0 if row.tolerance else row.threshold for row in mine])
        units = np.clip(stated, units, np.maximum(units, [_widest(way, row) for row in mine]))
    yield from different("threshold", units, "threshold")
    terms: list[Any] = [Terms(row.prior, row.threshold) for row in mine]
    if isinstance(way, Claims):
        terms = list(way.recalled(mine))
    outcomes = [way.outcome(_told(row), one) for row, one in zip(mine, terms, strict=True)]
    values = np.array([one.value for one in outcomes])
    yield from different("value", values, "value")
    yield from different("number of charges", np.array([float(one.charged) for one in outcomes]), "charged")
    yield from different("description length", np.array([one.nats for one in outcomes]), "nats")
    finals = sum(row.kind == FINAL for row in rows)
    low, high = _intervals(way, mine, terms, outcomes, began, finals)
    yield from different("lower end", low, "low")
    yield from different("upper end", high, "high")


def _widest(way: Way, row: Row) -> float:
    """Return the widest threshold for any error of the prior; nothing deviates by more than 1, but for the noise."""
    if way.certificate.decides != "distance":
        return 0.5
    widest = float(way.certificate.constant_threshold(row.prior, 1.0))
    return min(widest, 1.0 + way.certificate.comparison_tail) if row.charged else widest


def _weight_problems(
    way: Final, rows: Sequence[Row], places: Sequence[int], of_all: Sequence[int]
) -> Iterator[str]:
    """Yield finals whose weights do not follow from their priors; an unstated prior is stored as the value.

    A final about added rows alone has the weights of the final about all rows, which are the view before.
    """
    mine = [rows[place] for place in places]
    together = [rows[place] for place in of_all if rows[place].batch == mine[0].batch]
    if way.since is not None:
        before = [row for row in together if row.view == mine[0].view - 1]
        if [_told(row).weight for row in before] != [_told(row).weight for row in mine]:
            yield f"query {mine[0].query}: it must have the weights of the final about all rows"
        return
    priors = [row.prior for row in mine]
    unstated = np.allclose(priors, [row.value for row in mine], rtol=0.0, atol=_SAME)
    if not (unstated or way.certificate.theory.weighs_finals):
        yield f"query {mine[0].query}: a prior differs from the value, but finals of this edition have no priors"
    own = [_told(row).weight for row in mine]
    metrics = len({row.view for row in together})
    named = [priors, [0.0] * len(mine)] if unstated else [priors]
    each = [way.weights(stated, len(together), metrics) for stated in named]
    if not any(_same_weights(own, weights) for weights in each):
        yield f"query {mine[0].query}: the weights of the answers must be {each[-1]}, the ledger says {own}"


def _same_weights(own: Sequence[int | None], weights: Sequence[int] | None) -> bool:
    """Return True if weights are equal up to one unit of rounding."""
    if weights is None:
        return all(one is None for one in own)
    return all(one is not None and abs(one - other) <= 1 for one, other in zip(own, weights, strict=True))


def _column_problems(way: Way, row: Row, began: State) -> Iterator[str]:
    """Yield values that a column may not hold, whatever the other columns hold."""
    if not (0.0 <= row.value <= 1.0 and 0.0 <= row.prior <= 1.0):
        yield f"query {row.query}: prior or value is out of bounds"
    if not 0.0 <= row.asked_at <= _LAST_TIME:
        yield f"query {row.query}: its time of asking is not a possible time"
    if row.series and not way.by_series:
        yield f"query {row.query}: it names a series, but its kind of question has none"
    if not row.tolerance:
        return
    if not way.takes_tolerances:
        yield f"query {row.query}: it names a tolerance, but its kind of question has none"
    elif not 0.0 < row.tolerance <= 1.0:
        yield f"query {row.query}: it names a tolerance that is out of bounds"
    elif not way.keeps(row.prior, row.tolerance, way.length(began)):
        yield f"query {row.query}: it names a tolerance that could not be kept"


def _units(way: Way, rows: Sequence[Row], states: Sequence[State], began: Sequence[State]) -> Floats:
    """Return the unit of each question's outcomes, from the state before it and the state before its batch."""
    priors = np.clip([row.prior for row in rows], 0.0, 1.0)  # others are reported elsewhere
    if not isinstance(way, Check):
        each = zip(rows, states, strict=True)
        return np.array([way.unit(row.prior, state, row.tolerance or None) for row, state in each])
    expected, own = np.empty(len(rows)), np.array([row.tolerance for row in rows])
    for start, end in _runs(states, began):
        run, state = slice(start, end), states[start]
        none = np.zeros(end - start)
        limits = way.tolerances(None, none, began[start])
        expected[run] = way.rule.units(priors[run], state.charges, state.nats, limits, none)
        named = start + np.flatnonzero(own[run])
        if len(named):
            expected[named] = way.rule.units(priors[named], state.charges, state.nats, own[named], none)
    return expected


def _intervals(
    way: Way,
    rows: Sequence[Row],
    terms: Sequence[Any],
    outcomes: Sequence[Outcome],
    began: Sequence[State],
    finals: int,
) -> tuple[Floats, Floats]:
    """Return the interval of each answer; the intervals of agreements are computed together."""
    low, high = np.empty(len(rows)), np.empty(len(rows))
    for start, end in _runs(began, began):
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


def _runs(states: Sequence[State], began: Sequence[State]) -> Iterator[tuple[int, int]]:
    """Yield runs of consecutive questions with equal charges and nats before them and before their batches."""
    start, each = 0, zip(states, began, strict=True)
    for _, run in itertools.groupby(each, key=lambda pair: [(one.charges, one.nats) for one in pair]):
        end = start + sum(1 for _ in run)
        yield start, end
        start = end
