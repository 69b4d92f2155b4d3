"""Leaderboards on loopback, for tests and benchmarks; gone when their ``with`` block is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
from servers import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reusable_holdout_leaderboard.settings import Settings

__all__ = ["PATIENCE_SECONDS", "Served", "served", "served_by_processes"]

PATIENCE_SECONDS = 60  # also of clients: of busy cores a server in this process may get none for some seconds


class Served:
    """A server that runs in a thread of this process.

    Attributes
    ----------
    url : str
    app : FastAPI
    """

    def __init__(self, settings: Settings, root_path: str = "") -> None:
        import uvicorn
        from reusable_holdout_leaderboard.app import create_app
        from reusable_holdout_leaderboard.web.server import protocol_of

        self.app = create_app(settings)
        config = uvicorn.Config(
            self.app,
            port=0,
            http=protocol_of(settings),
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            root_path=root_path,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _server_of(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the server did not start")
            time.sleep(0.005)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()


def _server_of(config: Any) -> Any:
    """A server that looks whether it is to stop ten times as often: a hundred tests wait for it."""
    import uvicorn

    class Prompt(uvicorn.Server):
        async def main_loop(self) -> None:
            while not await self.on_tick(0):
                await asyncio.sleep(0.01)

    return Prompt(config)


@contextlib.contextmanager
def served(settings: Settings, *, root_path: str = "") -> Iterator[Served]:
    """A server in a thread."""
    server = Served(settings, root_path)
    server.start()
    try:
        yield server
    finally:
        server.stop()


_PROCESSES = """
import json, sys
from pathlib import Path
from reusable_holdout_leaderboard.web.server import serve
from reusable_holdout_leaderboard.settings import Settings

path, port, workers, more = json.loads(sys.argv[1])
serve(Settings.load(Path(path)), port=port, workers=workers, **more)
"""


@contextlib.contextmanager
def served_by_processes(
    settings: Settings, folder: Path, *, workers: int, **more: str
) -> Iterator[tuple[str, int]]:
    """URL of a server of several worker processes, and the number of the process that watches over them."""
    port = free_port()
    stored = folder / "settings.json"
    settings.save(stored)
    arguments = json.dumps([str(stored), port, workers, more])
    process = subprocess.Popen(
        [sys.executable, "-c", _PROCESSES, arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    url = f"{'https' if more.get('tls_key') else 'http'}://127.0.0.1:{port}"
    try:
        _wait(f"{url}/api/v1/status", process)
        yield url, process.pid
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(url, timeout=PATIENCE_SECONDS, verify=False).status_code == 200:
                return
        time.sleep(0.05)
    raise RuntimeError("the server did not start")
