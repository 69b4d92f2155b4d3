"""The numbers of a plan: checks of the stated ones, alone and together, and searches for the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from reusable_holdout import misfits
from reusable_holdout.certainty import THEORY
from reusable_holdout.errors import InputError
from reusable_holdout.slips import percentage

Family: TypeAlias = Literal["binomial", "mean", "bounded", "bounded-difference", "paired", "ratio"]
BY_ROWS: frozenset[Family] = frozenset({"mean", "paired", "ratio"})
"""Families of metrics whose questions are decided by the evidence of the rows, not by the score alone."""


class Scale(NamedTuple):
    """The bounds of a metric, and its direction."""

    lower: float
    upper: float
    greater_is_better: bool

    @property
    def span(self) -> float:
        """Range of the metric."""
        return self.upper - self.lower

    def unit(self, value: float) -> float:
        """Return a value of the metric in [0, 1], where greater is better."""
        return (value - self.lower if self.greater_is_better else self.upper - value) / self.span

    def value(self, unit: float) -> float:
        """Return the metric's value at a number in [0, 1], where greater is better."""
        return self.lower + unit * self.span if self.greater_is_better else self.upper - unit * self.span


def checked_bounds(bounds: object) -> tuple[float, float]:
    """Return two finite numbers, the lower first."""
    try:
        lower, upper = (float(end) for end in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        lower = upper = math.nan
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise InputError(f"bounds must be two finite numbers, the lower first; got {bounds!r}")
    return lower, upper


def choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is none of those allowed."""
    if value not in allowed:
        near = misfits.closest(value, allowed) if isinstance(value, str) else None
        hint = f"; did you mean {near!r}?" if near else ""
        raise InputError(f"{name} is one of {', '.join(allowed)}; got {value!r}{hint}")


def whole_or_none(name: str, value: object, most: int, *, least: int = 1) -> int | None:
    """Return None, or a whole number from `least` to `most`, as an int for any input type."""
    if value is None:
        return None
    fits = hasattr(value, "__index__") and not isinstance(value, bool | np.bool_ | np.ndarray)
    number = value.__index__() if fits else least - 1  # type: ignore[attr-defined]
    if not least <= number <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most:,}; got {value!r}")
    return int(number)


def whole(name: str, value: object) -> int:
    """Return a whole number of at least 1."""
    number = whole_or_none(name, value, 10**12)
    if number is None:
        raise InputError(f"{name} must be a whole number of at least 1; got None")
    return number


def wholes(name: str, values: object) -> tuple[int, ...]:
    """Return several whole numbers of at least 1, from a sequence or array; none for None."""
    if values is None:
        return ()
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InputError(f"{name} must be a list of whole numbers, such as [20]; got {values!r}")
    return tuple(whole(name, value) for value in values)


def real_or_none(name: str, value: object, **limits: float) -> float | None:
    """Return None, or a number within the limits of :func:`real`."""
    return None if value is None else real(name, value, **limits)


def real(
    name: str,
    value: object,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> float:
    """Return a finite number within the limits, as a float for any input type."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, str | bytes | bool | np.bool_) or not (
        math.isfinite(number) and least <= number <= most and above < number < below
    ):
        low = f"[{least:g}" if least > above else f"({above:g}"
        high = f"{most:g}]" if most < below else f"{below:g})"
        hint = percentage(number, most=min(most, below))
        raise InputError(f"{name} must be a number in {low}, {high}; got {value!r}{hint}")
    return number


def checked_confidence(confidence: object, *, kept: bool) -> float:
    """Return a probability of at least a half, or any probability if it comes from a ledger.

    A smaller number is probably meant as the probability of an error, and is refused.
    """
    number = real("confidence", confidence, above=0.0, below=1.0)
    if number < 0.5 and not kept:
        raise InputError(
            f"confidence must be a number in [0.5, 1), the probability that all intervals hold; got {confidence!r}; "
            f"did you mean {1.0 - number:g}?"
        )
    return number


# ---- numbers that must go together


def checked_spread(spread: float | None, span: float) -> float | None:
    """Return a standard deviation of at most half of `span`; the error asks if a percentage was meant."""
    if spread is None:
        return None
    number = real("spread", spread, above=0.0)
    most = span / 2.0
    if number > most * (1.0 + 1e-9):  # half a span, but for rounding
        hint = percentage(number, most=most) if 2.0 <= number <= 100.0 * most else ""
        raise InputError(
            f"spread must be a standard deviation of numbers whose bounds lie {span:g} apart, so at most {most:g}; got "
            f"{spread!r}{hint}; nothing was made"
        )
    return number


def asked_for(board: object, *, gates: bool) -> Literal["all", "gates", "claims"]:
    """Return the purpose of a plan: all ways to ask, gates alone, or a board of claims."""
    if board is None:
        return "gates" if gates else "all"
    if board != "claims":
        raise InputError(f'board must be "claims" or left out; got {board!r}')
    if gates:
        raise InputError("a board answers only claims, no gates; got gates=True; leave out gates=")
    return "claims"


