"""Rows that belong together, such as those of one user: the group is the independent draw.

It counts once, or with a largest size that is declared beforehand each of its rows does. Neighbours differ in one
group: in all of its rows, but not in how many they are.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.containers import as_array, one_column
from reusable_holdout.queries.derived import averaged
from reusable_holdout.queries.scoring import Mean
from reusable_holdout.queries.weights import WeightedMean, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.queries.scoring import Statistic

__all__ = ["GroupMean", "Groups", "RowsOfGroups", "grouped"]


class Groups:
    """Which rows belong together; public.

    Parameters
    ----------
    names : array-like of shape (rows,)
        Numbers or text, equal for rows of one group.
    rows : int
        Rows of the holdout.
    largest : int, optional
        Rows of a group that count at most; then each of these counts, not each group once.

    Attributes
    ----------
    codes : numpy.ndarray of int64 of shape (rows,)
        Number of each row's group, in the order of their first rows.
    kept : numpy.ndarray of int64, or slice
        Places of the rows that count: all of them, or of each group the `largest` whose lots are the lowest. The lots
        are a fixed shuffle of the rows' numbers, the same everywhere and always: which rows of a group are kept depends
        neither on what is in them nor on the order of the file.
    sizes : numpy.ndarray of int64 of shape (groups,)
        Rows of each that count.
    largest : int or None
    digest : str
        SHA-256 in hexadecimal, which tells partitions apart; names do not matter.

    Raises
    ------
    InputError
        If there is not one name for each row, or one is missing; or if the largest size is none.

    Examples
    --------
    >>> Groups(["ann", "bob", "ann"], rows=3).codes
    array([0, 1, 0])
    >>> Groups(["ann", "bob", "ann", "ann"], rows=4, largest=2).sizes
    array([2, 1])
    """

    def __init__(self, names: object, rows: int, largest: int | None = None) -> None:
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
            codes = np.unique(given, return_inverse=True)[1]
        except TypeError:
            raise InputError(
                "groups must be numbers or text that can be sorted; got a mixture; make them text"
            ) from None
        self.largest = _checked_largest(largest)
        self._lots: NDArray[np.uint64] = np.random.PCG64([rows, 1]).random_raw(rows if largest else 0)
        self._take(codes)

    def _take(self, codes: NDArray[Any]) -> None:
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        self.codes = np.argsort(np.argsort(first, kind="stable"), kind="stable")[codes].astype(np.int64)
        self.codes.flags.writeable = False
        self.kept: NDArray[np.int64] | slice = slice(None)
        self.sizes = np.bincount(self.codes)
        self.digest = hashlib.sha256(b"groups" + self.codes.astype("<i8").tobytes()).hexdigest()
        if self.largest is not None:
            self.kept = self._lowest(self.largest)
            self.sizes = np.minimum(self.sizes, self.largest)

    def _lowest(self, largest: int) -> NDArray[np.int64]:
        """Places of the rows whose lots are the lowest of their group."""
        order = np.lexsort((self._lots, self.codes))
        starts = np.cumsum(self.sizes) - self.sizes
        ranks = np.arange(len(order)) - starts[self.codes[order]]
        return np.sort(order[ranks < largest])

    def __len__(self) -> int:
        return len(self.sizes)

    def part(self, chosen: NDArray[Any]) -> Self:
        """Groups of some rows."""
        part = object.__new__(type(self))
        part.largest, part._lots = self.largest, self._lots[chosen] if self.largest else self._lots
        part._take(self.codes[chosen])
        return part


def _checked_largest(largest: object) -> int | None:
    if largest is None:
        return None
    if isinstance(largest, bool) or not isinstance(largest, Integral) or largest < 1:
        raise InputError(
            f"largest_group must be a whole number of rows, 1 or more, that is named before they are looked at; got "
            f"{largest!r}; leave it out, and each group counts once"
        )
    return int(largest)


class GroupMean(Mean):
    """Mean over the groups of the mean of each one's rows that count.

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
        groups = self._groups
        sums: NDArray[Any] = np.bincount(
            groups.codes[groups.kept], weights=each[groups.kept], minlength=len(groups)
        )
        return np.asarray(sums / groups.sizes)


