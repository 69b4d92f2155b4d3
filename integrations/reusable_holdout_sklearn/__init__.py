"""A guarded holdout where scikit-learn expects a scorer."""

from reusable_holdout_sklearn.scorer import GuardedScorer, guarded_scorer

__all__ = ["GuardedScorer", "guarded_scorer"]
