"""Boxes for tests and benchmarks, in a thread of this process or as another user; they end with their block."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reusable_holdout_box.desk import Desk
from reusable_holdout_box.folder import open_box, socket_of
from reusable_holdout_box.server import Limits, Server
from reusable_holdout_box.wall import opened_door

OWNER, AGENT, STRANGER = 64_101, 64_102, 64_103  # numbers alone: no such user is made
BOX = ("integrations/reusable_holdout_box", "tests/box_servers.py")
"""Rooms of tests that start other users' processes: see tests/long_tests.py."""

_ROOT = Path(__file__).parent.parent
_PATIENCE_SECONDS = 60


@contextlib.contextmanager
def answering(folder: Path, **settings: Any) -> Iterator[str]:
    """Yield the address of a box that a thread of this process answers for."""
    limits = Limits(**{"most_bytes": 1 << 20, **settings})
    box = open_box(folder)
    with opened_door(socket_of(folder), mode=0o600) as door:
        server = Server(door, Desk(box, most_bytes=limits.most_bytes), limits)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield f"unix://{socket_of(folder)}"
        finally:
            server.stop()
            thread.join()
            box.guard.close()


# ---- other users


@functools.cache
def interpreter() -> str | None:
    """Return a Python that another user can run, with this one's libraries; None if there is none."""
    for one in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        # from a shell, as the agent's own programs will run it
        program = f"{one} -c 'import reusable_holdout_box, sqlalchemy'"
        command = [*_setpriv(OWNER), "sh", "-c", program]
        if (
            one
            and subprocess.run(command, env=environment(), capture_output=True, check=False).returncode == 0
        ):
            return one
    return None


@functools.cache
def why_no_users() -> str:
    """Say why this process cannot start processes of other users; empty if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "other users are tried by root on Linux alone"
    if shutil.which("setpriv") is None:
        return "setpriv is not installed"
    return "" if interpreter() else "no other user can run this Python and read its libraries"


def _setpriv(uid: int) -> list[str]:
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all"]


def command_of(uid: int, *arguments: object) -> list[str]:
    """Return a Python command line, as another user runs it."""
    return [*_setpriv(uid), str(interpreter()), *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of another user's process: this one's code, and little else."""
    places = [str(_ROOT), str(_ROOT / "integrations"), str(_ROOT / "tests")]
    places += [one for one in sys.path if one.endswith("site-packages")]
    kept = {"PYTHONPATH": ":".join(places), "PATH": "/usr/bin:/bin", "REUSABLE_HOLDOUT_REGISTRY": "off"}
    return kept | {"HOME": "/nonexistent", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"} | more


def run_as(uid: int, *arguments: object, folder: Path, given: str = "", **more: str) -> Any:
    """Run a Python command line as another user to its end."""
    return subprocess.run(
        command_of(uid, *arguments),
        cwd=folder,
        env=environment(**more),
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * _PATIENCE_SECONDS,
    )


@contextlib.contextmanager
def shared_folder() -> Iterator[Path]:
    """Yield a folder that other users can pass: pytest's own are for one user alone."""
    with tempfile.TemporaryDirectory(prefix="box_") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextlib.contextmanager
def running(uid: int, *arguments: object, socket: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process of another user that answers at a socket."""
    before = log.stat().st_size if log.exists() else 0
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command_of(uid, *arguments),
            cwd="/",
            env=environment(BOX_MARK="environment-of-the-box"),
            start_new_session=True,  # as a service has; within a session anybody may send SIGCONT
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
        )
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while not socket.exists() or "answering" not in log.read_text()[before:]:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"no box answers: {log.read_text()}")
                time.sleep(0.02)
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(_PATIENCE_SECONDS)
