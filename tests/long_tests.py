"""Which long tests a change needs: those whose rooms it touched.

A fixed-seed statistical test draws the same numbers on every run, so it can only find what changed in the code it runs.
The same holds of an exact audit, which draws nothing at all. Such tests, where they take long, name the rooms that they
are about::

    @pytest.mark.long("reusable_holdout/certainty", "reusable_holdout/mechanisms")

or `GUARD` and the like, which are the rooms with all that they are built on.

They run when a file of these rooms or the test's own file differs from the content that last passed everything; when
anything that all tests share has changed; and whenever in doubt. ``./check --all`` notes that content in `.ci/landed`,
as the git tree of the commit, which outlives a rewritten history.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

__all__ = [
    "ACCOUNTING",
    "ALL",
    "GUARD",
    "LANDED",
    "LEDGER",
    "MECHANISMS",
    "PLAN",
    "QUERIES",
    "VALIDITY",
    "changed_files",
    "concerns",
    "examples",
    "is_shared",
    "select",
]

ROOT = Path(__file__).parent.parent
LANDED = ROOT / ".ci" / "landed"
ALL = "CHECK_ALL"
_ALONE = (
    ".ci/landed",
    ".github/",
    ".gitignore",
    "CITATION.cff",
    "LICENSE",
    "docs/",
    "mkdocs.yml",
)  # no test's outcome depends on them
_SOURCE = ("reusable_holdout/", "integrations/", "examples/", "tests/")

NOISE = ("reusable_holdout/errors.py", "reusable_holdout/noise")
MECHANISMS = (*NOISE, "reusable_holdout/mechanisms")
ACCOUNTING = (*NOISE, "reusable_holdout/mechanisms/accounting")
QUERIES = ("reusable_holdout/errors.py", "reusable_holdout/metrics")
VALIDITY = (*NOISE, *QUERIES, "reusable_holdout/certainty")
PLAN = (*VALIDITY, "reusable_holdout/plan")
LEDGER = (*NOISE, "reusable_holdout/ledger")
GUARD = (*PLAN, *LEDGER, "reusable_holdout/guard")


def examples(count: int) -> int:
    """How many examples of hypothesis a costly test draws: this many with ``--all``, a quarter in an ordinary run."""
    return count if os.environ.get(ALL) else -(-count // 4)


def _git(*arguments: str) -> str | None:
    """What git prints, or None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def changed_files() -> set[str] | None:
    """Files that differ from the content that last passed everything; None if that can't be known."""
    if not LANDED.exists():
        return None
    changed = _git("diff", "--name-only", "--no-renames", LANDED.read_text().strip(), "--")
    added = _git("ls-files", "--others", "--exclude-standard")
    if changed is None or added is None:
        return None
    return {*changed.splitlines(), *added.splitlines()}


def is_shared(file: str) -> bool:
    """Whether all tests may depend on a file: settings, the set-up, what several test files import."""
    if file.startswith(_ALONE) or file.endswith(".md"):
        return False
    if not file.startswith(_SOURCE):
        return True
    name = Path(file).name
    return file.startswith("tests/") and not name.startswith("test_") and Path(file).parent == Path("tests")


def concerns(file: str, rooms: tuple[str, ...], own: str) -> bool:
    """Whether a changed file is one that a long test is about.

    Parameters
    ----------
    file : str
        Changed; relative to the top.
    rooms : tuple of str
        Folders or files that the test names.
    own : str
        File of the test; what lies beside it and is no test file, such as its fixtures, counts too.
    """
    if file == own or any(file == room or file.startswith(f"{room}/") for room in rooms):
        return True
    beside = Path(file).parent in Path(own).parents
    return beside and file.startswith("tests/") and not Path(file).name.startswith("test_")


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests whose rooms have not changed; a room that is not there is a mistake."""
    rooms = {room for item in items for marker in item.iter_markers("long") for room in marker.args}
    unknown = sorted(room for room in rooms if not (ROOT / room).exists())
    if unknown:
        raise pytest.UsageError(f"long tests name rooms that are not there: {', '.join(unknown)}")
    if os.environ.get(ALL):
        return
    changed = changed_files()
    if changed is None or any(map(is_shared, changed)):
        return
    kept, left_out = [], []
    for item in items:
        marker = item.get_closest_marker("long")
        own = item.path.relative_to(ROOT).as_posix()
        needed = marker is None or any(concerns(file, marker.args, own) for file in changed)
        (kept if needed else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
