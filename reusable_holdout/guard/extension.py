"""The addition of rows to those of a guard: a view of all rows, on the budget that they have."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard import overlap
from reusable_holdout.guard.creation import owned_of, private
from reusable_holdout.guard.digests import ContentKey, is_chunked
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.new_view import Opening
from reusable_holdout.guard.stores import budgeted
from reusable_holdout.guard.time_order import check_follows
from reusable_holdout.guard.trial import is_alike
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.guard.walk_forward import stacked
from reusable_holdout.metrics.containers import one_column
from reusable_holdout.rows import Rows

_NOTHING = "nothing was added"


def extended(view: GuardedView, rows: Rows, *, vacuous: bool) -> GuardedView:
    """Open the view of a guard's rows and further ones; it is the same view for the same rows, in all processes."""
    root, holdout = view.root, view.holdout
    if view.base is not view:
        raise InputError(
            "rows are added to the guard that was made with them, or by extend(); this one is of another metric or "
            f"slice; {_NOTHING}; extend that guard, then use its on() for this metric or slice"
        )
    _check_settings(rows, root.plan.order)
    fresh = private(rows, view.metric, holdout.bound.class_set, order=root.plan.order)
    if root.plan.order:
        check_follows(holdout, fresh, nothing=_NOTHING)
    owned = owned_of(fresh, rows, frozenset(), nothing=_NOTHING)
    pooled = _pooled(view, holdout, fresh)
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
        fresh=fresh if view.fresh is None else _pooled(view, view.fresh, fresh),
    )
    if opening.is_open():
        return opening.open()
    overlap.kept_of_fresh(owned, view.ledger, view.key[0], root.holdout.X, words=overlap.ADDED)
    kept = owned.kept(view.key[0], epoch=view.ledger.epoch).parts() or {}
    known = {part: base64.b64encode(text).decode() for part, text in kept.items()}
    with budgeted(fresh, view.ledger, allowed=False, adds=True):
        return opening._replace(known=known).open()


def _check_settings(rows: Rows, order: str | None) -> None:
    given = [name for name in ("classes", "prevalence") if getattr(rows, name) is not None]
    if given or rows.order not in {None, order}:
        raise InputError(
            f"added rows have the guard's classes, prevalence and order; got {(given or ['order'])[0]}=; {_NOTHING}; "
            "leave it out"
        )


def _pooled(view: GuardedView, before: PrivateData, fresh: PrivateData) -> PrivateData:
    """Return rows of a guard followed by new ones; InputError, by public facts, if they do not fit together."""
    for name in ("X", "sample_weight", "groups"):
        old, new = getattr(before, name), getattr(fresh, name)
        if (old is None) != (new is None):
            raise InputError(
                f"new rows must come with {name} if and only if the guard's rows did; {_NOTHING}"
            )
    pooled = PrivateData(
        _joined(before.X, fresh.X),
        _labels(before.y, fresh.y),
        view.metric,
        classes=None if view.metric.response == "values" else before.bound.class_set,
        sample_weight=_labels(before.sample_weight, fresh.sample_weight),
        groups=_labels(before.groups, fresh.groups),
        order=view.root.plan.order,
        opened=True,
    )
    of_each: list[Any] = [one.bound.groups for one in (pooled, before, fresh)]
    if of_each[0] is not None and len(of_each[0]) < len(of_each[1]) + len(of_each[2]):
        raise InputError(
            f"the groups of new rows must be new, for a group is one draw; some have rows in the guard; {_NOTHING}"
        )
    return pooled


def _joined(old: Any, new: Any) -> Any:
    """Return two tables of one kind, one below the other; InputError if their columns differ, or they are chunked."""
    if old is None:
        return None
    kinds = [list(one.dtypes) if hasattr(one, "columns") else [_kind(one)] for one in (old, new)]
    if is_chunked(old) or not is_alike(old, new) or kinds[0] != kinds[1]:
        raise InputError(
            "new rows must lie in memory, with the type, the columns and the dtypes of the guard's rows; got "
            f"{type(new).__name__} of shape {np.shape(new)}; {_NOTHING}; for chunked rows make another guard"
        )
    return [*old, *new] if isinstance(old, list | tuple) else stacked(old, new)


def _labels(old: Any, new: Any) -> Any:
    """Return two columns one below the other; an index is kept if both have one."""
    if old is None:
        return None
    if all(hasattr(one, "iloc") for one in (old, new)) and np.shape(old)[1:] == np.shape(new)[1:]:
        return stacked(old, new)
    parts = [one_column(np.asarray(one)) for one in (old, new)]
    if parts[0].shape[1:] != parts[1].shape[1:] or len({*map(_kind, parts)} - {"O"}) > 1:
        raise InputError(
            f"labels, weights and groups of new rows must have the kind and the columns of the guard's; {_NOTHING}"
        )
    return np.concatenate(parts)


def _kind(values: Any) -> str:
    """Return "numbers", "text", or another kind of values."""
    kind = (values if hasattr(values, "dtype") else np.asarray(values)).dtype.kind
    return "numbers" if kind in "biuf" else "text" if kind in "UT" else str(kind)
