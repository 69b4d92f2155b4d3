"""The addition of rows to those of a guard: a view of all rows, on the budget that they have."""

from __future__ import annotations

from typing import Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard import overlap
from reusable_holdout.guard.creation import private
from reusable_holdout.guard.digests import ContentKey, is_chunked
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.known_rows import OwnedRows
from reusable_holdout.guard.new_view import Opening
from reusable_holdout.guard.stores import budgeted
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.metrics.containers import as_array
from reusable_holdout.rows import Rows

_NOTHING = "nothing was added"
_PARTS = ("X", "sample_weight", "groups")


def extended(view: GuardedView, rows: Rows, *, vacuous: bool) -> GuardedView:
    """Open the view of a guard's rows and further ones; it is the same view for the same rows, in all processes."""
    root, holdout = view.root, view.holdout
    if view.base is not view:
        raise InputError(
            "rows are added to the guard that was made with them, or by extend(); this one is of another metric or "
            f"slice; {_NOTHING}; extend that guard, then use its on() for this metric or slice"
        )
    fresh = private(rows, view.metric, holdout.bound.class_set, order=root.plan.order)
    owned = OwnedRows(fresh, rows.ids, allowed=False, nothing=_NOTHING)
    pooled = _pooled(view, fresh)
    named = Rows(fresh.X, fresh.y, sample_weight=fresh.sample_weight, groups=fresh.groups, ids=rows.ids)
    opening = Opening(
        metric=view.metric,
        sample_weight=None,
        tolerance=None,
        estimate=view.plan.estimate,
        prior_error=view.plan.stated_prior_error,
        spread=None if view.plan.family == "ratio" else view.plan.stated_spread,
        prevalence=None if view.facts.counts is None else view.facts.counts.guessed,
        vacuous=vacuous,
        name=f"{view.metric.name}, {pooled.bound.rows:,} rows",
        base=view,
        added=(*view.added, named),
        pooled=pooled,
        digest=ContentKey(root.key[0]).holdout(fresh.X, fresh.y),
        fresh=fresh,
    )
    if opening.is_open():
        return opening.open()
    overlap.check_added(owned, view)
    with budgeted(fresh, view.ledger, allowed=False, adds=True):
        return opening.open()


def _pooled(view: GuardedView, fresh: PrivateData) -> PrivateData:
    """Return the rows of a guard followed by the new ones; InputError, by public facts, if they do not fit together."""
    before = view.holdout
    for name in _PARTS:
        old, new = getattr(before, name), getattr(fresh, name)
        if (old is None) != (new is None):
            raise InputError(
                f"new rows must come with {name} if and only if the guard's rows did; {_NOTHING}"
            )
    if before.groups is not None and np.isin(np.asarray(fresh.groups), np.asarray(before.groups)).any():
        raise InputError(
            f"the groups of new rows must be new, for a group is one draw; some have rows in the guard; {_NOTHING}"
        )
    return PrivateData(
        _joined(before.X, fresh.X),
        _labels(before.y, fresh.y),
        view.metric,
        classes=None if view.metric.response == "values" else before.bound.class_set,
        sample_weight=_labels(before.sample_weight, fresh.sample_weight),
        groups=_labels(before.groups, fresh.groups),
        order=view.root.plan.order,
        opened=True,
    )


def _joined(old: Any, new: Any) -> Any:
    """Return two tables of one kind, one below the other; InputError if their columns differ, or they are chunked."""
    if old is None:
        return None
    of_both = [[str(list(getattr(one, name, ()))) for name in ("columns", "dtypes")] for one in (old, new)]
    alike = type(old) is type(new) and of_both[0] == of_both[1] and np.shape(old)[1:] == np.shape(new)[1:]
    if is_chunked(old) or not alike:
        raise InputError(
            f"new rows must lie in memory, in a {type(old).__name__} with the columns and dtypes of the guard's rows; "
            f"got {type(new).__name__} of shape {np.shape(new)}; {_NOTHING}; for chunked rows make another guard"
        )
    if hasattr(old, "tocsr"):
        from scipy import sparse  # noqa: PLC0415 - only sparse rows need it

        return sparse.vstack([old, new], format="csr")
    if hasattr(old, "vstack"):  # polars
        return old.vstack(new)
    return [*old, *new] if isinstance(old, list | tuple) else _labels(old, new)


def _labels(old: Any, new: Any) -> Any:
    """Return two columns one below the other; an index is kept if both have one."""
    if old is None:
        return None
    if all(hasattr(one, "iloc") for one in (old, new)):
        import pandas as pd  # noqa: PLC0415 - only pandas' own objects need it

        return pd.concat([old, new])
    return np.concatenate([as_array(one, what="y") for one in (old, new)])
