"""Views: a metric of the rows, on all of them or a slice, with a plan of its own on the one budget of the rows.

View 0 is the guard's own metric, and stands in the ledger's configuration. Every other one is opened later, and is a
row of the ledger: what is asked, and what of the class counts had to be told for it.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from reusable_holdout.errors import InputError, LedgerMismatchError
from reusable_holdout.guard.kinds import kinds_of
from reusable_holdout.ledger import Row
from reusable_holdout.plan import Plan
from reusable_holdout.queries import (
    PublicNumbers,
    checked_prevalence,
    factor_to_tell,
    numbers_at,
    rests_on_counts,
)
from reusable_holdout.validity import COUNTS

if TYPE_CHECKING:
    from reusable_holdout.guard.exam import BoundRows
    from reusable_holdout.guard.kinds import Kind, State
    from reusable_holdout.mechanisms import KeyedNoise
    from reusable_holdout.queries import BoundMetric

__all__ = ["VIEW", "Counts", "Facts", "View", "as_guessed", "plan_numbers", "priced"]

VIEW = "view"
"""Kind of the rows that open a view."""

_SIZES = ("largest_group", "groups", "weights")  # in a metric's description: what sizes of groups follow from
_EXACT = 1.0 - 1e-12  # a factor that is told is never above the exact one, however it was rounded


@dataclass(frozen=True)
class Counts:
    """What was told of the class counts, or of the sizes of groups.

    Attributes
    ----------
    prevalence : list of float
        Class shares that were guessed; none are of the sizes of groups.
    place : int
        Cell of :data:`~reusable_holdout.validity.COUNTS`: how many times the guessed rows they are worth.
    """

    prevalence: list[float]
    place: int

    @property
    def nats(self) -> float:
        """What telling it cost."""
        return COUNTS.nats(self.place)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Public facts that a ledger keeps as canonical JSON; `counts` are among them."""

    what: ClassVar[str]

    counts: Counts | None

    def text(self) -> str:
        """Canonical JSON."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what :meth:`text` wrote.

        Raises
        ------
        LedgerMismatchError
            If it is something else.
        """
        try:
            parts = json.loads(text)
            counts = parts.pop("counts")
            return cls(**parts, counts=None if counts is None else Counts(**counts))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise cls.unknown() from None

    @classmethod
    def unknown(cls) -> LedgerMismatchError:
        """Error for facts of another version."""
        return LedgerMismatchError(
            f"{cls.what} must be one this version knows; got another; use the version of the library that wrote it"
        )


@dataclass(frozen=True, kw_only=True)
class View(Facts):
    """Public facts of one view.

    Attributes
    ----------
    number : int
    metric : dict
        :meth:`BoundMetric.describe`.
    plan : dict
        :meth:`Plan.record`.
    counts : Counts or None
        What it knows of the class counts.
    told_by : int
        Number of the view for which they were told, and paid for.
    """

    number: int
    metric: dict[str, Any]
    plan: dict[str, Any]
    told_by: int

    what: ClassVar[str] = "a view in the ledger"
    kind: ClassVar[str] = VIEW

    @property
    def tells_of(self) -> str:
        """Facts about the rows that it may tell, in words."""
        return "group sizes" if _SIZES[0] in self.metric else "class counts"

    def knows_of(self, metric: dict[str, Any]) -> bool:
        """Whether what it knows of the counts is what another metric rests on: one of the same groups, or itself."""
        same_groups = _SIZES[0] in metric and all(
            self.metric.get(name) == metric.get(name) for name in _SIZES
        )
        return same_groups or self.metric == metric

    @property
    def nats(self) -> float:
        """What opening it cost."""
        return self.counts.nats if self.tells else 0.0  # type: ignore[union-attr]

    @property
    def tells(self) -> bool:
        """Whether class counts are told when it is opened."""
        return self.counts is not None and self.told_by == self.number

    def secret(self, key: bytes) -> bytes:
        """Key of its own noise and questions, from the guard's."""
        if not self.number:
            return key
        return hashlib.blake2b(b"view %d" % self.number, key=key, digest_size=len(key)).digest()

    def kinds(self, noise: KeyedNoise | None = None) -> dict[str, Kind]:
        """Every way to ask about it, by its name; without its noise, all that verification needs."""
        plan = Plan.from_record(self.plan)
        return kinds_of(plan, greater_is_better=self.metric["greater_is_better"], noise=noise)

    def row(self, state: State, digest: bytes, name: str) -> Row:
        """Row that opens it, in the state before."""
        return Row(
            query=state.query + 1,
            batch=state.query + 1,
            digest=digest,
            prior=0.0,
            value=float(self.number),
            charged=0,
            threshold=0.0,
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
            name=name,
        )


def priced(bound: BoundMetric, prevalence: object = None, told: Counts | None = None) -> Counts | None:
    """Let a metric that is conditional on class counts or group sizes rest on what is told; None for others.

    Parameters
    ----------
    bound : BoundMetric
        Its public numbers become those that are told.
    prevalence : object, optional
        Class shares that the owner expects; see :class:`ReusableHoldout`.
    told : Counts, optional
        What was told before.

    Raises
    ------
    InputError
        If the shares are none, or belong to a metric without classes.
    """
    rests = rests_on_counts(bound)
    if not any(rests):
        if prevalence is not None and bound.classes is None:
            raise InputError(
                f"prevalence= is about classes, and metric {bound.metric.name!r} has none; leave it out"
            )
        return None
    guessed = _guessed(bound, prevalence) if told is None else told.prevalence
    numbers = numbers_at(bound, guessed)
    if told is None:
        told = Counts(guessed, COUNTS.place(factor_to_tell(bound, numbers, rests) * _EXACT))
    bound.told(PublicNumbers.scaled(numbers, COUNTS.least(told.place), rests))
    return told


def as_guessed(bound: BoundMetric, prevalence: object, told: Counts | None) -> None:
    """Let a metric that is conditional on class counts rest on those that are expected, or told before: all public."""
    if told is not None:
        priced(bound, told=told)
    elif any(rests_on_counts(bound)):
        bound.told(numbers_at(bound, _guessed(bound, prevalence)))


def _guessed(bound: BoundMetric, prevalence: object) -> list[float]:
    """Class shares that are guessed; none where it is sizes of groups that are told."""
    return [] if bound.groups is not None else checked_prevalence(prevalence, bound.classes)


def plan_numbers(rows: BoundRows) -> dict[str, Any]:
    """What a plan needs to know of a metric and its rows.

    Of the exam nothing but how many rows or groups it has beside those that are asked: what a metric rests on there,
    such as the rows of a class, is a fact about its labels, and is told with the final.
    """
    bound, more = rows.asked, rows.every.counted_rows - rows.asked.counted_rows
    exam = 0
    if more and bound.groups is not None and rows.exam is not None:
        exam = rows.exam.effective_rows  # groups, for with them a metric is a mean over all of them
    elif more:
        exam = max(1, round(bound.effective_rows * more / bound.counted_rows))
    return {
        "rows": bound.effective_rows + exam,
        "exam": exam or None,
        "bounds": (bound.metric.lower, bound.metric.upper),
        "family": "mean" if bound.by_rows and bound.family == "bounded" else bound.family,
        "influence": float(bound.sensitivity * bound.effective_rows),
        "variation": bound.sum_of_squares * bound.effective_rows,
    }
