"""Geometry of the budget as it is spent, in percent of the drawing: SVG attributes draw it, without style or script."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def burn_down_of(left: Sequence[int], *, charges: int) -> BurnDown:
    """How the budget went: after each question that was asked, what was left.

    Parameters
    ----------
    left : sequence of int
        Charges left after each question so far.
    charges : int
        The whole budget.

    Examples
    --------
    >>> burn_down_of([4, 3, 3, 3], charges=4).line
    '0,0 50,0 50,25 100,25'
    """
    points, now, asked = [(0.0, 0.0)], charges, len(left)
    for number, after in enumerate(left, start=1):
        if after != now:
            x, now = 100 * number / asked, after
            points += [(x, points[-1][1]), (x, 100 * (1 - now / charges))]
    points.append((100.0, points[-1][1]))
    line = " ".join(f"{x:.5g},{y:.5g}" for x, y in points)
    return BurnDown(line, f"0,100 {line} 100,100", asked, now, charges)
