"""What a ledger says about the guard it belongs to, so that it can be resumed and verified but not changed."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from reusable_holdout.errors import InputError, LedgerMismatchError, RotatedError
from reusable_holdout.guard.digests import ContentKey
from reusable_holdout.guard.kinds.table import Rules
from reusable_holdout.guard.views import VIEW, Counts, Facts, View
from reusable_holdout.ledger import key_commitment
from reusable_holdout.plan import same_wish
from reusable_holdout.queries import described_metric
from reusable_holdout.validity import edition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reusable_holdout.guard.inputs import PrivateData
    from reusable_holdout.ledger import Ledger, Row
    from reusable_holdout.plan import Plan
    from reusable_holdout.queries import Metric

__all__ = ["Configuration", "KeptRows", "metric_of", "past_epochs"]

_MISMATCH = "nothing was asked and nothing was charged"
_RESUMED_WITH = {"classes": "classes", "counts": "prevalence", "exam": "exam"}


@dataclass(frozen=True, kw_only=True)
class Configuration(Facts):
    """Public facts of one guard.

    Attributes
    ----------
    plan : dict
        :meth:`Plan.record`; it names mechanism and policy.
    rules : dict
        :meth:`Rules.record`: what its answers are certified by, whatever a later version would derive.
    metric : dict
        :meth:`BoundMetric.describe`.
    holdout : str
        Keyed digest of the data.
    key : str
        Commitment to the noise key.
    classes : list or None
        All classes that may occur, in order: what labels are coded by.
    counts : Counts or None
        What was told of the class counts when the guard was made.
    epoch : int
        Number of this holdout in its ledger, from 1.
    previous : str
        Last seal of the epoch before, hex; empty for the first. It makes one chain of all epochs.
    exam : int
        Rows, or groups, that are kept for the final.
    another_budget : bool
        Whether the rows had another budget when this one was made.
    witness : str
        Place of the ledger's witness; empty if it has none.
    overlap : {"refuse", "allow"}
        Whether its owner insists on rows that may have been trained on, or released.
    known_rows : dict
        SHA-256 of each part of what the ledger keeps, to know the rows again; empty if it keeps nothing.
    """

    what: ClassVar[str] = "the ledger's configuration"

    plan: dict[str, Any]
    rules: dict[str, Any]
    metric: dict[str, Any]
    holdout: str
    key: str
    classes: list[Any] | None
    epoch: int = 1
    previous: str = ""
    exam: int = 0
    another_budget: bool = False
    witness: str = ""
    overlap: str = "refuse"
    known_rows: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        plan: Plan,
        holdout: PrivateData,
        key: bytes,
        counts: Counts | None = None,
        *,
        another_budget: bool = False,
        overlap: str = "refuse",
        known_rows: dict[str, str] | None = None,
        witness: str = "",
    ) -> Self:
        """Facts of a guard that is made."""
        every = holdout.rows.every
        return cls(
            plan=plan.record(),
            rules=Rules.of(plan, greater_is_better=every.metric.greater_is_better).record(),
            metric=every.describe(),
            holdout=ContentKey(key).holdout(holdout.X, holdout.y),
            key=key_commitment(key),
            classes=None if every.classes is None else every.classes.tolist(),
            counts=counts,
            exam=holdout.rows.exam_units,
            another_budget=another_budget,
            witness=witness,
            overlap=overlap,
            known_rows=known_rows or {},
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what :meth:`text` wrote.

        Raises
        ------
        LedgerMismatchError
            If it is something else, or of another edition of the theory.
        """
        found = super().parse(text)
        try:
            edition(found.rules["scores"]["theory"])
        except (TypeError, KeyError):
            raise cls.unknown() from None
        return found

    @property
    def view(self) -> View:
        """The guard's own metric."""
        return View(
            number=0, metric=self.metric, plan=self.plan, rules=self.rules, counts=self.counts, told_by=0
        )

    def views(self, rows: Iterable[Row]) -> list[View]:
        """All that are asked about, by the rows of its epoch, in the order of their numbers."""
        return [self.view, *(View.parse(row.told) for row in rows if row.kind == VIEW)]

    def check_same(self, stored: Self, *, past: Sequence[Self] = ()) -> None:
        """Refuse to go on with a ledger that belongs to something else.

        Parameters
        ----------
        stored : Configuration
            Of the epoch the ledger stands at.
        past : sequence of Configuration
            Of the epochs before.

        Raises
        ------
        RotatedError
            If this is the holdout of an epoch that is over.
        LedgerMismatchError
            Naming what differs.
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
                        f"the ledger must be opened with the holdout of epoch {stored.epoch}, its last; this one is "
                        f"that of epoch {one.epoch}, which was released; {_MISMATCH}; pass the new holdout"
                    )
            raise LedgerMismatchError(
                f"the ledger must belong to this holdout; it belongs to other data (rows, order, columns or types "
                f"differ); {_MISMATCH}; use the same data, or another ledger"
            )
        mine, theirs = asdict(self), asdict(stored)
        _check_unchanged(mine["metric"], theirs["metric"])
        for parts in (mine, theirs):
            parts["counts"] = None if parts["counts"] is None else parts["counts"]["prevalence"]
        for part, parameter in _RESUMED_WITH.items():
            if mine[part] != theirs[part]:
                raise LedgerMismatchError(
                    f"the {part} must be those the ledger was made with; they are others; {_MISMATCH}; pass the same "
                    f"{parameter}="
                )
        _check_unchanged(*same_wish(mine["plan"], theirs["plan"]))


class KeptRows(NamedTuple):
    """What a ledger keeps of an epoch's rows.

    Attributes
    ----------
    digests : dict of str to str
        SHA-256 of each part, in their order.
    text : bytes
        The parts, one after the other, equally long: :meth:`RowSet.text`.
    """

    digests: dict[str, str]
    text: bytes

    def parts(self) -> dict[str, bytes] | None:
        """Each part by its name; None if they are not those that were sealed."""
        if not self.digests:
            return None if self.text else {}
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
                f"asked for; {_MISMATCH}; resume with ReusableHoldout.open, or use fresh rows and another ledger"
            )


def metric_of(description: dict[str, Any]) -> Metric:
    """Metric of the catalogue from what a ledger says of it.

    Raises
    ------
    InputError
        If it is one of the user's own, whose code is not in the ledger.
    """
    try:
        return described_metric(
            {
                name: part
                for name, part in description.items()
                if name not in {"weights", "groups", "largest_group"}
            }
        )
    except InputError:
        raise InputError(
            f"the ledger's metric {description['name']!r} is one of your own; pass the same metric= to open()"
        ) from None


def past_epochs(ledger: Ledger) -> list[Configuration]:
    """Configurations of the epochs before the one a ledger stands at."""
    if ledger.epoch == 1:
        return []
    return [Configuration.parse(text) for text in ledger.configurations()[: ledger.epoch - 1]]
