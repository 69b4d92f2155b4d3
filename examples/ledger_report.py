"""A report of a ledger: a search that was told too much twice, as one HTML file.

python examples/ledger_report.py               writes guard.html
python examples/ledger_report.py --picture X   and a picture of its beginning, through Chromium and playwright
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import ReusableHoldout
from reusable_holdout.cli import main as command

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

_ROWS, _MODELS, _HOPEFUL = 8_000, 60, (20, 41)


def main() -> None:
    """Search, and report what was released."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("guard.html"))
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        search(Path(folder) / "guard.db")
        command(["report", str(Path(folder) / "guard.db"), "--output", str(options.output)])
    if options.picture is not None:
        photograph(options.output, options.picture)


def search(ledger: Path) -> None:
    """Models that get better; the priors of two of them are much too high."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, _ROWS)
    with ReusableHoldout(
        None, y, tolerance=0.06, queries=200, estimate=0.85, ledger=ledger, seed=1, allow={"no witness"}
    ) as guard:
        for number in range(_MODELS):
            skill = 0.7 + 0.002 * number
            prior = skill + (0.1 if number in _HOPEFUL else rng.normal(0, 0.008))
            guard.evaluate(_right(y, skill, rng), prior=prior, name=f"model {number}")
        guard.final(_right(y, 0.82, rng), name="the last one")


def _right(y: NDArray[np.int64], skill: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Predictions that are right so often."""
    return np.where(rng.random(len(y)) < skill, y, 1 - y)


def photograph(page: Path, picture: Path) -> None:
    """Its beginning, as a reader sees it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - for the picture alone

    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        shown = browser.new_page(viewport={"width": 900, "height": 1120})
        shown.goto(page.absolute().as_uri())
        shown.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main()
