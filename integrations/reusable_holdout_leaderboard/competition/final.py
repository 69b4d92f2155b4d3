"""Final standings: what teams picked, or their best, on fresh labels, which nothing was asked of before."""

from __future__ import annotations

import io
import math
import zlib
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.guard.boundary import sealed
from reusable_holdout.validity import ConfidenceBound
from reusable_holdout_leaderboard.competition.standings import places_of
from reusable_holdout_leaderboard.store.records import FinalStanding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from reusable_holdout.queries import BoundMetric, Metric
    from reusable_holdout_leaderboard.files.expected import Expected
    from reusable_holdout_leaderboard.files.labels import Labels
    from reusable_holdout_leaderboard.rules import Rules
    from reusable_holdout_leaderboard.store.rows import Finalist

__all__ = ["final_of", "packed"]

_FAST = 1


def packed(canonical: NDArray[Any]) -> bytes:
    """Predictions for the fresh rows as the store keeps them."""
    buffer = io.BytesIO()
    np.save(buffer, canonical, allow_pickle=False)
    return zlib.compress(buffer.getvalue(), _FAST)


def unpacked(content: bytes) -> NDArray[Any]:
    """What :func:`packed` packed."""
    canonical: NDArray[Any] = np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False)
    return canonical


@sealed
def final_of(
    entered: Sequence[Finalist],
    contents: Mapping[int, bytes],
    *,
    fresh: Labels,
    metric: Metric,
    rules: Rules,
    expected: Expected,
) -> list[FinalStanding]:
    """Final standings.

    With the rules' confidence all intervals contain the population values together: what is entered was decided without
    the fresh labels, so there are as many questions as submissions, all fixed before. Of a team's the best is shown,
    with the interval that it has among all.

    Parameters
    ----------
    entered : sequence of Finalist
    contents : mapping of int to bytes
        Of these submissions: predictions for the fresh rows.
    fresh : Labels
    metric : Metric
    rules : Rules
    expected : Expected
    """
    bound = metric.bind(fresh.y, classes=rules.classes)
    values = [
        metric.measure(
            fresh.y, expected.decoded(unpacked(contents[one.submission_id])), classes=rules.classes
        )
        for one in entered
    ]
    level = math.log((1 - rules.confidence) / (2 * max(1, len(entered))))
    intervals = [_interval(bound, value, level) for value in values]
    better = -1 if metric.greater_is_better else 1
    scored = sorted(
        zip(entered, values, intervals, strict=True),
        key=lambda row: (better * row[1], row[0].at, row[0].submission_id),
    )
    first = {one.team_id: place for place, (one, _, _) in reversed(list(enumerate(scored)))}
    rows = [scored[place] for place in sorted(first.values())]
    places = places_of([interval for _, _, interval in rows], greater_is_better=metric.greater_is_better)
    return [
        FinalStanding(
            rank=place.rank,
            rank_last=place.rank_last,
            team=one.team,
            team_id=one.team_id,
            value=value,
            low=low,
            high=high,
            public_value=one.value,
            submission_id=one.submission_id,
        )
        for (one, value, (low, high)), place in zip(rows, places, strict=True)
    ]


def _interval(bound: BoundMetric, value: float, level: float) -> tuple[float, float]:
    metric = bound.metric
    span = metric.upper - metric.lower
    confidence = ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)
    unit = min(max((value - metric.lower) / span, 0.0), 1.0)
    low, high = (side(unit, log_level=level) for side in (confidence.lower, confidence.upper))
    return metric.lower + float(low) * span, metric.lower + float(high) * span
