"""How the catalogue's metrics are computed once the labels are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.errors import InputError
from reusable_holdout.queries.scoring import Agreement, MeanLoss

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from reusable_holdout.queries import confusion, derived, explained, matthews, ranks, recalls
    from reusable_holdout.queries.definition import Definition
    from reusable_holdout.queries.targets import ClassTargets, RealTargets
else:  # a metric is of one family
    confusion, derived, explained, matthews, ranks, recalls = modules_on_first_use(
        __package__, "confusion", "derived", "explained", "matthews", "ranks", "recalls"
    )

__all__ = [
    "AveragedScores",
    "Score",
    "absolute_error",
    "agreement",
    "average_precision",
    "class_balanced",
    "clipped_logarithm",
    "correlation",
    "disagreement",
    "explained_about",
    "explained_share",
    "one_versus_rest",
    "pair_order",
    "pinball",
    "recall_of_first",
    "recall_of_last",
    "root_squared_error",
    "squared_distance",
    "squared_error",
    "weighted_one_versus_rest",
]

Score = Literal["f", "jaccard", "precision"]


def agreement(_: Definition, targets: ClassTargets) -> Agreement:
    """Share of rows predicted right."""
    return Agreement(targets)


def disagreement(_: Definition, targets: ClassTargets) -> Agreement:
    """Share of rows predicted wrong."""
    return Agreement(targets, errors=True)


def class_balanced(metric: Definition, targets: ClassTargets) -> recalls.BalancedAgreement:
    """Mean of the classes' recalls; two classes must be present."""
    _check_several(metric, targets)
    return recalls.BalancedAgreement(targets)


def pair_order(metric: Definition, targets: ClassTargets) -> ranks.PairOrder:
    """Area under the ROC curve; there must be two classes, both present."""
    _check_two(metric, targets)
    return ranks.PairOrder(targets)


def average_precision(metric: Definition, targets: ClassTargets) -> ranks.AveragePrecision:
    """Area under the precision-recall curve, as steps; there must be two classes, both present."""
    _check_two(metric, targets)
    return ranks.AveragePrecision(targets)


def one_versus_rest(metric: Definition, targets: ClassTargets) -> ranks.OneVersusRest | ranks.PairOrder:
    """Mean of the classes' areas; that of two classes is the area itself."""
    return _one_versus_rest(metric, targets, weighted=False)


def weighted_one_versus_rest(
    metric: Definition, targets: ClassTargets
) -> ranks.OneVersusRest | ranks.PairOrder:
    """Mean of the classes' areas by rows; that of two classes is the area itself."""
    return _one_versus_rest(metric, targets, weighted=True)


def correlation(metric: Definition, targets: ClassTargets) -> matthews.Matthews:
    """matthews.Matthews's correlation above the parameter `floor`; there must be two classes, both present."""
    _check_two(metric, targets)
    return matthews.Matthews(
        targets, math.ceil(_decimal(metric.parameters["floor"]) * int(targets.counts.min()))
    )


def recall_of_last(metric: Definition, targets: ClassTargets) -> derived.OfRows:
    """Share of the positive class's rows that are predicted right."""
    return _recall_of(1, metric, targets)


def recall_of_first(metric: Definition, targets: ClassTargets) -> derived.OfRows:
    """Share of the negative class's rows that are predicted right."""
    return _recall_of(0, metric, targets)


@dataclass(frozen=True)
class AveragedScores:
    """F, precision or Jaccard's index of the positive class, or averaged over the classes that have rows.

    Attributes
    ----------
    score : {"f", "jaccard", "precision"}
        With the metric's parameter "beta" (by default 1) or "floor".
    average : {"binary", "macro", "weighted"}
        Of the last class alone; every class alike; by rows.
    """

    score: Score
    average: Literal["binary", "macro", "weighted"]

    def __call__(self, metric: Definition, targets: ClassTargets) -> confusion.ClassAverage:
        """Bind to labels that hold at least two classes."""
        if self.average == "binary":
            _check_two(metric, targets)
        else:
            _check_several(metric, targets)
        counts = {code: rows for code, rows in enumerate(targets.counts.tolist()) if rows}
        scores = {code: self._score(metric, rows, targets.rows - rows) for code, rows in counts.items()}
        if self.average == "binary":
            return confusion.ClassAverage(targets, scores, {0: 0, 1: 1})
        return confusion.ClassAverage(
            targets, scores, counts if self.average == "weighted" else dict.fromkeys(counts, 1)
        )

    def _score(self, metric: Definition, own: int, rest: int) -> confusion.ClassScore:
        if self.score == "f":
            return confusion.FScore(own=own, rest=rest, b=_decimal(metric.parameters.get("beta", 1.0)) ** 2)
        if self.score == "jaccard":
            return confusion.JaccardScore(own=own, rest=rest)
        return confusion.PrecisionScore(own=own, rest=rest, floor=_decimal(metric.parameters["floor"]))


def squared_distance(metric: Definition, targets: ClassTargets) -> MeanLoss:
    """Brier score; of several classes half the squared distance of the probabilities from 1 for the true class."""
    if len(targets.counts) == 2:
        truth = targets.codes.astype(np.float64)
        return _mean(metric, targets, lambda p: np.square(p - truth))
    return _mean(metric, targets, lambda p: 0.5 * np.square(p).sum(axis=1) - _of_truth(p, targets) + 0.5)


