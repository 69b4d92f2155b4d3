"""What a guarded holdout has released, in MLflow."""

from typing import Any

from reusable_holdout.errors import of_extra

with of_extra("mlflow", "reusable_holdout_mlflow"):
    import mlflow  # noqa: F401 - what follows needs it

from reusable_holdout_mlflow.autologging import autolog
from reusable_holdout_mlflow.dataset import HoldoutDataset
from reusable_holdout_mlflow.judged import guarded_genai_scorer
from reusable_holdout_mlflow.registered import register_holdout
from reusable_holdout_mlflow.selection import BestRun, best_run, register_certified
from reusable_holdout_mlflow.sync import Synced, sync
from reusable_holdout_mlflow.tracking import Tracked, track

__all__ = [
    "BestRun",
    "HoldoutDataset",
    "Synced",
    "Tracked",
    "autolog",
    "best_run",
    "guarded_genai_scorer",
    "register_certified",
    "register_holdout",
    "sync",
    "track",
]


def __getattr__(name: str) -> Any:
    if name == "guarded_genai_scorer":  # it needs more of MLflow than tracking does
        from reusable_holdout_mlflow.judged import guarded_genai_scorer  # noqa: PLC0415

        return guarded_genai_scorer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
