"""Decimals with which the scores of a metric are shown."""

from __future__ import annotations

import math

__all__ = ["decimals_of"]

_MOST_DECIMALS = 4


def decimals_of(span: float) -> int:
    """Return the number of decimals for a metric's scores: four for a range of 1, fewer for larger ones.

    >>> decimals_of(1.0), decimals_of(50.0), decimals_of(250_000.0)
    (4, 3, 0)
    """
    return min(max(_MOST_DECIMALS - math.floor(math.log10(span)), 0), _MOST_DECIMALS)
