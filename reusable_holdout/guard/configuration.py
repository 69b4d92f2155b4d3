"""The public configuration of a ledger, one for each epoch.

A guard is resumed from it, and `verify` reads it. It never changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from reusable_holdout import witness as witnesses
from reusable_holdout.earlier import Earlier
from reusable_holdout.errors import HoldoutError, InputError, LedgerError, LedgerMismatchError, RotatedError
from reusable_holdout.guard.digests import ContentKey
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.views import ADDED, OF_ROWS, VIEW, Counts, Facts, View
from reusable_holdout.ledger import Row, SqlLedger, genesis, key_commitment
from reusable_holdout.metrics import Metric, described_metric
from reusable_holdout.metrics.predictions import PRIVATE
from reusable_holdout.plan import Plan, same_wish
from reusable_holdout.witness import Head

FORMAT = 3
"""Format of a ledger's facts. Ledgers of version 0.2 have none; :mod:`reusable_holdout.earlier` reads them."""

OVERLAP, SECOND_BUDGET, VACUOUS, NO_WITNESS = "overlap", "second budget", "vacuous", "no witness"
ALLOWED = frozenset({OVERLAP, SECOND_BUDGET, VACUOUS, NO_WITNESS})
"""The overrides that an owner may allow."""

_DIGEST = re.compile("[0-9a-f]{64}")
_MISMATCH = "nothing was asked and nothing was charged"
_RESUMED_WITH = {"classes": "classes", "counts": "prevalence"}


def is_earlier(text: str) -> bool:
    """Return True if a version before 0.3 wrote a configuration."""
    try:
        facts = json.loads(text)
    except ValueError:
        return False
    return isinstance(facts, dict) and "rules" in facts and "format" not in facts


