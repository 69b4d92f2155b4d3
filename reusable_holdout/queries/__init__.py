"""What may be asked of the holdout: metrics, their sensitivities, and exact scores on an integer grid.

This pillar knows data and no noise. A :class:`Metric` says what is measured; bound to private labels it
checks predictions and scores them in integers.
"""

from reusable_holdout.deferred import names_on_first_use

# whoever asks for one metric reads no other family
__getattr__, __dir__ = names_on_first_use(
    __name__,
    {
        ".beside_a_judge": ["JudgePower", "judge_power"],
        ".bound": ["BoundMetric"],
        ".catalogue": ["described_metric", "resolve_metric"],
        ".confusion_metrics": ["f1", "fbeta", "jaccard", "matthews_corrcoef", "precision"],
        ".judged_metrics": ["pass_at", "pass_hat", "score", "score_with_judge"],
        ".label_metrics": ["accuracy", "zero_one_loss"],
        ".label_sets": ["hamming_loss", "score_of_sets"],
        ".definition": ["Definition", "Family", "Response", "is_finite"],
        ".metric": ["Metric"],
        ".negation": ["negated"],
        ".probability_metrics": ["average_precision", "brier", "log_loss", "roc_auc", "roc_auc_ovr"],
        ".recalls": ["balanced_accuracy", "recall", "specificity"],
        ".samples": ["Counted", "Explained", "Likely", "Ranked", "Ratio"],
        ".score_table": ["ScoreTable"],
        ".scoring": ["GRID", "GRID_BITS", "PublicNumbers"],
        ".undefined": ["bound_or_undefined"],
        ".value_metrics": ["mae", "mse", "quantile_loss", "r2", "rmse"],
    },
)
