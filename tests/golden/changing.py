"""The library loaded afresh with other constants, as a later version might have them, and golden ledgers read by it."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import math
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden.asking import Golden, goldens, history_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

__all__ = [
    "differences",
    "in_place",
    "leaves",
    "loaded_afresh",
    "newer_edition",
    "other_constants",
    "unsound",
]

_PACKAGE = "reusable_holdout"
_THEORY = f"{_PACKAGE}.certainty.theory"

Place = tuple[Any, ...]


class _Changing:
    """Finder that lets modules be changed when they have just been loaded, before anybody reads them."""

    def __init__(self, changes: dict[str, Callable[[ModuleType], None]]) -> None:
        self._changes = changes

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Spec whose loader changes the module."""
        if name not in self._changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._changes[name](module)

        spec.loader.exec_module = exec_module
        return spec


@contextlib.contextmanager
def loaded_afresh(changes: dict[str, Callable[[ModuleType], None]]) -> Iterator[None]:
    """Let whoever imports the package meanwhile find it with changed modules."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == _PACKAGE}
    finder = _Changing(changes)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            del sys.modules[name]
        sys.modules.update(kept)


def leaves(value: Any, path: Place = ()) -> Iterator[Place]:
    """Places of all numbers in an edition of the theory."""
    if isinstance(value, bool | int | float):
        yield path
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if path or field.name != "edition":
                yield from leaves(getattr(value, field.name), (*path, field.name))
    elif hasattr(value, "_fields"):
        for name in value._fields:
            yield from leaves(getattr(value, name), (*path, name))
    else:
        for place, one in enumerate(value):
            yield from leaves(one, (*path, place))


def moved(number: float) -> float:
    """Another number of the same kind: a share stays one, a factor is above 1, a side turns, an open end closes."""
    if isinstance(number, bool):
        return not number
    if isinstance(number, int):
        return number + 1 if abs(number) > 1 else -number or 1
    if math.isinf(number):
        return math.copysign(3.0, number)
    if number > 1.0:
        return 1.0 + (number - 1.0) * 0.6
    return number * 0.6 if number else 0.01


def changed(value: Any, path: Place, change: Callable[[float], float] = moved) -> Any:
    """An edition, or a part of it, with the number at one place changed."""
    if not path:
        return change(value)
    here, *rest = path
    if isinstance(here, int):
        return tuple(
            changed(one, tuple(rest), change) if place == here else one for place, one in enumerate(value)
        )
    part = changed(getattr(value, here), tuple(rest), change)
    return (
        dataclasses.replace(value, **{here: part})
        if dataclasses.is_dataclass(value)
        else value._replace(**{here: part})
    )


def newer_edition(paths: Sequence[Place]) -> dict[str, Callable[[ModuleType], None]]:
    """Change of the theory: one more edition, by which new guards are made, with these numbers changed."""

    def change(theory: ModuleType) -> None:
        latest = theory.THEORY
        for path in paths:
            latest = changed(latest, path)
        latest = dataclasses.replace(latest, edition=max(theory.EDITIONS) + 1)
        theory.EDITIONS[latest.edition] = theory.THEORY = latest

    return {_THEORY: change}


def in_place(path: Place) -> dict[str, Callable[[ModuleType], None]]:
    """Change that nobody may make: of a number of the editions that golden ledgers name."""

    def change(theory: ModuleType) -> None:
        for edition in list(theory.EDITIONS):
            theory.EDITIONS[edition] = changed(theory.EDITIONS[edition], path)

    return {_THEORY: change}


def other_constants(constants: Sequence[tuple[str, str, Any]]) -> dict[str, Callable[[ModuleType], None]]:
    """Change of constants of modules: the module without the package's name, the constant, what it becomes."""

    def change(module: ModuleType) -> None:
        own = module.__name__.removeprefix(f"{_PACKAGE}.")
        for where, name, value in constants:
            if where == own:
                vars(module)[name]  # a KeyError says that it is not there
                setattr(module, name, value)

    return {f"{_PACKAGE}.{where}": change for where, _, _ in constants}


def unsound(first: str = "") -> Iterator[str]:
    """Golden ledgers in which verification finds something, in order but for one that is looked at first."""
    from reusable_holdout import verify

    for golden in sorted(goldens(), key=lambda golden: golden.name != first):
        with tempfile.TemporaryDirectory() as folder:
            if not verify(golden.copied(Path(folder) / "copy")).sound:
                yield golden.name


def differences() -> dict[str, list[str]]:
    """What golden ledgers say that they did not say when they were made; numbers to what rounding may change."""
    found = {}
    for golden in goldens():
        with tempfile.TemporaryDirectory() as folder:
            ledger = golden.copied(Path(folder) / "copy")
            try:
                some = list(_differences(golden, ledger))
            except Exception as error:  # whatever it is, it is told
                some = [f"{type(error).__name__}: {error}"]
        if some:
            found[golden.name] = some
    return found


def _differences(golden: Golden, ledger: Path) -> Iterator[str]:
    from reusable_holdout import verify

    expected = golden.expected
    if not golden.is_asked:
        yield from verify(ledger).problems
        return
    with golden.opened(ledger) as guard:
        told, written = history_of(guard.history()), expected["histories"][-1]
        if {name: told[name] for name in written} != written:  # a later version has more columns
            yield "history"
        views = golden.views(guard)
        for what in ("questions", "following"):
            for place, question in enumerate(expected[what]):
                told = golden.ask(views, question)
                told.pop("replayed", None)
                if not _same(told, question["told"]):
                    yield f"{what} {place}: {told} for {question['told']}"
    yield from verify(ledger).problems


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
