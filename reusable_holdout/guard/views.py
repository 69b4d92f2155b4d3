"""Views: a metric of the rows, on all of them or a slice, with its own plan on the one budget of the rows.

View 0 is the guard's own metric, and stands in the ledger's configuration. Other views are opened later, each by a row
of the ledger, which holds the view's facts and the released class counts.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from reusable_holdout.certainty import edition
from reusable_holdout.errors import HoldoutError, LedgerMismatchError, printable
from reusable_holdout.ledger import Row
from reusable_holdout.plan import Plan, SharedBudget, usual_final_share
from reusable_holdout.ways import State
from reusable_holdout.ways.table import Ways

VIEW = "view"
"""Kind of the rows that open a view."""

UNREADABLE = (HoldoutError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)
_PLAIN = frozenset({"binomial", "mean", "ratio"})  # families in which each row counts once
OF_ROWS = frozenset({"weights", "groups"})  # in a metric's description
ADDED = frozenset({"extends", "added", "known", "rows_of", "alone"})
"""Entries of a metric's description if rows were added: to which view, their digest, and what recognises them; the view
that added its rows, or that adds them with this one."""
_SAME = 1e-9  # largest difference of numbers recomputed on another machine


@dataclass(frozen=True)
class Counts:
    """The guessed class counts, or sizes of groups, and the fact that was released about the true ones.

    `prevalence` holds the guessed class shares; it is empty if there are no classes, and for sizes of groups. The true
    counts are worth a number of rows, and so are the guessed ones: `place` is the cell of the ratio of the two numbers,
    in edition `theory`. It is None if no bound depends on the counts, and nothing was released.
    """

    prevalence: list[float]
    place: int | None
    theory: int

    def of(self, theory: object) -> bool:
        """Return True if a guard with this edition of the theory can have written these counts."""
        shares = self.prevalence
        return (
            (type(self.theory), self.theory) == (int, theory)
            and type(self.place) in {int, type(None)}
            and type(shares) is list
            and all(type(share) is float and share > 0.0 for share in shares)
            and (not shares or abs(sum(shares) - 1.0) <= 1e-6)
        )

    @property
    def guessed(self) -> list[float] | None:
        """Class shares that were guessed, if there are classes."""
        return self.prevalence or None

    @property
    def nats(self) -> float:
        """The cost of releasing `place`."""
        return 0.0 if self.place is None else edition(self.theory).counts.nats(self.place)


def tells(counts: Counts | None) -> bool:
    """Return True if class counts or group sizes were told."""
    return counts is not None and counts.place is not None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Public facts that a ledger keeps as canonical JSON; `counts` are among them."""

    what: ClassVar[str]

    counts: Counts | None

    def text(self) -> str:
        """Return the facts as canonical JSON."""
        return json.dumps(self.parts(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def parts(self) -> dict[str, Any]:
        """Return the facts by their names; lists and dictionaries are not copied."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return named | {"counts": None if self.counts is None else asdict(self.counts)}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a text of :meth:`text`; LedgerMismatchError if it is another text."""
        try:
            parts = json.loads(text)
            counts = parts.pop("counts")
            return cls(**parts, counts=None if counts is None else Counts(**counts))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise cls.unknown() from None

    @classmethod
    def unknown(cls) -> LedgerMismatchError:
        """Return the error for facts of another version."""
        return LedgerMismatchError(
            f"{cls.what} must be one this version knows; got another; use the version of the library that wrote it"
        )


class Counted:
    """A metric of the rows, with the class counts that were released for it."""

    number: int
    metric: dict[str, Any]
    counts: Counts | None
    told_by: int

    sizes: ClassVar[tuple[str, ...]] = ()  # entries of a metric's description that its counts depend on

    @property
    def nats(self) -> float:
        """The cost of opening this view."""
        return self.counts.nats if self.counts is not None and self.tells else 0.0

    @property
    def tells(self) -> bool:
        """True if opening this view releases class counts."""
        return tells(self.counts) and self.told_by == self.number

    @property
    def adds(self) -> bool:
        """True if it adds rows to those of the guard."""
        return "extends" in self.metric

    def _repeats(self, other: Counted) -> bool:
        """Return True if this view is about the rows alone that another one adds, by the same metric."""
        apart = OF_ROWS | ADDED
        own, theirs = (
            {name: one.metric[name] for name in one.metric.keys() - apart} for one in (self, other)
        )
        named = self.metric["alone"], self.metric["added"]
        return own == theirs and named == (other.number, other.metric["added"])

    @property
    def is_alone(self) -> bool:
        """True if it is about the rows alone that the view before it added."""
        return "alone" in self.metric

    def knows_of(self, metric: dict[str, Any]) -> bool:
        """Return True if the counts known here serve another metric, too: an equal one, or one of the same groups."""
        alike = all(self.metric.get(name) == metric.get(name) for name in self.sizes)
        return self.metric == metric or ("groups" in self.sizes and "groups" in self.metric and alike)

    def uncounted(self, record: dict[str, Any]) -> Iterator[str]:
        """Yield the facts of a plan's record that contradict the guessed and the released class counts."""
        counts, shared = self.counts, record["shared"]
        if (record["family"] == "ratio") != (counts is not None and counts.place is None):
            yield "counts.place"
        if counts is not None and not counts.of(shared["theory"]):
            yield "counts"
        if not self.number:  # other views share the budget of view 0
            told = 0.0 if counts is None else counts.nats
            if edition(shared["theory"]).counts.are_told_for(shared["told_before"] - told):
                told = shared["told_before"]  # other ledgers told the rest about these rows
            own = SharedBudget(told_before=told, theory=shared["theory"])
            yield from differing(shared, asdict(own), "plan.shared")
        elif (record["reveals"], record["choices"]) != (0, []):
            yield "plan.reveals"

    def misopened(self, row: Row, state: State, before: Sequence[Counted], ways: Any) -> Iterator[str]:
        """Yield the errors in the row that opens this view, after the views `before`; `ways` are those of view 0."""
        if (self.number, row.view, row.value) != (len(before), 0, len(before)):
            yield f"the view that it opens must be number {len(before)}"
        if row.charged or row.asked != state.asked or abs(row.nats - self.nats) > _SAME:
            yield "opening a view takes no charge and no query, and costs only the release of class counts"
        # version 0.2.0 set told_by to an earlier view even if no counts had been told
        untold = not tells(self.counts)
        if self.told_by != self.number and not any(
            one.number == self.told_by and (untold or one.counts == self.counts) and one.knows_of(self.metric)
            for one in before
        ):
            yield "it uses class counts that were not released before"
        extends, of, alone = (self.metric.get(name) for name in ("extends", "rows_of", "alone"))
        added = {one.number: one.metric["added"] for one in before if one.adds}
        is_after = alone is None or (before[-1].adds and self._repeats(before[-1]))
        is_after &= not self.adds or self.metric["added"] not in added.values()
        if extends not in {None, newest(before)} or of not in {None, *added} or not is_after:
            yield "it must be about rows that the guard has, or add rows to all of them"
        numbers = (row.prior, row.threshold, row.tolerance, row.low, row.high)
        if any(numbers) or (row.batch, row.series) != (row.query - self.is_alone, ""):
            yield "a view has no value and no interval, and no series"
        if ways.final.halt_reason(state) is not None:
            yield "it was opened after a final"
        certificate = ways.reveal.certificate
        room = certificate.room(charges=state.charges, nats=state.nats) + _SAME
        too_much = room < certificate.theory.counts.worst
        if self.tells and ways.main.halt_reason(state) is None and too_much:
            yield "what it told of the class counts could have broken a promise of the plan"


def newest(views: Sequence[Counted]) -> int:
    """Return the number of the view of all rows of a guard; 0 if none were added."""
    return max((one.number for one in views if one.adds), default=0)


@dataclass(frozen=True, kw_only=True)
class View(Facts, Counted):
    """The public facts of one view.

    `metric` is :meth:`BoundMetric.describe`, and `plan` is :meth:`Plan.record`. `counts` are the class counts that it
    knows, and `told_by` is the number of the view for which they were released and paid for.
    """

    number: int
    metric: dict[str, Any]
    plan: dict[str, Any]
    told_by: int

    what: ClassVar[str] = "a view in the ledger"

    @property
    def kept(self) -> Plan:
        """Plan of the view, as the ledger keeps it."""
        return Plan.kept(self.plan)

    def underived(self) -> Iterator[str]:
        """Yield the names of the facts that do not follow from its metric, its plan's numbers and its edition.

        The numbers that a plan solved are in its record, and are taken from it. All other facts that follow from them
        are derived anew, and compared as a whole.
        """
        try:
            yield from self._underived(self.plan)
        except UNREADABLE:  # anything may stand in a ledger that was changed
            yield "plan"

    def _underived(self, record: dict[str, Any]) -> Iterator[str]:
        if any(record[name] is None for name in ("rows", "queries", "charges", "tolerance", "noise")):
            yield "plan"  # a missing number would be solved anew
            return
        plan, metric = self.kept, self.metric
        yield from differing(record, plan.record(), "plan")
        yield from _misstated(record)
        if [metric["lower"], metric["upper"]] != record["bounds"] or record["family"] == "paired":
            yield "metric.lower, metric.upper or plan.family"
        if metric["greater_is_better"] is not record["greater_is_better"]:
            yield "metric.greater_is_better"
        words = [metric[name] for name in ("name", "family", "response")]
        if not (all(words) and {*map(type, words)} == {str} and type(metric["parameters"]) is dict):
            yield "metric"
        if type(record["told_nats"]) is not float or not plan.may_tell(record["told_nats"]):
            yield "plan.told_nats"
        yield from self.uncounted(record)
        if OF_ROWS.isdisjoint(metric) and record["family"] in _PLAIN:
            each = {name: record[name] for name in ("influence", "variation")}
            yield from differing(each, dict.fromkeys(each, 1.0), "plan")

    def secret(self, key: bytes) -> bytes:
        """Return the key of the view's own noise and questions, derived from the guard's."""
        if not self.number:
            return key
        return hashlib.blake2b(b"view %d" % self.number, key=key, digest_size=len(key)).digest()

    def ways(self, since: State | None = None) -> Ways:
        """Return the ways to ask about this view, without noise, which verification does not need."""
        return Ways(self.kept, since=since if self.is_alone else None)

    def row(self, state: State, digest: bytes, name: str) -> Row:
        """Return the ledger row that opens the view, given the state before."""
        return Row(
            query=state.query + 1,
            batch=state.query + 1 - self.is_alone,
            digest=digest,
            prior=0.0,
            value=float(self.number),
            charged=0,
            threshold=0.0,
            tolerance=0.0,
            low=0.0,
            high=0.0,
            nats=self.nats,
            charges=state.charges,
            spent_nats=state.nats + self.nats,
            asked=state.asked,
            asked_at=time.time(),
            view=0,
            kind=VIEW,
            told=self.text(),
            name=printable(name),
        )


def _misstated(record: dict[str, Any]) -> Iterator[str]:
    """Yield the names of a record's numbers that contradict its stated numbers."""
    stated, unlike = record["stated"], ("threshold", "prior_error", "spread")
    if not {"confidence", "queries"} <= {*stated} or stated != sorted(stated):
        yield "plan.stated"
    if any((record[name] is None) == (name in stated) for name in unlike[:2]):
        yield "plan.stated"
    if record["spread"] is None and "spread" in stated:
        yield "plan.spread"
    if "delta" not in stated and not math.isclose(record["delta"], 1.0 / record["rows"] ** 2, rel_tol=1e-9):
        yield "plan.delta"
    usual = usual_final_share(edition(record["shared"]["theory"]), record["asks"])
    if "final_share" not in stated and record.get("final_share", usual) != usual:
        yield "plan.final_share"


def differing(stored: object, derived: object, name: str) -> Iterator[str]:
    """Yield the names of the stored facts that differ from the derived ones by more than rounding."""
    if isinstance(derived, dict) and isinstance(stored, dict):
        for part in derived | stored:
            if part in derived and part in stored:
                yield from differing(stored[part], derived[part], f"{name}.{part}")
            else:
                yield f"{name}.{part}"
    elif isinstance(derived, list | tuple) and isinstance(stored, list) and len(derived) == len(stored):
        for place, (one, other) in enumerate(zip(stored, derived, strict=True)):
            yield from differing(one, other, f"{name}[{place}]")
    elif type(stored) is not type(derived) or not (stored == derived or _close(stored, derived)):
        yield name


def _close(stored: Any, derived: Any) -> bool:
    return type(stored) is float and math.isclose(stored, derived, rel_tol=_SAME)
