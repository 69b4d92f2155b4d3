"""Names of rows, and what is brought into their order by them. Ids are public, so messages may quote them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import typed_array
from reusable_holdout.metrics.targets import compact, rows_of

__all__ = ["Ids", "doubled", "few", "places_in", "shown", "unmatched"]

_SHOWN = 5
_LONGEST = 60  # of an id, in a message


class Ids:
    """One name for each row, a number or text: distinct, none missing, in the order of the rows."""

    def __init__(self, y: object) -> None:
        given = rows_of(compact(y, what="the ids"), what="the ids")
        without = np.flatnonzero(_missing(given))
        if len(without):
            raise InputError(
                f"the ids must name every row; got none at places {few((without + 1).tolist())}, counted from 1; name "
                "these rows, or leave them out"
            )
        self.names: list[Any] = typed_array(given, what="the ids")[0].tolist()
        twice = doubled(self.names)
        if twice:
            raise InputError(
                f"the ids must name each row once; got more than once {few(twice)}; pass distinct names, one for each "
                "row"
            )
        self.rows = len(self.names)

    def __repr__(self) -> str:
        return f"<Ids: {self.rows} rows>"

    def part(self, chosen: NDArray[Any]) -> Self:
        """Ids of some rows."""
        part = object.__new__(type(self))
        part.names = [self.names[place] for place in chosen.tolist()]
        part.rows = len(part.names)
        return part

    def at(self, marks: NDArray[np.bool_]) -> str:
        """First few of the marked rows' ids, as text."""
        return few(self.names[place] for place in np.flatnonzero(marks).tolist())


def unmatched(wanted: Sequence[Any], found: Sequence[Any], *, owner: str) -> list[str]:
    """What keeps these from being the owner's wanted, distinct names in some order; empty if nothing does."""
    expected, came = set(wanted), set(found)
    lost = [name for name in wanted if name not in came]
    strange = [name for name in dict.fromkeys(found) if name not in expected]
    problems = {"are missing": lost, f"are not among {owner}": strange, "come more than once": doubled(found)}
    words = [f"{len(names):,} ids {what}: {shown(names)}" for what, names in problems.items() if names]
    alike = _folded(lost) & _folded(strange)
    if alike:
        words.append(f"{len(alike):,} of them differ in case, spaces or ways to write a letter alone")
    return words


def _folded(names: Iterable[Any]) -> set[str]:
    return {unicodedata.normalize("NFKC", name).casefold().strip() for name in names if isinstance(name, str)}


def places_in(found: Sequence[Any], wanted: Iterable[Any]) -> NDArray[np.int64]:
    """Where each wanted name stands among those that were found."""
    places = {name: place for place, name in enumerate(found)}
    return np.fromiter((places[name] for name in wanted), np.int64)


def doubled(names: Sequence[Any]) -> list[Any]:
    """Names that come more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def few(items: Iterable[Any]) -> str:
    """First few, as text, and how many more there are."""
    listed = [str(item) for item in items]
    more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def shown(names: Iterable[Any]) -> str:
    """First few ids for a message: those that look like others, or would end a line, are written with escapes."""
    return few(_plain(name) for name in names)


def _plain(name: Any) -> str:
    text = str(name)
    text = text if text.isascii() and text.isprintable() else ascii(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _missing(ids: NDArray[Any]) -> NDArray[np.bool_]:
    if ids.dtype.kind == "f":
        return np.asarray(~np.isfinite(ids))
    if ids.dtype.kind not in "OTU":
        return np.zeros(ids.shape, np.bool_)
    import pandas as pd  # noqa: PLC0415 - a slow import that whole numbers do not need

    missing: NDArray[np.bool_] = np.asarray(pd.isna(ids))
    missing |= [isinstance(name, str) and not name for name in ids.tolist()]
    return missing
