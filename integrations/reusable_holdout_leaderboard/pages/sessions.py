"""Sessions of browsers, and the keys of their forms."""

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

ORGANISER = ".organiser"  # scope of sessions and forms; no competition has this name
_VISITOR = "rh_visitor"
_FORM_KEY = "form"  # part of a form's address, so that it can be checked before the form's body is read
_MOST_SESSION = 200
_ELSEWHERE = {"cross-site", "same-site"}  # what browsers say of forms of other origins


class Sessions:
    """Cookies of browsers.

    A session cookie holds the number of a session that the board stores, and nothing else: it is worth nothing after
    the session. Scripts cannot read it, and other sites cannot send it.

    Parameters
    ----------
    boards : Boards
    """

    def __init__(self, boards: Boards) -> None:
        self._boards = boards

    async def sign_in(
        self, request: Request, response: Response, competition: Competition, scope: str, token: str
    ) -> None:
        """Begin a session with a checked token, and send its number with a response.

        Raises
        ------
        Problem
            503.
        """
        seconds = self._boards.settings.session_seconds
        session = await self._boards.run(competition.begin_session, token, seconds=seconds)
        self._set(request, response, _cookie(scope), session, seconds=int(seconds))

    async def sign_out(
        self, request: Request, response: Response, competition: Competition, scope: str
    ) -> None:
        """End the session of a request, if it has one.

        Raises
        ------
        Problem
            503; the session may not have ended.
        """
        session = _session_of(request, scope)
        if session:
            await self._boards.run(competition.end_session, session)
        response.delete_cookie(
            _cookie(scope), httponly=True, samesite="strict", secure=self._is_secure(request)
        )

    def team(self, request: Request, competition: Competition) -> Team | None:
        """Return the team of a request's session; None if it has none. Call it in a thread."""
        session = _session_of(request, competition.slug)
        return competition.team_of_session(session) if session else None

    def is_organiser(self, request: Request, competition: Competition) -> bool:
        """Return True if a request's session is the administrator's. Call it in a thread."""
        session, digest = _session_of(request, ORGANISER), self._boards.settings.admin_digest
        return bool(session and digest) and competition.is_session_of(session, bytes.fromhex(digest))

    # ---- forms

    def form_key(self, request: Request, response: Response, scope: str, secret: bytes) -> str:
        """Return the key of a page's forms, which is "form" in their addresses.

        It fits only the browser that it is sent to, by that browser's cookies. Call it once for each page, with the
        response whose headers the page will have.

        Parameters
        ----------
        request : Request
        response : Response
        scope : str
            Scope of the session that the forms fit: a competition or the organisers.
        secret : bytes
            Secret of the board's database, so that all servers agree, also after a restart.
        """
        visitor = request.cookies.get(_VISITOR, "")
        if not _is_visitor(visitor):
            visitor = secrets.token_hex(16)
            self._set(request, response, _VISITOR, visitor, seconds=None)
        return _signed(secret, scope, visitor + request.cookies.get(_cookie(scope), ""))

    def check_form(self, request: Request, scope: str, secret: bytes) -> None:
        """Refuse a form that another site has sent; its body is not needed for that.

        Raises
        ------
        Problem
            403.
        """
        visitor, stated = request.cookies.get(_VISITOR, ""), request.query_params.get(_FORM_KEY, "")
        right = _signed(secret, scope, visitor + request.cookies.get(_cookie(scope), ""))
        fits = hmac.compare_digest(stated.encode("utf-8", "surrogatepass"), right.encode())
        if not fits or not _is_visitor(visitor) or request.headers.get("sec-fetch-site") in _ELSEWHERE:
            raise Problem(
                403,
                "form",
                "the form is too old or from elsewhere; nothing was done; load the page again, send it again",
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
    """Return the number of a request's session, which may be over or invented; empty if there is none."""
    return request.cookies.get(_cookie(scope), "")[:_MOST_SESSION]


def _signed(secret: bytes, scope: str, content: str) -> str:
    text = f"form\0{scope}\0{content}".encode("utf-8", "surrogatepass")
    return hmac.new(secret, text, hashlib.sha256).hexdigest()


def _cookie(scope: str) -> str:
    return f"rh_session_{scope}"


def _is_visitor(value: str) -> bool:
    return len(value) == 32 and all(one in "0123456789abcdef" for one in value)
