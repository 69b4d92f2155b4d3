"""Servers on loopback for tests and benchmarks, and how the processes of a test run share one.

A PostgreSQL server of one's own is gone when its ``with`` block is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypeVar

import pytest

__all__ = [
    "PASSWORD",
    "free_port",
    "new_database",
    "postgresql",
    "restart_postgresql",
    "run_folder",
    "shared",
    "start_postgresql",
    "stop_postgresql",
    "unanswered_port",
    "why_no_postgresql",
]

_Served = TypeVar("_Served")

PASSWORD = "swordfish"
_QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
_PATIENCE_SECONDS = 60
_PORTS = range(20_000, 32_000)


def why_no_postgresql() -> str:
    """What is missing on this machine; empty if nothing is."""
    try:
        import psycopg  # noqa: F401 - the rest of the tests must not need it
    except ImportError:
        return "psycopg is not installed"
    if _initdb() is None:
        return "PostgreSQL is not installed"
    if os.getuid() == 0 and not any(entry.pw_name == "postgres" for entry in pwd.getpwall()):
        return "PostgreSQL does not run as root, and there is no user postgres"
    return ""


def _initdb() -> str | None:
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))  # which does not put them on the path
    return shutil.which("initdb") or next(map(str, reversed(debian)), None)


@contextlib.contextmanager
def shared(
    folder: Path, name: str, start: Callable[[], _Served], stop: Callable[[_Served], None]
) -> Iterator[_Served]:
    """What the first process of a test run starts, all use, and the last one to leave stops.

    Who uses it holds a lock that the system takes back from a process that dies, so nobody waits for the dead.

    Parameters
    ----------
    folder : Path
        Of this test run, the same in all its processes: ``run_folder``.
    name : str
        Of a file there.
    start, stop : callable
        `start` returns what JSON can hold and the others need to use it, and it to `stop`, perhaps in another process.
    """
    described, used = folder / f"{name}.json", folder / f"{name}.used"
    with used.open("a+") as using:
        with _alone(folder / f"{name}.lock"):
            if _lock(
                using, fcntl.LOCK_EX | fcntl.LOCK_NB
            ):  # nobody uses it: what is described is of the dead
                described.write_text(json.dumps(start()))
            _lock(using, fcntl.LOCK_SH)
        served = json.loads(described.read_text())
        try:
            yield served
        finally:
            with _alone(folder / f"{name}.lock"):
                if _lock(using, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    stop(served)


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """Temporary folder that all processes of one test run share."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("a+") as file:
        _lock(file, fcntl.LOCK_EX)
        yield


def _lock(file: IO[str], kind: int) -> bool:
    """Whether this process now has the lock; forked children have it not (that of flock they would have)."""
    try:
        fcntl.lockf(file, kind)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def postgresql(*, durable: bool) -> Iterator[str]:
    """URL of an empty server, as durable as it is by default, or not against a loss of power; then it is faster."""
    server = start_postgresql(durable=durable)
    try:
        yield server["url"]
    finally:
        stop_postgresql(server)


def start_postgresql(*, durable: bool) -> dict[str, str]:
    """Start an empty server: its ``url`` and its ``folder``.

    It refuses to be root, so root runs it as somebody else. Tests that are killed may leave it running: its data lie in
    a folder named ``postgresql-...``.
    """
    folder, port = tempfile.mkdtemp(prefix="postgresql-"), free_port()
    password = Path(folder) / "password"
    password.write_text(PASSWORD)
    if _owner():
        entry = pwd.getpwnam("postgres")
        for path in (folder, password):
            os.chown(path, entry.pw_uid, entry.pw_gid)
    settings = ["-A", "scram-sha-256", f"--pwfile={password}", "-U", "test", "-E", "UTF8", "--no-locale"]
    _run("initdb", "-D", f"{folder}/data", "-N", *settings)
    options = f"-p {port} -k {folder} -h 127.0.0.1 {'' if durable else '-F'}"
    _control(folder, "start", "-l", f"{folder}/log", "-o", options)
    return {"url": f"postgresql+psycopg://test:{PASSWORD}@127.0.0.1:{port}/postgres", "folder": folder}


def stop_postgresql(server: dict[str, str]) -> None:
    """Stop a server and delete its data."""
    _control(server["folder"], "stop", "-m", "immediate")  # what it would still write is deleted
    shutil.rmtree(server["folder"])


def restart_postgresql(server: dict[str, str]) -> None:
    """Stop a server as if its machine had stopped, and start it again."""
    _control(server["folder"], "restart", "-m", "immediate")


def _control(folder: str, *arguments: str) -> None:
    """Start or stop the server of a folder, and wait until it is."""
    _run("pg_ctl", "-D", f"{folder}/data", "-t", str(_PATIENCE_SECONDS), "-w", *arguments)


def _run(program: str, *arguments: str) -> None:
    initdb = _initdb()
    assert initdb is not None, why_no_postgresql()
    command = [Path(initdb).resolve().with_name(program), *arguments]
    subprocess.run(command, check=True, cwd="/", **_QUIET, **_owner())


def _owner() -> dict[str, str]:
    """Who runs a server."""
    return {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}


def new_database(server: str) -> str:
    """URL of a new, empty database on a server."""
    import psycopg

    name = f"ledger_{secrets.token_hex(8)}"
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server.rsplit('/', 1)[0]}/{name}"


def free_port() -> int:
    """A port that nobody listens on, for a server that will be started.

    It is not among those that the system gives to connections: one of these would be taken by any client of any test
    before the server has it.
    """
    while True:
        port = _PORTS.start + secrets.randbelow(len(_PORTS))
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def unanswered_port() -> Iterator[int]:
    """A port that nobody listens on while the ``with`` block runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])
