"""The tags by which the runs of a guard are found: the holdout's digest, its epoch, and a name for its ledger."""

from __future__ import annotations

import getpass
import hashlib
import json
import uuid
import weakref
from collections.abc import Mapping

import sqlalchemy as sa
from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelInput
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from reusable_holdout import ReusableHoldout

__all__ = ["ledger_identity", "log_dataset", "params_of", "tag", "tags_of", "takes_answers", "user"]

_PREFIX = "reusable_holdout"
_IN_MEMORY: weakref.WeakKeyDictionary[ReusableHoldout, str] = weakref.WeakKeyDictionary()
_DIGITS = 32  # length of a dataset's digest; MLflow takes 36 characters


def tag(name: str) -> str:
    """Return the name of a tag or parameter with this library's prefix."""
    return f"{_PREFIX}.{name}"


def tags_of(guard: ReusableHoldout) -> dict[str, str]:
    """Return the tags by which the runs of a guard are found and compared."""
    tags = {
        "digest": guard.digest,
        "ledger": ledger_identity(guard),
        "epoch": str(guard.epoch),
        "metric": guard.metric.name,
        "direction": "max" if guard.metric.greater_is_better else "min",
    }
    return {tag(name): value for name, value in tags.items()}


def takes_answers(tags: Mapping[str, str], guard: ReusableHoldout) -> bool:
    """Return True if a run with these tags can take a guard's answers.

    It cannot if it has answers about another holdout, epoch or ledger, because one run shows one budget.
    """
    mine = tags_of(guard)
    return all(tags.get(name, mine[name]) == mine[name] for name in map(tag, ("digest", "epoch", "ledger")))


def params_of(guard: ReusableHoldout) -> dict[str, str]:
    """Return the numbers of the guard's plan and its metric, as parameters of a run."""
    numbers = guard.plan.record() | {"metric": guard.metric.name}
    return {tag(name): str(value) for name, value in numbers.items()}


def log_dataset(
    client: MlflowClient, run_id: str, guard: ReusableHoldout, *, models: list[LoggedModelInput] | None = None
) -> None:
    """Log the holdout as an input of a run, with its name, size, metric and keyed digest, and no row of it.

    If two clients log the same dataset at the same moment, the server fails for one of them. So it is tried again.
    """
    profile = {"num_rows": guard.plan.rows, "metric": guard.metric.name, "epoch": guard.epoch}
    dataset = Dataset(
        f"holdout {guard.digest[:8]}", guard.digest[:_DIGITS], "withheld", "{}", profile=json.dumps(profile)
    )
    inputs = [DatasetInput(dataset, [InputTag("mlflow.data.context", "holdout")])]
    for last in (False, False, True):
        try:
            client.log_inputs(run_id, inputs, models=models)
        except MlflowException:
            if last:
                raise
        else:
            return


def ledger_identity(guard: ReusableHoldout) -> str:
    """Return a name for a guard's ledger: a digest of its path or address, without user and password.

    A ledger in memory gets a random name, which stays the same as long as the guard exists.
    """
    if guard.ledger is None:
        return _IN_MEMORY.setdefault(guard, f"memory-{uuid.uuid4().hex[:16]}")
    place = sa.make_url(guard.ledger)._replace(username=None, password=None).set(query={})
    return hashlib.sha256(place.render_as_string().encode()).hexdigest()[:16]


def user() -> str:
    """Return the name of the user who runs this process, for the tag in which MLflow keeps it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may have no name for its user
        return "unknown"
