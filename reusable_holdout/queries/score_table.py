"""Scores of rows that have names, as they come from an evaluation: one table for whatever wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.ids import doubled, places_in, shown, unmatched

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from reusable_holdout.queries.ids import Ids

__all__ = ["ScoreTable"]


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
            raise InputError(
                f"ids must be text, each once; got others or doubles{_listed(twice)}; name the rows"
            )
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
        import pandas as pd  # noqa: PLC0415 - slow to import, and a guard does not need it

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
        wanted = (
            ids.names if all(isinstance(one, str) for one in ids.names) else [str(one) for one in ids.names]
        )
        if list(self.ids) == wanted:
            return self.scores
        problems = unmatched(wanted, self.ids, owner="the guard's")
        if problems:
            raise InputError(
                f"the scores must come with the guard's ids, each once; {'; '.join(problems)}; nothing was asked"
            )
        return self.scores[places_in(self.ids, wanted)]


def _listed(names: Sequence[Any]) -> str:
    return f": {shown(names)}" if names else ""
