"""MLflow's part of the library's demo: the guard is tracked in a database beside the demo's other files."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from reusable_holdout.guard import ReusableHoldout
from reusable_holdout_mlflow.tracking import track

__all__ = ["watch_demo"]


def watch_demo(folder: Path, uri: str) -> Callable[[ReusableHoldout], AbstractContextManager[Any]]:
    """Return a function that tracks a guard in the database at `uri`, with its artifacts in `folder`."""
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    place = folder.absolute()
    place.mkdir(parents=True, exist_ok=True)
    name = "reusable-holdout demo"
    client = MlflowClient(uri)
    if client.get_experiment_by_name(name) is None:
        client.create_experiment(name, artifact_location=(place / "mlartifacts").as_uri())
    return lambda guard: track(guard, experiment=name, tracking_uri=uri, live=False)
