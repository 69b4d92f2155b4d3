"""Optuna studies whose best trials are confirmed by a guarded holdout."""

from reusable_holdout.errors import of_extra

with of_extra("optuna", "reusable_holdout_optuna"):
    import optuna  # noqa: F401 - the modules below need it

from reusable_holdout_optuna.callback import GuardCallback
from reusable_holdout_optuna.confirmation import guard_results
from reusable_holdout_optuna.study import GuardedStudy

__all__ = ["GuardCallback", "GuardedStudy", "guard_results"]
