"""Scores of rows that have names, as they come from an evaluation: one table for whatever wrote them."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import from_arrow
from reusable_holdout.metrics.ids import Ids, doubled, few, places_in, shown, unmatched

__all__ = ["Column", "ScoreTable", "Table", "table_of"]


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of rows by their ids: what a guard of judged scores is asked with, aligned by id.

    Parameters
    ----------
    ids : sequence of str
        One for each row, distinct and not empty.
    scores : array-like of shape (rows,) or (rows, repeats)
        Finite.
    groups : sequence of str, optional
        What each row belongs to, for ``groups=`` of a guard.
    name : str
        Of what was evaluated, such as a task.
    metric : str
        What scored, such as a scorer's name.
    left_out : tuple of str
        What its file held and this table does not, one sentence each.

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
        twice = doubled(self.ids)
        if twice or not all(isinstance(one, str) and one for one in self.ids):
            named = f": {shown(twice)}" if twice else ""
            raise InputError(f"ids must be text, each once; got others or doubles{named}; name the rows")
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
        """Scores of each row."""
        return 1 if self.scores.ndim == 1 else self.scores.shape[1]

    def __repr__(self) -> str:
        return f"<ScoreTable: {self.rows:,} rows, {self.repeats} repeats of {self.metric}>"

    def frame(self) -> pd.DataFrame:
        """Pandas table with a column of ids, one for each repeat, and one of groups if there are some."""
        columns: dict[str, Any] = {"id": self.ids}
        repeats = self.scores.reshape(self.rows, -1).T
        columns |= {f"score_{place}": repeat for place, repeat in enumerate(repeats, 1)}
        return pd.DataFrame(columns if self.groups is None else columns | {"group": self.groups})

    def in_order_of(self, ids: Ids) -> NDArray[np.float64]:
        """Scores in the order of a guard's ids. Whole numbers there are meant by their digits here.

        Raises
        ------
        InputError
            If ids are missing or unknown; the first few are named.
        """
        wanted = [str(name) for name in ids.names]
        if list(self.ids) == wanted:
            return self.scores
        problems = unmatched(wanted, self.ids, owner="the guard's")
        if problems:
            raise InputError(
                f"the scores must come with the guard's ids, each once; {'; '.join(problems)}; nothing was asked"
            )
        return self.scores[places_in(self.ids, wanted)]


# ---- tables and series of pandas, polars and pyarrow that name their rows


class Column(NamedTuple):
    """Values of shape (rows,), and what messages call them."""

    name: str
    values: NDArray[Any]


class Table(NamedTuple):
    """Columns of one length, and what names the rows beside them; None if it only counts them."""

    row_names: Column | None
    columns: list[Column]

    def in_order_of(self, ids: Ids) -> list[Column]:
        """Columns but that of the ids, in the order of these.

        A table of one column whose index only counts its rows is taken to be in order.
        """
        of_rows = [] if self.row_names is None else [self.row_names]
        if len(self.columns) > 1:  # the only column is no ids: nothing would be beside them
            of_rows += self.columns
        named = {column.name: _names(column.values) for column in of_rows}
        wanted = set(ids.names)
        holding = [
            column
            for column in of_rows
            if len(column.values) == ids.rows and set(named[column.name]) == wanted  # so each is there once
        ]
        if not of_rows:
            self._check_order_is_meant(ids)
            return self.columns
        if len(holding) != 1:
            raise _not_found(named, [column.name for column in holding], ids)
        places = places_in(named[holding[0].name], ids.names)
        rest = [column for column in self.columns if column is not holding[0]]
        return [Column(name, values[places]) for name, values in rest]

    def _check_order_is_meant(self, ids: Ids) -> None:
        """Refuse an index that counts the rows if the ids are the same numbers in another order."""
        counted = list(range(ids.rows))
        if ids.names != counted and set(ids.names) == set(counted):
            raise InputError(
                "the scores' index must say which rows they are of; got 0, 1, 2 and so on, which may be the guard's "
                "ids or their order; pass a column of ids, or an array in the guard's order"
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


def _names(values: NDArray[Any]) -> list[Any]:
    """Values of a column, should they be names of rows."""
    names: list[Any] = values.tolist()
    if values.dtype.kind != "O":
        return names
    return [name if isinstance(name, Hashable) else repr(type(name)) for name in names]


def table_of(values: Any) -> Table | None:
    """Columns of a table or series; None if it is something else, or nothing but an order can name its rows.

    pandas and polars are not imported for that.
    """
    values = from_arrow(values)
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(values, pandas.Series):
        return Table(_index(values), [Column("the series", values.to_numpy())])
    if pandas is not None and isinstance(values, pandas.DataFrame):
        columns = [
            Column(f"column {name!r}", values.iloc[:, place].to_numpy())
            for place, name in enumerate(values.columns)
        ]
        return Table(_index(values), columns)
    if polars is not None and isinstance(values, polars.DataFrame):
        return Table(None, [Column(f"column {one.name!r}", one.to_numpy()) for one in values.get_columns()])
    return None


def _index(values: Any) -> Column | None:
    index = values.index
    counts = index.name is None and sys.modules["pandas"].RangeIndex(len(index)).equals(index)
    return None if counts else Column("its index", index.to_numpy())
