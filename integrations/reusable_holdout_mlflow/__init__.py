"""MLflow integration: logs the answers of a guarded holdout, and evaluates models through the guard."""

from reusable_holdout.errors import of_extra

with of_extra("mlflow", "reusable_holdout_mlflow"):
    import mlflow  # noqa: F401 - the modules below need it

from reusable_holdout_mlflow.autologging import autolog
from reusable_holdout_mlflow.ending import final_of_runs
from reusable_holdout_mlflow.selection import BestRun, best_run, register_certified
from reusable_holdout_mlflow.sync import Synced, sync
from reusable_holdout_mlflow.tracking import Tracked, track

__all__ = [
    "BestRun",
    "Synced",
    "Tracked",
    "autolog",
    "best_run",
    "final_of_runs",
    "register_certified",
    "sync",
    "track",
]
