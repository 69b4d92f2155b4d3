"""Class counts that are released and paid for: a fact about the rows on which some confidence bounds rest.

The owner guesses the class shares. The ratio between the metric's numbers at the true counts and at the guess must be
released, and it costs nats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import edition
from reusable_holdout.errors import InputError
from reusable_holdout.guard.views import Counts
from reusable_holdout.metrics import BoundMetric, PublicNumbers, is_finite

_TRIED = 6  # rows of each class, on which a metric is tried
_LEAST_SPREAD = 1e-3  # of the range, where an estimate is at a bound
_EXACT = 1.0 - 1e-12  # rounding must not make a released factor larger than the exact one


def guess(bound: BoundMetric, prevalence: object, *, by_ratio: bool, theory: int) -> Counts | None:
    """Return the result of :func:`~reusable_holdout.guard.wanted_plan.guessed` for a metric that may rest on counts."""
    if not by_ratio and not any(_rests_on_counts(bound)):
        checked_prevalence(prevalence, bound.classes)
        return None
    shares: list[float] = []
    if bound.classes is not None and bound.groups is None:  # for groups their sizes are released
        shares = checked_prevalence(prevalence, bound.classes)
    right = None if by_ratio else edition(theory).counts.place(_EXACT)
    counts = Counts(shares, right, theory)
    rest_on(bound, counts)
    return counts


def told(bound: BoundMetric, counts: Counts | None) -> Counts | None:
    """Release the rounded ratio of true to guessed counts, which costs nats, and let the metric rest on it."""
    if counts is None or counts.place is None:
        return counts
    at_guess = _numbers_at(bound, counts.prevalence)
    factor = _factor_to_tell(bound, at_guess, _rests_on_counts(bound)) * _EXACT
    counts = replace(counts, place=edition(counts.theory).counts.place(factor))
    rest_on(bound, counts)
    return counts


def rest_on(bound: BoundMetric, counts: Counts | None) -> None:
    """Give a metric the public numbers that follow from the released, or else the guessed, class counts."""
    known = 0 if bound.classes is None or bound.groups is not None else len(bound.classes)
    if counts is None or counts.place is None or known != len(counts.prevalence):
        return
    rests = _rests_on_counts(bound)
    if any(rests):
        least = edition(counts.theory).counts.least(counts.place)
        bound.told(PublicNumbers.scaled(_numbers_at(bound, counts.prevalence), least, rests))


def numbers_of_ratio(
    bound: BoundMetric, counts: Counts, estimate: object, spread: float | None
) -> dict[str, Any]:
    """Return a plan's numbers for rows whose mean is about as uncertain as the metric, at guessed class shares."""
    metric = bound.metric
    if spread is not None:
        raise InputError(
            f"spread, your guess of the losses' standard deviation, is only for metrics whose losses take many values; "
            f"for {metric.name} it follows from the estimate; got spread={spread!r}; leave spread out"
        )
    span, middle = metric.upper - metric.lower, (metric.lower + metric.upper) / 2.0
    at = float(estimate) if is_finite(estimate) else middle  # type: ignore[arg-type]
    mean = (min(max(at, metric.lower), metric.upper) - metric.lower) / span
    likely = bound.statistic.likely(counts.prevalence, mean)
    return {
        "greater_is_better": metric.greater_is_better,
        "rows": max(1, round(likely.rows)),
        "bounds": (metric.lower, metric.upper),
        "family": "ratio",
        "spread": max(likely.spread, _LEAST_SPREAD) * span,
    }


# ---- what class counts change


def _rests_on_counts(bound: BoundMetric) -> tuple[bool, bool, bool]:
    """Return a bool for each public number of a metric: True if it depends on class counts. Labels are not used."""
    if bound.classes is None:
        return (False, False, False)
    count = len(bound.classes)
    even, uneven = np.full(count, _TRIED), np.full(count, _TRIED)
    uneven[0] -= _TRIED // 2
    uneven[-1] += _TRIED // 2
    here, there = (_tried(bound, counts).numbers for counts in (even, uneven))
    return (here[0] != there[0], here[1] != there[1], here[2] != there[2])


def _numbers_at(bound: BoundMetric, prevalence: Sequence[float]) -> PublicNumbers:
    """Return the public numbers that rows with these class shares would have."""
    shares = np.array(prevalence)
    counts = np.maximum(1, np.floor(shares * bound.counted_rows).astype(np.int64))
    counts[int(np.argmax(shares))] += bound.counted_rows - counts.sum()
    if counts.min() < 1:
        raise InputError(
            f"each of {len(counts)} classes needs at least one row; got {bound.counted_rows} rows; nothing was made"
        )
    return _tried(bound, counts).numbers


def _factor_to_tell(bound: BoundMetric, guessed: PublicNumbers, rests: Sequence[bool]) -> float:
    """Return how many times as many rows the true class counts are worth as the guessed ones.

    It is private; only its rounded value is released.
    """
    exact = bound.exact
    ratios = (
        float(guessed.sensitivity / exact.sensitivity),
        guessed.sum_of_squares / exact.sum_of_squares,
        exact.rows / guessed.rows,
    )
    return min(ratio for ratio, rest in zip(ratios, rests, strict=True) if rest)


def checked_prevalence(prevalence: object, classes: NDArray[Any] | None) -> list[float]:
    """Return the guessed class shares in the order of the sorted classes; equal shares by default.

    One number is the share of the last of two classes. InputError if they are not one positive share for each class
    that sum to 1.
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
            f"prevalence= must be the shares you expect of the {count} classes, each above 0, adding up to 1, as a "
            f"list in the order of the sorted classes or a dict; got {prevalence!r}; nothing was made"
        )
    return found


def _tried(bound: BoundMetric, counts: NDArray[np.int64]) -> BoundMetric:
    """Bind the same metric to other labels with these class counts."""
    classes: NDArray[Any] = np.asarray(bound.classes)
    return type(bound)(bound.metric, np.repeat(classes, counts), classes=classes)
