"""Submissions in the store: reserved before the guard is asked, recorded after it has answered.

The guard is asked between two transactions. Whatever ends a worker there loses nothing: the submission is pending, with
the prior it was asked with, so that asking again is the same question and replays the guard's answer free.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout.witness import Head
from reusable_holdout_leaderboard.store.database import Database
from reusable_holdout_leaderboard.store.kept import Kept, keep_compared
from reusable_holdout_leaderboard.store.records import ClosedError, LimitError, Submission
from reusable_holdout_leaderboard.store.rows import (
    ANSWERED,
    FIRST,
    ID,
    LATER,
    NEW,
    SAME,
    SENT,
    STANDS,
    TEAM,
    Best,
    CompetitionRow,
    Improvement,
    Outcome,
    Reserved,
    Wish,
    as_moment,
    as_submission,
    lock_competition,
    of_team,
    select_submissions,
    tell_answer,
)
from reusable_holdout_leaderboard.store.tables import EVENTS, PREDICTIONS, STANDINGS, SUBMISSIONS, TEAMS

__all__ = ["Entries"]

_DAY_SECONDS = 86_400
_ENTRY, _STANDING = SUBMISSIONS.c, STANDINGS.c
_NOTHING = "nothing was asked and nothing was charged"
_UNTOLD = ("value", "low", "high", "charged", "threshold", "query", "told", "improved")


class Entries(Kept):
    """Submissions and standings of all competitions in a database."""

    database: Database

    # ---- reserved, then recorded or released

    def reserve(self, number: int, wish: Wish) -> Reserved:
        """Give a submission its place, if its team has one left.

        Predictions that were sent before keep the place they have, whatever the limits and whether or not the
        competition is closed by now. Places are counted and given in one transaction, so that no two workers give the
        last one.

        Raises
        ------
        LimitError, ClosedError
            If there is none; nothing was written.
        InputError
            If there is no such team.
        """
        sought = {"number": number, "epoch": wish.epoch, "team": wish.team_id, "digest": wish.digest}
        with self.database.writing() as connection:
            state = lock_competition(connection, number)
            found = connection.execute(SAME, sought).first()
            if found is None:
                _check_open(state, wish)
                sender = _sender(connection, number, wish.team_id)
                prior = self._checked_prior(connection, number, wish, state)
                identity = self._insert(connection, number, wish, prior, sender.series)
                return Reserved(_pending(identity, wish, prior, sender), known=False, blind=state.blind)
            known = as_submission(found)
            if known.state == "pending":  # its worker died, or still works on it
                tried = sa.update(SUBMISSIONS).where(_ENTRY.id == known.id).values(tried_at=wish.at)
                connection.execute(tried)
            return Reserved(known, known=True, blind=state.blind)

    def record(
        self,
        number: int,
        submission_id: int,
        outcome: Outcome,
        *,
        better: int,
        at: float,
        wish: Wish | None = None,
        head: Head | None = None,
    ) -> Submission:
        """Keep what the guard said; of two that record the same submission, the first one's stays.

        Parameters
        ----------
        number, submission_id : int
        outcome : Outcome
        better : int
            1 if larger values are better, else -1.
        at : float
            Seconds since 1970, UTC.
        wish : Wish, optional
            To write the submission again if it was released meanwhile.
        head : Head, optional
            The ledger's, after this answer.

        Notes
        -----
        It is not waited for until it is on the disk: the ledger has the answer there, and the submission, which was
        reserved there, is finished again.
        """
        with self.database.writing(lasting=False) as connection:
            state = lock_competition(connection, number)
            known = self._one(connection, submission_id)
            if known is None:
                if wish is None:
                    raise InputError(f"there must be a submission of number {submission_id}; there is none")
                sender = _sender(connection, number, wish.team_id, sending=False)
                stated = wish.otherwise if wish.prior is None else wish.prior
                self._insert(connection, number, wish, stated, sender.series, identity=submission_id)
                known = self._one(connection, submission_id)
                assert known is not None  # noqa: S101 - it was written above
            if known.state == "scored":
                return known
            claims = state.rules.policy == "claims"
            improved = self._stand(connection, number, known, outcome, better=better, claims=claims)
            if improved and wish is not None and wish.compared is not None:
                keep_compared(connection, number, known, wish.compared)
            answer = outcome._asdict() | {"improved": improved}
            connection.execute(ANSWERED, {"submission": submission_id, **answer})
            tell_answer(connection, state, known, at, head)
        answer.pop("paid")  # which is nobody's but the organisers'
        return known._replace(state="scored", **answer)

    def release(self, number: int, submission_id: int) -> None:
        """Give back the place of a submission that was not answered."""
        with self.database.writing() as connection:
            lock_competition(connection, number)
            pending = (_ENTRY.id == submission_id) & _ENTRY.query.is_(None)
            if connection.execute(sa.delete(SUBMISSIONS).where(pending)).rowcount:
                connection.execute(sa.delete(PREDICTIONS).where(PREDICTIONS.c.submission_id == submission_id))

    def pending(self, number: int, *, before: float) -> list[Submission]:
        """Submissions that nobody has tried to have answered since a moment, the oldest first."""
        waiting = (_ENTRY.competition_id == number) & _ENTRY.query.is_(None) & (_ENTRY.tried_at < before)
        with self.database.reading() as connection:
            found = connection.execute(select_submissions(waiting).order_by(_ENTRY.id)).all()
        return [as_submission(row) for row in found]

    # ---- read

    def submissions(
        self,
        number: int,
        *,
        team_id: int | None = None,
        epoch: int | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
        newest_first: bool = False,
        picked: bool = False,
    ) -> list[Submission]:
        """Submissions with numbers above `after`, and below `before`."""
        where = [_ENTRY.competition_id == number, _ENTRY.id > after]
        if team_id is not None:
            where.append(of_team(team_id))
        if epoch is not None:
            where.append(_ENTRY.epoch == epoch)
        if before is not None:
            where.append(_ENTRY.id < before)
        if picked:
            where.append(_ENTRY.picked.is_(True))
        order = _ENTRY.id.desc() if newest_first else _ENTRY.id
        with self.database.reading() as connection:
            found = connection.execute(select_submissions(*where).order_by(order).limit(limit)).all()
        return [as_submission(row) for row in found]

    def standings(self, number: int, epoch: int) -> list[Best]:
        """Each team's best, in no order."""
        joined = STANDINGS.join(TEAMS, TEAMS.c.id == _STANDING.team_id)
        names = [TEAMS.c.name if name == "team" else _STANDING[name] for name in Best._fields]
        here = (_STANDING.competition_id == number) & (_STANDING.epoch == epoch) & ~TEAMS.c.disqualified
        with self.database.reading() as connection:
            return [
                Best(*row) for row in connection.execute(sa.select(*names).select_from(joined).where(here))
            ]

    def improvements(self, number: int, epoch: int, *, after: int = 0) -> list[tuple[int, Improvement]]:
        """Submissions that became their team's best after a revision, with their own, in the order of the commits."""
        here = self._here(number, epoch) & ~TEAMS.c.disqualified
        best = select_submissions(here, _ENTRY.improved.is_(True)).subquery()
        names = ("id", "owner_id", "team", "asked_at", "value", "low", "high", "told", "charged")
        told = (EVENTS.c.competition_id == number) & (EVENTS.c.kind == "submission")
        asked = (
            sa.select(EVENTS.c.revision, *(best.c[name] for name in names))
            .select_from(EVENTS.join(best, best.c.id == EVENTS.c.submission_id))
            .where(told, EVENTS.c.revision > after)
            .order_by(EVENTS.c.revision)
        )
        with self.database.reading() as connection:
            return [(revision, Improvement(*one)) for revision, *one in connection.execute(asked)]

    def last_change_of_teams(self, number: int) -> int:
        """Revision at which a team was last renamed, merged, disqualified or reinstated; 0 if none was."""
        kinds = EVENTS.c.kind.in_(("rename", "merge", "disqualify", "reinstate"))
        asked = sa.select(sa.func.max(EVENTS.c.revision)).where(EVENTS.c.competition_id == number, kinds)
        with self.database.reading() as connection:
            return int(connection.execute(asked).scalar() or 0)

    def paid_queries(self, number: int, epoch: int) -> list[int]:
        """Questions of the guard that took a charge, in order."""
        asked = sa.select(_ENTRY.query).where(self._here(number, epoch), _ENTRY.paid.is_(True))
        with self.database.reading() as connection:
            return list(connection.scalars(asked.order_by(_ENTRY.query)))

    # ---- inside a transaction, the competition locked

    def _here(self, number: int, epoch: int) -> sa.ColumnElement[bool]:
        return sa.and_(_ENTRY.competition_id == number, _ENTRY.epoch == epoch)

    def _one(self, connection: sa.Connection, submission_id: int) -> Submission | None:
        row = connection.execute(ID, {"submission": submission_id}).first()
        return None if row is None else as_submission(row)

    def _insert(
        self,
        connection: sa.Connection,
        number: int,
        wish: Wish,
        prior: float,
        series: str,
        *,
        identity: int | None = None,
    ) -> int:
        values: dict[str, Any] = {
            "competition_id": number,
            "epoch": wish.epoch,
            "team_id": wish.team_id,
            "series": series,
            "digest": wish.digest,
            "name": wish.name,
            "claimed": wish.claimed,
            "prior": prior,
            "asked_at": wish.at,
            "tried_at": wish.at,
        }
        if identity is not None:
            values["id"] = identity
        added = connection.execute(NEW, values)
        (identity,) = added.inserted_primary_key or (identity,)
        if wish.content is not None:
            connection.execute(sa.insert(PREDICTIONS).values(submission_id=identity, content=wish.content))
        return int(identity)  # type: ignore[arg-type]

    def _checked_prior(
        self, connection: sa.Connection, number: int, wish: Wish, state: CompetitionRow
    ) -> float:
        """What a submission is compared with; refuse one too many."""
        rules, best = state.rules, None
        if rules.charges_per_team is not None or wish.prior is None:
            here = {"number": number, "at_epoch": wish.epoch, "team": wish.team_id}
            best = connection.execute(STANDS, here).first()
        limits = (rules.most_submissions, rules.submissions_per_day, rules.charges_per_team)
        if any(most is not None for most in limits):
            self._check_limits(connection, number, wish, state, spent=0 if best is None else best.charges)
        if wish.prior is not None:
            return wish.prior
        return wish.otherwise if best is None else float(best.value)

    def _check_limits(
        self, connection: sa.Connection, number: int, wish: Wish, state: CompetitionRow, *, spent: int
    ) -> None:
        """Refuse a submission too many of a team that has spent so many charges."""
        rules, midnight = state.rules, wish.at - wish.at % _DAY_SECONDS
        asked = {"number": number, "epoch": wish.epoch, "team": wish.team_id, "midnight": midnight}
        sent, sent_today, waiting = connection.execute(SENT, asked).one()
        most = rules.most_submissions
        if most is not None and (sent or 0) >= most:
            raise LimitError(f"each team has {most} submissions; all are used; {_NOTHING}")
        most = rules.submissions_per_day
        if most is not None and (sent_today or 0) >= most:
            raise LimitError(
                f"each team has {most} submissions a day; all are used; {_NOTHING}; the next day begins at "
                f"{as_moment(midnight + _DAY_SECONDS):%Y-%m-%d %H:%M} UTC"
            )
        most = rules.charges_per_team
        if most is not None and spent >= most:
            raise LimitError(f"each team has {most} charges; all are spent; {_NOTHING}")
        if most is not None and spent + (waiting or 0) >= most:
            raise LimitError(
                "a submission that is being scored may take the team's last charge; wait for it, or send it again if "
                f"it got no answer; {_NOTHING}"
            )

    def _stand(
        self,
        connection: sa.Connection,
        number: int,
        known: Submission,
        outcome: Outcome,
        *,
        better: int,
        claims: bool,
    ) -> bool:
        """Count a submission, and make it its team's best if it is; say whether it is."""
        here = {"number": number, "at_epoch": known.epoch, "team": known.team_id}
        best = connection.execute(STANDS, here).first()
        improved = _improves(outcome, best, better=better, claims=claims)
        told: dict[str, Any] = {
            "submission_id": known.id,
            "value": outcome.value,
            "low": outcome.low,
            "high": outcome.high,
            "best_at": known.at.timestamp(),
            "query": outcome.query,
            "certified": outcome.told != "not certified",
        }
        if claims and best is not None and improved and _are_tied(outcome, best):
            told["best_at"] = best.best_at  # inside a tie the earlier stands first: with itself, too
        # a lead is better than all before it, though a team's best may be another claim
        lead = {"measured": outcome.value} if outcome.leads else {}
        if best is None:
            key = {"competition_id": number, "epoch": known.epoch, "team_id": known.team_id}
            counts = {"submissions": 1, "charges": int(outcome.paid)}
            connection.execute(FIRST, key | told | counts | lead)
        else:
            counts = {"submissions": best.submissions + 1, "charges": best.charges + int(outcome.paid)}
            values = counts | told if improved else counts
            values |= lead
            connection.execute(LATER, here | values)
        return improved


