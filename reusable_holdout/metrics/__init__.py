"""Metrics that a guard computes on the holdout: their sensitivities, and their exact scores on an integer grid.

This package handles data and adds no noise. A :class:`Metric` defines what is computed. Bound to private labels, it
checks predictions and scores them in integers.
"""

from reusable_holdout.metrics.bound import BoundMetric
from reusable_holdout.metrics.confusion_metrics import f1, fbeta, jaccard, matthews_corrcoef, precision
from reusable_holdout.metrics.definition import Definition, Response, is_finite
from reusable_holdout.metrics.ids import ScoreTable
from reusable_holdout.metrics.judged import pass_at, pass_hat, score
from reusable_holdout.metrics.label_metrics import (
    accuracy,
    balanced_accuracy,
    hamming_loss,
    recall,
    specificity,
    zero_one_loss,
)
from reusable_holdout.metrics.mean_losses import brier, log_loss, mae, mse, negated, quantile_loss
from reusable_holdout.metrics.metric import Metric, bound_or_undefined
from reusable_holdout.metrics.names import described_metric, resolve_metric
from reusable_holdout.metrics.ranks import average_precision, roc_auc, roc_auc_ovr
from reusable_holdout.metrics.scoring import GRID, Family, PublicNumbers
from reusable_holdout.metrics.squared_errors import r2, rmse

__all__ = [
    "GRID",
    "BoundMetric",
    "Definition",
    "Family",
    "Metric",
    "PublicNumbers",
    "Response",
    "ScoreTable",
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "bound_or_undefined",
    "brier",
    "described_metric",
    "f1",
    "fbeta",
    "hamming_loss",
    "is_finite",
    "jaccard",
    "log_loss",
    "mae",
    "matthews_corrcoef",
    "mse",
    "negated",
    "pass_at",
    "pass_hat",
    "precision",
    "quantile_loss",
    "r2",
    "recall",
    "resolve_metric",
    "rmse",
    "roc_auc",
    "roc_auc_ovr",
    "score",
    "specificity",
    "zero_one_loss",
]
