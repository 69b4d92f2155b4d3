"""What a guarded holdout has released, in MLflow."""

from reusable_holdout.extras import of_extra

with of_extra("mlflow", "reusable_holdout_mlflow"):
    import mlflow  # noqa: F401 - what follows needs it

from reusable_holdout_mlflow.dataset import HoldoutDataset
from reusable_holdout_mlflow.registered import register_holdout
from reusable_holdout_mlflow.selection import BestRun, best_run, register_certified
from reusable_holdout_mlflow.sync import Synced, sync
from reusable_holdout_mlflow.tracking import Tracked, track

__all__ = [
    "BestRun",
    "HoldoutDataset",
    "Synced",
    "Tracked",
    "best_run",
    "register_certified",
    "register_holdout",
    "sync",
    "track",
]
