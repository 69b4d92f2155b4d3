"""The integer grid that every statistic is expressed on.

A statistic is normalised to [0, 1] by its bounds and then counted in units of 2**-32, so that noise can be
integers and no floating-point rounding reaches an answer.
"""

from __future__ import annotations

from typing import Final

__all__ = ["GRID", "GRID_BITS"]

GRID_BITS: Final = 32
GRID: Final = 1 << GRID_BITS
