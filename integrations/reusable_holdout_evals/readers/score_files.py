"""Scores in CSV, Parquet and JSON files and in tables: a row for each score, or a column for each repeat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError, MissingExtraError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.metrics.containers import from_arrow
from reusable_holdout.metrics.ids import shown
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.readers.archives import check_unpacked
from reusable_holdout_evals.readers.gathering import (
    Gathering,
    Missing,
    Repeats,
    Table,
    group_name,
    number_of,
    score_of,
)
from reusable_holdout_evals.readers.json_files import JSON_ENDINGS, json_table

__all__ = ["read_scores"]

_PARQUET = {".parquet", ".pq"}
_COUNTED = re.compile(r"(.*?)[ _.-]?\d+", re.DOTALL)


@checked_call
def read_scores(
    source: Any,
    *,
    id: str = "id",  # noqa: A002 - the column's name
    score: str | Sequence[str] | None = None,
    repeat: str = "repeat",
    groups: str | None = None,
    repeats: Repeats = "equal",
    missing: float | None = None,
) -> ScoreTable:
    """Scores in a CSV, Parquet or JSON file, or in a table of pandas, polars or pyarrow.

    Parameters
    ----------
    source : path or table
        One row for each id with a column for each repeat, or one row for each score with a column that tells repeats
        apart. Of CSV everything is read as text: the id 007 is not 7. JSON is a list of objects, or in a file
        ``.jsonl`` an object in each line.
    id : str
        Column of ids.
    score : str or sequence of str, optional
        Column of scores, or one for each repeat; "score" is also all of score_1, score_2. By default the only other
        one, or those that are numbered, of the columns that hold nothing but scores.
    repeat : str
        Column that tells repeats apart, if there is one.
    groups : str, optional
        Column of what a row belongs to.
    repeats : {"equal", "averaged"}
        What to do where rows have unequally many repeats: refuse, or average those that are there.
    missing : float, optional
        What counts where there is no score, such as the lowest one; by default that is refused.

    Returns
    -------
    ScoreTable

    Raises
    ------
    InputError
        If columns are not there, ids are missing or come twice, or rows have no score, or no number; the first few are
        named.
    MissingExtraError
        If it is Parquet, and pyarrow is not there.

    Examples
    --------
    >>> import pandas as pd
    >>> long = pd.DataFrame({"id": ["q1", "q1", "q2", "q2"], "repeat": [1, 2, 1, 2], "score": [1, 0, 1, 1]})
    >>> read_scores(long)
    <ScoreTable: 2 rows, 2 repeats of score>
    """
    wish = Table(repeats, missing)
    wish.check()
    frame, where = _frame(source)
    columns = {str(name): place for place, name in enumerate(frame.columns)}
    if len(columns) < len(frame.columns):
        raise InputError(f"{where} must have distinct names of columns; some come twice; rename them")
    for name, option in ((id, "id"), (groups, "groups")):
        if name is not None and name not in columns:
            raise InputError(
                f"{where} must have a column {name!r}; it has {shown(columns)}; name it with {option}="
            )
    scores = _scores(columns, score, {id, groups, repeat}, frame, where)
    long = repeat in columns and repeat not in scores
    if long and len(scores) > 1:
        raise InputError(
            f"repeats must be rows or columns; {where} has the column {repeat!r} and scores in {shown(scores)}; name "
            "one of them with score="
        )
    listed = {
        name: _listed(frame.iloc[:, place])
        for name, place in columns.items()
        if name in {id, groups, repeat, *scores}
    }
    gathering = Gathering(where)
    for row, name in enumerate(listed[id]):
        if name is None or name == "":
            raise InputError(f"{where} must have an id in every row; row {row + 1:,} has none; name it")
        group = None if groups is None else group_name(listed[groups][row], where=where, row=name)
        for column in scores:
            told = listed[repeat][row] if long else column
            gathering.add(name, told, _score(listed[column][row], column, where, name), group)
    others = [name for name in columns if name not in listed]
    left_out = [f"other columns: {shown(others)}"] if others else []
    return gathering.table(wish, name=where, metric=_stem(scores), left_out=left_out)


def _frame(source: Any) -> tuple[pd.DataFrame, str]:
    """Table, and what to call it."""
    if isinstance(source, str | Path):
        return _read(Path(source)), str(source)
    source = from_arrow(source)
    if type(source).__module__.startswith("polars."):
        source = pd.DataFrame({name: source[name].to_list() for name in source.columns}, dtype=object)
    if not isinstance(source, pd.DataFrame):
        raise InputError(
            f"scores must come in a CSV, Parquet or JSON file, or in a table; got {type(source).__name__}; arrays are "
            "passed to the guard as they are"
        )
    return source if source.index.name is None else source.reset_index(), "the table"


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise InputError(f"there must be a file with scores at {path}; there is none")
    problem = ""
    try:
        if path.suffix.lower() in JSON_ENDINGS:
            return pd.DataFrame(json_table(path, what="scores"), dtype=object)
        if path.suffix.lower() in _PARQUET:
            return pd.read_parquet(path)
        check_unpacked(path, what="scores")
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except InputError:
        raise
    except ImportError:
        raise MissingExtraError(f"{path} as Parquet, and not CSV,", "pyarrow", "large") from None
    except Exception as error:  # whatever a reader raises
        problem = type(error).__name__
    raise InputError(
        f"scores must be a CSV file with a header, Parquet or JSON; {path} cannot be read so ({problem})"
    )


def _scores(
    columns: dict[str, int],
    wanted: str | Sequence[str] | None,
    known: set[str | None],
    frame: pd.DataFrame,
    where: str,
) -> list[str]:
    """Columns of scores."""
    if wanted is not None:
        listed = [wanted] if isinstance(wanted, str) else list(wanted)
        if isinstance(wanted, str) and wanted not in columns:
            numbered = {name: _COUNTED.fullmatch(name) for name in columns}
            listed = [name for name, one in numbered.items() if one and one[1] == wanted] or listed
        lost = [name for name in listed if name not in columns]
        if lost or not listed or len(set(listed)) < len(listed):
            raise InputError(
                f"score must name columns of {where}, each once: {shown(columns)}; got {shown(listed)}"
            )
        return listed
    rest = [name for name in columns if name not in known]
    for some in (rest, [name for name in rest if _are_scores(frame.iloc[:, columns[name]])]):
        stems = {one and one[1] for one in map(_COUNTED.fullmatch, some)}
        if len(some) == 1 or (len(stems) == 1 and None not in stems):
            return some
    raise InputError(
        f"the columns of scores must be named with score= where there are others; {where} has {shown(rest) or 'none'} "
        "beside the ids"
    )


def _are_scores(column: pd.Series[Any]) -> bool:
    """Return True if all that a column holds could be scores, unlike the names of groups."""
    try:
        numbers = [number_of(value) for value in _listed(column)]
    except ValueError:
        return False
    return any(one is not None for one in numbers)


def _stem(scores: Sequence[str]) -> str:
    matched = _COUNTED.fullmatch(scores[0])
    return matched[1] or "score" if matched and len(scores) > 1 else scores[0]


def _listed(column: pd.Series[Any]) -> list[Any]:
    """Values of a column, None where there is none."""
    values: list[Any] = column.astype(object).where(column.notna(), None).tolist()
    return values


def _score(value: object, column: str, where: str, row: object) -> float | Missing:
    number = score_of(
        value,
        must=lambda: f"scores must be numbers, also those of column {column!r} of {where} for {shown([row])}",
        advice="name the columns of scores with score=",
    )
    return Missing("it has no value") if number is None else number
