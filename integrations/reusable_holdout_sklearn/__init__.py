"""A guarded holdout for scikit-learn: a search, a cross-validation and a scorer that ask a guard."""

from reusable_holdout_sklearn.cross_validation import guarded_cross_validate
from reusable_holdout_sklearn.priors import PriorScorer, prior_scorer
from reusable_holdout_sklearn.scorer import GuardedScorer, guarded_scorer
from reusable_holdout_sklearn.search import TRUSTED_TYPES, GuardedSearchCV

__all__ = [
    "TRUSTED_TYPES",
    "GuardedScorer",
    "GuardedSearchCV",
    "PriorScorer",
    "guarded_cross_validate",
    "guarded_scorer",
    "prior_scorer",
]
