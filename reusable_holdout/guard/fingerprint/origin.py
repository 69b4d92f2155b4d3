"""Whose code a module is: installed with a version, which then stands for it, or the user's own."""

from __future__ import annotations

import functools
import os
import platform
import site
import sys
import sysconfig
from typing import Any

__all__ = ["edition", "home_of", "is_found"]


def edition(module: str) -> str | None:
    """Name and version of what a module was installed with; None if it is the user's own.

    The user's own is all that lies neither in a site-packages folder, with a version, nor in the standard library; an
    installation that is edited in place is, too.
    """
    top = module.partition(".")[0]
    loaded = sys.modules.get(top)
    if loaded is None or top == "__main__":
        return None
    origin = getattr(getattr(loaded, "__spec__", None), "origin", None)
    if origin in {"built-in", "frozen"}:
        return f"python {platform.python_version()}"
    files = [getattr(loaded, "__file__", None), *getattr(loaded, "__path__", ())]
    lies = next((one for one in files if one), None)
    if lies is None:
        return None
    try:
        file = os.path.abspath(lies)  # noqa: PTH100 - it is text that is compared
    except OSError:  # beside a folder that is gone: nothing that is installed
        return None
    installed, standard = _folders()
    if file.startswith(installed):
        return _version(top, getattr(loaded, "__version__", None))
    return f"python {platform.python_version()}" if file.startswith(standard) else None


def is_found(value: Any, module: Any, name: Any) -> bool:
    """Whether a module that is loaded has this very object under this name."""
    found: Any = sys.modules.get(module) if isinstance(module, str) and isinstance(name, str) else None
    if found is None:
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def home_of(names: dict[str, Any], file: str) -> str | None:
    """Edition of the module whose global names a function has, here or as it was sent by value; None if it is own."""
    module = names.get("__name__")
    loaded = sys.modules.get(module) if isinstance(module, str) else None
    if loaded is None or (vars(loaded) is not names and getattr(loaded, "__file__", None) != file):
        return None
    return edition(loaded.__name__)


@functools.cache
def _folders() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where packages are installed, and where the standard library lies, with both ways to write a linked folder."""
    paths = sysconfig.get_paths()
    installed = [*site.getsitepackages(), site.getusersitepackages(), paths["purelib"], paths["platlib"]]
    standard = [paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__)]  # noqa: PTH120
    return _spelled(installed), _spelled(standard)


def _spelled(folders: list[str]) -> tuple[str, ...]:
    every = {spelled for one in folders for spelled in (os.path.abspath(one), os.path.realpath(one))}  # noqa: PTH100
    return tuple(sorted(one + os.sep for one in every))


def _version(top: str, told: object) -> str | None:
    """Versions that a package tells of itself and that it was installed with; None if there are none."""
    versions = [told] if isinstance(told, str) else []
    installed = _installed(top)
    if installed is not None:
        versions.append(installed)
    elif not versions:
        import importlib.metadata  # noqa: PLC0415

        versions += [importlib.metadata.version(one) for one in _distributions().get(top, ())]
    return f"{top} {' '.join(versions)}" if versions else None


@functools.cache
def _installed(top: str) -> str | None:
    """Version of the distribution of this name; what is installed over it later is not what is loaded."""
    import importlib.metadata  # noqa: PLC0415 - slow to import, and not needed to ask with predictions

    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def _distributions() -> dict[str, list[str]]:
    """Distributions of each package: slow, and needed only of those that do not tell their version."""
    import importlib.metadata  # noqa: PLC0415

    return {top: sorted(set(each)) for top, each in importlib.metadata.packages_distributions().items()}
