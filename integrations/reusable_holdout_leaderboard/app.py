"""The web application of a server: the API and the pages, with limits on connections and requests before them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request

from reusable_holdout_leaderboard.pages import add_pages
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web.api import add_api
from reusable_holdout_leaderboard.web.boards import Boards
from reusable_holdout_leaderboard.web.door import Boundary
from reusable_holdout_leaderboard.web.intake import Intake
from reusable_holdout_leaderboard.web.problems import Problem
from reusable_holdout_leaderboard.web.server import accept_few_at_once

__all__ = ["create_app", "from_environment"]

_NAMES = {
    404: ("not_found", "there is nothing at this address"),
    405: ("method", "this address does not take this method"),
}


def create_app(settings: Settings) -> FastAPI:
    """Return the web application of a server.

    The application shows nothing that depends on the labels except answers that the guard has released. All errors of
    the API have the same JSON form.

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
        docs_url=None,  # FastAPI's documentation pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_life,
    )
    app.state.boards, app.state.intake = boards, Intake(settings)
    app.add_middleware(Boundary, settings=settings)
    app.add_exception_handler(Problem, _refused)
    app.add_exception_handler(RequestValidationError, _misfit)
    app.add_exception_handler(HTTPException, _plain)
    add_api(app)
    add_pages(app, boards)
    return app


def from_environment() -> FastAPI:
    """Return the application of a worker process; an environment variable names the file of its settings."""
    app = create_app(Settings.from_environment())
    gc.collect()
    gc.freeze()  # otherwise a full garbage collection delays every fifth answer
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
        boards.close()


# ---- errors, all in the same JSON form


async def _refused(_: Request, error: Any) -> JSONResponse:
    return JSONResponse(error.as_dict(), error.status, error.headers)


async def _misfit(request: Request, error: Any) -> JSONResponse:
    first = error.errors()[0] if error.errors() else {"loc": (), "msg": "it does not fit"}
    where = " ".join(str(one) for one in first["loc"])
    return await _refused(request, Problem(422, "bad_input", f"{where}: {first['msg']}; nothing was done"))


async def _plain(request: Request, error: Any) -> JSONResponse:
    code, message = _NAMES.get(error.status_code, ("bad_request", "the request cannot be understood"))
    headers = dict(error.headers or {})
    return await _refused(request, Problem(error.status_code, code, message, headers=headers))
