"""What may be asked of the holdout: metrics, their sensitivities, and exact scores on an integer grid.

This pillar knows data and no noise. A :class:`Metric` says what is measured; bound to private labels it
checks predictions and scores them in integers.
"""

from reusable_holdout.queries.bound import BoundMetric
from reusable_holdout.queries.catalogue import (
    accuracy,
    balanced_accuracy,
    brier,
    log_loss,
    mae,
    mse,
    resolve_metric,
    roc_auc,
    zero_one_loss,
)
from reusable_holdout.queries.grid import GRID, GRID_BITS
from reusable_holdout.queries.metric import Family, Metric, Response

__all__ = [
    "GRID",
    "GRID_BITS",
    "BoundMetric",
    "Family",
    "Metric",
    "Response",
    "accuracy",
    "balanced_accuracy",
    "brier",
    "log_loss",
    "mae",
    "mse",
    "resolve_metric",
    "roc_auc",
    "zero_one_loss",
]
