"""What a certificate rests on besides the rows: class counts that are told and priced, and the numbers of a plan.

Class counts are a fact about the rows. Where a metric's confidence bound rests on them, how far its numbers are from
those at class shares that were guessed beforehand must be told, and paid for. So are the sizes of groups, where each of
their rows counts: what is guessed of them is half of the largest.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import HoldoutError, InputError, PlanError
from reusable_holdout.guard.views import Counts
from reusable_holdout.queries import PublicNumbers, is_finite
from reusable_holdout.validity import BY_DISTANCE, THEORY, edition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from reusable_holdout.guard.inputs import BoundRows
    from reusable_holdout.plan import MechanismChoice
    from reusable_holdout.queries import BoundMetric
    from reusable_holdout.validity import Policy

__all__ = [
    "CountedClassWarning",
    "decided_as_ratio",
    "numbers_at",
    "plan_numbers",
    "priced",
    "saying_what_counts",
    "warn_of_counted_class",
]

_TRIED = 6  # rows of each class, on which a metric is tried
_LEAST_SPREAD = 1e-3  # of the range, where an estimate is at a bound
_EXACT = 1.0 - 1e-12  # a factor that is told is never above the exact one, however it was rounded
_OF_ONE_CLASS = {"average_precision", "f1", "fbeta", "jaccard", "precision", "recall", "specificity"}


class CountedClassWarning(HoldoutError, UserWarning):  # noqa: N818 - a warning
    """A metric counts one of two classes that are text as positive, and which one follows from the alphabet alone.

    An error of this library as well, for where warnings are errors its words must reach the user.
    """


def warn_of_counted_class(bound: BoundMetric, *, stacklevel: int) -> None:
    """Say which of two classes a metric counts as positive, where they are text; the set of classes is public."""
    classes, metric = bound.classes, bound.metric
    if metric.kernel is None or metric.name not in _OF_ONE_CLASS:
        return
    if classes is None or len(classes) != 2 or classes.dtype.kind != "U":
        return
    other, counted = classes.tolist()
    warnings.warn(
        CountedClassWarning(
            f"{metric.name} counts {counted!r} as the positive class, the last of {other!r} and {counted!r} in sorted "
            f"order; if {other!r} is meant, guard y == {other!r}, and ask with models or predictions of the same kind, "
            "or rename the classes so that it sorts last"
        ),
        stacklevel=stacklevel + 1,
    )


def decided_as_ratio(
    bound: BoundMetric,
    *,
    policy: Policy,
    mechanism: MechanismChoice,
    threshold: float | None = None,
    noise_scale: float | None = None,
    final_noise: float | None = None,
) -> bool:
    """Whether a metric's confidence sets decide, which need no class counts, and have no noise.

    InputError if nothing else is known of the metric, and they cannot.
    """
    decided = bound.is_ratio and policy not in BY_DISTANCE and mechanism in {"numeric-sparse", "noiseless"}
    decided = decided and not (threshold or noise_scale or final_noise)
    if bound.statistic.only_as_ratio and not decided:
        raise InputError(
            f"{bound.metric.name} about a centre is decided by its rows, without noise or a threshold, and not by a "
            "ladder; nothing was made; leave these out, or state variance= in place of center="
        )
    return decided


def priced(
    bound: BoundMetric,
    prevalence: object = None,
    told: Counts | None = None,
    *,
    by_ratio: bool = False,
    theory: int = THEORY.edition,
) -> Counts | None:
    """Let a metric that is conditional on class counts or group sizes rest on what is told; None for others.

    Its public numbers become those that are told: `told` before, or now, by an edition of the theory. Of a metric that
    is decided `by_ratio` nothing is told, and the guess serves the plan. InputError if `prevalence`, the class shares
    that the owner expects, is none, or belongs to a metric without classes.
    """
    rests = _rests_on_counts(bound)
    if prevalence is not None and bound.classes is None:
        raise InputError(
            f"prevalence= is about classes, and metric {bound.metric.name!r} has none; leave it out"
        )
    if not any(rests) and not by_ratio:
        if prevalence is not None:
            _checked_prevalence(prevalence, bound.classes)
        return None
    guessed = told.prevalence if told is not None else []
    if told is None and bound.classes is not None and bound.groups is None:  # of groups sizes are told
        guessed = _checked_prevalence(prevalence, bound.classes)
    if by_ratio:
        return Counts(guessed, None, theory)
    numbers = numbers_at(bound, guessed)
    place, of = (None, theory) if told is None else (told.place, told.theory)
    code = edition(of).counts
    if place is None:
        place = code.place(_factor_to_tell(bound, numbers, rests) * _EXACT)
    bound.told(PublicNumbers.scaled(numbers, code.least(place), rests))
    return Counts(guessed, place, of)


def plan_numbers(
    rows: BoundRows,
    *,
    counts: Counts | None = None,
    estimate: float | None = None,
    spread: float | None = None,
) -> dict[str, Any]:
    """What a plan needs to know of a metric and its rows.

    Of the exam nothing but how many rows or groups it has beside those that are asked: what a metric rests on there,
    such as the rows of a class, is a fact about its labels, and is told with the final.
    """
    if counts is not None and counts.place is None:
        return _numbers_of_ratio(rows, counts, estimate, spread)
    bound, more = rows.asked, rows.every.counted_rows - rows.asked.counted_rows
    exam = 0
    if more and bound.groups is not None and rows.exam is not None:
        exam = rows.exam.effective_rows  # groups, for with them a metric is a mean over all of them
    elif more:
        exam = max(1, round(bound.effective_rows * more / bound.counted_rows))
    return {
        "rows": bound.effective_rows + exam,
        "exam": exam or None,
        "bounds": (bound.metric.lower, bound.metric.upper),
        "family": "mean" if bound.by_rows and bound.family == "bounded" else bound.family,
        "influence": float(bound.sensitivity * bound.effective_rows),
        "variation": bound.sum_of_squares * bound.effective_rows,
        "spread": bound.likely_spread if spread is None else spread,
    }


@contextmanager
def saying_what_counts(rows: BoundRows, **stated: Any) -> Iterator[dict[str, Any]]:
    """Give :func:`plan_numbers`; an error of their plan says how many rows there are, if it counts other ones.

    The owner of 8,000 rows reads else of 2,426, those that a metric rests on. Both are public: the error names the
    one, and the owner knows the other.
    """
    numbers = plan_numbers(rows, **stated)
    try:
        yield numbers
    except PlanError as error:
        every, counts = rows.every, numbers["rows"]
        if every.groups is not None or every.counted_rows == counts:
            raise
        told = f"{error}; for {every.metric.name} these {every.counted_rows:,} rows count as {counts:,}"
        raise PlanError(told, error.nearest) from None


def _numbers_of_ratio(
    rows: BoundRows, counts: Counts, estimate: object, spread: float | None
) -> dict[str, Any]:
    """Numbers of rows that are about as uncertain, at class shares that are guessed."""
    bound, metric = rows.asked, rows.asked.metric
    if spread is not None:
        raise InputError(
            f"spread, a guess of the losses' standard deviation, is for means of graded losses; that of {metric.name} "
            f"follows from the estimate; got spread={spread!r}; leave it out"
        )
    span, middle = metric.upper - metric.lower, (metric.lower + metric.upper) / 2.0
    at = float(estimate) if is_finite(estimate) else middle  # type: ignore[arg-type]
    mean = (min(max(at, metric.lower), metric.upper) - metric.lower) / span
    likely = bound.statistic.likely(counts.prevalence, mean)
    more = likely.rows * (rows.every.counted_rows / bound.counted_rows - 1.0)
    exam = max(1, round(more)) if more else 0
    return {
        "rows": max(1, round(likely.rows)) + exam,
        "exam": exam or None,
        "bounds": (metric.lower, metric.upper),
        "family": "ratio",
        "spread": max(likely.spread, _LEAST_SPREAD) * span,
    }


# ---- what class counts change


def _rests_on_counts(bound: BoundMetric) -> tuple[bool, bool, bool]:
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


def _factor_to_tell(bound: BoundMetric, guessed: PublicNumbers, rests: Sequence[bool]) -> float:
    """How many times the guessed rows the labels' own class counts are worth: private until it is told, rounded."""
    exact = bound.numbers
    ratios = (
        float(guessed.sensitivity / exact.sensitivity),
        guessed.sum_of_squares / exact.sum_of_squares,
        exact.rows / guessed.rows,
    )
    return min(ratio for ratio, rest in zip(ratios, rests, strict=True) if rest)


def _checked_prevalence(prevalence: object, classes: NDArray[Any] | None) -> list[float]:
    """Class shares that are guessed, in the order of the sorted classes; equal ones by default.

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