def check_together(
    family: Family, asks: str, threshold: float | None, noise: float | None, spread: float | None
) -> None:
    """Refuse numbers that do not go together."""
    if asks == "claims" and (threshold is not None or noise):
        raise InputError(
            "claims have no noise, and may be off by four standard deviations of an honest claim's error; got "
            f"threshold={threshold!r}, noise={noise!r}; leave these out, and state prior_error= instead"
        )
    if asks == "gates" and threshold is not None:
        raise InputError(f"a gate names a score, and has no threshold; got {threshold!r}; leave it out")
    if family == "ratio" and (asks == "claims" or threshold or noise):
        raise InputError(
            "a plan for a ratio must have no noise, no threshold and no claims, because its rows decide; got "
            f"threshold={threshold!r}, noise={noise!r}; leave these out, or use family 'bounded-difference'"
        )
    if spread is not None and family not in BY_ROWS:
        raise InputError(
            "spread, a guess of the losses' standard deviation, is only for losses that take many values; for 0/1 "
            f"losses it follows from the estimate, and other metrics have none; got spread={spread!r}; leave it out"
        )


def check_order(family: Family, asks: str, order: str | None, growth_share: float | None) -> None:
    """Refuse plans for rows in time order whose intervals would rest on independent rows."""
    if growth_share and (order or asks == "claims"):
        raise InputError(
            "boards and rows in time order, whose new rows have another mean, take no growth_share; got "
            f"{growth_share!r}; nothing was made; leave it out"
        )
    if order and (asks == "claims" or family not in {"binomial", "mean"}):
        raise InputError(
            "rows in time order take metrics that are means of bounded losses over rows, such as accuracy, brier or "
            f"mae, and no board of claims; got {'a board' if asks == 'claims' else f'a metric of family {family!r}'}: "
            "its intervals need independent rows; take another metric, or leave order= out where rows are independent"
        )


# ---- searches


def round_up(value: float, digits: int = 3) -> float:
    """Round a positive number up to this number of significant digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.12g}")


def largest(holds: Callable[[int], bool], most: int, least: int = 1) -> int | None:
    """Return the largest number in [least, most] at which a condition holds; above it the condition must fail."""
    if least > most or not holds(least):
        return None
    kept, step = least, 1
    while kept + step <= most and holds(kept + step):
        kept, step = kept + step, 2 * step
    refused = min(kept + step, most + 1)
    while refused - kept > 1:
        middle = (kept + refused) // 2
        kept, refused = (middle, refused) if holds(middle) else (kept, middle)
    return kept


def bisected(
    holds: Callable[[float], bool],
    *,
    kept: float,
    refused: float,
    accuracy: float = 0.0,
    relative: float = 0.0,
) -> float:
    """Return a number at which a condition still holds, near the point where it fails.

    The condition holds at `kept` and fails at `refused`. It fails within a distance of the result that is `accuracy`
    plus the fraction `relative` of the result.
    """
    while abs(kept - refused) > accuracy + relative * kept:
        middle = (kept + refused) / 2.0
        kept, refused = (middle, refused) if holds(middle) else (kept, middle)
    return kept


STATED = (
    *("charges", "choices", "confidence", "delta", "estimate", "final_share", "growth_share", "noise"),
    *("pair_spread", "prior_error", "queries", "reveals", "spread", "threshold", "tolerance"),
)
"""Numbers of a plan that a person states."""


@dataclass(frozen=True, kw_only=True)
class SharedBudget:
    """The limits that a plan of another metric must keep: the promises of the guard's own plan.

    Attributes
    ----------
    view : int
        Number of the metric; 0 for the guard's own, which made the budget.
    told_before : float
        Nats released about the rows when the guard was made.
    charge_nats : float
        Nats of the most expensive charge of any metric; 0 for the guard's own metric, whose plan computes them.
    told_nats : float
        Nats that may be released in addition to charges while all promises hold; 0 for the guard's own metric.
    theory : int
        Edition of the theory that certifies all answers about the rows.
    noisy : bool
        True if another metric of the rows has noise: then a share of the failure probability pays for it.
    """

    view: int = 0
    told_before: float = 0.0
    charge_nats: float = 0.0
    told_nats: float = 0.0
    noisy: bool = False
    theory: int = THEORY.edition


OWN_BUDGET = SharedBudget()
"""The budget of a guard's own metric, if nothing was released when it was made."""


def same_wish(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the purpose and the stated numbers of two records of plans: all that were stated for either plan."""
    names = sorted({*one["stated"], *other["stated"], "asks"})
    return {name: one[name] for name in names}, {name: other[name] for name in names}
