"""Ledgers of version 0.2: this version verifies, prints and reports them; only version 0.2 can add answers.

Their rows are scaled to [0, 1] and recomputed by the same ways, with the constants of their edition. Features that only
earlier versions had, such as ladders and finals with an exam, are here as far as verification needs them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from reusable_holdout.certainty import edition
from reusable_holdout.earlier.plans import Certificates, certificates_of, unlike, unstated
from reusable_holdout.earlier.ways import MAIN, PAIRED, named, row_in_unit
from reusable_holdout.errors import HoldoutError, LedgerMismatchError, printable
from reusable_holdout.guard.recomputation import States, problems_of_ways
from reusable_holdout.guard.views import Counted, Counts
from reusable_holdout.ledger import Row
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.ways import FAILED, Allowance, State, Way

__all__ = ["MISTAKE", "Earlier", "Promise"]

MISTAKE = (
    "it was made with exam= by version 0.2.0, and the certificate of its final rests on a mistake: models were run on "
    "the exam's rows at every question, so a model that raises errors could reveal its score on them; do not rely on "
    "its final; its other answers hold"
)
"""The mistake in the certificate of ledgers with an exam."""

_VIEW = "view"
_ASKS = {"gate": "gates", "claims": "claims", "ladder": "steps", "parameter-free-ladder": "steps"}
_FACTS = {"counts", "metric", "number", "plan", "rules", "told_by"}
_SAME = 4e-9  # values were rounded in the metric's own unit
_UNREADABLE = (HoldoutError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


class Promise(NamedTuple):
    """The numbers of a plan that a report shows."""

    rows: int
    queries: int
    charges: int
    confidence: float
    estimate: float
    tolerance: float
    asks: str

    def __str__(self) -> str:
        return (
            f"Plan of an earlier version for {self.rows:,} rows and {self.queries:,} adaptive queries\n"
            f"  every interval holds   with probability {self.confidence:g}, all queries at once\n"
            f"  answers are within     {self.tolerance:g} of the population value, at scores near {self.estimate:g}\n"
            f"  the guard halts after  {self.charges:,} charges"
        )


@dataclass(frozen=True)
class _View(Counted):
    """One metric of the rows, as a ledger describes it; if it is not `planned`, nothing was asked about it."""

    number: int
    metric: dict[str, Any]
    plan: dict[str, Any]
    rules: dict[str, Any]
    counts: Counts | None
    told_by: int
    certificates: Certificates
    planned: bool = True

    sizes = ("largest_group", "groups", "weights")

    @classmethod
    def of(cls, number: int, facts: dict[str, Any], *, planned: bool = True) -> Self:
        counts = None if facts["counts"] is None else Counts(**facts["counts"])
        plan, rules = facts["plan"], facts["rules"]
        told = certificates_of(plan, rules["scores"]["reserved_nats"])
        return cls(number, facts["metric"], plan, rules, counts, facts.get("told_by", 0), told, planned)

    def unit(self, *, paired: bool = False) -> Unit:
        return Unit.of(self.metric, paired=paired)

    def way(self, kind: str, finals: int, *, exam: bool = False, paired: bool = False) -> Way | None:
        if not self.planned:
            return None
        unit = self.unit(paired=paired)
        return named(kind, self.plan["policy"], self.certificates, unit, finals, exam=exam)

    @property
    def main(self) -> Any:
        """The main way to ask, which a halt ends."""
        return self.way(MAIN[self.plan["policy"]], 1)

    @property
    def reveal(self) -> Any:
        return self.way("reveal", 1)

    @property
    def final(self) -> Any:
        return self.way("final", 1)

    def underived(self) -> Iterator[str]:
        """Yield the names of the facts that do not follow from the metric, the plan's numbers and the edition."""
        metric, plan = self.metric, self.plan
        if not self.planned:
            return
        if [metric["lower"], metric["upper"]] != plan["bounds"] or plan["family"] == "paired":
            yield "metric.lower, metric.upper or plan.family"
        greater = metric["greater_is_better"]
        if type(greater) is not bool:
            yield "metric.greater_is_better"
        yield from unlike(self.rules, self.certificates, plan, greater_is_better=greater)
        yield from unstated(plan)
        yield from self.uncounted(plan)


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Public facts of one guard of an earlier version."""

    plan: dict[str, Any]
    rules: dict[str, Any]
    metric: dict[str, Any]
    holdout: str
    key: str
    classes: list[Any] | str | None
    counts: dict[str, Any] | None
    epoch: int = 1
    previous: str = ""
    exam: int = 0
    another_budget: bool = False
    witness: str = ""
    overlap: str = "refuse"
    known_rows: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a configuration; a LedgerMismatchError if it is something else."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            raise LedgerMismatchError(
                "the ledger's configuration must be one that a released version wrote; it is another"
            ) from None

    @property
    def mistake(self) -> str:
        """A known error of the certificate; empty if none is known."""
        return MISTAKE if self.exam else ""

    @property
    def _first(self) -> _View:
        return _View.of(0, vars(self))

    def unfounded(self, text: str) -> Iterator[str]:
        """Yield the names of the facts that do not follow from others, or that no guard can have written."""
        try:
            yield from self._first.underived()
            if (self.exam > 0) != bool(self.plan["exam"]) and "weights" not in self.metric:
                yield "exam"
        except _UNREADABLE:
            yield "plan"
        digests = all(isinstance(one, str) and len(one) == 64 for one in (self.holdout, self.key))
        sound = {
            "holdout or key": digests,
            "overlap": self.overlap in {"refuse", "allow"},
            "witness": type(self.witness) is str,
            "another_budget": type(self.another_budget) is bool,
            "known_rows": type(self.known_rows) is dict,
        }
        yield from (name for name, right in sound.items() if not right)
        parts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if json.dumps(parts, sort_keys=True, separators=(",", ":")) != text:
            yield "its spelling"

    def views(self, rows: Sequence[Row]) -> list[_View]:
        """Return all metrics: the guard's own, and each that one of the rows opened."""
        found = [self._first]
        for row in rows:
            if row.kind == _VIEW:
                facts = json.loads(row.told)
                planned = facts["plan"] is not None
                own = {} if planned else {"plan": self.plan, "rules": self.rules}
                found.append(_View.of(facts["number"], facts | own, planned=planned))
        return found

    def recomputed(self, rows: Sequence[Row]) -> list[str]:
        """Return the problems of rows that do not follow from the plan."""
        if not rows:
            return []
        try:
            states, views = States.before(rows), self.views(rows)
            problems = list(self._misopened(rows, states, views))
            finals = sum(row.kind == "final" for row in rows)
            placed, translated = self._placed(rows, views, finals)
            if problems:
                return problems
            found = list(problems_of_ways(placed, translated, states, same=_SAME))
            return found + list(self._climbs(rows))
        except _UNREADABLE as error:
            return [f"the rows cannot have come from the plan in the configuration: {error}"]

    def _placed(
        self, rows: Sequence[Row], views: Sequence[_View], finals: int
    ) -> tuple[list[tuple[Way, list[int]]], list[Row]]:
        """Return each way that was used, with the places of its rows, and all rows scaled to [0, 1]."""
        ways: dict[tuple[int, str], Way] = {}
        places: dict[tuple[int, str], list[int]] = {}
        translated = []
        for place, row in enumerate(rows):
            if row.kind == _VIEW:
                translated.append(row)
                continue
            view, name = views[row.view], (row.view, row.kind)
            paired = row.kind in PAIRED
            if name not in ways:
                way = view.way(row.kind, finals, exam=self.exam > 0, paired=paired)
                if way is None:
                    raise LedgerMismatchError(
                        f"query {row.query} was asked in a way that this guard does not have"
                    )
                ways[name] = way
            if row.kind == "final" and self.exam:
                began = (
                    State.after(rows[row.batch - 2], _last_charge(rows[: row.batch - 1]))
                    if row.batch > 1
                    else State(last_charge=0)
                )
                ways[name].own_length = ways[name].length(began, finals)  # type: ignore[attr-defined]
            places.setdefault(name, []).append(place)
            translated.append(row_in_unit(row, view.unit(paired=paired), ways[name], finals))
        return [(ways[name], here) for name, here in places.items()], translated

    def _misopened(self, rows: Sequence[Row], states: States, views: Sequence[_View]) -> Iterator[str]:
        """Yield the problems of the rows that open metrics, and of the metrics they open."""
        number = 0
        for row, state in zip(rows, states.own, strict=True):
            if row.kind != _VIEW:
                continue
            number += 1
            view = views[number]
            found = [*self._problems(view), *view.misopened(row, state, views[:number], views[0])]
            facts = json.loads(row.told)
            if json.dumps(facts, sort_keys=True, separators=(",", ":")) != row.told or facts.keys() != _FACTS:
                found.append("its spelling")
            if not view.planned and not (view.tells and facts["plan"] is facts["rules"] is None):
                found.append("a view without a plan must have released class counts")
            yield from (f"query {row.query}: {problem}" for problem in found)

    def _problems(self, view: _View) -> Iterator[str]:
        """Yield the problems of a metric that was opened."""
        first = self._first
        shared, own = view.plan["shared"], first.certificates.scores
        budget = {
            "view": view.number,
            "told_before": own.told_before,
            "charge_nats": own.charge_nats,
            "told_nats": own.reserved_nats,
            "noisy": own.noise_scale > 0.0,
            "theory": own.theory.edition,
        }
        if not view.planned:
            return
        wrong = [name for name, value in budget.items() if not _equal(shared.get(name), value)]
        same = ("queries", "charges", "confidence")
        if wrong or any(view.plan[name] != self.plan[name] for name in same):
            yield f"the view {view.number} is not on the budget of the guard"
        yield from (f"of the view {view.number}, {fact} is not what follows" for fact in view.underived())

    def _climbs(self, rows: Sequence[Row]) -> Iterator[str]:
        """Yield priors of a ladder that are not its best earlier answer, and tolerances of ways that have none."""
        best: dict[tuple[int, str], float] = {}
        for row in rows:
            if row.tolerance and row.kind in {"check", "claim", "ladder"}:
                yield f"query {row.query}: it names a tolerance, which its way to ask does not have"
            if row.kind == "ladder":
                start = self.metric["lower"] if self.metric["greater_is_better"] else self.metric["upper"]
                if row.prior != best.get((row.view, row.series), start):
                    yield f"query {row.query}: its prior is not the best answer before it"
                best[row.view, row.series] = row.value

    # ---- for readers

    def names(self, rows: Iterable[Row]) -> list[str]:
        """Return the name of the guard's own metric, and of each that the rows opened."""
        return [self.metric["name"], *(row.name for row in rows if row.kind == _VIEW)]

    def released(self, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        """Return the released answers, a tuple for each in the columns of this version's histories."""
        theory = self.rules["scores"]["theory"]
        blank = edition(theory).failures_reserved  # earlier editions showed the worst value for a failure
        names, found = [printable(name) for name in self.names(rows)], []
        for row, left in zip(rows, self.allowance.left_after(rows), strict=True):
            failed = row.told.startswith(FAILED) or row.told.endswith(FAILED)
            about = (
                names[int(row.value) if row.kind == _VIEW else row.view],
                *map(printable, (row.name, row.series)),
            )
            numbers = (
                row.prior,
                *((np.nan,) * 3 if failed and blank else (row.value, row.low, row.high)),
                row.threshold,
            )
            word = FAILED if failed else _word(row)
            told = (word, bool(row.charged), row.kind, row.told, row.nats, row.asked)
            paired = row.kind in PAIRED
            found.append((row.query, row.view, *about, *numbers, *told, paired, left, row.asked_at))
        return found

    @property
    def allowance(self) -> Allowance:
        """The allowed charges: of all questions together, or of each series of claims."""
        plan = self.plan
        return Allowance(min(plan["charges"], plan["queries"]), plan["policy"] == "claims")

    @property
    def promise(self) -> Promise:
        """The numbers of the plan that a report shows."""
        asks = _ASKS.get(self.plan["policy"], "all")
        numbers = [self.plan[name] for name in Promise._fields if name != "asks"]
        return Promise(*numbers, asks)  # type: ignore[call-arg]

    def halted(self, state: State) -> str:
        """Return the reason of a halt after a state: "charges", "queries" or "final"; empty if there is no halt."""
        return self._first.main.halt_reason(state) or ""

    def room(self, state: State) -> float:
        """Return the nats that could still be released on request."""
        return max(0.0, self._first.certificates.scores.room(charges=state.charges, nats=state.nats))


def _word(row: Row) -> str:
    words = {"reveal": "revealed", "choose": "chosen", "final": "final", _VIEW: _VIEW}
    if row.kind in words:
        return words[row.kind]
    if row.kind.startswith(("gate", "guarded")):
        return "better" if row.charged else "not shown"
    if row.told == "not certified" or row.told.startswith("measured"):
        return row.told.split(" ")[0] if row.told != "not certified" else row.told
    return "corrected" if row.charged else "agreed"


def _equal(stored: Any, value: Any) -> bool:
    if isinstance(value, float) and isinstance(stored, float):
        return math.isclose(stored, value, rel_tol=1e-9, abs_tol=1e-12)
    return type(stored) is type(value) and stored == value


def _last_charge(rows: Sequence[Row]) -> int:
    return max((row.asked for row in rows if row.charged), default=0)
