"""What the class counts of private labels change: the public numbers of a metric that is conditional on them.

Class counts are a fact about the rows. Where a metric's confidence bound rests on them, how far its numbers are from
those at class shares that were guessed beforehand must be told, and paid for. So are the sizes of groups, where each of
their rows counts: what is guessed of them is half of the largest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.scoring import PublicNumbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reusable_holdout.queries.bound import BoundMetric

__all__ = ["checked_prevalence", "factor_to_tell", "numbers_at", "rests_on_counts"]

_TRIED = 6  # rows of each class, on which a metric is tried


def rests_on_counts(bound: BoundMetric) -> tuple[bool, bool, bool]:
    """Which public numbers of a metric depend on how many rows each class or group has, whatever the labels are."""
    if _rests_on_sizes(bound):
        return (True, True, True)
    metric = bound.metric
    own = metric.loss is not None or (metric.differences is not None and not callable(metric.differences))
    if bound.classes is None or own:  # a user's own loss is a mean, and differences that are named are named
        return (False, False, False)
    count = len(bound.classes)
    even, uneven = np.full(count, _TRIED), np.full(count, _TRIED)
    uneven[0] -= _TRIED // 2
    uneven[-1] += _TRIED // 2
    here, there = (_tried(bound, counts).numbers for counts in (even, uneven))
    return (here[0] != there[0], here[1] != there[1], here[2] != there[2])


def numbers_at(bound: BoundMetric, prevalence: Sequence[float]) -> PublicNumbers:
    """Public numbers if the classes had these shares of the rows, or groups were half as large as they may be."""
    if _rests_on_sizes(bound):
        groups: Any = bound.groups
        share = Fraction(bound.counted_rows, bound.rows)
        rows = max(1, math.floor(share * len(groups) * Fraction(groups.largest + 1, 2 * groups.largest)))
        return PublicNumbers(Fraction(1, rows), 1.0 / rows, rows)
    shares = np.array(prevalence)
    counts = np.maximum(1, np.floor(shares * bound.counted_rows).astype(np.int64))
    counts[int(np.argmax(shares))] += bound.counted_rows - counts.sum()
    if counts.min() < 1:
        raise InputError(
            f"each of {len(counts)} classes needs a row; got {bound.counted_rows} rows; nothing was made"
        )
    return _tried(bound, counts).numbers


def factor_to_tell(bound: BoundMetric, guessed: PublicNumbers, rests: Sequence[bool]) -> float:
    """How many times the guessed rows the labels' own class counts are worth: private until it is told, rounded."""
    exact = bound.numbers
    ratios = (
        float(guessed.sensitivity / exact.sensitivity),
        guessed.sum_of_squares / exact.sum_of_squares,
        exact.rows / guessed.rows,
    )
    return min(ratio for ratio, rest in zip(ratios, rests, strict=True) if rest)


def checked_prevalence(prevalence: object, classes: NDArray[Any] | None) -> list[float]:
    """Class shares that are guessed, in the order of the sorted classes; equal ones by default.

    Parameters
    ----------
    prevalence : None, float, mapping of class to share, or sequence of float
        One number is the share of the last of two classes.
    classes : numpy.ndarray of shape (classes,)

    Raises
    ------
    InputError
        If they are not one positive share for each class that sum to 1.
    """
    named = [] if classes is None else classes.tolist()
    count = len(named)
    if prevalence is None:
        return [1.0 / count] * count
    shares: Any = prevalence
    if isinstance(shares, Mapping):
        shares = [shares.get(one) for one in named] if len(shares) == count else []
    elif isinstance(shares, Real) and count == 2:
        shares = [1.0 - float(shares), float(shares)]
    try:
        found = [float(share) for share in shares]
    except (TypeError, ValueError):
        found = []
    if len(found) != count or not (min(found, default=0.0) > 0.0 and abs(sum(found) - 1.0) <= 1e-6):
        raise InputError(
            f"prevalence= must be the shares of the {count} classes that are expected, each above 0, together 1, as a "
            f"list in the order of the sorted classes or a dict; got {prevalence!r}; nothing was made"
        )
    return found


def _rests_on_sizes(bound: BoundMetric) -> bool:
    return bound.groups is not None and bound.groups.largest not in (None, 1)


def _tried(bound: BoundMetric, counts: NDArray[np.int64]) -> BoundMetric:
    """Bind the same metric to other labels with these class counts."""
    classes: NDArray[Any] = np.asarray(bound.classes)
    return type(bound)(bound.metric, np.repeat(classes, counts), classes=classes)
