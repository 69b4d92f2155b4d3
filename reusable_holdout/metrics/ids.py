"""Ids of rows, and tables of scores with ids, which are brought into the guard's row order by these ids.

Ids are public, so messages may quote them.
"""

from __future__ import annotations

import math
import sys
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import compact, from_arrow, typed_array
from reusable_holdout.metrics.targets import rows_of

_SHOWN = 5
_LONGEST = 60  # characters of an id in a message


class Ids:
    """The ids of all rows, in the order of the rows: numbers or text, distinct, none missing."""

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
                f"the ids must name each row once; got these more than once: {few(twice)}; pass a different name for "
                "each row"
            )
        self.rows = len(self.names)

    def __repr__(self) -> str:
        return f"<Ids: {self.rows} rows>"

    def part(self, chosen: NDArray[Any]) -> Ids:
        """Return the ids of some rows."""
        return Ids([self.names[place] for place in chosen.tolist()])

    def refuse(self, marks: NDArray[np.bool_], words: str) -> None:
        """Raise an InputError with these words if any row is marked; {} is replaced by the first few marked ids."""
        if marks.any():
            raise InputError(words.format(few(self.names[place] for place in np.flatnonzero(marks).tolist())))


def _missing(ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Return an array that is True for each id that is missing: NaN, infinite, None or empty text."""
    none = zip(pd.isna(ids).tolist(), ids.tolist(), strict=True)
    return np.array([gone or name in ("", math.inf, -math.inf) for gone, name in none])


def unmatched(wanted: Sequence[Any], found: Sequence[Any], *, owner: str) -> list[str]:
    """Return the reasons why the found names are not the wanted names in some order, or an empty list if they are.

    The wanted names are distinct. Messages call them by `owner`, such as "the guard's".
    """
    expected, came = set(wanted), set(found)
    lost = [name for name in wanted if name not in came]
    strange = [name for name in dict.fromkeys(found) if name not in expected]
    problems = {"are missing": lost, f"are not among {owner}": strange, "come more than once": doubled(found)}
    words = [f"{len(names):,} ids {what}: {shown(names)}" for what, names in problems.items() if names]
    alike = _folded(lost) & _folded(strange)
    if alike:
        words.append(f"{len(alike):,} of them differ only in case, spaces or the way a letter is encoded")
    return words


def _folded(names: Iterable[Any]) -> set[str]:
    return {unicodedata.normalize("NFKC", name).casefold().strip() for name in names if isinstance(name, str)}


def places_in(found: Sequence[Any], wanted: Iterable[Any]) -> NDArray[np.int64]:
    """Return the position of each wanted name in the list of found names."""
    places = {name: place for place, name in enumerate(found)}
    return np.fromiter((places[name] for name in wanted), np.int64)


def doubled(names: Sequence[Any]) -> list[Any]:
    """Return the names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def few(items: Iterable[Any]) -> str:
    """Return the first few items as text, and the number of the others."""
    listed = [str(item) for item in items]
    more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def shown(names: Iterable[Any]) -> str:
    """Return the first few ids as text for a message; characters that are not plain ASCII are escaped."""
    return few(_plain(name) for name in names)


def _plain(name: Any) -> str:
    text = str(name)
    text = text if text.isascii() and text.isprintable() else ascii(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


# ---- scores with ids


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """A table of scores with the ids of their rows; a guard of judged scores aligns it by id.

    Parameters
    ----------
    ids : sequence of str
        One id for each row, distinct and not empty.
    scores : array-like of shape (rows,) or (rows, repeats)
        One finite score for each row, or several scores of repeated runs.
    groups : sequence of str, optional
        The group of each row, for ``groups=`` of a guard.
    name : str
        Name of the task that was evaluated.
    metric : str
        Name of the scorer.
    left_out : tuple of str
        The parts of the file it was read from that the table leaves out, described in one sentence each.

    Raises
    ------
    InputError
        If ids, scores and groups do not fit one another.

    Examples
    --------
    >>> ScoreTable(["q1", "q2"], [[1, 0], [1, 1]], metric="match")
    <ScoreTable: 2 rows, 2 repeats of match>
    """

    ids: Sequence[str]
    scores: NDArray[np.float64]
    groups: Sequence[str] | None = None
    name: str = ""
    metric: str = "score"
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        scores = np.array(self.scores, dtype=np.float64)
        scores.setflags(write=False)
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "ids", tuple(self.ids))
        if self.groups is not None:
            object.__setattr__(self, "groups", tuple(self.groups))
        Ids(list(self.ids))
        if scores.ndim not in {1, 2} or not scores.size or len(scores) != len(self.ids):
            raise InputError(
                f"scores must have shape (rows,) or (rows, repeats), for {len(self.ids):,} ids; got {scores.shape}"
            )
        if not np.isfinite(scores).all():
            raise InputError("scores must be finite; got NaN or infinity; score every row")
        if self.groups is not None and len(self.groups) != len(self.ids):
            raise InputError(f"groups must name {len(self.ids):,} rows; got {len(self.groups):,}")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.ids)

    @property
    def repeats(self) -> int:
        """Number of scores of each row."""
        return 1 if self.scores.ndim == 1 else self.scores.shape[1]

    def __repr__(self) -> str:
        return f"<ScoreTable: {self.rows:,} rows, {self.repeats} repeats of {self.metric}>"

    def frame(self) -> pd.DataFrame:
        """Return a pandas table with a column of ids, a column for each repeat, and a column of groups if given."""
        scores = self.without_groups()
        return scores if self.groups is None else scores.assign(group=self.groups)

    def without_groups(self) -> pd.DataFrame:
        """Return a pandas table: a column of ids, and one of scores for each repeat; group names are left out."""
        repeats = self.scores.reshape(self.rows, -1).T
        return pd.DataFrame(
            {"id": self.ids} | {f"score_{place}": one for place, one in enumerate(repeats, 1)}
        )


