"""Tables and series that name their rows: pandas', polars' and pyarrow's, as columns of NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.queries.containers import from_arrow
from reusable_holdout.queries.ids import few, places_in, unmatched

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from reusable_holdout.queries.ids import Ids

__all__ = ["Column", "Table", "table_of"]


class Column(NamedTuple):
    """One column.

    Attributes
    ----------
    name : str
        For messages.
    values : numpy.ndarray of shape (rows,)
    """

    name: str
    values: NDArray[Any]


class Table(NamedTuple):
    """Columns of one length.

    Attributes
    ----------
    row_names : Column or None
        What names the rows beside the columns; None if it only counts them.
    columns : list of Column
    """

    row_names: Column | None
    columns: list[Column]

    def in_order_of(self, ids: Ids) -> list[Column]:
        """Columns but that of the ids, in the order of these.

        A table of one column whose index only counts its rows is taken to be in order.

        Raises
        ------
        InputError
            If ids are missing, unknown or come twice; the first few are named.
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

    Examples
    --------
    >>> import pandas as pd
    >>> table_of(pd.Series([0.5], index=["q1"])).row_names.values.tolist()
    ['q1']
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
