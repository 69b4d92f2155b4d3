"""The missing number of a wish, or what would have to change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.plan.wish import round_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from reusable_holdout.plan.wish import Wish

__all__ = ["Solution", "solved"]


class Solution(NamedTuple):
    """Numbers of a plan; the tolerance as a fraction of the metric's range."""

    rows: int
    queries: int
    charges: int
    tolerance: float


def solved(wish: Wish, *, span: float) -> Solution:
    """Derive the number that was not stated.

    Parameters
    ----------
    wish : Wish
        With at most one of the four missing.
    span : float
        Range of the metric, for messages.

    Raises
    ------
    InputError
        If more than one is missing.
    PlanError
        If no plan meets the wish.
    """
    numbers = {name: getattr(wish, name) for name in Solution._fields}
    missing = [name for name, value in numbers.items() if value is None]
    if len(missing) > 1:
        raise InputError(
            "give three of rows, queries, charges and tolerance, so that the fourth can be derived; "
            f"missing are {', '.join(missing)}"
        )
    solvers: dict[str, Callable[..., float | None]] = {
        "rows": wish.least_rows,
        "queries": wish.most_queries,
        "charges": wish.most_charges,
        "tolerance": wish.least_tolerance,
    }
    for name in missing:
        given = {other: value for other, value in numbers.items() if other != name}
        numbers[name] = solvers[name](**given)
    if None in numbers.values() or not wish.holds(**numbers):
        _refuse(wish, span)
    return Solution(**numbers)


def _refuse(wish: Wish, span: float) -> NoReturn:
    """Say which single number would have to change, and to what."""
    charges = wish.charges or 1
    nearest: dict[str, float] = {}
    if wish.queries is not None and charges > wish.queries:
        message = f"charges must not exceed queries; got {charges} charges and {wish.queries} queries"
        raise PlanError(message + "; declare more queries", {"queries": charges})
    if wish.queries and wish.tolerance:
        rows = wish.least_rows(queries=wish.queries, charges=charges, tolerance=wish.tolerance)
        nearest["rows"] = rows or math.inf
    if wish.rows and wish.queries:
        tolerance = wish.least_tolerance(rows=wish.rows, queries=wish.queries, charges=charges)
        nearest["tolerance"] = math.inf if tolerance is None else round_up(tolerance * span)
    if wish.rows and wish.queries and wish.tolerance and wish.charges:
        fewer = wish.most_kept_charges(rows=wish.rows, queries=wish.queries, tolerance=wish.tolerance)
        nearest["charges"] = math.inf if fewer is None else fewer
    nearest = {name: value for name, value in nearest.items() if math.isfinite(value)}
    words = {
        "rows": "{:,.0f} rows",
        "tolerance": "a tolerance of {:g}",
        "charges": "at most {:,.0f} charges",
    }
    needs = " or ".join(words[name].format(value) for name, value in nearest.items())
    raise PlanError(f"no plan keeps {_stated(wish, span)}; it needs {needs or 'other numbers'}", nearest)


def _stated(wish: Wish, span: float) -> str:
    words = [
        f"{wish.rows:,} rows" if wish.rows else "",
        f"{wish.queries:,} queries" if wish.queries else "",
        f"{wish.charges:,} charges" if wish.charges else "",
        f"a tolerance of {wish.tolerance * span:g}" if wish.tolerance else "",
        f"confidence {1.0 - wish.beta:g}",
    ]
    return ", ".join(word for word in words if word)