def _improves(outcome: Outcome, best: Any, *, better: int, claims: bool) -> bool:
    """Whether an answer is better than a team's best: of claims, whether it is certified to be at least better."""
    if outcome.told == "not certified" or best is None or best.certified is False:
        return outcome.told != "not certified"
    if not claims:
        return bool(better * (outcome.value - best.value) > 0)
    ours, theirs = (one.low if better > 0 else one.high for one in (outcome, best))
    return bool(better * (ours - theirs) > 0)


def _are_tied(outcome: Outcome, best: Any) -> bool:
    return bool(best.certified is not False and outcome.low <= best.high and best.low <= outcome.high)


def _check_open(state: CompetitionRow, wish: Wish) -> None:
    reason = "the competition is frozen" if state.frozen else state.rules.closed_reason(as_moment(wish.at))
    if state.epoch != wish.epoch:
        reason = "the competition has gone on to another label set; send predictions for its rows"
    if reason:
        raise ClosedError(f"{reason}; {_NOTHING}")


def _sender(connection: sa.Connection, number: int, team_id: int, *, sending: bool = True) -> Any:
    """Row of the team that sends; refuse one that may not."""
    row = connection.execute(TEAM, {"number": number, "team": team_id}).first()
    if row is None:
        raise InputError(f"there must be a team of number {team_id} in this competition; there is none")
    if sending and row.disqualified:
        raise ClosedError(f"the team is disqualified; {_NOTHING}")
    return row


def _pending(identity: int, wish: Wish, prior: float, sender: Any) -> Submission:
    """A submission that has just been given its place."""
    nothing: dict[str, Any] = dict.fromkeys(_UNTOLD)
    return Submission(
        id=identity,
        team_id=sender.owner_id,
        team=sender.owner,
        epoch=wish.epoch,
        name=wish.name,
        at=as_moment(wish.at),
        state="pending",
        prior=prior,
        claimed=wish.claimed,
        series=sender.series,
        **nothing,
    )
