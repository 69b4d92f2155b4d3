"""Processing of a submission, from the uploaded file to the recorded answer."""

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
_SETTLED_AFTER_SECONDS = 600.0  # longer than a worker can wait for a database
_HIDDEN = ("value", "low", "high", "charged", "threshold", "prior", "query", "told", "improved")
_ANSWER: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("prior", "value", "low", "high", "threshold"), float),
    "charged": bool,
    "query": int,
    "told": str,
}


class Submitting(Base):
    """The part of a competition that scores submissions.

    A submission is reserved in the database, then the guard is asked, then the answer is recorded in the database.
    """

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
        """Score a file of predictions.

        Predictions that the team has sent before get the recorded answer. That is free, does not count towards any
        limit, and works after the competition has closed, too. A submission that is refused costs nothing.

        Parameters
        ----------
        team_id : int
        content : bytes
            CSV file; see :func:`parse_submission`.
        filename : str
        name : str
            Name of the submission. By default, the name of the file.
        claimed : float
            Score that the team claims, which it measured on rows of its own.
        anew : bool
            True to ask the guard again, even if these predictions were answered before, perhaps for another team with
            another claim. The new answer may cost this team a charge.
        in_order : bool
            True for a file without ids, whose rows have the order of the sample.

        Returns
        -------
        Submission
            While the competition is blind, the submission is scored and charged as usual, but its state is "received"
            and it has no numbers.

        Raises
        ------
        SubmissionError
            If the file or the claim does not fit.
        LimitError
            If the team has no submission left.
        ClosedError
            If the competition is frozen, is not open now, or has moved to another epoch.
        Halted
            If all teams together have used all queries. The board stays valid.
        StoreError, LedgerError
            If a database fails. The submission may or may not have been answered. If it is sent again, it is charged at
            most once.
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
        """Score an array of predictions, in the order of the rows of :attr:`expected`. See :meth:`submit`."""
        return self._submit(self._current(), team_id, predictions, claimed, name, anew=anew)

    def pick(self, team_id: int, submission_ids: Sequence[int]) -> list[Submission]:
        """Choose the submissions with which a team enters the final standings, and return them.

        This replaces an earlier choice of the team.

        Parameters
        ----------
        team_id : int
        submission_ids : sequence of int
            Numbers of the submissions, at most as many as the rules allow. If there are none, the team's best
            submissions are entered.

        Raises
        ------
        InputError
            If the competition has no fresh labels, the submissions are too many, or one of them is not a scored
            submission of the team.
        ClosedError
            If the final standings have been made.
        """
        epoch = self._current()
        if not len(epoch.fresh):
            raise InputError("a final needs fresh labels; this competition has none; nothing was changed")
        with self._changing() as (connection, state):
            lists.pick(connection, state, team_id, epoch.number, submission_ids)
        return self.picks(team_id)

    def picks(self, team_id: int) -> list[Submission]:
        """Return the submissions of the current epoch that a team has picked for the final standings."""
        epoch = self._current().number
        found = self._read(lists.submissions, self._number, team_id=team_id, epoch=epoch, picked=True)
        return [hidden(one) for one in found] if self._state().blind else found

    def settle(self, *, older_seconds: float = _SETTLED_AFTER_SECONDS) -> int:
        """Finish submissions whose worker process died, and return their number.

        If the guard has answered a submission, the answer is recorded. Otherwise the submission is removed and no
        longer counts towards the team's limits; the team can send it again.

        Parameters
        ----------
        older_seconds : float
            Seconds that must have passed since a worker last tried a submission. A worker may still be busy with
            submissions that were tried later.
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
        self, epoch: Epoch, team_id: int, predictions: Any, claimed: float | None, name: str, *, anew: bool
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
        """Ask the guard about a submission. If the guard does not answer, the submission is removed again."""
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
                "the competition has begun a new round with other rows; nothing was asked and nothing was charged; "
                "send predictions for these rows"
            ) from None
        with contextlib.suppress(StoreError):  # then it stays pending, and settle() removes it later
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
        """Return the released answers of an epoch as a dictionary. Its keys are the names of the questions."""
        rows: list[dict[Any, Any]] = self._current().guard.history(epoch).to_dict("records")
        return {row["name"]: row for row in rows}

    def _record(self, submission: Submission, answer: Mapping[str, Any], wish: Wish | None) -> Submission:
        """Record an answer in the board's database.

        The answer carries the name of the submission that asked the question first. Only that submission paid for it.

        The transaction need not be on the disk at once. The ledger already has the answer on the disk, so the reserved
        submission can be finished again.
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
                f"every submission must come with the score that its team claims, the {name} it had on its own rows; "
                "got none; send this score as 'claimed'"
            )
        elif isinstance(claimed, bool) or not isinstance(claimed, Real) or not lower <= claimed <= upper:
            problem = f"a claimed score must be a number from {lower:g} to {upper:g}, the range of {name}"
        else:
            return float(claimed)
        raise SubmissionError([problem])


def hidden(submission: Submission) -> Submission:
    """Return a submission without its scores, as a blind competition shows it."""
    nothing: dict[str, Any] = dict.fromkeys(_HIDDEN)
    return submission._replace(state="pending" if submission.query is None else "received", **nothing)


def _checked_title(name: object) -> str:
    """Return a submission's name without unprintable characters, cut to 200 characters. Every name is accepted."""
    given = unicodedata.normalize("NFC", name) if isinstance(name, str) else ""
    shown = "".join(one for one in given if one.isprintable() or unicodedata.category(one) == "Zs")
    return shown.strip()[:_MOST_TITLE]


def _hidden_halt(halt: Halted) -> Halted:
    """Return a halt as a blind competition shows it: without charged questions, and with an empty history."""
    return Halted(
        "the guard has halted: nothing new is answered in this round; this submission was not answered",
        reason=halt.reason,
        history=lambda: halt.history.iloc[:0],
    )


def _question_name(submission: Submission) -> str:
    """Return the name of a submission's question in the ledger. If a worker dies, its answer is found by this name."""
    return f"{submission.series} #{submission.id}"
