"""How the catalogue's metrics are computed once the labels are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.scoring import Agreement, BalancedAgreement, MeanLoss, PairOrder

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from reusable_holdout.queries.metric import Metric
    from reusable_holdout.queries.targets import ClassTargets, RealTargets

__all__ = [
    "absolute_error",
    "agreement",
    "class_balanced",
    "clipped_logarithm",
    "disagreement",
    "pair_order",
    "squared_distance",
    "squared_error",
]


def agreement(_: Metric, targets: ClassTargets) -> Agreement:
    """Share of rows predicted right."""
    return Agreement(targets)


def disagreement(_: Metric, targets: ClassTargets) -> Agreement:
    """Share of rows predicted wrong."""
    return Agreement(targets, errors=True)


def class_balanced(metric: Metric, targets: ClassTargets) -> BalancedAgreement:
    """Mean of the classes' recalls; two classes must be present."""
    if np.count_nonzero(targets.counts) < 2:
        raise InputError(f"for {metric.name} the labels must hold at least two classes; got 1; use accuracy")
    return BalancedAgreement(targets)


def pair_order(metric: Metric, targets: ClassTargets) -> PairOrder:
    """Area under the ROC curve; there must be two classes, both present."""
    if len(targets.counts) != 2:
        raise InputError(
            f"for {metric.name} there must be exactly two classes; got {len(targets.counts)}; "
            "choose the positive class, or another metric"
        )
    if np.count_nonzero(targets.counts) < 2:
        raise InputError(
            f"for {metric.name} the labels must hold at least two classes; got 1; use another metric"
        )
    return PairOrder(targets)


def squared_distance(metric: Metric, targets: ClassTargets) -> MeanLoss:
    """Brier's score; of a matrix half the squared distance from the true class's corner."""
    if len(targets.counts) == 2:
        truth = targets.codes.astype(np.float64)
        return _mean(metric, targets, lambda p: np.square(p - truth))
    return _mean(metric, targets, lambda p: 0.5 * np.square(p).sum(axis=1) - _of_truth(p, targets) + 0.5)


def clipped_logarithm(metric: Metric, targets: ClassTargets) -> MeanLoss:
    """Negative logarithm of the true class's probability, raised to the parameter `clip`."""
    clip = metric.parameters["clip"]
    return _mean(metric, targets, lambda p: -np.log(np.maximum(_of_truth(p, targets), clip)))


def absolute_error(metric: Metric, targets: RealTargets) -> MeanLoss:
    """Absolute error of predictions clipped to the targets' bounds."""
    return _error(metric, targets, np.abs)


def squared_error(metric: Metric, targets: RealTargets) -> MeanLoss:
    """Squared error of predictions clipped to the targets' bounds."""
    return _error(metric, targets, np.square)


def _of_truth(p: NDArray[Any], targets: ClassTargets) -> NDArray[Any]:
    """Probability given to the true class; `p` is the last of two classes' or (rows, classes)."""
    if p.ndim == 1:
        return np.where(targets.codes == 1, p, 1 - p)
    truth: NDArray[Any] = p[np.arange(targets.rows), targets.codes]
    return truth


def _error(metric: Metric, targets: RealTargets, size: Callable[[NDArray[Any]], NDArray[Any]]) -> MeanLoss:
    lower, upper = metric.parameters["lower"], metric.parameters["upper"]
    if targets.values.min() < lower or targets.values.max() > upper:
        raise InputError(
            f"the targets must lie in [{lower:g}, {upper:g}]; got targets outside; "
            "state bounds that hold for every target, or clip the targets"
        )
    return _mean(metric, targets, lambda p: size(np.clip(p, lower, upper) - targets.values))


def _mean(
    metric: Metric, targets: ClassTargets | RealTargets, losses: Callable[[NDArray[Any]], NDArray[Any]]
) -> MeanLoss:
    return MeanLoss(
        targets.rows,
        losses,
        lower=metric.lower,
        upper=metric.upper,
        greater_is_better=metric.greater_is_better,
    )
