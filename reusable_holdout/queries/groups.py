"""Rows that belong together, such as those of one user: the group is the independent draw, and counts once.

Neighbours differ in one group: in all of its rows, but not in how many they are.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.containers import as_array, one_column
from reusable_holdout.queries.derived import averaged
from reusable_holdout.queries.scoring import Mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.queries.scoring import Statistic

__all__ = ["GroupMean", "Groups", "grouped"]


class Groups:
    """Which rows belong together; public.

    Parameters
    ----------
    names : array-like of shape (rows,)
        Numbers or text, equal for rows of one group.
    rows : int
        Rows of the holdout.

    Attributes
    ----------
    codes : numpy.ndarray of int64 of shape (rows,)
        Number of each row's group, in the order of their first rows.
    sizes : numpy.ndarray of int64 of shape (groups,)
        Rows of each.
    digest : str
        SHA-256 in hexadecimal, which tells partitions apart; names do not matter.

    Raises
    ------
    InputError
        If there is not one name for each row, or one is missing.

    Examples
    --------
    >>> Groups(["ann", "bob", "ann"], rows=3).codes
    array([0, 1, 0])
    """

    def __init__(self, names: object, rows: int) -> None:
        given = one_column(as_array(names, what="groups"))
        if given.shape != (rows,):
            raise InputError(
                f"groups must have shape ({rows},); got {given.shape}; name the group of each row"
            )
        if any(name is None or (isinstance(name, float) and math.isnan(name)) for name in given.tolist()):
            raise InputError(
                "groups must name a group for each row; some are missing; give rows without a group one of their own"
            )
        try:
            _, first, codes = np.unique(given, return_index=True, return_inverse=True)
        except TypeError:
            raise InputError(
                "groups must be numbers or text that can be sorted; got a mixture; make them text"
            ) from None
        self._take(np.argsort(np.argsort(first, kind="stable"), kind="stable")[codes])

    def _take(self, codes: NDArray[np.int64]) -> None:
        self.codes = codes.astype(np.int64)
        self.codes.flags.writeable = False
        self.sizes = np.bincount(self.codes)
        self.digest = hashlib.sha256(b"groups" + self.codes.astype("<i8").tobytes()).hexdigest()

    def __len__(self) -> int:
        return len(self.sizes)

    def part(self, chosen: NDArray[Any]) -> Self:
        """Groups of some rows."""
        part = object.__new__(type(self))
        _, first, codes = np.unique(self.codes[chosen], return_index=True, return_inverse=True)
        part._take(np.argsort(np.argsort(first, kind="stable"), kind="stable")[codes])
        return part


class GroupMean(Mean):
    """Mean over the groups of the mean of each one's rows.

    It is about the population of groups: each counts once, however many rows it has. Terms are those of the groups, one
    independent draw each, and lie in [0, 1]: sensitivity 1/groups, and the kl-Chernoff bound of so many rows.

    Parameters
    ----------
    mean : Mean
        Of all rows, without weights.
    groups : Groups
    """

    family = "bounded"

    def __init__(self, mean: Mean, groups: Groups) -> None:
        self._mean_of_rows(len(groups))
        self._mean, self._groups = mean, groups

    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Normalised mean of each group; no other group's rows enter it, to the last bit."""
        shares: NDArray[Any] = np.clip(self._means(self._mean.shares(query)), 0.0, 1.0)
        return shares

    def row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Mean of each group in the metric's units."""
        return self._means(self._mean.row_values(query))

    def _means(self, each: NDArray[Any]) -> NDArray[Any]:
        sums: NDArray[Any] = np.bincount(self._groups.codes, weights=each, minlength=len(self._groups))
        return np.asarray(sums / self._groups.sizes)


def grouped(statistic: Statistic, groups: Groups, *, name: str) -> Statistic:
    """The statistic with each group counting once; an error for what is no mean over all rows."""
    found = averaged(statistic, lambda mean: GroupMean(mean, groups))
    if found is not None:
        return found
    raise InputError(
        f"with groups a metric must be a mean over rows, such as accuracy, brier, log_loss or mae; {name!r} is none: "
        "how far a group moves it would depend on which classes its rows have; leave groups= out only where rows are "
        "independent"
    )
