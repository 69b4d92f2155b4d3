"""Selection of the best few items of a domain that is not known beforehand, such as words, URLs or diagnoses."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.bounded_range import bounded_range_epsilon_each
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.exponential import candidates_on_grid, selection_rate
from reusable_holdout.mechanisms.selection.race import first_rings

Item = TypeVar("Item", bound="Hashable")

_ROUND_UP = 1 + 1e-9  # pays for the rounding of a logarithm


@dataclass(frozen=True, slots=True)
class UnknownDomainTop(Generic[Item]):
    """The selected items of an unknown domain.

    Attributes
    ----------
    items : tuple
        The items, best first.
    complete : bool
        True if `count` items were chosen. If not, the selection stopped at its lower limit, "bottom": there may be no
        more items, or they are so rare that naming them would reveal a row.
    """

    items: tuple[Item, ...]
    complete: bool


def unknown_domain_top(
    scores: Mapping[Item, float],
    count: int,
    *,
    epsilon: float,
    delta: float,
    known: int,
    items_per_row: int | None = None,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> UnknownDomainTop[Item]:
    """Choose the best items of an unknown domain from the items that occur in the data.

    The chosen items, their order and their number are (epsilon, delta)-differentially private, although the set of
    items that occur is private, too.

    Parameters
    ----------
    scores : Mapping[item, float]
        Score of each item that occurs in the private data, such as its count; at least 0. A missing item is the same as
        one of score 0. The order of the mapping does not matter.
    count : int
        Largest number of items to choose; at least 1.
    epsilon, delta : float
        Privacy parameters of the whole selection; epsilon finite and above 0, delta in (0, 1).
    known : int
        Number of candidates, which are the items with the largest scores; at least `count`. The next largest score
        fixes the lower limit, "bottom", at which the selection stops. With a larger number more items can be chosen,
        and the bottom lies lower. Several times `count` is a good choice.
    items_per_row : int, optional
        Largest number of items whose scores change when one row is replaced; at least 1. By default it is unlimited.
    sensitivity, seed
        As for `exponential_mechanism`.
    monotonic : bool
        Promise that a change of one row never raises one score and lowers another, as for counts when a row is added
        or removed. It halves the noise. With `items_per_row` 1 it is always true.

    Returns
    -------
    UnknownDomainTop
        The items, best first, and whether `count` of them were chosen.

    Raises
    ------
    InputError
        If a parameter is out of range, or a score is NaN, negative or beyond 2**60 grid steps; the message tells no
        score and no item.

    Notes
    -----
    The candidates are the `known` items with the largest scores (ties are broken at random), and one more candidate,
    the bottom. The bottom's score is the next largest score plus `unknown_domain_margin`. Rounds of the exponential
    mechanism without replacement choose among them, and stop when they choose the bottom.

    Between neighbours the set of candidates can change. But an item that is a candidate on only one of the two data
    sets is at most ``mD`` above the next largest score there, with ``D`` the sensitivity, and ``m = 1`` for monotonic
    scores and otherwise 2. There are at most ``min(known, items_per_row)`` such items. So with ``r`` the factor of a
    score in the exponent, one of them is chosen before the bottom with probability at most ``b = min(known,
    items_per_row) exp(-r (margin - mD))``. Without these items the rounds have bounded range and the same candidates on
    both data sets, so they are (epsilon, delta/2)-private by `bounded_range_epsilon_each`. Together delta is
    ``delta/2 + b + exp(epsilon) b``. The margin is such that the last two terms add up to half of delta.

    References
    ----------
    .. [1] Durfee and Rogers (2019), "Practical differentially private top-k selection with pay-what-you-get
       composition", its limited-domain algorithm with Gumbel noise, for counts of an added or removed row.
    .. [2] Dong, Durfee and Rogers (2020), "Optimal differential privacy composition for exponential mechanisms".

    Examples
    --------
    >>> words = {"the": 4000.0, "of": 2500.0, "holdout": 900.0, "xyzzy": 1.0}
    >>> unknown_domain_top(words, 4, epsilon=1.0, delta=1e-6, known=10, items_per_row=1, seed=0)
    UnknownDomainTop(items=('the', 'of', 'holdout'), complete=False)
    """
    monotonic = monotonic or items_per_row == 1
    margin = unknown_domain_margin(
        count=count,
        epsilon=epsilon,
        delta=delta,
        known=known,
        items_per_row=items_per_row,
        monotonic=monotonic,
    )
    # With a placeholder of score 0 an empty mapping is valid input; it is dropped with all items of score 0.
    grid, steps = candidates_on_grid([0.0, *scores.values()], epsilon=epsilon, sensitivity=sensitivity)
    if (steps < 0).any():
        raise InputError("every item's score must be at least 0; got a negative score; nothing was chosen")
    words = RandomWords(seed)
    shuffled = words.permutation(len(steps))
    order = shuffled[np.argsort(-steps[shuffled], kind="stable")]
    order = order[steps[order] > 0]
    floor = int(steps[order[known]]) if len(order) > known else 0
    looked_at = order[:known]
    bottom = floor + math.ceil(margin * grid.sensitivity)
    rate = _rate(count, epsilon=epsilon, delta=delta, sensitivity=grid.sensitivity, monotonic=monotonic)
    raced = np.append(steps[looked_at], bottom)
    rings = first_rings(raced.max() - raced, rate, min(count, len(raced)), words).tolist()
    chosen = rings[: rings.index(len(looked_at))] if len(looked_at) in rings else rings
    names = list(scores)
    return UnknownDomainTop(tuple(names[int(looked_at[place]) - 1] for place in chosen), len(chosen) == count)


def unknown_domain_margin(
    *,
    count: int,
    epsilon: float,
    delta: float,
    known: int,
    items_per_row: int | None = None,
    monotonic: bool = False,
) -> float:
    """Compute how far the bottom of `unknown_domain_top` lies above the largest score after the `known` ones.

    An item whose score is above that score by less than this distance is rarely chosen.

    Parameters
    ----------
    count, epsilon, delta, known, items_per_row, monotonic
        As in `unknown_domain_top`.

    Returns
    -------
    float
        The distance in units of the sensitivity, rounded up.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    It is ``m + ln(2 min(known, items_per_row) (1 + exp(epsilon)) / delta) / r``, with ``m = 1`` for monotonic scores
    and otherwise 2. A score in units of the sensitivity is multiplied by ``r`` in the exponent.

    Examples
    --------
    >>> round(unknown_domain_margin(count=1, epsilon=1.0, delta=1e-6, known=10, items_per_row=1, monotonic=True), 1)
    16.8
    """
    _check(count=count, known=known, items_per_row=items_per_row, delta=delta)
    monotonic = monotonic or items_per_row == 1
    rate = _rate(count, epsilon=epsilon, delta=delta, sensitivity=1, monotonic=monotonic)
    strangers = known if items_per_row is None else min(known, items_per_row)
    log_sum = math.log(2 * strangers) + epsilon + math.log1p(math.exp(-epsilon)) - math.log(delta)
    return ((1 if monotonic else 2) + log_sum / float(rate)) * _ROUND_UP


def _rate(count: int, *, epsilon: float, delta: float, sensitivity: int, monotonic: bool) -> Fraction:
    """Return the number by which each round multiplies scores in the exponent; half of delta is for composition."""
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta / 2)
    return selection_rate(epsilon=each, sensitivity=sensitivity, monotonic=monotonic)


def _check(*, count: int, known: int, items_per_row: int | None, delta: float) -> None:
    if not 1 <= count <= known:
        raise InputError(f"count is at least 1 and at most the argument known, {known}; got {count}")
    if items_per_row is not None and items_per_row < 1:
        raise InputError(f"items_per_row is at least 1, or None; got {items_per_row}")
    if not 0 < delta < 1:
        raise InputError(f"an unknown domain needs a delta in (0, 1); got {delta}")