class RowsOfGroups(WeightedMean):
    """Mean over the rows of all groups, of each at most as many as the largest size that is declared.

    It is about the population's mean over rows, of larger groups so many each: with N the sum of a group's terms and D
    its rows, about ``E[N] / E[D]``. Who knows the holdout's rows, and how many each group has, asks about the mean over
    the rows of such groups.

    Parameters
    ----------
    mean : Mean
        Of all rows, without weights.
    groups : Groups
        With a largest size.

    Notes
    -----
    Let S be the largest size, u = D/S, x = N/D and W the sum of u over the groups; theta = E[N]/E[D], so that
    E[u (x - theta)] = 0. The pairs (x, u) are independent draws of one law, or independent with that weighted mean.

    Evidence by bets on them is valid (:class:`~reusable_holdout.validity.evidence.Null`): u is at most 1 whatever the
    sizes are. In units of the largest size *seen* it would not be, for that depends on all groups.

    The kl-Chernoff bound of W rows is valid given that W is at least a number named beforehand. For any h >= 0 and
    f = ln(1 - theta + theta e^h), convexity gives e^(u (h x - f)) <= 1 - u + u e^(h x - f) and e^(h x) <= 1 - x +
    x e^h. So its expectation is at most 1 - E u + E u (1 - theta + theta e^h) e^-f = 1, and so is that of the product
    over groups, e^(W (h R - f)), R being the mean over all rows. With the h that makes h v - f largest, R >= v and
    W >= w have probability at most exp(-w kl(v, theta)). That is why W is told, rounded down, and paid for. Replacing a
    group changes R by at most 1/W.
    """

    def __init__(self, mean: Mean, groups: Groups) -> None:
        self._sizes, self._largest = groups.sizes, groups.largest or 1
        super().__init__(GroupMean(mean, groups), Weights(groups.sizes, len(groups)))
        self.sum_of_squares = float(self.largest_share)

    @property
    def effective_rows(self) -> int:
        """W, rounded down."""
        return int(self._sizes.sum()) // self._largest

    @property
    def largest_share(self) -> Fraction:
        """1/W."""
        return Fraction(self._largest, int(self._sizes.sum()))

    @property
    def relative_weights(self) -> NDArray[np.float64]:
        """Rows of each group over the largest size that is declared."""
        return np.asarray(self._sizes / self._largest)


def grouped(statistic: Statistic, groups: Groups, *, name: str) -> Statistic:
    """The statistic with each group counting once, or each of its rows; an error for what is no mean over all rows."""
    if groups.largest is not None:
        return _of_rows(statistic, groups, name=name)
    found = averaged(statistic, lambda mean: GroupMean(mean, groups))
    if found is not None:
        return found
    raise InputError(
        f"with groups a metric must be a mean over rows, such as accuracy, brier, log_loss or mae; {name!r} is none: "
        "how far a group moves it would depend on which classes its rows have; leave groups= out only where rows are "
        "independent"
    )


def _of_rows(statistic: Statistic, groups: Groups, *, name: str) -> Statistic:
    if not isinstance(statistic, Mean):
        raise InputError(
            f"with largest_group a metric must be a plain mean over rows, such as accuracy, brier, log_loss or mae; "
            f"{name!r} is none; take one of these, or leave largest_group out where each group may count once"
        )
    rows, largest = statistic.rows, groups.largest or 1
    if rows < largest:
        raise InputError(
            f"there must be at least largest_group rows; got {rows:,} rows and largest_group={largest:,}; name a "
            "smaller one"
        )
    return RowsOfGroups(statistic, groups)
