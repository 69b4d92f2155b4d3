"""Final standings: the entered submissions of all teams are scored on fresh labels that no answer has used before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from numpy.typing import NDArray

from reusable_holdout.certainty import ConfidenceBound, EvidenceSet
from reusable_holdout.certainty.certificate import GRID_SLACK
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.metrics import BoundMetric, Metric, bound_or_undefined
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.rules.samples import sample_of
from reusable_holdout_leaderboard.competition.ties import places_of
from reusable_holdout_leaderboard.files.forms import Expected, unpacked_fresh
from reusable_holdout_leaderboard.files.labels import Labels
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.lists import Finalist
from reusable_holdout_leaderboard.store.records import FinalStanding

__all__ = ["check_also", "final_of"]

_MOST_TERMS = 20_000_000  # rows times submissions, half a minute; beyond it, the losses' spread is not used


def check_also(rules: Rules, fresh: Labels | None) -> None:
    """Refuse additional metrics that the final standings could never show.

    Some metrics are undefined only on these particular labels, for example because a class has no row. Such a metric
    is accepted here and has no value in the final standings. A refusal would reveal something about the labels.

    Raises
    ------
    InputError
        If there are no fresh labels, or a metric does not fit this kind of labels.
    """
    if not rules.also:
        return
    if fresh is None:
        raise InputError(
            "other metrics need fresh labels, because only the final standings show them; got also="
            f"{', '.join(rules.also)} and no fresh labels; nothing was made; give fresh labels, or leave also= out"
        )
    for metric in rules.made_also():
        _bound(metric, fresh, rules)


def _bound(metric: Metric, fresh: Labels, rules: Rules) -> BoundMetric:
    return bound_or_undefined(metric, fresh.y, classes=rules.classes, sample_weight=None)


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
    """Score the entered submissions on the fresh labels, and return the final standings.

    All intervals contain their population values at the same time, with the confidence that the rules state. Entries
    and metrics were chosen without the fresh labels. So each pair of an entry and a metric is one question that was
    fixed in advance, and the failure probability is divided among these questions.

    Each team is shown with its best entry by the ranking metric. An additional metric that is not defined on the fresh
    labels is left out.

    Parameters
    ----------
    entered : sequence of Finalist
    contents : mapping of int to bytes
        Stored predictions for the fresh rows, by the number of the submission.
    fresh : Labels
    metrics : sequence of Metric
        The ranking metric, then the additional ones.
    rules : Rules
    expected : Expected
    """
    level = math.log((1 - rules.confidence) / (2 * max(1, len(entered)) * len(metrics)))
    first_bound = metrics[0].bind(fresh.y, classes=rules.classes)
    bound = [(metrics[0], first_bound), *((metric, _bound(metric, fresh, rules)) for metric in metrics[1:])]
    scores = []
    for one in entered:
        predicted = expected.decoded(unpacked_fresh(contents[one.submission_id]))
        scores.append([_scored(*two, predicted, level, submissions=len(entered)) for two in bound])
    first = [cast("_Scored", ranking) for ranking, *_ in scores]
    better = -1 if metrics[0].greater_is_better else 1

    def order(number: int) -> tuple[float, ...]:
        one = entered[number]
        return (better * first[number].value, one.at, one.submission_id)

    best: dict[int, int] = {}
    for number in sorted(range(len(entered)), key=order):
        best.setdefault(entered[number].team_id, number)
    shown = list(best.values())
    intervals = [first[number][1:] for number in shown]
    places = places_of(intervals, greater_is_better=metrics[0].greater_is_better)
    return [
        FinalStanding(
            rank=place.rank,
            rank_last=place.rank_last,
            team=entered[number].team,
            team_id=entered[number].team_id,
            public_value=entered[number].value,
            submission_id=entered[number].submission_id,
            also={
                name: other._asdict()
                for name, other in zip(rules.also, scores[number][1:], strict=True)
                if other is not None
            },
            **first[number]._asdict(),
        )
        for number, place in zip(shown, places, strict=True)
    ]


def _scored(
    metric: Metric, bound: BoundMetric, predicted: NDArray[Any], level: float, *, submissions: int
) -> _Scored | None:
    """Score one submission by one metric; return its value and interval, or None if the metric is not defined.

    Each end of the interval fails with probability at most exp(level). For a metric that is a ratio, the interval is
    computed from the losses of the single rows. The same is done for a mean of losses between the bounds, unless there
    are too many rows and submissions. Otherwise the interval follows from the score and the number of rows.
    """
    prepared = bound.prepare(predicted)
    try:
        value = bound.statistic.value(prepared)
    except ModelError:
        return None
    unit = Unit.of(metric)  # below, values are oriented so that greater is better
    graded = bound.by_rows and bound.family == "bounded"
    if bound.is_ratio or (graded and submissions * bound.rows <= _MOST_TERMS):
        sample = sample_of(bound, prepared)
        low, high = sample.ends(EvidenceSet(-level, bound.rows))
        low, high = low - GRID_SLACK, high + GRID_SLACK
    else:
        confidence = ConfidenceBound(
            bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares
        )
        own = min(max(unit.unit(value), 0.0), 1.0)
        low, high = (float(side(own, log_level=level)) for side in (confidence.lower, confidence.upper))
    ends = unit.ends(low, high)
    return _Scored(value, max(min(ends[0], value), metric.lower), min(max(ends[1], value), metric.upper))
