"""Ways through the code: which functions run, and of which files, while something is asked.

Each is measured the second time it is gone, so that imports and what is kept for the next time are done.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from house.tree import packages
from made_guards import made_guard

from reusable_holdout import ReusableHoldout, verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import CodeType, FrameType

__all__ = ["WAYS", "Way", "ran"]

_NAMED = 0x2  # a function or a comprehension, not the body of a module or class: inspect.CO_NEWLOCALS
_ROWS = 1_000


class Way(NamedTuple):
    """What ran.

    Attributes
    ----------
    functions, files : int
    boards : int
        Of the files, those of the leaderboard.
    """

    functions: int
    files: int
    boards: int


@contextlib.contextmanager
def _noted() -> Iterator[Callable[[], set[CodeType]]]:
    """Note what runs in this thread and in those that begin; gives a function that begins anew and tells what ran."""
    ours = tuple(f"{folder}/" for folder in packages())
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & _NAMED and code.co_filename.startswith(ours):
            seen.add(code)

    def taken() -> set[CodeType]:
        found = set(seen)
        seen.clear()
        return found

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield taken
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]


def ran(codes: set[CodeType]) -> Way:
    """Count functions that have a name, and the files of all."""
    named = [code for code in codes if not code.co_name.startswith("<")]
    files = {code.co_filename for code in codes}
    boards = sum("/reusable_holdout_leaderboard/" in file for file in files)
    return Way(len(named), len(files), boards)


def scorer_call(folder: Path) -> Way:
    """One call of a guarded scorer, to the ledger and back."""
    from reusable_holdout_sklearn import guarded_scorer
    from sklearn.linear_model import LogisticRegression

    X = np.random.default_rng(0).normal(size=(2 * _ROWS, 3))
    y = (X[:, 0] > 0).astype(int)
    fitted = [LogisticRegression(C=C).fit(X[_ROWS:], y[_ROWS:]) for C in (1.0, 2.0)]
    with _noted() as taken, _guard(folder, X[:_ROWS], y[:_ROWS]) as guard:
        scorer = guarded_scorer(guard)
        for model in fitted:
            taken()
            scorer(model, X[_ROWS:], y[_ROWS:])
        return ran(taken())


def batch_of_three(folder: Path) -> Way:
    """Three questions at once."""
    labels = np.arange(_ROWS) % 2
    with _noted() as taken, _guard(folder, None, labels) as guard:
        for first in (0, 3):
            asked = [np.roll(labels * (np.arange(_ROWS) > 10), one) for one in range(first, first + 3)]
            taken()
            guard.evaluate(list(asked), prior=[0.5, 0.5, 0.5])
        return ran(taken())


def verification(folder: Path) -> Way:
    """`verify` of a ledger with one answer."""
    labels = np.arange(_ROWS) % 2
    with _guard(folder, None, labels) as guard:
        guard.evaluate(labels, prior=0.95)
        ledger = guard.ledger
    assert ledger is not None
    with _noted() as taken:
        for _ in range(2):
            taken()
            verify(ledger)
        return ran(taken())


def post_to_the_board(folder: Path) -> Way:
    """A CSV file sent to a leaderboard over HTTP, until its answer comes back.

    The server knows which competition is meant where none is named, as ``reusable-holdout board serve`` tells it.
    """
    import httpx
    from board_servers import served
    from reusable_holdout_leaderboard import Competition, Rules
    from reusable_holdout_leaderboard.settings import Settings

    labels = folder / "labels.csv"
    labels.write_text("".join(["id,label\n", *(f"{row},{row % 2}\n" for row in range(_ROWS))]))
    rules = Rules(slug="way", title="Way", submissions_per_day=10, vacuous=True)
    with Competition.create(folder / "competitions", rules, labels) as made:
        token = made.add_team("Blue")
    settings = Settings(folder=folder / "competitions", slug=rules.slug)
    with (
        _noted() as taken,
        served(settings) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", headers={"Authorization": f"Bearer {token}"}) as client,
    ):
        for wrong in (10, 20):
            sheet = "".join(
                ["id,prediction\n", *(f"{row},{row % 2 * (row > wrong)}\n" for row in range(_ROWS))]
            )
            taken()
            answered = client.post(
                "submissions", files={"file": ("sheet.csv", sheet)}, data={"claimed": "0.9"}, timeout=60.0
            )
            answered.raise_for_status()
        return ran(taken())


def _guard(folder: Path, X: Any, y: Any) -> ReusableHoldout:
    return made_guard(X, y, tolerance=0.2, queries=50, ledger=folder / "guard.db", witness=False, seed=1)


WAYS: dict[str, Callable[[Path], Way]] = {
    "one guarded scorer call, to the ledger and back": scorer_call,
    "a batch of three": batch_of_three,
    "a CSV posted to the board": post_to_the_board,
    "`verify`": verification,
}
