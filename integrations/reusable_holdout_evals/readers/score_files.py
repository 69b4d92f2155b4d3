"""Reader of scores in CSV, Parquet and JSON files and in tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.metrics.containers import from_arrow
from reusable_holdout.metrics.ids import shown
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.readers.files import read_frame
from reusable_holdout_evals.readers.gathering import Gathering, Repeats, group_name

__all__ = ["read_scores"]

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
    """Read the scores in a CSV, Parquet or JSON file, or in a table of pandas, polars or pyarrow.

    Parameters
    ----------
    source : path or table
        A table with one row for each id and a column of scores for each repeat, or with one row for each score and a
        column that numbers the repeats. CSV is read as text, so the id 007 is not 7. A file ``.json`` holds a list of
        objects, a file ``.jsonl`` one object in each line.
    id : str
        Column of ids.
    score : str or sequence of str, optional
        Column of scores, or one column for each repeat. "score" also stands for numbered columns such as score_1 and
        score_2. By default it is the only other column, the only group of numbered columns, or the columns called
        "score".
    repeat : str
        Column that numbers the repeats, if there is one.
    groups : str, optional
        Column that names a row's group.
    repeats : {"equal", "averaged"}
        "equal" refuses a table whose rows have different numbers of repeats. "averaged" gives each row the mean over
        its repeats.
    missing : float, optional
        Score of a row that has none, such as the lowest score; by default such a table is refused.

    Returns
    -------
    ScoreTable
        The scores by id.

    Raises
    ------
    InputError
        If columns are not there, ids are missing or come twice, or rows have no score, or one that is no number; the
        first few are named.
    MissingExtraError
        If the file is Parquet, and pyarrow is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> long = pd.DataFrame({"id": ["q1", "q1", "q2", "q2"], "repeat": [1, 2, 1, 2], "score": [1, 0, 1, 1]})
    >>> read_scores(long)
    <ScoreTable: 2 rows, 2 repeats of score>
    """
    where = str(source) if isinstance(source, str | Path) else "the table"
    gathering = Gathering(where, repeats, missing, advice="name the columns of scores with score=")
    frame = _frame(source)
    columns = {str(name): place for place, name in enumerate(frame.columns)}
    if len(columns) < len(frame.columns):
        raise InputError(f"{where} must have distinct names of columns; some come twice; rename them")
    for name, option in ((id, "id"), (groups, "groups")):
        if name is not None and name not in columns:
            raise InputError(
                f"{where} must have a column {name!r}; it has {shown(columns)}; name it with {option}="
            )
    scores = _scores(columns, score, {id, groups, repeat}, where)
    long = repeat in columns and repeat not in scores
    if long and len(scores) > 1:
        raise InputError(
            f"repeats must be stored either as rows or as columns; {where} has the column {repeat!r} and several "
            f"columns of scores, {shown(scores)}; name one of them with score="
        )
    used = {id, groups, repeat, *scores}
    listed = {name: _listed(frame.iloc[:, place]) for name, place in columns.items() if name in used}
    for place, name in enumerate(listed[id]):
        if name is None or name == "":
            raise InputError(f"{where} must have an id in every row; row {place + 1:,} has none; give it one")
        group = None if groups is None else group_name(listed[groups][place], where=where, row=name)
        for column in scores:
            told = listed[repeat][place] if long else column
            gathering.add(name, told, listed[column][place], group=group)
    others = [name for name in columns if name not in listed]
    left_out = [f"other columns: {shown(others)}"] if others else []
    return gathering.table(name=where, metric=_stem(scores), left_out=left_out)


def _frame(source: Any) -> pd.DataFrame:
    if isinstance(source, str | Path):
        return read_frame(Path(source), what="scores", text=True)
    source = from_arrow(source)
    if type(source).__module__.startswith("polars."):
        source = pd.DataFrame({name: source[name].to_list() for name in source.columns}, dtype=object)
    if not isinstance(source, pd.DataFrame):
        raise InputError(
            f"scores must come in a CSV, Parquet or JSON file, or in a table; got {type(source).__name__}; pass "
            "arrays to the guard directly"
        )
    return source if source.index.name is None else source.reset_index()


def _scores(
    columns: dict[str, int], wanted: str | Sequence[str] | None, known: set[str | None], where: str
) -> list[str]:
    """Return the names of the columns that hold scores: the wanted ones, or those that are recognised by name."""
    if wanted is not None:
        listed = [wanted] if isinstance(wanted, str) else list(wanted)
        if isinstance(wanted, str) and wanted not in columns:
            listed = [name for name in columns if _numbered(name) == wanted] or listed
        if not listed or len(set(listed)) < len(listed) or not columns.keys() >= set(listed):
            raise InputError(
                f"score must name columns of {where}, each once: {shown(columns)}; got {shown(listed)}"
            )
        return listed
    rest = [name for name in columns if name not in known]
    for some in (rest, [name for name in rest if "score" in {name, _numbered(name)}]):
        stems = set(map(_numbered, some))
        if len(some) == 1 or (len(stems) == 1 and None not in stems):
            return some
    raise InputError(
        f"the columns of scores must be named with score=; besides the ids, {where} has {shown(rest) or 'none'}"
    )


def _numbered(name: str) -> str | None:
    """Return a column's name without the number at its end; None if it has no number."""
    matched = _COUNTED.fullmatch(name)
    return matched and matched[1]


def _stem(scores: Sequence[str]) -> str:
    stem = _numbered(scores[0]) if len(scores) > 1 else None
    return scores[0] if stem is None else stem or "score"


def _listed(column: pd.Series[Any]) -> list[Any]:
    """Return the values of a column as a list, with None for missing values."""
    values: list[Any] = column.astype(object).where(column.notna(), None).tolist()
    return values
