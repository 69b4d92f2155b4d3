"""What a guarded holdout has released, in MLflow."""

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
