"""The missing number of a wish, or the changes with which the wish can be met and says something."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NoReturn

from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.plan.numbers import Scale, bisected, largest, round_up
from reusable_holdout.plan.wish import MOST_QUERIES, MOST_ROWS, MOST_TOLERANCE, Numbers, Wish

Possible = Callable[..., bool]

_MOST_EXPECTED = 95  # percent of the range: better scores are not named as an estimate
_WIDEST = 0.25  # of the range: answers within a wider tolerance say next to nothing
_ROUNDING = 1.0 + 1e-5  # printed numbers have six digits


@lru_cache(maxsize=1024)
def solved(wish: Wish, *, scale: Scale, kept: bool = False) -> Numbers:
    """Return the four numbers, with the missing one derived; numbers of a ledger's plan are not checked again.

    The scale of the metric is for messages. Raises InputError if more than one is missing, PlanError if no plan meets
    the wish.
    """
    numbers: dict[str, Any] = {name: getattr(wish, name) for name in Numbers._fields}
    missing = [name for name, value in numbers.items() if value is None]
    if len(missing) > 1 and wish.asks == "claims":
        unnamed = " and ".join(name for name in missing if name != "tolerance")
        raise InputError(f"a board of claims needs rows and queries; state what is missing: {unnamed}")
    if len(missing) > 1:
        raise InputError(
            "give three of rows, queries, charges and tolerance, from which the fourth is derived; "
            f"missing are {', '.join(missing)}"
        )
    for name in missing:
        numbers[name] = _derived(wish, name, numbers, scale.span)
    if None in numbers.values() or not (kept or wish.holds(Numbers(**numbers))):
        _refuse(wish, scale)
    return Numbers(**numbers)


def _derived(wish: Wish, name: str, others: dict[str, Any], span: float) -> float | None:
    """Return the best value of one number, given the others; if no number of charges serves, the nearest one."""

    def would_do(**found: float) -> bool:
        return wish.serves(Numbers(**(others | found)))

    def is_ample(wish: Wish, **found: float) -> bool:
        return wish.ample(Numbers(**(others | found)))

    if name == "rows":
        return _fewest_rows(would_do)
    if name == "queries":
        return largest(lambda queries: would_do(queries=queries), MOST_QUERIES, least=others["charges"])
    if name == "charges":
        return wish.most_charges(others["rows"], others["queries"], others["tolerance"])
    ample = _narrowest(partial(is_ample, wish))
    if ample is None or not says_something(ample, 1.0):
        return _narrowest(would_do)
    roomy = replace(wish, reserved_nats=max(wish.reserved_nats, wish.room_nats))
    wider = _narrowest(partial(is_ample, roomy)) or MOST_TOLERANCE
    return min(wider, max(ample, _widest_derived(span)))


def nearest(wish: Wish, scale: Scale, *, widest: float = MOST_TOLERANCE) -> dict[str, float]:
    """Return, for each stated number, the nearest value with which the wish can be met if only it changes.

    A tolerance that is not stated may be up to `widest`, a fraction of the range. `choices` is 0 if leaving out reveals
    and choices suffices.
    """
    would_do = partial(_possible, wish, widest)
    near: dict[str, float | None] = {}
    if wish.rows is not None:
        rows = _fewest_rows(would_do, least=wish.rows)
        near["rows"] = None if rows == wish.rows else rows
    if wish.tolerance is not None:
        near["tolerance"] = _narrowest(would_do, refused=wish.tolerance, span=scale.span)
    near["estimate"] = _likely_estimate(wish, would_do, scale)
    if wish.reserved_nats and _possible(replace(wish, reserved_nats=0.0), widest):
        near["choices"] = 0
    if wish.charges is not None:
        near["charges"] = largest(lambda charges: would_do(charges=charges), wish.charges)
    if wish.queries is not None:  # if they are fewer than the charges, as many as these; else fewer
        least = wish.charges or 1
        most = max(wish.queries, least)
        near["queries"] = largest(lambda queries: would_do(queries=queries), most, least=least)
    return {name: value for name, value in near.items() if value is not None}


def _likely_estimate(wish: Wish, would_do: Possible, scale: Scale) -> float | None:
    """Return the nearest better estimate with which the wish can be met, in whole percent of the range; else None."""
    if wish.family == "ratio":  # its rows and spread follow from the estimate
        return None

    def named(percent: int) -> float:
        return float(f"{scale.value(percent / 100.0):.4g}")

    def would_not(percent: int) -> bool:
        return not would_do(estimate=min(scale.unit(named(percent)), 1.0))

    first = max(math.floor(100.0 * wish.estimate), 50) + 1
    refused = largest(would_not, _MOST_EXPECTED, least=first)
    percent = first if refused is None else refused + 1
    return named(percent) if percent <= _MOST_EXPECTED else None


def needs(found: dict[str, float]) -> str:
    """Return the result of :func:`nearest` in words."""
    if not found:
        return "changing one number alone does not help; leave out numbers that you do not need"
    words = [_WORDS[name].format(one) for name, one in found.items()]
    for many, single in (("charges", "charge"), ("queries", "query")):
        words = [re.sub(rf"\b1 {many}", f"1 {single}", each) for each in words]
    return "it needs " + " or ".join(words)


def _refuse(wish: Wish, scale: Scale) -> NoReturn:
    """Raise a PlanError that names values of single numbers: with any one of them changed the wish can be met."""
    found = nearest(wish, scale)
    problem = f"no plan keeps {_stated(wish, scale.span)}"
    if wish.charges and wish.queries and wish.charges > wish.queries:
        problem = (
            f"charges must not exceed queries; got {wish.charges:,} charges and {wish.queries:,} queries"
        )
    raise PlanError(f"{problem}; {needs(found)}", found)


def _possible(wish: Wish, widest: float = MOST_TOLERANCE, **changes: float) -> bool:
    """Return True if a wish can be met with some of its numbers changed and open numbers at their best."""
    wish = replace(wish, estimate=changes.pop("estimate", wish.estimate))
    stated = {name: getattr(wish, name) for name in Numbers._fields} | changes
    missing = [name for name, value in stated.items() if value is None]
    best = {"rows": MOST_ROWS, "queries": stated["charges"], "charges": 1, "tolerance": widest}
    numbers = Numbers(**{name: best[name] if value is None else value for name, value in stated.items()})
    return wish.holds(numbers) if missing in ([], ["charges"]) else wish.serves(numbers)


def _fewest_rows(would_do: Possible, *, least: int = 1) -> int | None:
    """Return the smallest sufficient number of rows from `least` on, or None."""
    refused = largest(lambda rows: not would_do(rows=rows), MOST_ROWS, least=least)
    if refused is None:
        return least
    return refused + 1 if refused < MOST_ROWS else None


def _narrowest(would_do: Possible, *, refused: float = 0.0, span: float = 1.0) -> float | None:
    """Return the smallest sufficient tolerance, as a fraction of the span, rounded up to three digits.

    The result is None if the widest tolerance does not suffice.
    """
    if not would_do(tolerance=MOST_TOLERANCE):
        return None
    kept = bisected(
        lambda tolerance: would_do(tolerance=tolerance), kept=MOST_TOLERANCE, refused=refused, relative=1e-5
    )
    while not would_do(tolerance=round_up(kept * span) / span):
        kept = round_up(kept * span) / span * (1.0 + 1e-4)  # noise depends on it, and row counts are whole
    return round_up(kept * span)


_WORDS = {
    "rows": "{:,.0f} rows",
    "tolerance": "a tolerance of {:g}",
    "estimate": "estimate={:g} (if you expect it)",
    "choices": "reveals and choices left out",
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


# ---- plans that say nothing: they may be computed, but no guard is made of one unless its owner insists


def says_something(tolerance: float, span: float) -> bool:
    """Return True if a tolerance is at most a quarter of its range."""
    return tolerance <= _WIDEST * span * _ROUNDING


def check_says_something(wish: Wish, scale: Scale, tolerance: float) -> None:
    """Refuse a tolerance that says nothing; name the numbers that would do."""
    span = scale.span
    if says_something(tolerance, span):
        return
    found = {} if wish.shared.view else _nearest_that_says_something(wish, scale)
    advice = needs(found) if found else "take more rows, fewer queries or charges"
    raise PlanError(
        f"a guard's tolerance must be at most a quarter of the metric's range, {span:g}, to say anything; it would be "
        f'{tolerance:g}; {advice}, or another metric; nothing was made; pass allow={{"vacuous"}} to insist',
        found,
    )


def _nearest_that_says_something(wish: Wish, scale: Scale) -> dict[str, float]:
    if wish.tolerance is None:
        return nearest(wish, scale, widest=_widest_derived(scale.span))
    narrower = replace(wish, tolerance=_WIDEST)
    if _possible(narrower):
        return {"tolerance": _WIDEST * scale.span}
    found = nearest(narrower, scale)
    return {name: value for name, value in found.items() if name != "tolerance"}


def _widest_derived(span: float) -> float:
    """Return the widest tolerance that a plan derives, as a fraction of the range.

    It is rounded up to three digits twice: as a fraction of the range, and in the metric's unit.
    """
    tolerances = (thousandths / 1_000 for thousandths in range(round(1_000 * _WIDEST), 0, -1))
    return next(one for one in tolerances if says_something(round_up(one * span), span))