def clipped_logarithm(metric: Definition, targets: ClassTargets) -> MeanLoss:
    """Negative logarithm of the true class's probability, raised to the parameter `clip`."""
    clip = metric.parameters["clip"]
    return _mean(metric, targets, lambda p: -np.log(np.maximum(_of_truth(p, targets), clip)))


def absolute_error(metric: Definition, targets: RealTargets) -> MeanLoss:
    """Absolute error of predictions clipped to the targets' bounds."""
    return _mean(metric, targets, _of_excess(metric, targets, np.abs))


def squared_error(metric: Definition, targets: RealTargets) -> MeanLoss:
    """Squared error of predictions clipped to the targets' bounds."""
    return _mean(metric, targets, _of_excess(metric, targets, np.square))


def root_squared_error(metric: Definition, targets: RealTargets) -> derived.RootMean:
    """Root of the mean squared error, the parameter `floor` at least."""
    span = metric.upper - metric.lower
    losses = _of_excess(metric, targets, np.square)
    mean = MeanLoss(targets.rows, losses, lower=0.0, upper=span**2, greater_is_better=False)
    return derived.RootMean(mean, floor=metric.parameters["floor"] / span, unit=span)


def explained_share(metric: Definition, targets: RealTargets) -> MeanLoss:
    """One minus the squared error in units of the parameter `variance`."""
    variance = metric.parameters["variance"]
    return _mean(
        metric, targets, _of_excess(metric, targets, lambda excess: 1 - np.square(excess) / variance)
    )


def explained_about(metric: Definition, targets: RealTargets) -> explained.ExplainedAbout:
    """One minus the squared errors over those of the parameter `center`."""
    errors = _of_excess(metric, targets, np.square)
    return explained.ExplainedAbout(targets.values, errors, **metric.parameters)


def pinball(metric: Definition, targets: RealTargets) -> MeanLoss:
    """Shortfall times the parameter `quantile`, excess times the rest."""
    quantile = metric.parameters["quantile"]
    return _mean(
        metric,
        targets,
        _of_excess(metric, targets, lambda excess: np.maximum(-quantile * excess, (1 - quantile) * excess)),
    )


def _decimal(number: float) -> Fraction:
    """The number as it is written: a tenth of 50 rows is 5, though the float 0.1 is a little more."""
    return Fraction(repr(number))


def _check_several(metric: Definition, targets: ClassTargets) -> None:
    if np.count_nonzero(targets.counts) < 2:
        raise InputError(
            f"for {metric.name} the labels must hold at least two classes; got 1; use accuracy or a mean loss"
        )


def _check_two(metric: Definition, targets: ClassTargets) -> None:
    if len(targets.counts) != 2:
        raise InputError(
            f"for {metric.name} there must be exactly two classes; got {len(targets.counts)}; "
            "choose the positive class, or a metric averaged over classes"
        )
    _check_several(metric, targets)


def _one_versus_rest(
    metric: Definition, targets: ClassTargets, *, weighted: bool
) -> ranks.OneVersusRest | ranks.PairOrder:
    _check_several(metric, targets)
    if len(targets.counts) == 2:
        return ranks.PairOrder(targets)
    counts = {code: rows for code, rows in enumerate(targets.counts.tolist()) if rows}
    return ranks.OneVersusRest(targets, counts if weighted else dict.fromkeys(counts, 1))


def _recall_of(code: int, metric: Definition, targets: ClassTargets) -> derived.OfRows:
    _check_two(metric, targets)
    rows = np.flatnonzero(targets.codes == code)
    return derived.OfRows(targets.rows, rows, Agreement(targets.part(rows)), family="binomial")


def _of_truth(p: NDArray[Any], targets: ClassTargets) -> NDArray[Any]:
    """Probability given to the true class; `p` is the last of two classes' or (rows, classes)."""
    if p.ndim == 1:
        return np.where(targets.codes == 1, p, 1 - p)
    truth: NDArray[Any] = p[np.arange(targets.rows), targets.codes]
    return truth


def _of_excess(
    metric: Definition, targets: RealTargets, size: Callable[[NDArray[Any]], NDArray[Any]]
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Losses that depend on the prediction, clipped to the targets' bounds, less the target."""
    lower, upper = metric.parameters["lower"], metric.parameters["upper"]
    if targets.values.min() < lower or targets.values.max() > upper:
        raise InputError(
            f"the targets must lie in [{lower:g}, {upper:g}]; got targets outside; "
            "state bounds that hold for every target, or clip the targets"
        )
    return lambda p: size(np.clip(p, lower, upper) - targets.values)


def _mean(
    metric: Definition, targets: ClassTargets | RealTargets, losses: Callable[[NDArray[Any]], NDArray[Any]]
) -> MeanLoss:
    """Mean over the rows of the losses; where a row has several, of their mean."""
    return MeanLoss(
        targets.rows,
        losses if targets.outputs == 1 else lambda query: losses(query).mean(axis=1),
        lower=metric.lower,
        upper=metric.upper,
        greater_is_better=metric.greater_is_better,
    )
