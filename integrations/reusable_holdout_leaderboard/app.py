"""The application: API and pages behind one boundary, which limits what comes and what leaves."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from reusable_holdout.errors import of_extra

with of_extra("leaderboard", "a leaderboard"):
    import fastapi  # noqa: F401 - what follows needs it
    import jinja2  # noqa: F401
    import markdown_it  # noqa: F401

from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request

from reusable_holdout_leaderboard.pages import add_pages
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web.api import add_api
from reusable_holdout_leaderboard.web.events import Feed
from reusable_holdout_leaderboard.web.requests import Intake
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.server import accept_few_at_once
from reusable_holdout_leaderboard.web.services import Boards, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["create_app", "from_environment"]

_LOG = logging.getLogger("reusable_holdout_leaderboard")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
_NAMES = {
    404: ("not_found", "there is nothing at this address"),
    405: ("method", "this address does not take this method"),
}


def create_app(settings: Settings) -> FastAPI:
    """Application of a server.

    Nothing that depends on the labels leaves it but the guard's answers: errors have one shape and constant words.

    Parameters
    ----------
    settings : Settings
    """
    boards = Boards(settings)
    app = FastAPI(
        title="Reusable holdout leaderboard",
        description="A leaderboard whose every score comes from one guarded holdout.",
        version="1",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_life,
    )
    app.state.boards, app.state.feed, app.state.intake = boards, Feed(boards), Intake(settings)
    app.add_middleware(Boundary, boards=boards)
    app.add_exception_handler(Problem, _refused)
    app.add_exception_handler(RequestValidationError, _misfit)
    app.add_exception_handler(HTTPException, _plain)
    add_api(app)
    add_pages(app, boards)
    return app


def from_environment() -> FastAPI:
    """Application of a worker process."""
    app = create_app(Settings.from_environment())
    import_module(
        "reusable_holdout_leaderboard.files.predictions"
    )  # Arrow is large, and every worker needs it
    gc.collect()
    gc.freeze()  # what a worker begins with stays; else every fifth answer waits for a look at all of it
    return app


@contextlib.asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    boards: Boards = app.state.boards
    accept_few_at_once(asyncio.get_running_loop())
    settling = asyncio.create_task(boards.settle_for_ever())
    try:
        yield
    finally:
        settling.cancel()
        await app.state.feed.close()
        boards.close()


class Boundary:
    """Counts what comes, heads what leaves, and makes any failure one constant answer.

    Parameters
    ----------
    app : ASGI application
    boards : Boards
    """

    def __init__(self, app: ASGIApp, boards: Boards) -> None:
        self._app, self._boards = app, boards
        self._most = boards.settings.max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(receive, send, self._most)
        request = Request(scope)
        try:
            self._boards.take_request(request)
            self._check_length(request.headers.get("content-length"))
            await self._app(scope, exchange.receive, exchange.send)
            problem = _too_large(self._most) if exchange.too_large else None
        except Problem as found:
            problem = found
        except Exception as error:  # of ours, not of the guard's: those have become answers before
            _LOG.error("a request failed inside the server: %s %s", scope["method"], _where(error))
            problem = problem_of(error)
        if problem is not None:
            await exchange.refuse(problem, scope)

    def _check_length(self, stated: str | None) -> None:
        if stated is not None and not (stated.isascii() and stated.isdigit() and len(stated) < 20):
            raise Problem(400, "bad_request", "Content-Length must be a whole number")
        if stated is not None and int(stated) > self._most:
            raise _too_large(self._most)


class _Exchange:
    """One request and its response."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive, self._send, self._left = receive, send, most
        self._started = False
        self.too_large = False

    async def receive(self) -> Message:
        """Next part of the body; too much of it is as if the client had gone."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        self.too_large = self.too_large or self._left < 0
        return {"type": "http.disconnect"} if self.too_large else message

    async def send(self, message: Message) -> None:
        """Next part of the response, its headers completed."""
        if self.too_large and not self._started:
            return
        if message["type"] == "http.response.start":
            self._started = True
            known = {name.lower() for name, _ in message["headers"]}
            more = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
            message["headers"] = [*message["headers"], *(one for one in more if one[0] not in known)]
        await self._send(message)

    async def refuse(self, problem: Problem, scope: Scope) -> None:
        """Answer with an error, if nothing was answered yet."""
        if self._started:
            return
        self.too_large = False
        # what has not come of the body is not waited for
        headers = problem.headers | ({"Connection": "close"} if problem.status in {400, 413} else {})
        await JSONResponse(problem.as_dict(), problem.status, headers)(scope, self._receive, self.send)


def _too_large(most: int) -> Problem:
    return Problem(413, "too_large", f"a request must be at most {most:,} bytes; nothing was asked")


def _where(error: BaseException) -> str:
    """Kind and place of a failure: its words are withheld, for nobody knows what they quote."""
    trace, place = error.__traceback__, "unknown"
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if name.startswith("reusable_holdout_leaderboard"):
            place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} in {place}"


# ---- errors of one shape


async def _refused(_: Request, error: Any) -> JSONResponse:
    return JSONResponse(error.as_dict(), error.status, error.headers)


async def _misfit(_: Request, error: Any) -> JSONResponse:
    first = error.errors()[0] if error.errors() else {"loc": (), "msg": "it does not fit"}
    where = " ".join(str(one) for one in first["loc"])
    problem = Problem(422, "bad_input", f"{where}: {first['msg']}")
    return JSONResponse(problem.as_dict(), problem.status)


async def _plain(_: Request, error: Any) -> JSONResponse:
    code, message = _NAMES.get(error.status_code, ("bad_request", "the request cannot be understood"))
    problem = Problem(error.status_code, code, message)
    return JSONResponse(problem.as_dict(), problem.status, error.headers)
