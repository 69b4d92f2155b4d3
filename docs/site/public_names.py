"""The public names: what the packages' ``__all__`` or stubs list, read without importing anything."""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["ROOT", "api_page", "listed_in", "one_line", "public_names"]

ROOT = Path(__file__).parents[2]
_LAST = "---\nsearch:\n  boost: 0.1\n---\n\n"  # the search shows what explains before what defines


def public_names() -> dict[str, list[str]]:
    """Names of each package, of the library's rooms first and the integrations after them."""
    inits = [
        ROOT / "reusable_holdout" / "__init__.py",
        *sorted(ROOT.glob("reusable_holdout/*/__init__.py")),
        *sorted(ROOT.glob("integrations/*/__init__.py")),
    ]
    found = {_package(init): listed_in(init) for init in inits}
    return {package: names for package, names in found.items() if names}


def one_line(package: str) -> str:
    """First line of a package's docstring."""
    place = package.replace(".", "/")
    init = next(p for p in (ROOT / place, ROOT / "integrations" / place) if p.exists()) / "__init__.py"
    return (ast.get_docstring(ast.parse(init.read_text())) or "").splitlines()[0]


def api_page(package: str, names: list[str]) -> str:
    """Markdown from which the names' docstrings are rendered."""
    parts = "".join(f"\n::: {package}.{name}\n" for name in names)
    return f"{_LAST}# `{package}`\n\n{one_line(package)}\n{parts}"


def _package(init: Path) -> str:
    return ".".join(init.parent.relative_to(ROOT).parts).removeprefix("integrations.")


def listed_in(init: Path) -> list[str]:
    """Names of a package: constants, classes and functions, in this order."""
    stub = init.with_suffix(".pyi")
    if stub.exists():
        imports = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]
        names = [alias.asname or alias.name for node in imports for alias in node.names]
        return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    for statement in ast.parse(init.read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return list(ast.literal_eval(statement.value))
    return []
