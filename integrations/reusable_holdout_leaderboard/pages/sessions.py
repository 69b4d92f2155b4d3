"""Sessions of browsers, and the keys that protect forms against requests from other sites."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from starlette.requests import Request
from starlette.responses import Response

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.store.records import Team
from reusable_holdout_leaderboard.web.boards import Boards
from reusable_holdout_leaderboard.web.problems import Problem

__all__ = ["ORGANISER", "Sessions"]

ORGANISER = ".organiser"  # scope of the organisers' sessions and forms; no competition can have this name
_VISITOR = "rh_visitor"
_FORM_KEY = "form"  # query parameter of a form's address; it is checked before the form's body is read
_MOST_SESSION = 200
_ELSEWHERE = {"cross-site", "same-site"}  # values of Sec-Fetch-Site for forms that another origin sends


class Sessions:
    """The session cookies of browsers, and the keys of forms.

    A session cookie contains only the number of a session that the board stores. So it is worthless after the session
    has ended. Scripts cannot read the cookie, and other sites cannot send it.

    Parameters
    ----------
    boards : Boards
    """

    def __init__(self, boards: Boards) -> None:
        self._boards = boards

    async def sign_in(
        self, request: Request, response: Response, competition: Competition, scope: str, token: str
    ) -> None:
        """Begin a session with a token that was checked, and set its cookie in a response.

        Raises
        ------
        Problem
            503 if the database fails.
        """
        seconds = self._boards.settings.session_seconds
        session = await self._boards.run(competition.begin_session, token, seconds=seconds)
        self._set(request, response, _cookie(scope), session, seconds=int(seconds))

    async def sign_out(
        self, request: Request, response: Response, competition: Competition, scope: str
    ) -> None:
        """End the session that a request belongs to, if there is one.

        Raises
        ------
        Problem
            503 if the database fails. The session may not have ended.
        """
        session = _session_of(request, scope)
        if session:
            await self._boards.run(competition.end_session, session)
        response.delete_cookie(
            _cookie(scope), httponly=True, samesite="strict", secure=self._is_secure(request)
        )

    def team(self, request: Request, competition: Competition) -> Team | None:
        """Return the team that is logged in, or None. Call this method in a thread, because it reads the database."""
        session = _session_of(request, competition.slug)
        return competition.team_of_session(session) if session else None

    def is_organiser(self, request: Request, competition: Competition) -> bool:
        """Return True if the administrator is logged in. Call this method in a thread: it reads the database."""
        session, digest = _session_of(request, ORGANISER), self._boards.settings.admin_digest
        return bool(session and digest) and competition.is_session_of(session, bytes.fromhex(digest))

    # ---- forms

    def form_key(self, request: Request, response: Response, scope: str, secret: bytes) -> str:
        """Return the key of a page's forms, which their addresses carry as the parameter "form".

        The key depends on the browser's cookies, so it is valid only in the browser that the page is sent to. Call this
        method once for each page, with a response whose cookies the page will set.

        Parameters
        ----------
        request : Request
        response : Response
        scope : str
            Session that the forms belong to: the name of a competition, or the organisers'.
        secret : bytes
            Secret from the board's database. All servers of the board share it, and it stays the same after a restart.
        """
        visitor = request.cookies.get(_VISITOR, "")
        if not _is_visitor(visitor):
            visitor = secrets.token_hex(16)
            self._set(request, response, _VISITOR, visitor, seconds=None)
        return _signed(secret, scope, visitor + request.cookies.get(_cookie(scope), ""))

    def check_form(self, request: Request, scope: str, secret: bytes) -> None:
        """Refuse a form that did not come from a page of this server. The form's body is not read for that.

        Raises
        ------
        Problem
            403 if the key of the form is missing or wrong.
        """
        visitor, stated = request.cookies.get(_VISITOR, ""), request.query_params.get(_FORM_KEY, "")
        right = _signed(secret, scope, visitor + request.cookies.get(_cookie(scope), ""))
        fits = hmac.compare_digest(stated.encode("utf-8", "surrogatepass"), right.encode())
        if not fits or not _is_visitor(visitor) or request.headers.get("sec-fetch-site") in _ELSEWHERE:
            raise Problem(
                403,
                "form",
                "the form is too old or from another site; nothing was done; load the page again, then send it",
            )

    # ---- inside

    def _is_secure(self, request: Request) -> bool:
        return self._boards.settings.secure_cookies or request.url.scheme == "https"

    def _set(
        self, request: Request, response: Response, name: str, value: str, *, seconds: int | None
    ) -> None:
        secure = self._is_secure(request)
        response.set_cookie(
            name, value, max_age=seconds, httponly=True, samesite="strict", secure=secure, path="/"
        )


def _session_of(request: Request, scope: str) -> str:
    """Return the session number in a request's cookie, or an empty string. The session may be over or invented."""
    return request.cookies.get(_cookie(scope), "")[:_MOST_SESSION]


def _signed(secret: bytes, scope: str, content: str) -> str:
    text = f"form\0{scope}\0{content}".encode("utf-8", "surrogatepass")
    return hmac.new(secret, text, hashlib.sha256).hexdigest()


def _cookie(scope: str) -> str:
    return f"rh_session_{scope}"


def _is_visitor(value: str) -> bool:
    return len(value) == 32 and all(one in "0123456789abcdef" for one in value)
