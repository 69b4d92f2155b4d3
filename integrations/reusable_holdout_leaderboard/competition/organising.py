"""What organisers do: other rules, freezing, another label set, final standings."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reusable_holdout.errors import InputError, PlanError
from reusable_holdout_leaderboard.competition.epoch import Epochs, check_ids, head_of, of_guard
from reusable_holdout_leaderboard.competition.final import check_also, final_of
from reusable_holdout_leaderboard.files.labels import load_labels, save_labels, take_labels
from reusable_holdout_leaderboard.store.records import ClosedError, Event, FinalStanding

__all__ = ["Organising", "rotation_locked"]


class Organising(Epochs):
    """How a competition is run."""

    def change_rules(self, changes: Mapping[str, Any]) -> list[Event]:
        """Change rules that the guard does not rest on; each change is an event that everyone sees.

        Parameters
        ----------
        changes : mapping of str to object
            Names of rules and what they are to be; None lifts a limit or a date.

        Returns
        -------
        list of Event
            One for each rule that is another now.

        Raises
        ------
        InputError
            If one of them cannot be changed, or to this; nothing was changed.
        ClosedError
            If the final standings are made.
        """
        if "also" in changes:
            fresh = load_labels(self._place.fresh_labels) if len(self._current().fresh) else None
            check_also(self.rules.changed(changes), fresh)
        return self._store.change_rules(self._number, changes, at=self._clock())

    def note_restored(self, detail: Mapping[str, Any]) -> None:
        """Tell everyone that this is a backup, and of which moment."""
        self._store.note(self._number, "restore", detail, at=self._clock())

    def freeze(self, on: bool = True) -> None:
        """Take no new submissions; or take them again.

        Raises
        ------
        ClosedError
            If it is to be unfrozen after the final standings.
        """
        self._store.freeze(self._number, on, at=self._clock())

    def unblind(self) -> None:
        """Show all scores, also those of submissions that came while it was blind."""
        self._store.unblind(self._number, at=self._clock())

    def rotate(self, labels_file: str | Path, *, early: bool = False, queries: int | None = None) -> None:
        """Go on with another label set: standings and budgets begin anew, the old ones stay readable.

        The old labels are free from then on. Other workers follow at their next call.

        Parameters
        ----------
        labels_file : str or Path
            Fresh rows of the same population, in the form of the first file.
        early : bool
            Whether to rotate though the guard has not halted: what is left of its budget is lost.
        queries : int, optional
            Of the new budget; as before by default.

        Raises
        ------
        InputError
            If the guard has not halted, or the labels do not fit or were used before.
        ClosedError
            If another rotation came first, or the final standings are made.
        PlanError
            If the labels are too few.
        """
        before = self._current().number
        labels = take_labels(Path(labels_file), id_column=self.rules.id_column, metric=self.metric)
        with self._lock, rotation_locked(self._place.folder):
            epoch = self._current(look=True)
            if epoch.number != before or self._row().final is not None:
                raise ClosedError(
                    "the competition has gone on already; nothing was changed; look at its status"
                )
            fresh = load_labels(self._place.fresh_labels) if len(epoch.fresh) else None
            check_ids(labels, fresh, self.rules)
            save_labels(self._place.labels(before + 1), labels)  # until the ledger rotates, nobody reads it
            try:
                rotation = epoch.guard.rotate(
                    None,
                    labels.y,
                    queries=queries,
                    classes=self.rules.classes,
                    vacuous=self.rules.vacuous,
                    early=early,
                )
            except (InputError, PlanError):  # of other failures it is unknown whether the ledger has rotated
                self._place.labels(before + 1).unlink()
                raise
            self._past.append(epoch)
            self._epoch = of_guard(
                self._place, rotation.guard, self.rules, labels, fresh, max_bytes=epoch.expected.max_bytes
            )
            self._store.go_on_to(self._number, before + 1, at=self._clock())
            self._store.keep_head(self._number, head_of(self._epoch.ledger))

    def final_standings(self) -> list[FinalStanding]:
        """Score what teams picked, or their best, on the fresh labels: once, and only when the competition is frozen.

        The scores are plain: nothing was ever asked of the fresh labels, and nothing will be, for the competition stays
        frozen and later calls repeat the first one's standings. They are of the present epoch.

        Raises
        ------
        ClosedError
            If the competition is not frozen.
        InputError
            If there are no fresh labels.
        """
        epoch, row = self._current(), self._row()
        if not len(epoch.fresh):
            raise InputError(
                "final standings need fresh labels; this competition was made without; show its board"
            )
        if row.final is None:
            if not row.frozen:
                raise ClosedError("final standings are made of a frozen competition; freeze it first")
            entered = self._store.finalists(
                self._number,
                epoch.number,
                most=row.rules.final_picks,
                better=1 if self.metric.greater_is_better else -1,
            )
            standings = final_of(
                entered,
                self._store.contents([one.submission_id for one in entered]),
                fresh=load_labels(self._place.fresh_labels),
                metrics=[self.metric, *row.rules.made_also()],
                rules=row.rules,
                expected=epoch.expected,
            )
            kept = self._store.finish(self._number, [one._asdict() for one in standings], at=self._clock())
        else:
            kept = row.final
        return [FinalStanding(**({"also": {}} | one)) for one in kept]


@contextlib.contextmanager
def rotation_locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a competition's rotation: of processes that rotate, one goes first."""
    with (folder / "rotation.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
