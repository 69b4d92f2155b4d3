"""Errors of the API, all in the same JSON form."""

from __future__ import annotations

from reusable_holdout.errors import (
    BudgetError,
    Halted,
    HoldoutError,
    InputError,
    LedgerError,
    PlanError,
    RolledBackError,
)
from reusable_holdout_leaderboard.files.forms import SubmissionError
from reusable_holdout_leaderboard.store.records import (
    AccessError,
    ClosedError,
    InvitationError,
    LimitError,
    StoreError,
)

__all__ = ["Problem", "problem_of", "unknown"]


class Problem(Exception):  # noqa: N818 - an answer to a request, not always an error of the server
    """A refused request, which is answered with ``{"error": {"code", "message", "details"}}``.

    Attributes
    ----------
    status : int
        HTTP status.
    code : str
        Name of the error, for programs.
    message : str
        Sentence for people. It does not depend on the labels.
    details : dict
        More facts for programs: "problems" of a submission, "reason" of a halt, or "nearest" plan that is possible.
    headers : dict of str to str
        Additional headers of the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: dict[str, object] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.details, self.headers = details or {}, headers or {}

    def as_dict(self) -> dict[str, dict[str, object]]:
        """Return the JSON body of the answer."""
        return {"error": {"code": self.code, "message": self.message, "details": self.details}}


_FAILED = (
    "the server or its database failed; this may have been answered; sent again, it is charged at most once"
)
_MESSAGES = {
    "rolled_back": (
        "this board is an older copy: its witness has seen answers that are not here; nothing is answered; the "
        "organisers must put the newest copy back, or hold another competition on fresh labels"
    )
}
_ERRORS: tuple[tuple[type[BaseException], int, str], ...] = (
    (Halted, 409, "halted"),
    (RolledBackError, 503, "rolled_back"),
    (SubmissionError, 422, "bad_submission"),
    (InputError, 422, "bad_input"),
    (PlanError, 422, "plan"),
    (LimitError, 429, "limit"),
    (AccessError, 401, "unauthorized"),
    (InvitationError, 401, "invitation"),
    (ClosedError, 409, "closed"),
    (BudgetError, 409, "budget"),
    (StoreError, 503, "unavailable"),
    (LedgerError, 503, "unavailable"),
    (HoldoutError, 500, "internal"),
)


def problem_of(error: BaseException) -> Problem:
    """Return the problem that answers a request if the library raises an exception. It does not depend on labels."""
    if isinstance(error, Problem):
        return error
    found = ((status, code) for kind, status, code in _ERRORS if isinstance(error, kind))
    status, code = next(found, (500, "internal"))
    details: dict[str, object] = {}
    if isinstance(error, Halted):
        details = {"reason": error.reason}
    elif isinstance(error, SubmissionError):
        details = {"problems": list(error.problems)}
    elif isinstance(error, PlanError):
        details = {"nearest": dict(error.nearest)}
    # the message of a failing server may name files and servers
    message = str(error) if status < 500 else _MESSAGES.get(code, _FAILED)
    return Problem(status, code, message, details=details)


def unknown(message: str) -> Problem:
    """Return the problem that answers a request without a valid token."""
    return Problem(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})
