"""What is imported when it is first used, so that a process pays only for what it needs.

Four ways, from the simplest: an import inside the one function that needs a library; `special` and `optimize` from
here, for SciPy is needed in many; `modules_on_first_use`, where a module may need one of several others of ours;
`names_on_first_use`, for packages whose public names are heavy.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scipy import optimize, special

__all__ = ["modules_on_first_use", "names_on_first_use", "optimize", "special"]


class _Deferred(ModuleType):
    """Stands for a module until it is used; from then on it is a module with the same names, and as fast."""

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        vars(self).update(vars(module))
        self.__class__ = ModuleType  # type: ignore[assignment]  # whose attributes the interpreter caches where they are used
        return getattr(module, name)


if not TYPE_CHECKING:
    special, optimize = _Deferred("scipy.special"), _Deferred("scipy.optimize")


def modules_on_first_use(package: str, *names: str) -> list[ModuleType]:
    """Stand-ins for modules of a package, such as ``__package__``, each imported when something of it is used."""
    return [_Deferred(f"{package}.{name}") for name in names]


def names_on_first_use(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that imports some of its public names when they are first used.

    They are its ``__all__``, unless it lists more below. Type checkers, which run nothing, are told the names in a
    branch of their own, or, where there are no others, in an ``__init__.pyi``. `homes` says which names are defined in
    which module, such as ``{".plan": ["Plan"]}``; none may have the name of a submodule, which would hide it. See
    PEP 562, "Module __getattr__ and __dir__".
    """
    names = vars(import_module(package))
    places = {name: home for home, defined in homes.items() for name in defined}
    names["__all__"] = sorted(places)

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = names[name] = getattr(import_module(places[name], package), name)
        return found

    def public() -> list[str]:
        return sorted({*names, *places})

    return get, public
