"""How many rows two tables have in common by chance, as their own copies explain it.

Rows of one population may be equal by chance, the more often the coarser they are. If two tables of `n` and `m` rows
are independent draws, it is a shuffle which rows went into which: of those that come twice in all, `2 n` have a copy in
each for `m` that have both in the second. So, given how many the second repeats, the rows in common have at most a
negative binomial distribution, whatever the population (Przyborowski and Wilenski, 1940). What comes more often than
twice is split more evenly, and varies less.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["ANALYSTS", "OWNERS", "Copies", "Rule", "by_chance"]


_SPARE = 20.0  # bits, for columns do know of one another


class Copies(NamedTuple):
    """What of a table says how often its rows agree by chance.

    Attributes
    ----------
    rows : int
    repeated : int
        Rows that are equal to another one of the table.
    bits : float
        By how many bits two rows differ: two in as many were equal, if columns knew nothing of one another.
    """

    rows: int
    repeated: int
    bits: float = 0.0


class Rule(NamedTuple):
    """When rows in common are no chance.

    Attributes
    ----------
    error : float
        Probability of more than chance explains, at most.
    tells : bool
        Whether rows that repeat in neither table, and have bits to spare, are taken to be no two the same: then chance
        explains none.
    """

    error: float
    tells: bool


OWNERS = Rule(error=0.01, tells=True)
"""Who is refused wrongly looks, and insists."""
ANALYSTS = Rule(error=1e-6, tells=False)
"""Who is refused wrongly has paid a charge."""


def by_chance(fresh: Copies, known: Copies, rule: Rule) -> int:
    """Most rows that a table has in common with another one by chance.

    Parameters
    ----------
    fresh, known : Copies
        Independent of each other.
    rule : Rule

    Examples
    --------
    >>> adult = Copies(rows=6_512, repeated=6), Copies(rows=26_049, repeated=36)
    >>> by_chance(*adult, OWNERS)
    20
    >>> [by_chance(Copies(1_000, 0, bits), Copies(4_000, 0), OWNERS) for bits in (60.0, 30.0)]
    [0, 4]
    """
    if rule.tells and not fresh.repeated and not known.repeated:
        pairs = math.log2(fresh.rows) + math.log2(known.rows)
        if fresh.bits >= pairs + _SPARE:
            return 0
    ratio = fresh.rows / known.rows
    most = _quantile(known.repeated, ratio, rule.error)
    if fresh.rows > known.rows:  # it shows rare copies that the smaller one has no room for
        most = max(most, _quantile(fresh.repeated, 1.0 / ratio, rule.error))
    return min(most, fresh.rows, known.rows)


def _quantile(repeated: int, ratio: float, error: float) -> int:
    """Least number that a negative binomial exceeds with at most this probability.

    Its mean is `repeated * ratio` and a little more, for no copies yet are no proof that there are none.
    """
    from scipy.special import betainc  # noqa: PLC0415 - the guard loads it with its plan

    pairs, odds = repeated / 2.0 + 1.0, 2.0 * ratio
    share = odds / (1.0 + odds)
    low, high = -1, 1
    while betainc(high + 1.0, pairs, share) > error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if betainc(middle + 1.0, pairs, share) > error else (low, middle)
    return high
