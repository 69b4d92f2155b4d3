"""What a library wants its callbacks to be made of, where it is installed."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from reusable_holdout.errors import InputError

__all__ = ["base_class"]


def base_class(name: str, modules: tuple[str, ...], *, needs: str) -> Any:
    """Class that callbacks must be derived from; where no library has it, one of which nothing can be made.

    Parameters
    ----------
    name : str
        Of the class.
    modules : tuple of str
        Where it may be; what is loaded already goes first.
    needs : str
        What to install.
    """
    for module in sorted(modules, key=lambda one: one.partition(".")[0] not in sys.modules):
        try:
            return getattr(import_module(module), name)
        except ImportError:
            continue

    def refuse(self: object, *_: object, **__: object) -> None:
        raise InputError(f"{type(self).__name__} needs {needs}; nothing was made")

    return type("NotInstalled", (), {"__init__": refuse})
