"""Make the golden ledgers of this version: ``PYTHONPATH=tests python -m golden.make``, once, when it is released.

They are never made anew: what a released version wrote is what every later one must read. A folder that exists is left
as it is, and is an error.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from golden.asking import FOLDER, Golden, asked, history_of, spelled_metric
from golden.dumping import dumped
from golden.ledgers import LEDGERS
from made_guards import made_guard

from reusable_holdout import Difference, Rows, verify
from reusable_holdout.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Making", "make"]

_ON_A_SERVER = "accuracy"  # dumped as a server has it, too


class _Of(NamedTuple):
    """Another metric, slice or policy of the rows."""

    name: str


_ITSELF = _Of("")


class Making:
    """A ledger that is made, and what is written down of it.

    Parameters
    ----------
    folder : Path
        Where it is to lie; must not exist.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._views: dict[str, Any] = {}
        self._spelled: dict[str, Any] = {}
        self._questions: list[dict[str, Any]] = []
        self._histories: list[Any] = []
        self._holdout: dict[str, Any] = {}

    def guard(self, X: Any, y: Any, *, metric: Any = "accuracy", **settings: Any) -> None:
        """Make the guard."""
        self._hold(
            X=X, y=y, **{name: settings[name] for name in ("groups", "sample_weight") if name in settings}
        )
        chosen = spelled_metric(metric) if isinstance(metric, list) else metric
        self._guard = made_guard(
            X,
            y,
            metric=chosen,
            ledger=self.folder / "guard.db",
            unwitnessed="witness" not in settings,
            **settings,
        )
        self._views[""] = self._guard

    def view(self, name: str, **arguments: Any) -> _Of:
        """Open another metric, slice or policy of the rows."""
        self._spelled[name] = {key: self._spell(value) for key, value in arguments.items()}
        self._views[name] = self._guard.on(**{key: self._meant(value) for key, value in arguments.items()})
        return _Of(name)

    def ask(self, call: str, of: _Of = _ITSELF, **arguments: Any) -> Any:
        """Ask, and write down what was told."""
        question = self._question(call, of, arguments)
        told = asked(self._views[of.name], call, {name: self._meant(one) for name, one in arguments.items()})
        assert told.pop("replayed", False) is False
        self._questions.append(question | {"told": told})
        return told

    def ask_model(self, model: Any, prior: float) -> None:
        """Ask about a model: in the history, but not asked again, for which model it is no version promises."""
        asked(self._guard, "evaluate", {"subject": model, "prior": prior})

    def rotate(self, rows: Rows, **settings: Any) -> None:
        """Go on with other rows; those before cannot be asked about again."""
        self._histories.append(history_of(self._guard.history()))
        old, self._guard = self._guard, self._guard.rotate(rows, early=True, **settings).guard
        old.close()
        self._questions, self._views, self._arrays = [], {"": self._guard}, {}
        self._hold(X=rows.X, y=rows.y)

    def close(self, following: Sequence[tuple[str, dict[str, Any]]] = ()) -> None:
        """Write down all that must stay so, and what questions would be told that are not asked.

        Parameters
        ----------
        following : sequence of (str, dict)
            Calls of the guard with their arguments.
        """
        self._histories.append(history_of(self._guard.history()))
        plan = self._guard.plan.record()
        self._guard.close()
        found = verify(self.folder / "guard.db")
        assert found.sound, found.problems
        new = [self._question(call, arguments.pop("of", _ITSELF), arguments) for call, arguments in following]
        expected = {
            "holdout": self._holdout,
            "views": self._spelled,
            "questions": self._questions,
            "plan": plan,
            "histories": self._histories,
            "head": found.head,
            "answers": found.queries,
            "charges": found.charges,
            "following": new,
        }
        np.savez_compressed(self.folder / "holdout.npz", **self._arrays)
        self._write(expected)
        self._write(expected | {"following": self._foreseen(new)})

    def _foreseen(self, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Questions with what they are told, in a copy."""
        golden = Golden.read(self.folder)
        with tempfile.TemporaryDirectory() as folder:
            guard = golden.opened(golden.copied(Path(folder) / "copy"))
            views = golden.views(guard)
            told = [question | {"told": golden.ask(views, question)} for question in questions]
            guard.close()
        for question in told:
            assert question["told"].pop("replayed", False) is False
        return told

    def _write(self, expected: dict[str, Any]) -> None:
        (self.folder / "expected.json").write_text(json.dumps(expected, indent=1, allow_nan=False) + "\n")

    def _question(self, call: str, of: _Of, arguments: dict[str, Any]) -> dict[str, Any]:
        spelled = {name: self._spell(value) for name, value in arguments.items()}
        return {"of": of.name, "call": call, "arguments": spelled}

    def _hold(self, **parts: Any) -> None:
        self._holdout = {name: self._spell(value) for name, value in parts.items()}

    def _spell(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            names = [name for name, one in self._arrays.items() if one is value]
            name = names[0] if names else f"a{len(self._arrays)}"
            self._arrays[name] = value
            return {"array": name}
        if isinstance(value, _Of):
            return {"view": value.name}
        if isinstance(value, Difference):
            return {"difference": [self._spell(one) for one in value]}
        if isinstance(value, tuple):
            return {"pair": [self._spell(one) for one in value]}
        if isinstance(value, dict):
            return {"rails": [[of.name, self._spell(one)] for of, one in value.items()]}
        if isinstance(value, list) and value and isinstance(value[0], str) and isinstance(value[-1], dict):
            return {"metric": value}
        return [self._spell(one) for one in value] if isinstance(value, list) else value

    def _meant(self, value: Any) -> Any:
        if isinstance(value, _Of):
            return self._views[value.name]
        if isinstance(value, tuple) and not isinstance(value, Difference):
            return tuple(self._meant(one) for one in value)
        if isinstance(value, dict):
            return {self._meant(of): self._meant(one) for of, one in value.items()}
        if isinstance(value, list) and value and isinstance(value[0], str) and isinstance(value[-1], dict):
            return spelled_metric(value)
        return [self._meant(one) for one in value] if isinstance(value, list) else value


def make(folder: Path) -> None:
    """Make all ledgers of this version.

    Raises
    ------
    FileExistsError
        If they were made.
    """
    folder.mkdir()
    try:
        for made in LEDGERS:
            made(Making(folder / made.__name__))
        dump = dumped(folder / _ON_A_SERVER / "guard.db")
        (folder / _ON_A_SERVER / "postgresql.sql").write_text(dump)
    except BaseException:
        shutil.rmtree(folder)
        raise


if __name__ == "__main__":
    make(FOLDER / __version__)
