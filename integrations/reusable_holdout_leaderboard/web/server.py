"""The server: worker processes of uvicorn on one database and one budget."""

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
from functools import partial
from pathlib import Path
from typing import Any

from reusable_holdout.errors import of_extra
from reusable_holdout_leaderboard.settings import ENVIRONMENT, Settings

__all__ = ["accept_few_at_once", "clear_away", "protocol_of", "serve"]

_GRACE_SECONDS = 3  # for answers on their way when the server ends; event streams would last for ever
_ACCEPTED_AT_ONCE, _WAITING_IN_LINE = 32, 2048
_HANDSHAKE_SECONDS = 5.0
_BEING_WRITTEN = re.compile(r"\.[0-9a-f]{16}$")
_WRITTEN_WITHIN_SECONDS = 3_600.0


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    root_path: str = "",
    tls_certificate: Path | None = None,
    tls_key: Path | None = None,
) -> None:
    """Serve until interrupted.

    Worker processes share the database, and with it budget and limits; a worker that dies is replaced, and what it had
    begun is charged once at most. Rates are of each worker.

    Parameters
    ----------
    settings : Settings
        Written for the workers into the folder, where only their user can read it.
    host : str
    port : int
    workers : int
        Processes.
    root_path : str
        Where a proxy shows the server, which it strips from what it sends on.
    tls_certificate, tls_key : Path, optional
        Files in PEM, to serve HTTPS without a proxy.
    """
    with of_extra("leaderboard", "a leaderboard"):
        import uvicorn  # noqa: PLC0415 - commands for a running server do not need it

    folder = Path(settings.folder).absolute()
    clear_away(folder)
    path = folder / f"server-{secrets.token_hex(8)}.json"
    settings.with_changes(folder=folder).save(path)
    alive = path.open("rb")
    fcntl.flock(alive, fcntl.LOCK_SH)  # until this process ends, however it does
    os.environ[ENVIRONMENT] = str(path)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again when all is done
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
            ssl_certfile=tls_certificate,
            ssl_keyfile=tls_key,
            proxy_headers=bool(settings.trusted_proxies),  # anyone can send them, and rates go by address
            forwarded_allow_ips=list(settings.trusted_proxies),
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    finally:
        os.environ.pop(ENVIRONMENT, None)
        path.unlink(missing_ok=True)
        alive.close()


def clear_away(folder: Path) -> None:
    """Remove what servers and commands left that were killed: their settings, and files that were being written."""
    for path in folder.glob("server-*.json"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where its server lives
            path.unlink()
    old = time.time() - _WRITTEN_WITHIN_SECONDS
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        with contextlib.suppress(OSError):
            if _BEING_WRITTEN.search(path.name) and path.is_file() and path.stat().st_mtime < old:
                path.unlink()


def protocol_of(settings: Settings) -> Any:
    """What makes the protocol of each connection; every process that gets it counts its own."""
    from reusable_holdout_leaderboard.web.door import Door, PromptProtocol  # noqa: PLC0415 - it needs uvicorn

    door = Door(per_address=settings.connections_per_address, trusted=settings.trusted_proxies)
    return partial(PromptProtocol, door=door, head_seconds=settings.head_seconds)


def accept_few_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Have a loop that is not listening yet accept connections in small numbers, while many may wait for it.

    Asyncio accepts as many in one go as may wait in line, before it counts any: a thousand that come together would use
    up all open files, and then it rests for a second. And whoever begins TLS has some seconds to do it.
    """
    create = loop.create_server

    async def create_server(*args: Any, **more: Any) -> asyncio.Server:
        given = more | {"backlog": _ACCEPTED_AT_ONCE}
        if given.get("ssl") is not None:
            given["ssl_handshake_timeout"] = _HANDSHAKE_SECONDS
        server = await create(*args, **given)
        for listening in server.sockets:
            with socket.socket(fileno=os.dup(listening.fileno())) as same:
                same.listen(_WAITING_IN_LINE)
        return server

    with contextlib.suppress(AttributeError):  # loops of other libraries cannot be changed
        loop.create_server = create_server  # type: ignore[method-assign]
