"""Large libraries, each imported when it is first used.

Importing this package costs little more than importing NumPy, and a process pays only for what it needs.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib import metadata

    import joblib
    import pandas
    import pyarrow
    from pyarrow import parquet, types
    from scipy import optimize, special

__all__ = ["joblib", "metadata", "optimize", "pandas", "parquet", "pyarrow", "special", "types"]


class _Deferred(ModuleType):
    """A stand-in for a module; at its first use it imports the module and takes over its names, so it is as fast."""

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        vars(self).update(vars(module))
        self.__class__ = ModuleType  # type: ignore[assignment]  # the interpreter caches attributes of plain modules
        return getattr(module, name)


if not TYPE_CHECKING:
    joblib, pandas = _Deferred("joblib"), _Deferred("pandas")
    metadata = _Deferred("importlib.metadata")
    special, optimize = _Deferred("scipy.special"), _Deferred("scipy.optimize")
    pyarrow, parquet, types = (_Deferred(f"pyarrow.{name}") for name in ("lib", "parquet", "types"))
