"""Final standings: what teams picked, or their best, on fresh labels, which nothing was asked of before."""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from reusable_holdout.guard.kinds.samples import sample_of

from reusable_holdout.certainty import ConfidenceBound, EvidenceSet
from reusable_holdout.certainty.certificate import GRID_SLACK
from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.metrics import BoundMetric, Metric
from reusable_holdout_leaderboard.competition.ties import places_of
from reusable_holdout_leaderboard.files.forms import Expected
from reusable_holdout_leaderboard.files.labels import Labels
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import FinalStanding
from reusable_holdout_leaderboard.store.rows import Finalist

__all__ = ["check_also", "final_of", "packed"]

_FAST = 1
_MOST_TERMS = 20_000_000  # of graded losses whose own spread is looked at, of all submissions: half a minute


def packed(canonical: NDArray[Any]) -> bytes:
    """Predictions for the fresh rows as the store keeps them."""
    buffer = io.BytesIO()
    np.save(buffer, canonical, allow_pickle=False)
    return zlib.compress(buffer.getvalue(), _FAST)


def unpacked(content: bytes) -> NDArray[Any]:
    """What :func:`packed` packed."""
    canonical: NDArray[Any] = np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False)
    return canonical


def check_also(rules: Rules, fresh: Labels | None) -> None:
    """Refuse metrics that the final standings could not show.

    Raises
    ------
    InputError
        If there are no fresh labels, or a metric is for others.
    """
    if not rules.also:
        return
    if fresh is None:
        raise InputError(
            "other metrics are shown in the final standings, which need fresh labels; got also="
            f"{', '.join(rules.also)} without; give fresh labels, or leave them out"
        )
    for metric in rules.made_also():
        metric.bind(fresh.y, classes=rules.classes)


class _Scored(NamedTuple):
    value: float
    low: float
    high: float


@sealed
def final_of(
    entered: Sequence[Finalist],
    contents: Mapping[int, bytes],
    *,
    fresh: Labels,
    metrics: Sequence[Metric],
    rules: Rules,
    expected: Expected,
) -> list[FinalStanding]:
    """Final standings.

    With the rules' confidence all intervals contain the population values together: what is entered was decided without
    the fresh labels, and so were the metrics, so there are as many questions as submissions times metrics, all fixed
    before. Of a team's submissions the best by the first metric is shown, with the intervals that it has among all.

    Parameters
    ----------
    entered : sequence of Finalist
    contents : mapping of int to bytes
        Of these submissions: predictions for the fresh rows.
    fresh : Labels
    metrics : sequence of Metric
        The one that ranks, then others.
    rules : Rules
    expected : Expected
    """
    level = math.log((1 - rules.confidence) / (2 * max(1, len(entered)) * len(metrics)))
    bound_metrics = [(metric, metric.bind(fresh.y, classes=rules.classes)) for metric in metrics]
    scores = []
    for one in entered:
        predicted = expected.decoded(unpacked(contents[one.submission_id]))
        scores.append(
            [
                _scored(metric, bound, predicted, level, by_rows=_by_rows(bound, len(entered)))
                for metric, bound in bound_metrics
            ]
        )
    first = [ranking for ranking, *_ in scores]
    better = -1 if metrics[0].greater_is_better else 1

    def order(number: int) -> tuple[float, ...]:
        one = entered[number]
        return (better * first[number].value, one.at, one.submission_id)

    best: dict[int, int] = {}
    for number in sorted(range(len(entered)), key=order):
        best.setdefault(entered[number].team_id, number)
    shown = list(best.values())
    places = places_of(
        [first[number][1:] for number in shown], greater_is_better=metrics[0].greater_is_better
    )
    return [
        FinalStanding(
            rank=place.rank,
            rank_last=place.rank_last,
            team=entered[number].team,
            team_id=entered[number].team_id,
            value=first[number].value,
            low=first[number].low,
            high=first[number].high,
            public_value=entered[number].value,
            submission_id=entered[number].submission_id,
            also={name: other._asdict() for name, other in zip(rules.also, scores[number][1:], strict=True)},
        )
        for number, place in zip(shown, places, strict=True)
    ]


def _by_rows(bound: BoundMetric, submissions: int) -> bool:
    """Whether intervals rest on the rows' own evidence: of ratios, and of graded losses if they are not too many."""
    graded = bound.by_rows and bound.family == "bounded"
    return bound.is_ratio or (graded and submissions * bound.rows <= _MOST_TERMS)


def _scored(
    metric: Metric, bound: BoundMetric, predicted: NDArray[Any], level: float, *, by_rows: bool
) -> _Scored:
    """Score of one submission; each end of its interval is missed with probability at most exp(level)."""
    prepared = bound.prepare(predicted)
    value, span = bound.statistic.value(prepared), metric.upper - metric.lower
    if by_rows:
        sample = sample_of(bound, prepared)
        low, high = sample.ends(EvidenceSet(-level, bound.rows))
        low, high = low - GRID_SLACK, high + GRID_SLACK
    else:
        confidence = ConfidenceBound(
            bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares
        )
        unit = min(max((value - metric.lower) / span, 0.0), 1.0)
        low, high = (float(side(unit, log_level=level)) for side in (confidence.lower, confidence.upper))
    ends = metric.lower + low * span, metric.lower + high * span
    return _Scored(value, max(min(ends[0], value), metric.lower), min(max(ends[1], value), metric.upper))
