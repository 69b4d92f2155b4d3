"""The picture of docs/inspect.md: ``python tests/integrations/evals/inspect/take_picture.py docs/images/inspect.png``.

A guarded task answers twice, each time with the developer's estimate; the picture is of Inspect's own viewer in
Chromium.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[3] / "docs" / "site"))
from pictures import browser, made_small

if TYPE_CHECKING:
    from collections.abc import Iterator

os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"
_SAMPLES = 200
_PATH = 29  # pixels of a line that says where the logs lie


def evaluate(folder: Path) -> None:
    """Two evaluations of recorded answers: of the second the developer believes too much."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluated
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver
    from reusable_holdout_evals.inspect import guarded_task, new_guard

    samples = [
        Sample(id=f"q{number}", input=f"{number} + 1?", target=str(number + 1)) for number in range(_SAMPLES)
    ]
    ledger = folder / "guard.db"
    new_guard(samples, ledger=ledger, queries=10, tolerance=0.2, seed=0, witness=False).close()

    @solver
    def recorded(wrong):
        async def solve(state, generate):
            number = int(state.sample_id[1:])
            state.output.completion = str(number + 1 if number % wrong else 0)
            return state

        return solve

    for name, wrong, prior in (("prompt_7", 4, 0.74), ("prompt_8", 3, 0.97)):
        task = Task(samples, solver=recorded(wrong), scorer=match(), name=name)
        evaluated(
            guarded_task(task, ledger=ledger, prior=prior),
            model="mockllm/model",
            display="none",
            log_dir=str(folder / "logs"),
        )


@contextlib.contextmanager
def viewer(folder: Path) -> Iterator[str]:
    """Inspect's viewer of the logs, on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "inspect_ai", "view", "start", "--log-dir", str(folder / "logs")]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with (folder / "viewer.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield _answering(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(30)


def _answering(url: str) -> str:
    for _ in range(200):
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return url
        time.sleep(0.3)
    raise SystemExit("Inspect's viewer did not start")


def main(picture: Path) -> None:
    """Evaluate, open the viewer, take the picture of the second log."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        os.environ |= {"XDG_DATA_HOME": name, "INSPECT_TRACE_FILE": str(place / "trace.log")}
        evaluate(place)
        with viewer(place) as url, browser() as opened:
            page = opened.new_page(viewport={"width": 1_280, "height": 480})
            page.goto(url)
            page.get_by_text("prompt_8").first.click()
            page.get_by_text("withheld").first.wait_for()
            page.wait_for_timeout(2_000)
            page.screenshot(path=picture, clip={"x": 0, "y": _PATH, "width": 1_280, "height": 480 - _PATH})
    made_small(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
