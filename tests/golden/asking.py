"""Golden ledgers as files: what was asked of each, in a form that can be asked again, and what was told.

A ledger is a folder with `guard.db`, its key, `holdout.npz` (the rows, and all predictions that were asked about) and
`expected.json`. There a question is a call of the guard or of one of its views, with arguments in which

    {"array": name}    is an array of holdout.npz
    {"view": name}     is another metric, slice or policy of the rows, by `on()`
    {"pair": [a, b]}   is a tuple
    {"difference": [a, b]}  is the difference of two
    {"rails": [[view, value], ...]}  are guardrails
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FOLDER", "Golden", "as_read", "asked", "goldens", "history_of", "spelled_metric"]

FOLDER = Path(__file__).parent
_READ = (
    *(
        "query",
        "view",
        "metric",
        "name",
        "series",
        "prior",
        "value",
        "low",
        "high",
        "threshold",
        "charged",
        "way",
    ),
    *("told", "nats", "asked", "paired", "charges_left", "asked_at"),
)
_PRIVATE = ("guard.db.key", "guard.db.heads")


class Golden(NamedTuple):
    """One ledger that an earlier version wrote, and all that is known of it.

    Attributes
    ----------
    folder : Path
    expected : dict
    arrays : dict of str to numpy.ndarray
    """

    folder: Path
    expected: dict[str, Any]
    arrays: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Golden:
        """Golden ledger in a folder."""
        with np.load(folder / "holdout.npz") as arrays:
            return cls(folder, json.loads((folder / "expected.json").read_text()), dict(arrays))

    @property
    def name(self) -> str:
        """Version and ledger."""
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def is_asked(self) -> bool:
        """Whether this version goes on with it; ledgers of 0.2 are read."""
        return not self.folder.parent.name.startswith("0.2.")

    def copied(self, target: Path) -> Path:
        """Ledger of a copy in a folder, with its key and witness; git keeps no modes."""
        target.mkdir()
        for path in self.folder.glob("guard.db*"):
            shutil.copyfile(path, target / path.name)
            if path.name in _PRIVATE:
                (target / path.name).chmod(0o600)
        return target / "guard.db"

    def opened(self, ledger: Path | str, **changes: Any) -> Any:
        """Guard of a copy, or of the same ledger in another place."""
        from reusable_holdout import ReusableHoldout, Rows

        given = {name: self._value(value, {}) for name, value in self.expected["holdout"].items()}
        rows = Rows(given.pop("X", None), given.pop("y"), **given)
        given = {}
        heads = ledger.with_name("guard.db.heads") if isinstance(ledger, Path) else None
        if heads is not None and heads.exists():
            given["witness"] = heads
        return ReusableHoldout.open(ledger, rows, **given, **changes)

    def views(self, guard: Any) -> dict[str, Any]:
        """Its other metrics, slices and policies by their names, and itself by none."""
        views = {"": guard}
        for name, arguments in self.expected["views"].items():
            views[name] = guard.on(**{key: self._value(value, views) for key, value in arguments.items()})
        return views

    def ask(self, views: dict[str, Any], question: dict[str, Any]) -> Any:
        """Ask a question; what was told, and whether all of it was a replay."""
        arguments = {name: self._value(value, views) for name, value in question["arguments"].items()}
        return asked(views[question["of"]], question["call"], arguments)

    def _value(self, value: Any, views: dict[str, Any]) -> Any:
        if isinstance(value, list):
            return [self._value(one, views) for one in value]
        if not isinstance(value, dict):
            return value
        ((what, of),) = value.items()
        if what == "array":
            return self.arrays[of]
        if what == "view":
            return views[of]
        if what == "difference":
            from reusable_holdout import Difference

            return Difference(*(self._value(one, views) for one in of))
        if what == "pair":
            return tuple(self._value(one, views) for one in of)
        if what == "rails":
            return {views[name]: self._value(one, views) for name, one in of}
        assert what == "metric", what
        return spelled_metric(of)


def goldens() -> list[Golden]:
    """Every golden ledger of every version."""
    return [Golden.read(path.parent) for path in sorted(FOLDER.glob("*/*/expected.json"))]


def spelled_metric(spelled: list[Any]) -> Any:
    """Metric of the catalogue by its function's name and arguments."""

    from reusable_holdout import metrics

    name, arguments = spelled
    return getattr(metrics, name)(**arguments)


def asked(guard: Any, call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask; what was told, as JSON has it, and whether all of it was a replay."""
    from reusable_holdout.errors import Halted, ModelError

    try:
        answers = getattr(guard, call)(**arguments)
    except ModelError:
        return {"error": "ModelError"}
    except Halted as halt:
        return {"halted": halt.reason, "answers": [_told(one) for one in halt.answers]}
    choice = {}
    if call == "choose":
        choice = {"index": answers.index, "others": answers.others}
        answers = answers.answer
    each = answers if isinstance(answers, list) else [answers]
    return choice | {"answers": [_told(one) for one in each], "replayed": all(one.replayed for one in each)}


def _told(answer: Any) -> dict[str, Any]:
    names = ("query", "prior", "value", "charged", "low", "high", "threshold", "way", "told", "nats", "name")
    told = {name: getattr(answer, name) for name in names}
    rails = [[one.metric, one.prior, one.low, one.high] for one in answer.guardrails]
    return told | ({"guardrails": rails} if rails else {})


def history_of(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """History as JSON has it: floats to their last bit, null where there is no value, times to the millisecond."""
    columns = {
        name: [None if one != one else one for one in frame[name].tolist()]  # NaN
        for name in frame
    }
    columns["asked_at"] = [round(time.timestamp(), 3) for time in columns["asked_at"]]
    return columns


def as_read(history: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """A history that 0.2 wrote, as this version reads it."""
    named = {"way" if name == "kind" else name: column for name, column in history.items()}
    return {name: named[name] for name in _READ if name in named}
