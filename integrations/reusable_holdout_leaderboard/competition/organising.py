"""Actions of organisers: change rules, freeze, unblind, rotate to the next epoch, and make the final standings."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reusable_holdout.errors import InputError, PlanError
from reusable_holdout_leaderboard.competition.base import Base, epoch_of_guard, order_of
from reusable_holdout_leaderboard.competition.final import check_also, final_of
from reusable_holdout_leaderboard.files.labels import load_labels, save_labels, take_labels
from reusable_holdout_leaderboard.rules import WORDS
from reusable_holdout_leaderboard.store import lists
from reusable_holdout_leaderboard.store.database import State, update
from reusable_holdout_leaderboard.store.records import ClosedError, Event, FinalStanding

__all__ = ["Organising", "rotation_locked"]


class Organising(Base):
    """The part of a competition with the actions of its organisers."""

    def change_rules(self, changes: Mapping[str, Any]) -> list[Event]:
        """Change rules that do not affect the guard's answers. Each change is a public event.

        Parameters
        ----------
        changes : mapping of str to object
            New values by the names of rules. None removes a limit or a date.

        Returns
        -------
        list of Event
            One event for each rule that got a new value.

        Raises
        ------
        InputError
            If a rule cannot be changed at all, or not to this value. Nothing was changed.
        ClosedError
            If the final standings have been made.
        """
        if "also" in changes:
            fresh = load_labels(self._place.fresh_labels) if len(self._current().fresh) else None
            check_also(self.rules.changed(changes), fresh)
        with self._changing() as (connection, state):
            after = state.rules.changed(changes)
            names = [name for name in changes if getattr(state.rules, name) != getattr(after, name)]
            if state.final is not None and set(names) - WORDS:
                raise ClosedError(
                    f"the final standings are made, so only {' and '.join(sorted(WORDS))} can change; nothing was "
                    "changed"
                )
            update(connection, state.id, rules=after.to_json())
            was, now = state.rules.as_dict(), after.as_dict()
            details = [{"rule": name, "from": was[name], "to": now[name]} for name in names]
            return [self._tell(connection, "rules", detail=one) for one in details]

    def note_restored(self, detail: Mapping[str, Any]) -> None:
        """Record a public event: this competition was restored from a backup, which was made at a stated time."""
        with self._changing() as (connection, _):
            self._tell(connection, "restore", detail=detail)

    def freeze(self, on: bool = True) -> None:
        """Stop taking new submissions, or, with `on` false, take them again.

        Raises
        ------
        ClosedError
            If the final standings have been made. The competition then stays frozen.
        """
        with self._changing() as (connection, state):
            if state.final is not None and not on:
                raise ClosedError(
                    "the final standings are made, so the competition stays frozen; nothing was changed"
                )
            if on != state.frozen:
                update(connection, state.id, frozen=on)
                self._tell(connection, "freeze" if on else "unfreeze")

    def unblind(self) -> None:
        """End the blind phase: show all scores to everyone, including those of earlier submissions."""
        with self._changing() as (connection, state):
            if state.blind:
                update(connection, state.id, blind=False)
                self._tell(connection, "unblind")

    def rotate(self, labels_file: str | Path, *, early: bool = False, queries: int | None = None) -> None:
        """Begin the next epoch with new holdout labels and a new budget.

        Standings and charges begin anew. Those of earlier epochs stay readable. The earlier labels need no protection
        any more. Other worker processes move to the new epoch at their next call.

        Parameters
        ----------
        labels_file : str or Path
            Labels of fresh rows from the same population, in the same form as the first file.
        early : bool
            True to rotate although the guard has not halted. The rest of its budget is lost.
        queries : int, optional
            Number of queries in the new epoch. By default, the same number as before.

        Raises
        ------
        InputError
            If the guard has not halted and `early` is false, or if the labels do not fit or were used before.
        ClosedError
            If another worker rotated first, or the final standings have been made.
        PlanError
            If there are too few labels.
        """
        before = self._current().number
        labels = take_labels(Path(labels_file), id_column=self.rules.id_column, metric=self.metric)
        with self._lock, rotation_locked(self._place.folder):
            epoch, rules = self._current(look=True), self.rules
            if epoch.number != before or self._state().final is not None:
                raise ClosedError(
                    "the competition has changed meanwhile; nothing was changed; look at its status"
                )
            fresh = load_labels(self._place.fresh_labels) if len(epoch.fresh) else None
            order_of(labels, fresh, rules)
            path = self._place.labels(before + 1)
            save_labels(path, labels)  # nobody reads this file before the ledger has rotated
            try:
                guard = epoch.guard.rotate(labels.y, queries=queries, early=early)
            except (InputError, PlanError):  # after other errors the file stays: the ledger may have rotated
                path.unlink()
                raise
            most = epoch.expected.max_bytes
            self._go_on_to(epoch_of_guard(guard, rules, labels, fresh, max_bytes=most))

    def final_standings(self) -> list[FinalStanding]:
        """Score the entered submissions of all teams on the fresh labels, and return the final standings.

        A team enters the submissions that it picked, or else its best ones, from the current epoch. The scores are
        exact, without noise: no answer has ever used the fresh labels, and none will, because the competition stays
        frozen. Later calls return the stored standings.

        Raises
        ------
        ClosedError
            If the competition is not frozen.
        InputError
            If there are no fresh labels.
        """
        epoch, state = self._current(), self._state()
        if not len(epoch.fresh):
            raise InputError(
                "final standings need fresh labels; this competition has none; no final was made; use its board"
            )
        if state.final is not None:
            return [FinalStanding(**one) for one in state.final]
        _check_frozen(state)
        entered = self._read(lists.finalists, state, epoch.number, better=self._better)
        made = final_of(
            entered,
            self._read(lists.contents, [one.submission_id for one in entered]),
            fresh=load_labels(self._place.fresh_labels),
            metrics=[self.metric, *state.rules.made_also()],
            rules=state.rules,
            expected=epoch.expected,
        )
        with self._changing() as (connection, now):
            if now.final is not None:  # another worker was first
                return [FinalStanding(**one) for one in now.final]
            _check_frozen(now)
            kept = json.dumps([one._asdict() for one in made], allow_nan=False)
            update(connection, now.id, final=kept)
            self._tell(connection, "final")
        return made


@contextlib.contextmanager
def rotation_locked(folder: Path) -> Iterator[None]:
    """Hold the lock that a process needs to rotate or copy a competition. Other processes wait for it."""
    with (folder / "rotation.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check_frozen(state: State) -> None:
    if not state.frozen:
        raise ClosedError("final standings need a frozen competition; no final was made; freeze it first")
