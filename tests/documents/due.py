"""Measure again what pages quote of times, if the code that it was measured of has changed since.

``PYTHONPATH=tests:docs/site python -m documents.due`` runs each script of `DUE` whose rooms have changed, writes its
file in ``examples/recorded`` and the same table in ``examples/README.md``. ``./check --all`` begins with it, and goes
on when nothing was due: so no change lands with figures of other code. Sentences that quote a figure are held to the
table by a test. No test says how long anything may take: whoever lands the change reads the ratios and their goals.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from documents.pages import ROOT
from documents.recorded import made, printed_by
from long_tests import GUARD
from site_recorded import RECORDED, Recorded, recorded

__all__ = ["DUE", "README", "again", "code_of", "due"]

DUE = {"python examples/benchmarks/costs.py": ("examples/benchmarks/costs.py", *GUARD)}
"""Commands that print times, and the rooms that these are of."""

README = ROOT / "examples" / "README.md"


def code_of(rooms: Iterable[str], root: Path = ROOT) -> str:
    """Return a digest of the Python files in some rooms."""
    digest = hashlib.blake2b(digest_size=6)
    for room in sorted(set(rooms)):
        place = root / room
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def due() -> list[str]:
    """Return the commands whose rooms are not those that their files name."""
    kept = {one.command: one.made for one in recorded()}
    return [
        command
        for command, rooms in DUE.items()
        if not kept.get(command, "").endswith(f", of the code {code_of(rooms)}")
    ]


def again(command: str, page: Path = README, folder: Path = RECORDED) -> Recorded:
    """Run a command, keep what it prints, and put that in the place of what it printed before on a page."""
    new = Recorded(command, f"{made(timed=True)}, of the code {code_of(DUE[command])}", printed_by(command))
    file, before = folder / new.name, ""
    if file.exists():
        before = file.read_text().split("\n", maxsplit=3)[3]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(new.file)
    if before and before in page.read_text():
        page.write_text(page.read_text().replace(before, new.printed))
    return new


def _main() -> int:
    commands = due()
    for command in commands:
        sys.stdout.write(
            f"{command} is due: its code has changed since it was measured\n{again(command).printed}"
        )
    if commands:
        sys.stdout.write(
            "Measured again: compare the ratios with their goals, correct the sentences that quote them, and commit.\n"
        )
    return int(bool(commands))


if __name__ == "__main__":
    sys.exit(_main())
