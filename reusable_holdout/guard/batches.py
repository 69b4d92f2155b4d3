"""What is measured goes from process to process, and comes in batches: what those are, and must be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.errors import Halted
    from reusable_holdout.guard.answer import Answer
    from reusable_holdout.guard.kinds.check import Check
    from reusable_holdout.queries.bound import BoundMetric

__all__ = [
    "Asked",
    "Found",
    "MeasuredModel",
    "batch_priors",
    "checked_kind",
    "checked_models",
    "count_of",
    "weighed",
]

Found: TypeAlias = "NDArray[np.int64] | Literal['needless'] | None"  # None: the model failed on the holdout


class MeasuredModel(NamedTuple):
    """One fitted model, to be asked about.

    Attributes
    ----------
    model : estimator
    content : bytes
        What it is, the same in every process.
    measured : bytes or None
        What the guard measured on the holdout, or that the model failed there, concealed under the guard's key; None if
        it is still to be measured, if the query needs that.
    """

    model: Any
    content: bytes
    measured: bytes | None = None


class Asked(NamedTuple):
    """What came of a batch.

    Attributes
    ----------
    answers : list of Answer or None
        In the batch's order, up to a halt; None where the model failed on the holdout.
    halted : Halted or None
    """

    answers: list[Answer | None]
    halted: Halted | None


def count_of(several: Any, what: str) -> int:
    """How many there are, of a list, a tuple or an array; an InputError of something else."""
    if isinstance(several, str | bytes) or (not isinstance(several, Sequence) and np.ndim(several) != 1):
        raise InputError(f"{what} must be a list; got {type(several).__name__}; nothing was asked")
    return len(several)


def checked_models(models: Any) -> list[MeasuredModel]:
    """Models of a batch; an InputError if one of them is not what :meth:`Measuring.measure` gives."""
    count_of(models, "models")
    for one in models:
        sound = isinstance(one, MeasuredModel) and type(one.content) is bytes
        if not sound or not (one.measured is None or type(one.measured) is bytes):
            raise InputError(
                f"each of the models must come from this guard's measure(), unchanged; got {type(one).__name__}; "
                "nothing was asked"
            )
    return list(models)


def checked_kind(kind: object) -> Literal["evaluate", "choose"]:
    """What will be asked about a model; an InputError if nothing of that name can be."""
    if kind == "evaluate" or kind == "choose":  # noqa: PLR1714 - which narrows the type
        return kind
    raise InputError(f'kind must be "evaluate" or "choose"; got {kind!r}; nothing was measured')


def batch_priors(policy: Check, priors: Any, count: int, metric: str) -> list[float]:
    """Priors of a batch; of a ladder, whose queries state none, as many that are no numbers.

    An InputError if they are not as many as models, or one is out of bounds.
    """
    if "ladder" not in policy.name:
        return [float(one) for one in policy.asked_many(priors, None, count, metric)[0]]
    if count_of(priors, "priors") != count:
        raise InputError(
            f"there must be {count} priors, one for each model; got {len(priors)}; nothing was asked"
        )
    return [math.nan] * count


def weighed(
    found: Sequence[Found], priors: NDArray[np.float64], policy: Check, bound: BoundMetric
) -> NDArray[np.int64] | None:
    """What the policy decides on, for each query: a number, or a row of them; None if nothing was measured."""
    known = {place: one for place, one in enumerate(found) if isinstance(one, np.ndarray)}
    if not known:
        return None
    blank = np.zeros_like(next(iter(known.values())))
    measured = np.stack([known.get(place, blank) for place in range(len(found))])
    rows = measured if policy.measures_rows else measured[:, 0]
    return policy.weighed(bound, rows, priors, None)
