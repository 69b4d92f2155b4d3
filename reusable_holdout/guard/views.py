"""Views: a metric of the rows, on all of them or a slice, with a plan of its own on the one budget of the rows.

View 0 is the guard's own metric, and stands in the ledger's configuration. Every other one is opened later, and is a
row of the ledger: what is asked, and what of the class counts had to be told for it.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from reusable_holdout.errors import HoldoutError, LedgerMismatchError
from reusable_holdout.guard.kinds import Rules, Ways
from reusable_holdout.ledger import Row
from reusable_holdout.validity import edition

if TYPE_CHECKING:
    from reusable_holdout.guard.kinds import State
    from reusable_holdout.plan import Plan

__all__ = ["VIEW", "Counts", "Facts", "View"]

VIEW = "view"
"""Kind of the rows that open a view."""

_SIZES = ("largest_group", "groups", "weights")  # in a metric's description: what sizes of groups follow from


@dataclass(frozen=True)
class Counts:
    """What was guessed of the class counts, and told of them, or of the sizes of groups.

    Attributes
    ----------
    prevalence : list of float
        Class shares that were guessed; empty where there are no classes, and of the sizes of groups.
    place : int or None
        Cell of the theory's: how many times the guessed rows they are worth; None where nothing rests on them,
        and nothing was told.
    theory : int
        Edition of the theory whose cells these are.
    """

    prevalence: list[float]
    place: int | None
    theory: int

    @property
    def guessed(self) -> list[float] | None:
        """Class shares that were guessed, if there are classes."""
        return self.prevalence or None

    @property
    def nats(self) -> float:
        """What telling it cost."""
        return 0.0 if self.place is None else edition(self.theory).counts.nats(self.place)


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
    plan : dict or None
        :meth:`Plan.record`; None where what was told of the class counts left none, and nothing is asked.
    rules : dict or None
        :meth:`Rules.record`, that follow from the plan.
    counts : Counts or None
        What it knows of the class counts.
    told_by : int
        Number of the view for which they were told, and paid for.
    """

    number: int
    metric: dict[str, Any]
    plan: dict[str, Any] | None
    rules: dict[str, Any] | None
    told_by: int

    what: ClassVar[str] = "a view in the ledger"
    kind: ClassVar[str] = VIEW

    @property
    def record(self) -> dict[str, Any]:
        """Its plan.

        Raises
        ------
        LedgerMismatchError
            If there is none.
        """
        if self.plan is None:
            raise self.unknown()
        return self.plan

    @property
    def kept(self) -> Rules:
        """Its rules.

        Raises
        ------
        LedgerMismatchError
            If there are none, or this version does not know their edition of the theory.
        """
        if self.rules is None:
            raise self.unknown()
        return Rules.from_record(self.rules)

    @property
    def consistent(self) -> bool:
        """Whether its rules are those of its metric and plan, as far as these say."""
        try:
            kept = self.kept
            return kept.scores.greater_is_better == self.metric["greater_is_better"] and kept.are_of(
                self.record
            )
        except (HoldoutError, LookupError, TypeError):  # anything may stand in a ledger that was changed
            return False

    def planned(self, plan: Plan) -> Self:
        """Same view with a plan, and the rules that follow from it."""
        rules = Rules.of(plan, greater_is_better=self.metric["greater_is_better"])
        return replace(self, plan=plan.record(), rules=rules.record())

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
        return self.counts is not None and self.counts.place is not None and self.told_by == self.number

    def secret(self, key: bytes) -> bytes:
        """Key of its own noise and questions, from the guard's."""
        if not self.number:
            return key
        return hashlib.blake2b(b"view %d" % self.number, key=key, digest_size=len(key)).digest()

    def ways(self) -> Ways | None:
        """Ways to ask about it, as verification needs them, without its noise; None if nothing is asked."""
        return None if self.rules is None else Ways(self.kept)

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
            name=name,
        )
