"""What a guarded holdout has released, in MLflow."""

from reusable_holdout_mlflow.tracking import Tracked, track

__all__ = ["Tracked", "track"]
