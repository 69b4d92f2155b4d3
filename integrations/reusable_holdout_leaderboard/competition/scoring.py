"""Submissions from the file to the recorded answer."""

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
from reusable_holdout_leaderboard.competition.epoch import Epoch, head_of
from reusable_holdout_leaderboard.competition.final import packed
from reusable_holdout_leaderboard.competition.neighbours import packed_codes
from reusable_holdout_leaderboard.competition.views import Views, hidden
from reusable_holdout_leaderboard.files.decoder import parse_submission
from reusable_holdout_leaderboard.files.forms import Expected, SubmissionError
from reusable_holdout_leaderboard.store.records import ClosedError, StoreError, Submission
from reusable_holdout_leaderboard.store.rows import Outcome, Wish

__all__ = ["Scoring"]

_MOST_TITLE = 200
_SETTLED_AFTER_SECONDS = 600.0  # longer than any worker waits for a database


class Scoring(Views):
    """How a competition scores: reserved in the store, asked of the guard, recorded in the store."""

    def submit(
        self,
        team_id: int,
        content: bytes,
        *,
        filename: str,
        claimed: float | None = None,
        anew: bool = False,
        read: Callable[[bytes, str, Expected], NDArray[Any]] = parse_submission,
    ) -> Submission:
        """Have a file scored.

        Predictions that the team sent before get the recorded answer: free, beyond all limits, and also when the
        competition is closed. What raises costs nothing.

        Parameters
        ----------
        team_id : int
        content : bytes
            CSV or Parquet; see :func:`parse_submission`.
        filename : str
            Also its name on the board.
        claimed : float, optional
            The team's own validation score; a board of claims needs it.
        anew : bool
            On a board of claims: ask though these predictions were answered before, perhaps to another team that
            claimed something else of them; at this team's own expense.
        read : callable
            By which the file is read; a server has strangers' files read in a process of its own.

        Returns
        -------
        Submission
            Blind, it is scored and charged as ever, but says "received" and no number.

        Raises
        ------
        SubmissionError
            If file or claim do not fit.
        LimitError
            If the team has no submission or charge left.
        ClosedError
            If the competition is frozen, not open, or has gone on to another label set.
        Halted
            If a budget of all teams together is spent; the board stays valid.
        StoreError, LedgerError
            If a database fails. Whether the submission was answered is unknown then; sent again, it is charged once.
        """
        epoch = self._current()
        predictions = read(content, filename, epoch.expected)
        return self._submit(epoch, team_id, predictions, claimed, filename, anew=anew)

    def submit_predictions(
        self,
        team_id: int,
        predictions: Any,
        *,
        claimed: float | None = None,
        name: str = "",
        anew: bool = False,
    ) -> Submission:
        """Have predictions scored that are in the order of :attr:`expected`; otherwise as :meth:`submit`."""
        return self._submit(self._current(), team_id, predictions, claimed, name, anew=anew)

    def pick(self, team_id: int, submission_ids: Sequence[int]) -> list[Submission]:
        """Enter these submissions of a team for the final standings and no others; return them.

        Parameters
        ----------
        team_id : int
        submission_ids : sequence of int
            As many as the rules allow at most; none to have the team's best ones entered.

        Raises
        ------
        InputError
            If there are no fresh labels, they are too many, or one is not the team's, or not scored on the present
            label set.
        ClosedError
            If the final standings are made.
        """
        epoch = self._current()
        if not len(epoch.fresh):
            raise InputError(
                "a final needs fresh labels; this competition was made without; nothing was changed"
            )
        self._store.pick(self._number, team_id, epoch.number, submission_ids)
        return self.picks(team_id)

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
        expected = epoch.expected
        canonical = expected.canonical(predictions)
        stated = self._checked_claim(claimed, anew=anew)
        wish = Wish(
            epoch=epoch.number,
            team_id=team_id,
            digest=anew_digest(expected.digest(canonical), stated) if anew else expected.digest(canonical),
            name=checked_title(name),
            claimed=stated,
            prior=None if epoch.guard.policy == "ladder" else stated,
            otherwise=self.start,
            at=self._clock(),
            content=packed(canonical[epoch.fresh]) if len(epoch.fresh) else None,
            compared=None
            if epoch.pairs is None
            else packed_codes(canonical[epoch.holdout], len(expected.classes or ())),
        )
        reserved = self._store.reserve(self._number, wish)
        submission, replayed = reserved.submission, True
        if submission.state == "pending":
            answer = self._ask(epoch, submission, expected.decoded(canonical)[epoch.holdout], anew=anew)
            replayed = answer.replayed
            submission = self._record(submission, answer._asdict(), wish)
        submission = submission._replace(replayed=replayed)
        return hidden(submission) if reserved.blind else submission

    def _ask(self, epoch: Epoch, submission: Submission, predictions: NDArray[Any], *, anew: bool) -> Answer:
        """Ask the guard; what it does not answer gives its place back."""
        problem: BaseException
        try:
            name = _question_name(submission)
            if epoch.guard.policy == "ladder":  # its own best, as the ledger has it
                return epoch.guard.evaluate_predictions(predictions, series=submission.series, name=name)
            if epoch.guard.policy == "claims":
                return epoch.guard.evaluate_predictions(
                    predictions, prior=submission.prior, series=submission.series, name=name, anew=anew
                )
            return epoch.guard.evaluate_predictions(predictions, prior=submission.prior, name=name)
        except Halted as halt:
            problem = _hidden_halt(halt) if self._row().blind else halt
        except InputError as error:
            problem = SubmissionError([str(error)])
        except RotatedError:
            self._finish(submission, self._told(submission.epoch))  # another worker may have asked before
            self._current(look=True)
            raise ClosedError(
                "the competition has gone on to another label set; nothing was asked and nothing was charged; send "
                "predictions for its rows"
            ) from None
        with contextlib.suppress(StoreError):  # then it is pending, and settle() gives its place back
            self._store.release(self._number, submission.id)
        raise problem

    def settle(self, *, older_seconds: float = _SETTLED_AFTER_SECONDS) -> int:
        """Finish submissions whose worker died; return how many.

        Those the guard answered are recorded; the others give their places back. Sent again, they are finished anyway.

        Parameters
        ----------
        older_seconds : float
            Leave alone what was tried since then: its worker may still be at it.
        """
        waiting = self._store.pending(self._number, before=self._clock() - older_seconds)
        for epoch in sorted({submission.epoch for submission in waiting}):
            told = self._told(epoch)
            for submission in waiting:
                if submission.epoch == epoch:
                    self._finish(submission, told)
        return len(waiting)

    def _finish(self, submission: Submission, told: Mapping[str, Mapping[str, Any]]) -> None:
        answer = told.get(_question_name(submission))
        if answer is None:
            self._store.release(self._number, submission.id)
        else:
            self._record(submission, answer, None)

    def _told(self, epoch: int) -> dict[str, dict[str, Any]]:
        """Released answers by the names of their questions."""
        rows: list[dict[Any, Any]] = self._current().guard.history(epoch=epoch).to_dict("records")
        return {row["name"]: row for row in rows}

    def _record(self, submission: Submission, answer: Mapping[str, Any], wish: Wish | None) -> Submission:
        """Keep an answer. The guard's ledger names who asked first: that one paid."""
        outcome = Outcome(
            prior=float(answer["prior"]),
            value=float(answer["value"]),
            low=float(answer["low"]),
            high=float(answer["high"]),
            threshold=float(answer["threshold"]),
            charged=bool(answer["charged"]),
            paid=bool(answer["charged"]) and answer["name"] == _question_name(submission),
            query=int(answer["query"]),
            told=str(answer["told"]),
        )
        better = 1 if self.metric.greater_is_better else -1
        return self._store.record(
            self._number,
            submission.id,
            outcome,
            better=better,
            at=self._clock(),
            wish=wish,
            head=head_of(self._epoch.ledger),
        )

    def _checked_claim(self, claimed: float | None, *, anew: bool) -> float | None:
        claims = self._epoch.guard.policy == "claims"
        if anew and not claims:
            raise SubmissionError(["asking anew is for boards of claims; nothing was asked"])
        if claimed is None and claims:
            raise SubmissionError(
                [
                    "every submission must come with the validation score that its team claims, its "
                    f"{self.metric.name} on rows of its own; got none; nothing was asked; send it as claimed"
                ]
            )
        if claimed is None:
            return None
        lower, upper = self.metric.lower, self.metric.upper
        if isinstance(claimed, bool) or not isinstance(claimed, Real) or not lower <= claimed <= upper:
            raise SubmissionError(
                [
                    f"a claimed score must be a number from {lower:g} to {upper:g}, the range of {self.metric.name}"
                ]
            )
        return float(claimed)


def checked_title(name: object) -> str:
    """Return a submission's name without what is not printable, cut to 200 characters; it is not worth an error."""
    given = unicodedata.normalize("NFC", name) if isinstance(name, str) else ""
    shown = "".join(one for one in given if one.isprintable() or unicodedata.category(one) == "Zs")
    return shown.strip()[:_MOST_TITLE]


def anew_digest(digest: bytes, claimed: float | None) -> bytes:
    """Digest of predictions that are asked about anew, with another claim."""
    return hashlib.sha256(digest + repr(claimed).encode()).digest()


def _hidden_halt(halt: Halted) -> Halted:
    """Halt of a blind competition: it does not name the questions that were charged."""
    return Halted(
        "the guard has halted: nothing new is answered on this label set; this submission was not answered",
        reason=halt.reason,
        history=lambda: halt.history.iloc[:0],
    )


def _question_name(submission: Submission) -> str:
    """Name of a question in the ledger: by it the answer is found if the worker dies."""
    return f"{submission.series} #{submission.id}"
