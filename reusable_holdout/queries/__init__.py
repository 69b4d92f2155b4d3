"""What may be asked of the holdout: metrics, their sensitivities, and exact scores on an integer grid.

This pillar knows data and no noise. A :class:`Metric` says what is measured; bound to private labels it
checks predictions and scores them in integers.
"""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout.queries.bound import BoundMetric
    from reusable_holdout.queries.catalogue import described_metric, resolve_metric
    from reusable_holdout.queries.class_counts import (
        checked_prevalence,
        factor_to_tell,
        numbers_at,
        rests_on_counts,
    )
    from reusable_holdout.queries.confusion_metrics import f1, fbeta, jaccard, matthews_corrcoef, precision
    from reusable_holdout.queries.definition import Definition, Family, Response, is_finite
    from reusable_holdout.queries.following_a_judge import JudgePower, judge_power
    from reusable_holdout.queries.judged_metrics import pass_at, pass_hat, score, score_with_judge
    from reusable_holdout.queries.label_metrics import (
        accuracy,
        balanced_accuracy,
        recall,
        specificity,
        zero_one_loss,
    )
    from reusable_holdout.queries.label_sets import hamming_loss, score_of_sets
    from reusable_holdout.queries.metric import Metric
    from reusable_holdout.queries.negation import negated
    from reusable_holdout.queries.probability_metrics import (
        average_precision,
        brier,
        log_loss,
        roc_auc,
        roc_auc_ovr,
    )
    from reusable_holdout.queries.samples import Counted, Explained, Likely, Ranked, Ratio
    from reusable_holdout.queries.score_table import ScoreTable
    from reusable_holdout.queries.scoring import GRID, GRID_BITS, PublicNumbers
    from reusable_holdout.queries.undefined import bound_or_undefined
    from reusable_holdout.queries.value_metrics import mae, mse, quantile_loss, r2, rmse
else:  # whoever asks for one metric reads no other family
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".bound": ["BoundMetric"],
            ".catalogue": ["described_metric", "resolve_metric"],
            ".class_counts": [
                "checked_prevalence",
                "factor_to_tell",
                "numbers_at",
                "rests_on_counts",
            ],
            ".confusion_metrics": ["f1", "fbeta", "jaccard", "matthews_corrcoef", "precision"],
            ".following_a_judge": ["JudgePower", "judge_power"],
            ".judged_metrics": ["pass_at", "pass_hat", "score", "score_with_judge"],
            ".label_metrics": ["accuracy", "balanced_accuracy", "recall", "specificity", "zero_one_loss"],
            ".label_sets": ["hamming_loss", "score_of_sets"],
            ".definition": ["Definition", "Family", "Response", "is_finite"],
            ".metric": ["Metric"],
            ".negation": ["negated"],
            ".probability_metrics": ["average_precision", "brier", "log_loss", "roc_auc", "roc_auc_ovr"],
            ".samples": ["Counted", "Explained", "Likely", "Ranked", "Ratio"],
            ".score_table": ["ScoreTable"],
            ".scoring": ["GRID", "GRID_BITS", "PublicNumbers"],
            ".undefined": ["bound_or_undefined"],
            ".value_metrics": ["mae", "mse", "quantile_loss", "r2", "rmse"],
        },
    )

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
    "checked_prevalence",
    "described_metric",
    "f1",
    "factor_to_tell",
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
    "numbers_at",
    "pass_at",
    "pass_hat",
    "precision",
    "quantile_loss",
    "r2",
    "recall",
    "resolve_metric",
    "rests_on_counts",
    "rmse",
    "roc_auc",
    "roc_auc_ovr",
    "score",
    "score_of_sets",
    "score_with_judge",
    "specificity",
    "zero_one_loss",
]
