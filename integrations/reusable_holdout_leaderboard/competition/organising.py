"""What organisers do: teams, freezing, another label set, final standings."""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reusable_holdout.errors import InputError, PlanError
from reusable_holdout_leaderboard.competition import tokens
from reusable_holdout_leaderboard.competition.agreement import head_of
from reusable_holdout_leaderboard.competition.epoch import check_ids, of_guard
from reusable_holdout_leaderboard.competition.final import check_also, final_of
from reusable_holdout_leaderboard.competition.names import checked_team, key_of
from reusable_holdout_leaderboard.competition.views import Views
from reusable_holdout_leaderboard.files.labels import load_labels, save_labels, take_labels
from reusable_holdout_leaderboard.store.records import ClosedError, FinalStanding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from threading import RLock

    from reusable_holdout_leaderboard.competition.epoch import Epoch, Place
    from reusable_holdout_leaderboard.store.records import Event, Team

__all__ = ["Organising", "rotation_locked"]


class Organising(Views):
    """How a competition is run."""

    _place: Place
    _lock: RLock
    _epoch: Epoch
    _past: list[Epoch]

    # ---- teams

    def add_team(self, name: str) -> str:
        """Add a team; return its token, which is kept nowhere.

        Raises
        ------
        InputError
            If the name is empty, too long, unprintable or taken.
        """
        checked, token = checked_team(name), tokens.new_token()
        self._store.add_team(
            self._number, checked, key_of(checked), tokens.digest_of(token), at=self._clock()
        )
        return token

    def invite(self) -> str:
        """Make an invitation code, by which teams sign up while the rules say so; the one before is void."""
        code = tokens.new_code()
        self._store.invite(self._number, tokens.digest_of(code).hex())
        return code

    def sign_up(self, name: str, code: str = "") -> str:
        """Add a team that signs up by itself; return its token, which is kept nowhere.

        Raises
        ------
        InputError
            If the name is empty, too long, unprintable or taken.
        ClosedError
            If teams do not sign up, or not any more.
        InvitationError
            If the rules ask for a code, and this is not the newest.
        LimitError
            If there are as many teams as the rules allow.
        """
        checked, token = checked_team(name), tokens.new_token()
        self._store.add_team(
            self._number,
            checked,
            key_of(checked),
            tokens.digest_of(token),
            at=self._clock(),
            invitation=tokens.digest_of(code.strip()).hex(),
        )
        return token

    def renew_token(self, team_id: int) -> str:
        """Give a team another token and return it; the old one is void.

        Raises
        ------
        InputError
            If there is no such team.
        """
        token = tokens.new_token()
        self._store.set_token(self._number, team_id, tokens.digest_of(token))
        return token

    def rename_team(self, team_id: int, name: str) -> None:
        """Give a team another name, which everyone is told.

        Raises
        ------
        InputError
            If there is no such team, or the name is none or taken.
        """
        checked = checked_team(name)
        self._store.rename(self._number, team_id, checked, key_of(checked), at=self._clock())

    def disqualify(self, team_id: int, on: bool = True) -> None:
        """Take a team off board and final, or put it back; its answers stay in the ledger, and were paid for.

        Raises
        ------
        InputError
            If there is no such team.
        ClosedError
            If the final standings are made.
        """
        self._store.disqualify(self._number, team_id, on, at=self._clock())

    def merge_teams(self, team_id: int, other_id: int) -> None:
        """Let a team have the submissions and charges of another, whose token is void; they count to its limits.

        Raises
        ------
        InputError
            If they are not two teams that take part.
        ClosedError
            If the final standings are made.
        """
        better = 1 if self.metric.greater_is_better else -1
        self._store.merge(self._number, team_id, other_id, better=better, at=self._clock())

    def authenticate(self, token: str) -> Team | None:
        """Team of a token; None if it is nobody's."""
        found = self._store.team_with(self._number, tokens.digest_of(token))
        return found[0] if found is not None and tokens.is_token(token, found[1]) else None

    # ---- for organisers

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
