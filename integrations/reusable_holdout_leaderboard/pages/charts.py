"""Geometry of the budget as it is spent, in percent of the drawing: SVG attributes draw it, without style or script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["BurnDown", "burn_down_of"]


class BurnDown(NamedTuple):
    """Charges that were left after each question.

    Attributes
    ----------
    line, area : str
        Points of an SVG polyline and polygon, in a drawing of 100 by 100.
    asked, left, charges : int
    """

    line: str
    area: str
    asked: int
    left: int
    charges: int


def burn_down_of(paid: Sequence[int], *, asked: int, left: int, charges: int) -> BurnDown:
    """How the budget went, question by question.

    Parameters
    ----------
    paid : sequence of int
        Numbers of the questions that took a charge, in order.
    asked : int
        Questions so far.
    left, charges : int
        Of the whole budget.

    Examples
    --------
    >>> burn_down_of([2], asked=4, left=3, charges=4).line
    '0,0 50,0 50,25 100,25'
    """
    points = [(0.0, 0.0)]
    for spent, number in enumerate([one for one in paid if one <= asked], start=1):
        x = 100 * number / asked
        points += [(x, points[-1][1]), (x, 100 * spent / charges)]
    points.append((100.0, points[-1][1]))
    line = " ".join(f"{x:.5g},{y:.5g}" for x, y in points)
    return BurnDown(line, f"0,100 {line} 100,100", asked, left, charges)
