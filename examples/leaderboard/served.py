"""The real server, as a process of its own on loopback."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from reusable_holdout_leaderboard.client.connection import Connection
from reusable_holdout_leaderboard.settings import Settings

_SERVE = """
import sys
from pathlib import Path
from reusable_holdout_leaderboard.web.server import serve
from reusable_holdout_leaderboard.settings import Settings

if __name__ == "__main__":
    serve(Settings.load(Path(sys.argv[1])), port=int(sys.argv[2]), workers=int(sys.argv[3]))
"""
_PATIENCE_SECONDS = 60


class Served(NamedTuple):
    """A running server."""

    url: str
    process: subprocess.Popen[bytes]

    def workers(self) -> list[int]:
        """Numbers of its worker processes that live."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(child) for child in children if b"spawn_main" in _command_line(child)]


def _command_line(process: str) -> bytes:
    """Command line of a process; empty if it has ended meanwhile."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@contextlib.contextmanager
def served(
    folder: Path, *, workers: int = 2, database: str | None = None, **changes: Any
) -> Iterator[Served]:
    """Serve the competitions in a folder until the block is left.

    All clients here have one address and play a season in a minute, so there are no rate limits; and answers leave at
    once, for nobody measures how long they take who should not. `changes` are of other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    given = {"answer_seconds": 0.0, "requests_per_minute": 0, "submissions_per_minute": 0}
    settings = Settings(folder=folder, database=database, **(given | changes))
    settings.save(folder / "settings.json")
    script = folder / "start.py"
    script.write_text(_SERVE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "server.log").open("wb") as log:
        command = [sys.executable, str(script), str(folder / "settings.json"), str(port), str(workers)]
        process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603 - our own
    try:
        _wait(f"http://127.0.0.1:{port}", process, folder / "server.log")
        yield Served(f"http://127.0.0.1:{port}", process)
    finally:
        process.terminate()
        try:
            process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    host, port = url.removeprefix("http://").split(":")
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"the server did not start:\n{log.read_text()[-2000:]}")


def read(url: str, what: str) -> object:
    """What everyone may read: "board", "status", ..."""
    with Connection(url) as connection:
        return connection.get(what)
