"""The server process: it starts uvicorn's worker processes, which share one database and one budget."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from reusable_holdout_leaderboard.settings import ENVIRONMENT, Settings
from reusable_holdout_leaderboard.web.door import Door, PromptProtocol

__all__ = ["accept_few_at_once", "clear_away", "protocol_of", "serve"]

_GRACE_SECONDS = 3  # time for the last answers to be sent when the server ends
_ACCEPTED_AT_ONCE, _WAITING_IN_LINE = 32, 2048
_BEING_WRITTEN = re.compile(r"\.[0-9a-f]{16}$")
_WRITTEN_WITHIN_SECONDS = 3_600.0


def serve(
    settings: Settings, *, host: str = "127.0.0.1", port: int = 8000, workers: int = 1, root_path: str = ""
) -> None:
    """Run a server until it is interrupted.

    Worker processes share the database, and with it the budget and the limits of teams. Only rate limits are counted in
    each worker separately. A worker that dies is replaced, and its unfinished requests are charged at most once.

    Parameters
    ----------
    settings : Settings
        Settings of the server. The workers read them from a private file in the folder.
    host : str
    port : int
    workers : int
        Number of processes.
    root_path : str
        Path under which a proxy shows the server; the proxy removes it from requests.
    """
    folder = Path(settings.folder).absolute()
    clear_away(folder)
    path = folder / f"server-{secrets.token_hex(8)}.json"
    replace(settings, folder=folder).save(path)
    alive = path.open("rb")
    fcntl.flock(alive, fcntl.LOCK_SH)  # released when this process ends, also if it is killed
    os.environ[ENVIRONMENT] = str(path)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises the signal again at the end
    try:
        uvicorn.run(
            "reusable_holdout_leaderboard.app:from_environment",
            factory=True,
            host=host,
            port=port,
            workers=workers,
            http=protocol_of(settings),
            ws="none",
            root_path=root_path.rstrip("/"),
            # anyone can send these headers, and rate limits depend on the address in them
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    finally:
        os.environ.pop(ENVIRONMENT, None)
        path.unlink(missing_ok=True)
        alive.close()


def clear_away(folder: Path) -> None:
    """Delete files that killed servers and commands have left: files of settings, and files half written."""
    for path in folder.glob("server-*.json"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if its server is alive
            path.unlink()
    old = time.time() - _WRITTEN_WITHIN_SECONDS
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        with contextlib.suppress(OSError):
            if _BEING_WRITTEN.search(path.name) and path.is_file() and path.stat().st_mtime < old:
                path.unlink()


def protocol_of(settings: Settings) -> Any:
    """Return the function that makes the protocol of each connection. Every process counts its own connections."""
    door = Door(per_address=settings.connections_per_address, trusted=settings.trusted_proxies)
    return partial(PromptProtocol, door=door, head_seconds=settings.head_seconds)


def accept_few_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Make an event loop accept only a few connections at once, while many others may wait.

    Call this function before the loop listens. By default, asyncio accepts at once as many connections as may wait,
    before any of them is counted. A thousand simultaneous connections would then use up all open files, and asyncio
    would accept no connection for a second.
    """
    create = loop.create_server

    async def create_server(*args: Any, **more: Any) -> asyncio.Server:
        given = more | {"backlog": _ACCEPTED_AT_ONCE}
        server = await create(*args, **given)
        for listening in server.sockets:
            with socket.socket(fileno=os.dup(listening.fileno())) as same:
                same.listen(_WAITING_IN_LINE)
        return server

    with contextlib.suppress(AttributeError):  # loops of other libraries may not allow it
        loop.create_server = create_server  # type: ignore[method-assign]