# ---- tables and series of pandas, polars and pyarrow that name their rows


class Column(NamedTuple):
    """One column of a table: its name for messages, and its values of shape (rows,)."""

    name: str
    values: NDArray[Any]


def columns_in_order(values: Any, ids: Ids) -> list[Column] | None:
    """Return the columns of a table or series but that of ids, in the order of `ids`; None for any other object.

    A table of one column whose index only counts its rows is assumed to be in this order already.
    """
    table = _as_frame(values)
    if table is None:
        return None
    columns = [
        Column(f"column {name!r}", table.iloc[:, place].to_numpy())
        for place, name in enumerate(table.columns)
    ]
    index = table.index
    counts = index.name is None and pd.RangeIndex(len(index)).equals(index)
    of_rows = [] if counts else [Column("its index", index.to_numpy())]
    if len(columns) > 1:  # a single column holds the scores, and so no ids
        of_rows += columns
    if not of_rows:
        _check_order_is_meant(ids)
        return columns
    named = {column.name: _names(column.values, ids) for column in of_rows}
    wanted = set(ids.names)
    holding = [
        column
        for column in of_rows
        if len(column.values) == ids.rows and set(named[column.name]) == wanted  # so each is there once
    ]
    if len(holding) != 1:
        raise _not_found(named, [column.name for column in holding], ids)
    places = places_in(named[holding[0].name], ids.names)
    return [Column(name, values[places]) for name, values in columns if name != holding[0].name]


def _as_frame(values: Any) -> Any:
    """Return a table or series as a pandas table, or None for any other object; imports neither pandas nor polars."""
    values = values.without_groups() if isinstance(values, ScoreTable) else from_arrow(values)
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if polars is not None and isinstance(values, polars.DataFrame):
        return pd.DataFrame({one.name: one.to_numpy() for one in values.get_columns()})
    if pandas is not None and isinstance(values, pandas.Series):
        return values.to_frame()
    return values if pandas is not None and isinstance(values, pandas.DataFrame) else None


def _check_order_is_meant(ids: Ids) -> None:
    """Refuse an index 0, 1, 2, ... if the guard's ids are these numbers in another order."""
    counted = list(range(ids.rows))
    if ids.names != counted and set(ids.names) == set(counted):
        raise InputError(
            "the scores' index must say which row each score is for; got 0, 1, 2 and so on, which may be the "
            "guard's ids or only count the rows; pass a column of ids, or an array in the guard's order"
        )


def _not_found(named: Mapping[str, list[Any]], holding: Sequence[str], ids: Ids) -> InputError:
    must = "the scores must come with the guard's ids, each once"
    if holding:
        return InputError(f"{must}; got them in {few(holding)}; leave all but one of these out")
    known = set(ids.names)
    shared = {name: len(known & set(names)) for name, names in named.items()}
    best = max(shared, key=shared.__getitem__)
    if not shared[best]:
        return InputError(
            f"{must}, such as {few(map(repr, ids.names))}; got none of them in {few(named)}; name the rows, or "
            "pass an array in the guard's order"
        )
    problems = "; ".join(unmatched(ids.names, named[best], owner="the guard's"))
    return InputError(f"{must}; got {best} in which {problems}; nothing was asked")


def _names(values: NDArray[Any], ids: Ids) -> list[Any]:
    """Return the values of a column as ids; text that spells a numeric id is converted to that id."""
    digits = {str(name): name for name in ids.names}
    hashable = (name if isinstance(name, Hashable) else repr(type(name)) for name in values.tolist())
    return [digits.get(name, name) if isinstance(name, str) else name for name in hashable]
