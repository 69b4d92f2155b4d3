"""What a question states besides its subject: priors, tolerances, names; checked before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.units import Unit
from reusable_holdout.metrics.containers import as_array, one_column
from reusable_holdout.plan import round_up
from reusable_holdout.rules import Floats
from reusable_holdout.slips import percentage
from reusable_holdout.ways import State
from reusable_holdout.ways.check import Check

__all__ = [
    "check_tolerances_kept",
    "checked_names",
    "checked_priors",
    "checked_series",
    "checked_tolerances",
    "tolerance_unit",
]

_NO_NUMBERS = (str, bytes, bytearray, bool, np.bool_)
_GRID = 2**28  # tolerances that differ by less are the same question
_BISECTIONS = 40


def checked_priors(priors: Any, count: int, unit: Unit, metric: str, *, several: bool) -> Floats:
    """Return priors in [0, 1]; InputError if one is missing, no number, or beyond the metric's bounds."""
    if priors is None:
        raise InputError(
            "a prior must be stated, the analyst's own estimate of the score; got none; pass prior=; nothing was asked"
        )
    if not several:
        return np.array([unit.unit(_number(priors, unit, metric))])
    column = priors if isinstance(priors, np.ndarray) else as_array(priors, what="priors")
    given = one_column(column)
    if given.shape != (count,):
        raise InputError(
            f"priors must have shape ({count},), one for each question; got {given.shape}; nothing was asked"
        )
    if given.dtype.kind not in "fiu":
        raise InputError(f"priors must be numbers; got dtype {given.dtype}; pass one float for each question")
    stated = given.astype(np.float64)
    wrong = np.flatnonzero(~((stated >= unit.lower) & (stated <= unit.upper)))
    if len(wrong):
        _number(float(stated[wrong[0]]), unit, metric)
    if unit.is_plain:
        return np.array(stated)
    return np.array([unit.unit(one) for one in stated.tolist()])


def _number(prior: Any, unit: Unit, metric: str) -> float:
    try:
        number = float(prior)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    odd = isinstance(prior, _NO_NUMBERS) or np.ndim(prior) or np.asarray(prior).dtype.kind not in "fiuO"
    if odd or not unit.lower <= number <= unit.upper:
        hint = percentage(number, most=unit.upper)
        raise InputError(
            f"a prior must be a number in [{unit.lower:g}, {unit.upper:g}], the range of {metric}; got {prior!r}{hint}"
            "; nothing was asked and nothing was charged"
        )
    return number


def checked_tolerances(tolerances: Any, count: int, unit: Unit) -> Floats | None:
    """Return the tolerances that questions name for themselves, in [0, 1]; None if they name none."""
    if tolerances is None:
        return None
    try:
        given = np.atleast_1d(np.asarray(tolerances))
        numbers = all(np.asarray(one).dtype.kind in "fiuO" for one in given.ravel().tolist())
        limits = given.astype(np.float64) / unit.span if numbers else np.zeros(0)
    except (TypeError, ValueError, OverflowError):
        limits = np.zeros(0)
    if limits.shape != (count,) or not ((limits >= 1.0 / _GRID) & (limits <= 1.0)).all():
        raise InputError(
            f"tolerances must be {count} numbers in (0, {unit.span:g}], one for each question; got {tolerances!r}; "
            "nothing was asked and nothing was charged"
        )
    return limits


def tolerance_unit(tolerance: float) -> int:
    """Return a tolerance on the grid that tells questions apart."""
    return round(tolerance * _GRID)


def check_tolerances_kept(
    way: Check, priors: Floats, tolerances: Floats | None, state: State, unit: Unit
) -> None:
    """Refuse tolerances that cannot be kept now, before anything is decided; the error names one that can be."""
    for place in way.check_room(priors, tolerances, state) if tolerances is not None else []:
        prior, refused, length = float(priors[place]), float(tolerances[place]), way.length(state)  # type: ignore[index]
        kept = 1.0
        for _ in range(_BISECTIONS):
            middle = (refused + kept) / 2.0
            refused, kept = (refused, middle) if way.rule.keeps(prior, middle, length) else (middle, kept)
        raise InputError(
            f"a tolerance must be at least {round_up(kept * unit.span):g} at this prior after {state.charges} charges; "
            f"got {float(tolerances[place]) * unit.span:g}; nothing was asked and nothing was charged; widen it"  # type: ignore[index]
        )


def checked_names(names: Sequence[str] | None, count: int) -> list[str]:
    """Return the names of questions, by default empty; InputError if they are not text, or not as many."""
    if names is None:
        return [""] * count
    labels = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if len(labels) != count or not all(isinstance(label, str) and _is_unicode(label) for label in labels):
        raise InputError(
            f"names must be text, one for each question; {count} asked, {len(labels)} came or one is no text"
        )
    return labels


def checked_series(series: object, *, by_series: bool) -> str:
    """Return the name of a series; InputError if it is no text, or one is named where there are none."""
    (name,) = checked_names([series], 1)  # type: ignore[list-item]
    if name and not by_series:
        raise InputError(
            f"a series of answers, such as one team's, belongs to a board of claims; got {series!r}; leave it out; "
            "nothing was asked"
        )
    return name


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
