"""Submissions, from the file to the recorded answer."""

from __future__ import annotations

import contextlib
import hashlib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

from numpy.typing import NDArray

from reusable_holdout import Answer
from reusable_holdout.errors import Halted, InputError, RotatedError
from reusable_holdout_leaderboard.competition.base import Base, Epoch
from reusable_holdout_leaderboard.files.forms import SubmissionError, packed_codes, packed_fresh
from reusable_holdout_leaderboard.files.predictions import parse_submission
from reusable_holdout_leaderboard.store import lists
from reusable_holdout_leaderboard.store.entries import Outcome, Wish, record, release, reserve
from reusable_holdout_leaderboard.store.records import ClosedError, StoreError, Submission

__all__ = ["Submitting", "hidden"]

_MOST_TITLE = 200
_SETTLED_AFTER_SECONDS = 600.0  # longer than any worker waits for a database
_HIDDEN = ("value", "low", "high", "charged", "threshold", "prior", "query", "told", "improved")
_ANSWER: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("prior", "value", "low", "high", "threshold"), float),
    "charged": bool,
    "query": int,
    "told": str,
}


class Submitting(Base):
    """The part of a competition that scores: reserved in the database, asked of the guard, recorded in the database."""

    def submit(
        self,
        team_id: int,
        content: bytes,
        *,
        filename: str,
        name: str = "",
        claimed: float | None = None,
        anew: bool = False,
        in_order: bool = False,
    ) -> Submission:
        """Score a file.

        Predictions that the team sent before get the recorded answer: free, beyond all limits, and also after the
        competition has closed. Errors cost nothing.

        Parameters
        ----------
        team_id : int
        content : bytes
            CSV; see :func:`parse_submission`.
        filename : str
        name : str
            Name on the board; by default the file's.
        claimed : float
            Score that the team claims, from rows of its own.
        anew : bool
            True to ask even if these predictions were answered before, perhaps to another team with another claim. The
            team pays for it.
        in_order : bool
            As for :func:`parse_submission`.

        Returns
        -------
        Submission
            While the competition is blind it is scored and charged as usual, but it shows "received" and no number.

        Raises
        ------
        SubmissionError
            If file or claim do not fit.
        LimitError
            If the team has no submission left.
        ClosedError
            If the competition is frozen, not open, or has moved to another label set.
        Halted
            If the queries of all teams are used; the board stays valid.
        StoreError, LedgerError
            If a database fails. It is unknown then if the submission was answered; sent again, it is charged once.
        """
        epoch = self._current()
        predictions = parse_submission(content, epoch.expected, in_order=in_order)
        return self._submit(epoch, team_id, predictions, claimed, name or filename, anew=anew)

    def submit_predictions(
        self,
        team_id: int,
        predictions: Any,
        *,
        claimed: float | None = None,
        name: str = "",
        anew: bool = False,
    ) -> Submission:
        """Score predictions in the order of :attr:`expected`; otherwise as :meth:`submit`."""
        return self._submit(self._current(), team_id, predictions, claimed, name, anew=anew)

    def pick(self, team_id: int, submission_ids: Sequence[int]) -> list[Submission]:
        """Enter these submissions of a team for the final standings, and no others; return them.

        Parameters
        ----------
        team_id : int
        submission_ids : sequence of int
            At most as many as the rules allow. If it is empty, the team's best ones are entered.

        Raises
        ------
        InputError
            If there are no fresh labels, they are too many, or one is not a scored submission of the team.
        ClosedError
            If the final standings are made.
        """
        epoch = self._current()
        if not len(epoch.fresh):
            raise InputError(
                "a final needs fresh labels; this competition was made without; nothing was changed"
            )
        with self._changing() as (connection, state):
            lists.pick(connection, state, team_id, epoch.number, submission_ids)
        return self.picks(team_id)

    def picks(self, team_id: int) -> list[Submission]:
        """Return the submissions of the present label set that a team has picked for the final standings."""
        epoch = self._current().number
        found = self._read(lists.submissions, self._number, team_id=team_id, epoch=epoch, picked=True)
        return [hidden(one) for one in found] if self._state().blind else found

    def settle(self, *, older_seconds: float = _SETTLED_AFTER_SECONDS) -> int:
        """Finish submissions whose worker died; return their number.

        Those that the guard answered are recorded. The others give their places back; they can be sent again.

        Parameters
        ----------
        older_seconds : float
            Leave submissions alone that a worker tried since then, because it may still be working.
        """
        waiting = self._read(lists.pending, self._number, before=self._clock() - older_seconds)
        for epoch in sorted({submission.epoch for submission in waiting}):
            told = self._told(epoch)
            for submission in waiting:
                if submission.epoch == epoch:
                    self._finish(submission, told)
        return len(waiting)

    # ---- inside

    def _submit(
        self,
        epoch: Epoch,
        team_id: int,
        predictions: Any,
        claimed: float | None,
        name: str,
        *,
        anew: bool,
    ) -> Submission:
        expected, stated = epoch.expected, self._checked_claim(claimed)
        canonical = expected.canonical(predictions)
        digest = expected.digest(canonical)
        codes = len(expected.classes or ())
        wish = Wish(
            epoch=epoch.number,
            team_id=team_id,
            digest=hashlib.sha256(digest + repr(stated).encode()).digest() if anew else digest,
            name=_checked_title(name),
            claimed=stated,
            at=self._clock(),
            fresh=packed_fresh(canonical[epoch.fresh]) if len(epoch.fresh) else None,
            compared=packed_codes(canonical[epoch.holdout], codes) if epoch.guard.pairs else None,
        )
        with self._changing() as (connection, state):
            submission = reserve(connection, state, wish)
        replayed = True
        if submission.state == "pending":
            answer = self._ask(epoch, submission, expected.decoded(canonical)[epoch.holdout], anew=anew)
            replayed = answer.replayed
            submission = self._record(submission, answer._asdict(), wish)
        submission = submission._replace(replayed=replayed)
        return hidden(submission) if state.blind else submission

    def _ask(self, epoch: Epoch, submission: Submission, predictions: NDArray[Any], *, anew: bool) -> Answer:
        """Ask the guard; a submission that it does not answer gives its place back."""
        problem: BaseException
        try:
            return epoch.guard.ask(
                predictions,
                claimed=submission.claimed,
                series=submission.series,
                name=_question_name(submission),
                anew=anew,
            )
        except Halted as halt:
            problem = _hidden_halt(halt) if self._state().blind else halt
        except InputError as error:
            problem = SubmissionError([str(error)])
        except RotatedError:
            self._finish(submission, self._told(submission.epoch))  # another worker may have asked before
            self._current(look=True)
            raise ClosedError(
                "the competition has moved to another label set; nothing was asked and nothing was charged; send "
                "predictions for its rows"
            ) from None
        with contextlib.suppress(StoreError):  # then it stays pending, and settle() gives its place back
            self._release(submission)
        raise problem

    def _finish(self, submission: Submission, told: Mapping[str, Mapping[str, Any]]) -> None:
        answer = told.get(_question_name(submission))
        if answer is None:
            self._release(submission)
        else:
            self._record(submission, answer, None)

    def _release(self, submission: Submission) -> None:
        with self._changing() as (connection, _):
            release(connection, submission.id)

    def _told(self, epoch: int) -> dict[str, dict[str, Any]]:
        """Return the released answers of a label set by the names of their questions."""
        rows: list[dict[Any, Any]] = self._current().guard.history(epoch).to_dict("records")
        return {row["name"]: row for row in rows}

    def _record(self, submission: Submission, answer: Mapping[str, Any], wish: Wish | None) -> Submission:
        """Store an answer. The ledger's row names the submission that asked first, which paid.

        The transaction need not be on the disk at once: the ledger has the answer there, and the reserved submission
        can be finished again.
        """
        told = {name: kind(answer[name]) for name, kind in _ANSWER.items()}
        outcome = Outcome(**told, paid=told["charged"] and answer["name"] == _question_name(submission))
        head, better = self._epoch.guard.head(), self._better
        with self._changing(lasting=False) as (connection, state):
            return record(
                connection,
                state,
                submission.id,
                outcome,
                better=better,
                at=self._clock(),
                head=head,
                wish=wish,
            )

    def _checked_claim(self, claimed: float | None) -> float:
        lower, upper, name = self.metric.lower, self.metric.upper, self.metric.name
        if claimed is None:
            problem = (
                f"every submission must come with the score that its team claims, its {name} on rows of its own; got "
                "none; send it as claimed"
            )
        elif isinstance(claimed, bool) or not isinstance(claimed, Real) or not lower <= claimed <= upper:
            problem = f"a claimed score must be a number from {lower:g} to {upper:g}, the range of {name}"
        else:
            return float(claimed)
        raise SubmissionError([problem])


def hidden(submission: Submission) -> Submission:
    """Return a submission as a blind competition shows it."""
    nothing: dict[str, Any] = dict.fromkeys(_HIDDEN)
    return submission._replace(state="pending" if submission.query is None else "received", **nothing)


def _checked_title(name: object) -> str:
    """Return a submission's name without unprintable characters, cut to 200 characters; it is never an error."""
    given = unicodedata.normalize("NFC", name) if isinstance(name, str) else ""
    shown = "".join(one for one in given if one.isprintable() or unicodedata.category(one) == "Zs")
    return shown.strip()[:_MOST_TITLE]


def _hidden_halt(halt: Halted) -> Halted:
    """Return the halt of a blind competition, without the questions that were charged."""
    return Halted(
        "the guard has halted: nothing new is answered on this label set; this submission was not answered",
        reason=halt.reason,
        history=lambda: halt.history.iloc[:0],
    )


def _question_name(submission: Submission) -> str:
    """Return the name of a question in the ledger, by which its answer is found if the worker dies."""
    return f"{submission.series} #{submission.id}"
