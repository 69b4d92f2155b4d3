"""The missing number of a wish, or what would have to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.plan.wish import MOST_ROWS, MOST_TOLERANCE, largest, round_up

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
    """Say which single number would have to change, and to what: with any of them the wish can be met."""
    nearest = {name: find(wish, span) for name, find in _NEAREST.items() if getattr(wish, name) is not None}
    found = {name: value for name, value in nearest.items() if value is not None}
    needs = " or ".join(_WORDS[name].format(value) for name, value in found.items())
    problem = f"no plan keeps {_stated(wish, span)}"
    if wish.charges and wish.queries and wish.charges > wish.queries:
        problem = (
            f"charges must not exceed queries; got {wish.charges:,} charges and {wish.queries:,} queries"
        )
    raise PlanError(f"{problem}; it needs {needs or 'other numbers'}", found)


def _possible(wish: Wish, **changes: float) -> bool:
    """Whether a wish can be met, with some of its numbers changed; what it leaves open may be whatever is best."""
    stated = {name: getattr(wish, name) for name in Solution._fields} | changes
    missing = [name for name, value in stated.items() if value is None]
    best = {"rows": MOST_ROWS, "queries": stated["charges"], "charges": 1, "tolerance": MOST_TOLERANCE}
    numbers = {name: best[name] if value is None else value for name, value in stated.items()}
    return wish.holds(**numbers) if missing in ([], ["charges"]) else wish.serves(**numbers)


def _more_rows(wish: Wish, span: float) -> int | None:
    refused = largest(lambda rows: not _possible(wish, rows=rows), MOST_ROWS, least=cast("int", wish.rows))
    return refused + 1 if refused is not None and refused < MOST_ROWS else None


def _wider_tolerance(wish: Wish, span: float) -> float | None:
    """In the metric's unit."""
    if not _possible(wish, tolerance=MOST_TOLERANCE):
        return None
    refused, kept = cast("float", wish.tolerance), MOST_TOLERANCE
    while kept - refused > 1e-5 * kept:
        middle = (refused + kept) / 2.0
        if _possible(wish, tolerance=middle):
            kept = middle
        else:
            refused = middle
    while not _possible(wish, tolerance=round_up(kept * span) / span):
        kept = round_up(kept * span) / span * (1.0 + 1e-4)  # counts of rows are whole
    return round_up(kept * span)


def _fewer_charges(wish: Wish, span: float) -> int | None:
    return largest(lambda charges: _possible(wish, charges=charges), cast("int", wish.charges))


def _other_queries(wish: Wish, span: float) -> int | None:
    """As many as there are charges, where they are fewer; else fewer of them."""
    least, stated = wish.charges or 1, cast("int", wish.queries)
    return largest(lambda queries: _possible(wish, queries=queries), max(stated, least), least=least)


_NEAREST: dict[str, Callable[[Wish, float], float | None]] = {
    "rows": _more_rows,
    "tolerance": _wider_tolerance,
    "charges": _fewer_charges,
    "queries": _other_queries,
}
_WORDS = {
    "rows": "{:,.0f} rows",
    "tolerance": "a tolerance of {:g}",
    "charges": "at most {:,.0f} charges",
    "queries": "{:,.0f} queries",
}


def _stated(wish: Wish, span: float) -> str:
    words = [
        f"{wish.rows:,} rows" if wish.rows else "",
        f"{wish.queries:,} queries" if wish.queries else "",
        f"{wish.charges:,} charges" if wish.charges else "",
        f"a tolerance of {wish.tolerance * span:g}" if wish.tolerance else "",
        f"confidence {1.0 - wish.beta:g}",
    ]
    return ", ".join(word for word in words if word)
