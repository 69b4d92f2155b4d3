"""Tables of scores on the trusted side."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reusable_holdout.metrics import ScoreTable
from reusable_holdout_evals.readers import read_inspect, read_scores

__all__ = ["keeper", "scores_of"]


def scores_of(incumbent: Any, scorer: str) -> Any:
    """Read a file of scores, or a scorer's in a log; tables stay as they are."""
    if not isinstance(incumbent, str | Path):
        return incumbent
    if Path(incumbent).suffix in {".eval", ".json"}:
        return read_inspect(incumbent, scorer=scorer)
    return read_scores(incumbent)


def keeper(path: str | Path | None) -> Callable[[ScoreTable], None] | None:
    """What writes a table to a file that its owner alone may read; None where nothing is to be kept."""
    if path is None:
        return None
    place = Path(path).absolute()  # Inspect goes to a task's folder and back

    def keep(table: ScoreTable) -> None:
        place.unlink(missing_ok=True)  # its rights would stay
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            table.frame().to_csv(file, index=False)

    return keep
