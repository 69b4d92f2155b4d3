"""The server: worker processes of uvicorn on one database and one budget."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import threading
from pathlib import Path

from reusable_holdout.extras import of_extra
from reusable_holdout_leaderboard.settings import ENVIRONMENT, Settings

__all__ = ["serve"]

_GRACE_SECONDS = 3  # for answers on their way when the server ends; event streams would last for ever


def serve(settings: Settings, *, host: str = "127.0.0.1", port: int = 8000, workers: int = 1) -> None:
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
    """
    with of_extra("leaderboard", "a leaderboard"):
        import uvicorn  # noqa: PLC0415 - commands for a running server do not need it

    path = Path(settings.folder).absolute() / f"server-{secrets.token_hex(8)}.json"
    settings.with_changes(folder=Path(settings.folder).absolute()).save(path)
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
            http="reusable_holdout_leaderboard.web.protocol:PromptProtocol",
            ws="none",
            proxy_headers=False,  # anyone can send them, and rates go by address
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    finally:
        os.environ.pop(ENVIRONMENT, None)
        path.unlink(missing_ok=True)
