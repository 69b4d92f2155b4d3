"""The holdout as an MLflow dataset: its name and its size, and not one row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mlflow.data.dataset import Dataset
from mlflow.data.dataset_source import DatasetSource
from mlflow.entities import Dataset as LoggedDataset
from mlflow.entities import DatasetInput, InputTag
from mlflow.exceptions import MlflowException

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from mlflow.entities import LoggedModelInput
    from mlflow.tracking import MlflowClient

__all__ = ["HoldoutDataset", "Withheld", "dataset_input", "log_dataset"]

_DIGITS = 32  # MLflow takes 36 characters


class Withheld(DatasetSource):  # type: ignore[misc] # mlflow ships no type information
    """Source of a dataset that is shown to nobody."""

    @staticmethod
    def _get_source_type() -> str:
        return "withheld"

    def load(self, **_: Any) -> Any:
        """Refuse.

        Raises
        ------
        InputError
        """
        raise InputError(
            "a guarded holdout is not loaded from MLflow; it was never put there; ask its guard with evaluate()"
        )

    @staticmethod
    def _can_resolve(raw_source: Any) -> bool:
        return False

    @classmethod
    def _resolve(cls, raw_source: Any) -> Withheld:
        raise NotImplementedError(f"a withheld source is made, not found; got {type(raw_source).__name__}")

    def to_dict(self) -> dict[Any, Any]:
        """Nothing: where the holdout lies is the analyst's affair."""
        return {}

    @classmethod
    def from_dict(cls, source_dict: dict[Any, Any]) -> Withheld:
        """Source that tells nothing."""
        return cls()


class HoldoutDataset(Dataset):  # type: ignore[misc] # mlflow ships no type information
    """A guarded holdout for ``mlflow.log_input``, without rows, labels and schema.

    It tells what the plan tells: the number of rows, the metric, the epoch; and the keyed digest.

    Parameters
    ----------
    guard : ReusableHoldout
    """

    def __init__(self, guard: ReusableHoldout) -> None:
        self._profile = {
            "num_rows": guard.plan.rows,
            "metric": guard.metric.name,
            "epoch": guard.epoch,
        }
        super().__init__(Withheld(), name=f"holdout {guard.digest[:8]}", digest=guard.digest[:_DIGITS])

    def _compute_digest(self) -> str:
        raise NotImplementedError("the digest of a holdout is keyed; only its guard can compute it")

    @property
    def profile(self) -> dict[str, Any]:
        """Number of rows, metric and epoch."""
        return dict(self._profile)

    @property
    def schema(self) -> None:
        """None: names of columns can be private too."""
        return

    def to_dict(self) -> dict[str, str]:
        """All that MLflow stores."""
        return {**super().to_dict(), "profile": json.dumps(self._profile)}


def log_dataset(
    client: MlflowClient, run_id: str, guard: ReusableHoldout, *, models: list[LoggedModelInput] | None = None
) -> None:
    """Log the holdout as an input of a run.

    The server keeps one row for each dataset, and fails if two clients make it at the same moment: then it is there.
    """
    for last in (False, False, True):
        try:
            client.log_inputs(run_id, [dataset_input(guard)], models=models)
        except MlflowException:
            if last:
                raise
        else:
            return


def dataset_input(guard: ReusableHoldout) -> DatasetInput:
    """Input of a run that was scored on the holdout."""
    dataset = LoggedDataset(**HoldoutDataset(guard).to_dict())
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "holdout")])
