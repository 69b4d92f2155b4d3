"""What a run says of the guard it follows; all of it is public."""

from __future__ import annotations

import getpass
import hashlib
import uuid
import weakref
from collections.abc import Mapping

import sqlalchemy as sa

from reusable_holdout import ReusableHoldout

__all__ = ["ledger_identity", "params_of", "tag", "tags_of", "takes_answers", "user"]

_PREFIX = "reusable_holdout"
_IN_MEMORY: weakref.WeakKeyDictionary[ReusableHoldout, str] = weakref.WeakKeyDictionary()


def tag(name: str) -> str:
    """Full name of a tag or parameter of ours."""
    return f"{_PREFIX}.{name}"


def tags_of(guard: ReusableHoldout) -> dict[str, str]:
    """Tags by which the runs of a guard are found, and what kind of guard it is."""
    tags = {
        "digest": guard.digest,
        "ledger": ledger_identity(guard),
        "epoch": str(guard.epoch),
        "policy": guard.policy,
        "mechanism": guard.plan.mechanism,
        "metric": guard.metric.name,
        "direction": "max" if guard.metric.greater_is_better else "min",
    }
    return {tag(name): value for name, value in tags.items()}


def takes_answers(tags: Mapping[str, str], guard: ReusableHoldout) -> bool:
    """Whether a run with these tags has no other guard's answers: one run is about one budget."""
    mine = tags_of(guard)
    return all(tags.get(name, mine[name]) == mine[name] for name in map(tag, ("digest", "epoch", "ledger")))


def params_of(guard: ReusableHoldout) -> dict[str, str]:
    """The plan, as parameters of a run."""
    plan = guard.plan
    numbers = plan.record()
    lower, upper = numbers.pop("bounds")
    numbers |= {"lower": lower, "upper": upper, "threshold": plan.threshold, "epsilon": plan.epsilon}
    numbers["metric"] = guard.metric.name
    return {tag(name): str(value) for name, value in numbers.items()}


def ledger_identity(guard: ReusableHoldout) -> str:
    """Name of a ledger: a digest of its place, without user and password; of this object, if it is in memory."""
    if guard.ledger is None:
        return _IN_MEMORY.setdefault(guard, f"memory-{uuid.uuid4().hex[:16]}")
    place = sa.make_url(guard.ledger).set(username=None, password=None, query={})
    return hashlib.sha256(place.render_as_string().encode()).hexdigest()[:16]


def user() -> str:
    """Who runs this process, as MLflow's own runs say it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may have no name for its user
        return "unknown"
