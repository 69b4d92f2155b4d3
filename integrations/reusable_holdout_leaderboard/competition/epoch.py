"""Label sets of a competition: each with its guard and the places of its rows, and the one that it stands at."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import Metric, Plan
from reusable_holdout.errors import InputError
from reusable_holdout.guard import ReusableHoldout
from reusable_holdout.guard.claiming import Pairs
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.metrics.predictions import is_public
from reusable_holdout.witness import Head
from reusable_holdout_leaderboard.competition.neighbours import guard_confidence, pairs_beta
from reusable_holdout_leaderboard.competition.place import Place
from reusable_holdout_leaderboard.files.forms import MAX_BYTES, Expected
from reusable_holdout_leaderboard.files.labels import Labels, load_labels
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import StoreError
from reusable_holdout_leaderboard.store.rows import CompetitionRow
from reusable_holdout_leaderboard.store.store import Store

__all__ = [
    "Epoch",
    "Epochs",
    "check_ids",
    "completed",
    "head_of",
    "make_epoch",
    "of_guard",
    "open_epoch",
]


class Epoch(NamedTuple):
    """One label set.

    Attributes
    ----------
    number : int
        From 1.
    guard : ReusableHoldout
    expected : Expected
    holdout, fresh : numpy.ndarray of int64
        Places of their rows in a submission.
    ledger : SqlLedger
        To be read beside the guard.
    pairs : Pairs or None
        Of neighbours, where these are compared.
    """

    number: int
    guard: ReusableHoldout
    expected: Expected
    holdout: NDArray[np.int64]
    fresh: NDArray[np.int64]
    ledger: SqlLedger
    pairs: Pairs | None = None

    def close(self) -> None:
        """Close guard and ledger."""
        self.guard.close()
        self.ledger.close()


class Epochs:
    """Label sets of a competition: the one it stands at, and those before that this process has used.

    Parameters
    ----------
    place : Place
    store : Store
    row : CompetitionRow
    epoch : Epoch
        That it stands at.
    clock : callable
        Seconds since 1970, UTC.
    """

    def __init__(
        self, place: Place, store: Store, row: CompetitionRow, epoch: Epoch, clock: Callable[[], float]
    ) -> None:
        self.slug = row.rules.slug
        self._number = row.id
        self._place, self._store, self._epoch, self._clock = place, store, epoch, clock
        self._lock = threading.RLock()
        self._past: list[Epoch] = []

    @property
    def rules(self) -> Rules:
        """Rules as they are now, with classes and columns filled in."""
        return self._row().rules

    @cached_property
    def form_secret(self) -> bytes:
        """Secret of the board's database, which signs the keys of its forms."""
        return self._store.form_secret()

    @property
    def home(self) -> Path:
        """Folder of all competitions."""
        return self._place.folder.parent

    @property
    def witness(self) -> str:
        """Place of the ledger's witness, if it has one; else empty."""
        text = self._epoch.ledger.configuration() or ""
        return self._place.witness or Configuration.parse(text).witness

    @property
    def metric(self) -> Metric:
        """What is measured."""
        return self._epoch.guard.metric

    @property
    def start(self) -> float:
        """What a team's first submission is compared with, if it claims nothing."""
        lower, upper = self.metric.lower, self.metric.upper
        if self._epoch.guard.policy == "ladder":
            return lower if self.metric.greater_is_better else upper
        return (lower + upper) / 2

    @property
    def plan(self) -> Plan:
        """Plan of the guard, of the epoch it stands at."""
        return self._current().guard.plan

    @property
    def expected(self) -> Expected:
        """Form of a submission, of the epoch it stands at."""
        return self._current().expected

    def _row(self) -> CompetitionRow:
        row = self._store.competition(self.slug)
        if row is None:
            raise StoreError(f"the competition {self.slug!r} is gone from its database; restore it")
        return row

    def _current(self, *, look: bool = False) -> Epoch:
        """Epoch the competition stands at; another worker may have rotated."""
        if not look and self._row().epoch <= self._epoch.number:
            return self._epoch
        with self._lock:
            if look or self._row().epoch > self._epoch.number:
                latest = open_epoch(self._place, self.rules, max_bytes=self._epoch.expected.max_bytes)
                if latest.number > self._epoch.number:
                    self._past.append(self._epoch)  # not closed, for another thread may use it
                    self._epoch = latest
                    self._store.go_on_to(self._number, latest.number, at=self._clock())
                else:
                    latest.close()
            return self._epoch


def head_of(ledger: SqlLedger) -> Head:
    """End of a ledger."""
    tail = ledger.tail()
    return Head(ledger.epoch, tail.query, tail.seal)


