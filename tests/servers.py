"""A PostgreSQL server of one's own on loopback, for tests and benchmarks; gone when its ``with`` block is left."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PASSWORD", "new_database", "postgresql", "why_no_postgresql"]

PASSWORD = "swordfish"
_QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
_PATIENCE_SECONDS = 30


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
def postgresql(*, durable: bool) -> Iterator[str]:
    """URL of an empty server, as durable as it is by default, or not against a loss of power; then it is faster.

    It refuses to be root, so root runs it as somebody else. Tests that are killed may leave it running: its data lie in
    a folder named ``postgresql-...``.
    """
    owner = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    initdb = _initdb()
    assert initdb is not None, why_no_postgresql()
    with tempfile.TemporaryDirectory(prefix="postgresql-") as folder:
        password = Path(folder) / "password"
        password.write_text(PASSWORD)
        if owner:
            entry = pwd.getpwnam("postgres")
            for path in (folder, password):
                os.chown(path, entry.pw_uid, entry.pw_gid)
        data, port = f"{folder}/data", _free_port()
        settings = ["-A", "scram-sha-256", f"--pwfile={password}", "-U", "test", "-E", "UTF8", "--no-locale"]
        subprocess.run([initdb, "-D", data, "-N", *settings], check=True, **_QUIET, **owner)
        binary = Path(initdb).resolve().with_name("postgres")
        options = ["-p", str(port), "-k", folder, "-h", "127.0.0.1", *([] if durable else ["-F"])]
        process = subprocess.Popen([binary, "-D", data, *options], cwd=folder, **_QUIET, **owner)
        url = f"postgresql+psycopg://test:{PASSWORD}@127.0.0.1:{port}/postgres"
        try:
            _wait(url, process)
            yield url
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: what it would still write is deleted
            try:
                process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def new_database(server: str) -> str:
    """URL of a new, empty database on a server."""
    import psycopg

    name = f"ledger_{secrets.token_hex(8)}"
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server.rsplit('/', 1)[0]}/{name}"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    import psycopg

    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(url.replace("+psycopg", "")).close()
            return
        time.sleep(0.05)
    raise RuntimeError("the PostgreSQL server did not start")