@dataclass(frozen=True, kw_only=True)
class Configuration(Facts):
    """The public facts of one guard; its `counts` were released when the guard was made."""

    what: ClassVar[str] = "the ledger's configuration"

    format: int  # of a ledger's facts; see FORMAT
    plan: dict[str, Any]  # Plan.record()
    metric: dict[str, Any]  # BoundMetric.describe()
    holdout: str  # keyed digest of the data
    key: str  # commitment to the noise key
    classes: list[Any] | str | None  # all that may occur, sorted; labels are coded by them; or "private"
    allow: list[str]  # the owner's overrides, of ALLOWED
    epoch: int = 1  # number of this holdout in its ledger
    previous: str = ""  # last seal of the epoch before, hex: it makes one chain of all epochs
    another_budget: bool = False  # True if the rows had one when this one was made
    witness: str = ""  # place of the ledger's witness; empty if it has none
    known_rows: dict[str, str] = field(default_factory=dict)  # digests of `KeptRows`

    @classmethod
    def of(
        cls, plan: Plan, holdout: PrivateData, key: bytes, counts: Counts | None, allow: Iterable[str] = ()
    ) -> Self:
        """Return the facts of a guard with this plan, holdout and noise key."""
        bound, known = holdout.bound, holdout.bound.class_set
        return cls(
            format=FORMAT,
            plan=plan.record(),
            metric=bound.describe(),
            holdout=ContentKey(key).holdout(holdout.X, holdout.y),
            key=key_commitment(key),
            classes=known.tolist() if isinstance(known, np.ndarray) else known,
            counts=counts,
            allow=sorted(allow),
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text that :meth:`text` wrote; LedgerMismatchError for another text, or one of another version."""
        if is_earlier(text):
            raise LedgerMismatchError(
                "the ledger must be one of this version; reusable-holdout 0.2 wrote it, and can still ask it; "
                f"{_MISMATCH}; verify, history and report read it here; to go on, make a guard of fresh rows"
            )
        found = super().parse(text)
        if found.format != FORMAT:
            raise cls.unknown()
        return found

    def unfounded(self, text: str) -> Iterator[str]:
        """Yield the names of the facts that do not follow from others, or that no guard can have written."""
        yield from self.view.underived()
        for name, check in _FORMS.items():
            try:
                sound = check(self)
            except (TypeError, ValueError, LookupError, AttributeError, HoldoutError):
                sound = False
            yield from () if sound else (name,)
        if self.text() != text:
            yield "its spelling"

    @property
    def view(self) -> View:
        """The guard's own metric."""
        return View(number=0, metric=self.metric, plan=self.plan, counts=self.counts, told_by=0)

    def views(self, rows: Iterable[Row]) -> list[View]:
        """Return all views, given the rows of this epoch, in the order of their numbers."""
        return [self.view, *(View.parse(row.told) for row in rows if row.kind == VIEW)]

    def check_same(self, stored: Self, *, past: Sequence[Self] = ()) -> None:
        """Refuse to resume a ledger whose last configuration belongs to other data or another plan.

        Raises RotatedError if this is the holdout of a past epoch; else LedgerMismatchError, naming what differs.
        """
        if self.key != stored.key:
            raise LedgerMismatchError(
                f"the ledger must belong to this noise key; it belongs to another; {_MISMATCH}; use the key file "
                "that was written beside the ledger"
            )
        if self.holdout != stored.holdout:
            for one in past:
                if one.holdout == self.holdout:
                    raise RotatedError(
                        f"the ledger must be opened with the holdout of epoch {stored.epoch}, its latest; this one is "
                        f"that of epoch {one.epoch}, which was released; {_MISMATCH}; pass the new holdout"
                    )
            raise LedgerMismatchError(
                f"the ledger must belong to this holdout; it belongs to other data (rows, order, columns or types "
                f"differ); {_MISMATCH}; use the same data, without rows that extend() added, or another ledger"
            )
        mine, theirs = self.parts(), stored.parts()
        _check_unchanged(mine["metric"], theirs["metric"])
        for parts in (mine, theirs):
            parts["counts"] = None if parts["counts"] is None else parts["counts"]["prevalence"]
        for part, parameter in _RESUMED_WITH.items():
            if mine[part] != theirs[part]:
                raise LedgerMismatchError(
                    f"the {part} must be the same as when the ledger was made; they differ; {_MISMATCH}; pass the same "
                    f"{parameter}="
                )
        _check_unchanged(*same_wish(mine["plan"], theirs["plan"]))


def _says_something(plan: dict[str, Any]) -> bool:
    """Return True if a tolerance is at most a quarter of the range; later plans do not change this rule."""
    lower, upper = plan["bounds"]
    return bool(plan["tolerance"] <= 0.25 * (upper - lower) * (1.0 + 1e-5))


_FORMS: dict[str, Callable[[Configuration], bool]] = {
    "holdout": lambda one: _DIGEST.fullmatch(one.holdout) is not None,
    "key": lambda one: _DIGEST.fullmatch(one.key) is not None,
    "witness": lambda one: type(one.witness) is str and not (one.witness and NO_WITNESS in one.allow),
    "another_budget": lambda one: (
        type(one.another_budget) is bool and (not one.another_budget or SECOND_BUDGET in one.allow)
    ),
    "allow": lambda one: (
        one.allow == sorted({*one.allow} & ALLOWED)
        and (one.counts is not None or VACUOUS in one.allow or _says_something(one.plan))
    ),
    "known_rows": lambda one: type(one.known_rows) is dict,
    "classes": lambda one: one.classes in (None, PRIVATE) or one.classes == np.unique(one.classes).tolist(),
    "counts": lambda one: one.counts is None or len(one.counts.prevalence) in {0, len(one.classes or [])},
}


class KeptRows(NamedTuple):
    """The data by which a ledger recognises an epoch's rows."""

    digests: dict[str, str]  # SHA-256 of each part, in their order, hex; empty if nothing is kept
    text: bytes  # the parts, one after the other, equally long: RowSet.text()

    def parts(self) -> dict[str, bytes] | None:
        """Return each part by its name; None if the parts are not those that were sealed."""
        if not self.digests or not isinstance(self.digests, dict):
            return None if self.text or self.digests else {}
        size, rest = divmod(len(self.text), len(self.digests))
        parts = {
            part: self.text[place * size : (place + 1) * size] for place, part in enumerate(self.digests)
        }
        same = all(hashlib.sha256(parts[part]).hexdigest() == digest for part, digest in self.digests.items())
        return parts if same and not rest else None


def _check_unchanged(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    for name in mine | theirs:  # one may have what the other lacks, such as weights
        value, stated = mine.get(name), theirs.get(name)
        if stated != value:
            what = "the metric" if name == "name" else name
            raise LedgerMismatchError(
                f"a budget cannot be changed once it is made: {what} is {stated!r} in the ledger, and {value!r} was "
                f"asked for; {_MISMATCH}; resume with ReusableHoldout.open; or, before its first question, pass "
                "replan=True; or use fresh rows and another ledger"
            )


def metric_of(description: dict[str, Any]) -> Metric:
    """Return the catalogue's metric for a ledger's description.

    An InputError is raised for a user's own metric, because the ledger does not hold its code.
    """
    try:
        return described_metric(
            {name: part for name, part in description.items() if name not in OF_ROWS | ADDED}
        )
    except InputError:
        raise InputError(
            f"the ledger's metric {description['name']!r} is one of your own; pass the same metric= to open()"
        ) from None


# ---- its epochs, for verification


class Epoch(NamedTuple):
    """One epoch, as read from the ledger; if somebody changed the ledger, it may hold anything."""

    text: str  # its configuration
    rows: list[Row]
    seals: list[tuple[int, bytes]]  # query number of each commit's last row, with the commit's seal
    known_rows: bytes

    def chain(self) -> list[str]:
        """Return the seals in order, from the seal of the configuration on, in hex."""
        seals = [sealed for _, sealed in self.seals if isinstance(sealed, bytes)]
        return [sealed.hex() for sealed in (genesis(self.text), *seals)]


def read_epochs(ledger: str | Path, witness: str | Path | None) -> tuple[list[Epoch], Head | None]:
    """Return the epochs of a ledger, and the head its witness had seen before they were read.

    By default the witness is the ledger's own. Raises LedgerError if there is no such ledger, or it holds no guard.
    """
    with contextlib.closing(SqlLedger(ledger, must_exist=True)) as store:
        epochs, last = [], store.configuration()
        if last is None:
            raise LedgerError("the ledger holds no guard: there is nothing to verify")
        seen = _seen(last, witness)
        for number, text in enumerate(store.configurations(), start=1):
            rows = store.rows(after=-(1 << 62), epoch=number)  # none is below 1 unless somebody added it
            # later seals were committed after the rows were read
            seals = [one for one in store.seals(epoch=number) if rows and one[0] <= rows[-1].query]
            epochs.append(Epoch(text, rows, seals, store.known_rows(number)))
    return epochs, seen


def _seen(text: str, witness: str | Path | None) -> Head | None:
    """Return the highest head that a witness has seen.

    The result is None if there is no witness, or if the ledger's own witness cannot be reached.
    """
    try:
        place = facts_of(text).witness if witness is None else witness
        return witnesses.witness_at(place).read() if place else None
    except HoldoutError:
        if witness is not None:
            raise
        return None


def facts_of(text: str) -> Configuration | Earlier:
    """Return the ledger's facts of its guard, of this version or an earlier one."""
    return Earlier.parse(text) if is_earlier(text) else Configuration.parse(text)
