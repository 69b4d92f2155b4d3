"""The survivors that are known, each with the reason why no test can or need tell it from the original."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mutation.operators import Mutant
from mutation.project import Room

__all__ = ["Identity", "Known", "entry", "read"]

Identity = tuple[str, str, str, str, int]

_NEEDED = ("file", "function", "operator", "line", "reason")


@dataclass(frozen=True)
class Known:
    """Identity of a survivor, and its reason."""

    identity: Identity
    reason: str


def read(path: Path, *, but_not_of: Iterable[Room] = ()) -> dict[Identity, Known]:
    """Named survivors by their identities, without those of some rooms.

    Raises
    ------
    ValueError
        If an entry says too little, or two are about one mutant.
    """
    found: dict[Identity, Known] = {}
    left_out = list(but_not_of)
    for table in tomllib.loads(path.read_text()).get("survivor", []):
        missing = [key for key in _NEEDED if key != "function" and not table.get(key)]
        if missing or "function" not in table:
            raise ValueError(f"a survivor must have {', '.join(_NEEDED)}; {table} lacks one")
        identity = (
            table["file"],
            table["function"],
            table["operator"],
            table["line"],
            table.get("occurrence", 1),
        )
        if identity in found:
            raise ValueError(f"a survivor must be named once; {identity} is named twice")
        found[identity] = Known(identity, table["reason"])
    return {key: value for key, value in found.items() if not any(room.has(key[0]) for room in left_out)}


def entry(mutant: Mutant) -> str:
    """Text of an entry that still lacks its reason."""
    rows = [("file", mutant.file), ("function", mutant.function), ("operator", mutant.operator)]
    rows += [("line", mutant.line)]
    lines = ["[[survivor]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in rows)]
    lines += [f"occurrence = {mutant.occurrence}"] if mutant.occurrence > 1 else []
    return "\n".join([*lines, 'reason = ""'])
