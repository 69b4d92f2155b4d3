"""Leaderboards on loopback for tests and benchmarks; they end with their ``with`` block."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
from reusable_holdout_leaderboard import Competition
from reusable_holdout_leaderboard.settings import Settings
from servers import free_port

__all__ = [
    "ADMIN",
    "PATIENCE_SECONDS",
    "Browser",
    "Served",
    "Site",
    "refused",
    "served",
    "served_by_processes",
]

ADMIN = "rh_administrator"
PATIENCE_SECONDS = 60  # also of clients: on busy cores a server in this process may wait for some seconds


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
    """Return a server that stops ten times as fast; a hundred tests wait for it."""
    import uvicorn

    class Prompt(uvicorn.Server):
        async def main_loop(self) -> None:
            while not await self.on_tick(0):
                await asyncio.sleep(0.01)

    return Prompt(config)


@contextlib.contextmanager
def served(settings: Settings, *, root_path: str = "") -> Iterator[Served]:
    """Serve in a thread."""
    server = Served(settings, root_path)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Site:
    """A served competition, and clients of its API.

    Attributes
    ----------
    server : Served
    competition : Competition
    """

    def __init__(self, server: Served, competition: Competition, opened: contextlib.ExitStack) -> None:
        self.server, self.competition, self._opened = server, competition, opened
        self.url, self.port = server.url, server.port

    def browser(self, home: str = "/c/demo") -> Browser:
        """Return a visitor of the pages."""
        return Browser(self.client(pages=True), home)

    def client(self, token: str = "", *, pages: bool = False) -> httpx.Client:
        """Return a client of the API for a token, or a client of the pages."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = self.url if pages else f"{self.url}/api/v1"
        made = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS)
        return self._opened.enter_context(made)

    @cached_property
    def public(self) -> httpx.Client:
        """Client without a token."""
        return self.client()

    @cached_property
    def admin(self) -> httpx.Client:
        """Client of the administrator."""
        return self.client(ADMIN)

    @cached_property
    def token(self) -> str:
        """Token of the team Blue."""
        return self.competition.add_team("Blue")

    @cached_property
    def team(self) -> httpx.Client:
        """Client of the team Blue."""
        return self.client(self.token)

    def send(
        self, content: bytes, *, claimed: float = 0.9, name: str = "x.csv", **fields: str
    ) -> httpx.Response:
        """Send a file of the team Blue."""
        data = {"claimed": repr(claimed), **fields}
        return self.team.post("/submissions", files={"file": (name, content)}, data=data)


class Browser:
    """A visitor without scripts, who follows redirects, keeps cookies, and sends forms as they are on the page."""

    def __init__(self, client: httpx.Client, home: str = "/c/demo") -> None:
        self.client, self.home = client, home
        client.follow_redirects = True
        self.page: httpx.Response

    def get(self, path: str = "") -> Browser:
        """Load a page of the competition."""
        self.page = self.client.get(self.home + path)
        return self

    @property
    def text(self) -> str:
        """Text of the page, without tags."""
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.page.text)).split())

    def key(self, action: str = "") -> dict[str, str]:
        """Return the key of one of the page's forms, or of the first."""
        found = re.search(rf'action="[^"]*{action}\?form=([0-9a-f]+)', self.page.text)
        assert found, action
        return {"form": found.group(1)}

    def form(self, action: str) -> dict[str, str]:
        """Return the fields of one of the page's forms."""
        found = rf'<form[^>]*action="{self.home}{action}\?form=[^"]*"[^>]*>(.*?)</form>'
        (body,) = re.findall(found, self.page.text, re.DOTALL)
        fields = {}
        for tag in re.findall(r"<input[^>]*>", body):
            given = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
            if given.get("type") not in {"checkbox", "file"} or " checked" in tag:
                fields[given["name"]] = html.unescape(given.get("value", ""))
        for name, text in re.findall(r'<textarea[^>]*name="(\w+)"[^>]*>\n?(.*?)</textarea>', body, re.DOTALL):
            fields[name] = html.unescape(text).replace("\n", "\r\n")
        for name, options in re.findall(r'<select[^>]*name="(\w+)"[^>]*>(.*?)</select>', body, re.DOTALL):
            chosen = re.search(r'value="([^"]*)" selected', options) or re.search(r'value="([^"]*)"', options)
            fields[name] = chosen.group(1) if chosen else ""
        return fields

    def send(self, action: str, files: Any = None, **changes: str) -> Browser:
        """Send one of the page's forms, with some fields changed."""
        data = self.form(action) | changes
        empty = {} if data or files else {"Content-Type": "application/x-www-form-urlencoded"}
        self.page = self.client.post(
            self.home + action, params=self.key(action), data=data, files=files, headers=empty
        )
        return self

    def log_in(self, token: str) -> Browser:
        """Log in as a team."""
        return self.get("/login").send("/login", token=token)

    def organise(self, token: str = ADMIN) -> Browser:
        """Log in as an organiser."""
        return self.get("/organise").send("/organise/login", token=token)

    def submit(self, content: bytes, name: str = "mine.csv", **fields: str) -> Browser:
        """Send a file from the board's page."""
        return self.get().send("/submit", {"file": (name, content)}, **fields)


def refused(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that a response is an error of the right kind and form; return the error."""
    assert response.status_code == status, response.text
    error: dict[str, Any] = response.json()["error"]
    assert set(response.json()) == {"error"}
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == code
    return error


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
    """Serve with several worker processes; yield the URL, and the number of the process that watches over them."""
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
