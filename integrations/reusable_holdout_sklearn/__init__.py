"""A guarded holdout where scikit-learn expects a scorer, a search or a cross-validation."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout_sklearn.cross_validation import guarded_cross_validate
    from reusable_holdout_sklearn.deployed import TRUSTED_TYPES
    from reusable_holdout_sklearn.priors import PriorScorer, prior_scorer
    from reusable_holdout_sklearn.scorer import GuardedScorer, guarded_scorer
    from reusable_holdout_sklearn.search import GuardedSearchCV
else:  # a scorer does without the searches, which load much of scikit-learn
    _HOMES = {
        ".cross_validation": ["guarded_cross_validate"],
        ".deployed": ["TRUSTED_TYPES"],
        ".priors": ["PriorScorer", "prior_scorer"],
        ".scorer": ["GuardedScorer", "guarded_scorer"],
        ".search": ["GuardedSearchCV"],
    }
    __getattr__, __dir__ = names_on_first_use(__name__, _HOMES)

__all__ = [
    "TRUSTED_TYPES",
    "GuardedScorer",
    "GuardedSearchCV",
    "PriorScorer",
    "guarded_cross_validate",
    "guarded_scorer",
    "prior_scorer",
]
