"""The base class of a competition: access to its database, its current epoch, and the check of a team's token."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from reusable_holdout import Metric, Plan
from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.competition.guarding import Guard, Place, epoch_of
from reusable_holdout_leaderboard.files.forms import Expected
from reusable_holdout_leaderboard.files.labels import Labels, load_labels
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.database import (
    Database,
    State,
    as_moment,
    find,
    form_secret,
    keep_head,
    lock,
    tell,
    update,
)
from reusable_holdout_leaderboard.store.records import Event, StoreError, Team
from reusable_holdout_leaderboard.store.tables import TEAMS

__all__ = [
    "Base",
    "Epoch",
    "digest_of",
    "epoch_of_guard",
    "is_token",
    "new_token",
    "open_epoch",
    "order_of",
    "team_of",
]

_TOKEN_BYTES = 32
_PREFIX = "rh_"  # lets scanners for leaked secrets recognise a token
_TEAM_WITH = sa.select(TEAMS).where(
    TEAMS.c.competition_id == sa.bindparam("number"), TEAMS.c.token_digest == sa.bindparam("digest")
)


class Epoch(NamedTuple):
    """One epoch of a competition: a set of holdout rows and the guard that answers about them.

    Attributes
    ----------
    number : int
        Number of the epoch, from 1.
    guard : Guard
    expected : Expected
        Form that a submission must have.
    holdout, fresh : numpy.ndarray of int64
        Positions of the holdout's rows and of the fresh rows in a submission. The fresh rows are those of the final
        standings.
    """

    number: int
    guard: Guard
    expected: Expected
    holdout: NDArray[np.int64]
    fresh: NDArray[np.int64]


class Base:
    """The base class of a competition, which holds its files, its database and its epochs.

    Parameters
    ----------
    place : Place
    database : Database
    state : State
    epoch : Epoch
        Current epoch.
    clock : callable
        Returns the time in seconds since 1970, UTC.
    """

    def __init__(
        self, place: Place, database: Database, state: State, epoch: Epoch, clock: Callable[[], float]
    ) -> None:
        self.slug = state.rules.slug
        self._number = state.id
        self._place, self._database, self._epoch, self._clock = place, database, epoch, clock
        self._lock = threading.RLock()
        self._past: list[Epoch] = []  # not closed, because other threads may use them

    @property
    def rules(self) -> Rules:
        """Current rules, with the classes and columns filled in."""
        return self._state().rules

    @cached_property
    def form_secret(self) -> bytes:
        """Secret in the board's database that protects the forms of pages against requests from other sites."""
        secret: bytes = self._read(form_secret)
        return secret

    @property
    def home(self) -> Path:
        """Folder that contains all competitions."""
        return self._place.folder.parent

    @property
    def witness(self) -> str:
        """File or repository of the ledger's witness. Empty if the ledger has no witness."""
        return self._epoch.guard.witness

    @property
    def metric(self) -> Metric:
        """Metric by which the board ranks teams."""
        return self._epoch.guard.metric

    @property
    def plan(self) -> Plan:
        """Plan of the guard in the current epoch."""
        return self._current().guard.plan

    @property
    def expected(self) -> Expected:
        """Form that a submission must have in the current epoch."""
        return self._current().expected

    @property
    def _better(self) -> int:
        """Sign of the metric's direction: 1 if larger values are better, else -1."""
        return 1 if self.metric.greater_is_better else -1

    # ---- the database

    def _read(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function with a reading connection to the database, and return its result."""
        with self._database.reading() as connection:
            return call(connection, *args, **kwargs)

    @contextlib.contextmanager
    def _changing(self, *, lasting: bool = True) -> Iterator[tuple[sa.Connection, State]]:
        """Open a writing transaction that locks the competition; yield the connection and the competition's state."""
        with self._database.writing(lasting=lasting) as connection:
            yield connection, lock(connection, self._number)

    def _tell(self, connection: sa.Connection, kind: str, **about: Any) -> Event:
        return tell(connection, self._number, kind, self._clock(), **about)

    def _state(self) -> State:
        state: State | None = self._read(find, self.slug)
        if state is None:
            raise StoreError(f"the competition {self.slug!r} is missing in its database; restore it")
        return state

    # ---- epochs

    def _current(self, *, look: bool = False) -> Epoch:
        """Return the current epoch. Open it first if another worker has rotated to a new one.

        With `look`, the ledger is read even if the board does not know of a new epoch.
        """
        if not look and self._state().epoch <= self._epoch.number:
            return self._epoch
        with self._lock:
            if look or self._state().epoch > self._epoch.number:
                latest = open_epoch(self._place, self.rules, max_bytes=self._epoch.expected.max_bytes)
                if latest.number > self._epoch.number:
                    self._go_on_to(latest)
                else:
                    latest.guard.close()
            return self._epoch

    def _go_on_to(self, epoch: Epoch) -> None:
        """Make an epoch the current one, and record the rotation on the board if no other worker has done so."""
        if epoch is not self._epoch:
            self._past.append(self._epoch)
            self._epoch = epoch
        with self._changing() as (connection, state):
            if state.epoch < epoch.number:
                update(connection, state.id, epoch=epoch.number)
                self._tell(connection, "rotate")
            keep_head(connection, state, epoch.guard.head())

    # ---- the team that asks

    def authenticate(self, token: str) -> Team | None:
        """Return the team that a token belongs to, or None if it belongs to no team."""
        with self._database.reading() as connection:
            row = connection.execute(_TEAM_WITH, {"number": self._number, "digest": digest_of(token)}).first()
        return None if row is None or not is_token(token, bytes(row.token_digest)) else team_of(row)

    def charges_left_of(self, team_id: int) -> int | None:
        """Return the number of charges that a team has left, or None while the competition is blind."""
        if self._state().blind:
            return None
        with self._database.reading() as connection:
            series = str(self._one(connection, team_id).series)
        return self._current().guard.charges_left(series)

    def _one(self, connection: sa.Connection, team_id: int) -> Any:
        here = (TEAMS.c.competition_id == self._number) & (TEAMS.c.id == team_id)
        row = connection.execute(sa.select(TEAMS).where(here)).first()
        if row is None:
            raise InputError(
                f"there must be a team of number {team_id} in this competition; there is none; nothing was changed"
            )
        return row


def team_of(row: Any) -> Team:
    """Return the :class:`Team` that a row of the database describes."""
    return Team(row.id, row.name, as_moment(row.created_at), bool(row.disqualified))


# ---- tokens. They are 256 random bits, which nobody can guess, so a single SHA-256 protects the stored digests.


def new_token() -> str:
    """Return a new random token. It is shown once and never stored; it may be used in a URL."""
    return _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)


