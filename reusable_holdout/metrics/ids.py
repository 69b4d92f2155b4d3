"""Names of rows, and the alignment of scores by them. Ids are public, so messages may quote them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
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

    def part(self, chosen: NDArray[Any]) -> Ids:
        """Return the ids of some rows."""
        return Ids([self.names[place] for place in chosen.tolist()])

    def at(self, marks: NDArray[np.bool_]) -> str:
        """Return the first few of the marked rows' ids, as text."""
        return few(self.names[place] for place in np.flatnonzero(marks).tolist())


def _missing(ids: NDArray[Any]) -> NDArray[np.bool_]:
    if ids.dtype.kind == "f":
        return np.asarray(~np.isfinite(ids))
    if ids.dtype.kind not in "OTU":
        return np.zeros(ids.shape, np.bool_)
    missing: NDArray[np.bool_] = np.asarray(pd.isna(ids))
    missing |= [isinstance(name, str) and not name for name in ids.tolist()]
    return missing


def unmatched(wanted: Sequence[Any], found: Sequence[Any], *, owner: str) -> list[str]:
    """Return the reasons why names are not the owner's wanted, distinct names in some order; empty if they are."""
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
    """Return the place of each wanted name among the found ones."""
    places = {name: place for place, name in enumerate(found)}
    return np.fromiter((places[name] for name in wanted), np.int64)


def doubled(names: Sequence[Any]) -> list[Any]:
    """Return the names that come more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def few(items: Iterable[Any]) -> str:
    """Return the first few items as text, and the number of the others."""
    listed = [str(item) for item in items]
    more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def shown(names: Iterable[Any]) -> str:
    """Return the first few ids for a message, with escapes for characters that look like others or end a line."""
    return few(_plain(name) for name in names)


def _plain(name: Any) -> str:
    text = str(name)
    text = text if text.isascii() and text.isprintable() else ascii(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