def completed(rules: Rules, labels: Labels) -> Rules:
    """Rules with the classes and columns that the labels imply.

    Raises
    ------
    InputError
        If they do not fit the metric.
    """
    metric = rules.made_metric()
    if metric.response == "values":
        if rules.classes is not None:
            raise InputError(f"{metric.name} measures values, so there are no classes; leave them out")
        classes = None
    else:
        classes = tuple(sorted(_found(labels) if rules.classes is None else rules.classes))
    columns = rules.prediction_columns
    if not columns:
        many = metric.response == "probabilities" and classes is not None
        columns = tuple(map(str, classes or ())) if many else ("prediction",)
    right = {1}
    if metric.response == "probabilities" and classes is not None:
        right = {1, 2} if len(classes) == 2 else {len(classes)}
    if len(columns) not in right:
        raise InputError(
            f"prediction_columns must be {' or '.join(map(str, sorted(right)))} for {metric.name} on these labels; "
            f"got {len(columns)}"
        )
    return replace(rules, classes=classes, prediction_columns=columns).check()


def _found(labels: Labels) -> set[Any]:
    """Return the distinct labels, which a board's rules, pages and messages list."""
    found = set(labels.y.tolist())
    if len(found) > 1 and not is_public(
        len(found), len(labels.y), "text" if labels.y.dtype.kind == "U" else "numbers"
    ):
        raise InputError(
            f"the classes of a competition are public, and its {len(labels.y):,} rows have {len(found):,} distinct "
            "labels, which could be the answers themselves; nothing was made; name all labels that may occur in "
            "classes, if everyone may know them"
        )
    return found


def make_epoch(place: Place, rules: Rules, labels: Labels, fresh: Labels | None) -> Epoch:
    """Make the first guard, or resume the one that was made with the same labels and rules.

    Raises
    ------
    InputError, PlanError, LedgerError
        As :class:`reusable_holdout.ReusableHoldout`.
    """
    guard = ReusableHoldout(
        None,
        labels.y,
        metric=rules.made_metric(),
        classes=rules.classes,
        ledger=place.ledger,
        witness=place.witness or False,  # without one, whoever can restore a competition is its organiser
        key=place.key_file,
        **(rules.plan_wish(len(labels.y)) | {"confidence": guard_confidence(rules)}),
    )
    return of_guard(place, guard, rules, labels, fresh, max_bytes=MAX_BYTES)


def open_epoch(place: Place, rules: Rules, *, max_bytes: int) -> Epoch:
    """Open the guard of the label set that the ledger stands at.

    Parameters
    ----------
    place : Place
    rules : Rules
    max_bytes : int
        Of a submitted file.

    Raises
    ------
    LedgerError, LedgerKeyError
        If ledger, key or labels are missing or another's.
    """
    ledger = SqlLedger(place.ledger, must_exist=True)
    try:
        number = ledger.epoch
    finally:
        ledger.close()
    labels = load_labels(place.labels(number))
    guard = ReusableHoldout.open(
        place.ledger,
        None,
        labels.y,
        metric=rules.made_metric(),
        classes=rules.classes,
        key=place.key_file,
        witness=place.witness,
    )
    fresh = load_labels(place.fresh_labels) if place.fresh_labels.exists() else None
    return of_guard(place, guard, rules, labels, fresh, max_bytes=max_bytes)


def of_guard(
    place: Place,
    guard: ReusableHoldout,
    rules: Rules,
    labels: Labels,
    fresh: Labels | None,
    *,
    max_bytes: int,
) -> Epoch:
    """Label set of a guard.

    Raises
    ------
    InputError
        If rows have no ids though there are fresh labels, or an id is in both.
    """
    held = len(labels.y)
    order, places = _order(labels, fresh)
    expected = Expected(
        ids=order,
        rows=len(places),
        id_column=rules.id_column,
        columns=rules.prediction_columns,
        response=guard.metric.response,
        classes=rules.classes,
        max_bytes=max_bytes,
    )
    ledger = SqlLedger(place.ledger, must_exist=True)
    beta = pairs_beta(rules, guard.plan.confidence)
    pairs = guard.pairs(beta) if beta else None
    return Epoch(guard.epoch, guard, expected, places[:held], places[held:], ledger, pairs)


def check_ids(labels: Labels, fresh: Labels | None, rules: Rules) -> None:
    """Refuse labels that a submission could not be told apart by.

    Raises
    ------
    InputError
        If rows have no ids though there are fresh labels, or an id is in both.
    """
    if (labels.ids is None) != (rules.id_column is None):
        raise InputError("labels must have ids if the rules name an id_column, and only then")
    _order(labels, fresh)


def _order(labels: Labels, fresh: Labels | None) -> tuple[tuple[str, ...] | None, NDArray[np.int64]]:
    """Ids in the order of a submission, and the places of the holdout's rows, then of the fresh rows.

    With fresh rows the ids are sorted, so that their order does not tell which is which.
    """
    if fresh is None:
        return labels.ids, np.arange(len(labels.y))
    if labels.ids is None or fresh.ids is None:
        raise InputError(
            "fresh labels need ids, for a submission holds both; name the id_column in the rules"
        )
    both = [*labels.ids, *fresh.ids]
    place = {one: number for number, one in enumerate(sorted(set(both)))}
    if len(place) < len(both):
        raise InputError("an id must be among the labels or among the fresh labels; some are in both")
    return tuple(place), np.array([place[one] for one in both], dtype=np.int64)
