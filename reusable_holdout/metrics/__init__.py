"""What may be asked of the holdout: metrics, their sensitivities, and exact scores on an integer grid.

This pillar knows data and no noise. A :class:`Metric` says what is measured; bound to private labels it
checks predictions and scores them in integers.
"""

from reusable_holdout.metrics.beside_a_judge import JudgePower, judge_power
from reusable_holdout.metrics.bound import BoundMetric
from reusable_holdout.metrics.catalogue import described_metric, resolve_metric
from reusable_holdout.metrics.confusion_metrics import f1, fbeta, jaccard, matthews_corrcoef, precision
from reusable_holdout.metrics.definition import Definition, Family, Response, is_finite
from reusable_holdout.metrics.judged_metrics import pass_at, pass_hat, score, score_with_judge
from reusable_holdout.metrics.label_metrics import accuracy, zero_one_loss
from reusable_holdout.metrics.label_sets import hamming_loss, score_of_sets
from reusable_holdout.metrics.metric import Metric
from reusable_holdout.metrics.negation import negated
from reusable_holdout.metrics.probability_metrics import (
    average_precision,
    brier,
    log_loss,
    roc_auc,
    roc_auc_ovr,
)
from reusable_holdout.metrics.recalls import balanced_accuracy, recall, specificity
from reusable_holdout.metrics.samples import Counted, Explained, Likely, Ranked, Ratio
from reusable_holdout.metrics.score_table import ScoreTable
from reusable_holdout.metrics.scoring import GRID, GRID_BITS, PublicNumbers
from reusable_holdout.metrics.undefined import bound_or_undefined
from reusable_holdout.metrics.value_metrics import mae, mse, quantile_loss, r2, rmse

__all__ = [
    "GRID",
    "GRID_BITS",
    "BoundMetric",
    "Counted",
    "Definition",
    "Explained",
    "Family",
    "JudgePower",
    "Likely",
    "Metric",
    "PublicNumbers",
    "Ranked",
    "Ratio",
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
    "judge_power",
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
    "score_of_sets",
    "score_with_judge",
    "specificity",
    "zero_one_loss",
]