def digest_of(token: str) -> bytes:
    """Return the SHA-256 of a token, 32 bytes."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def is_token(token: str, digest: bytes) -> bool:
    """Return True if a token has this digest. The comparison takes constant time."""
    return hmac.compare_digest(digest_of(token), digest)


def open_epoch(place: Place, rules: Rules, *, max_bytes: int) -> Epoch:
    """Open the current epoch of a ledger.

    Parameters
    ----------
    place : Place
    rules : Rules
    max_bytes : int
        Largest size of a submitted file.

    Raises
    ------
    LedgerError, LedgerKeyError
        If ledger, key or labels are missing or do not belong together.
    """
    labels = load_labels(place.labels(epoch_of(place)))
    fresh = load_labels(place.fresh_labels) if place.fresh_labels.exists() else None
    return epoch_of_guard(Guard.open(place, rules, labels.y), rules, labels, fresh, max_bytes=max_bytes)


def epoch_of_guard(
    guard: Guard, rules: Rules, labels: Labels, fresh: Labels | None, *, max_bytes: int
) -> Epoch:
    """Return the :class:`Epoch` that belongs to a guard and its labels."""
    order, places = order_of(labels, fresh, rules)
    expected = Expected(
        ids=order,
        rows=len(places),
        id_column=rules.id_column,
        columns=rules.prediction_columns,
        response=guard.metric.response,
        classes=rules.classes,
        max_bytes=max_bytes,
    )
    held = len(labels.y)
    return Epoch(guard.epoch, guard, expected, places[:held], places[held:])


def order_of(
    labels: Labels, fresh: Labels | None, rules: Rules
) -> tuple[tuple[str, ...] | None, NDArray[np.int64]]:
    """Return the ids in the order of a submission, and the position of each labelled row in that order.

    The positions of the holdout's rows come first, then those of the fresh rows. If there are fresh rows, the ids are
    sorted, so that their order does not tell which rows are fresh.

    Raises
    ------
    InputError
        If ids are missing, unexpected, or in both sets.
    """
    if (labels.ids is None) != (rules.id_column is None):
        raise InputError(
            "labels must have ids if the rules name an id_column, and only then; nothing was changed"
        )
    if fresh is None:
        return labels.ids, np.arange(len(labels.y))
    if labels.ids is None or fresh.ids is None:
        raise InputError(
            "fresh labels need ids, because a submission holds both sets; nothing was changed; name the "
            "id_column in the rules"
        )
    both = [*labels.ids, *fresh.ids]
    place = {one: number for number, one in enumerate(sorted(set(both)))}
    if len(place) < len(both):
        raise InputError(
            "an id must be in the labels or in the fresh labels, not in both; some are in both; nothing was changed"
        )
    return tuple(place), np.array([place[one] for one in both], dtype=np.int64)
