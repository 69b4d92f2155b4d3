"""Budgets that no stream and no comparison takes, each with what it is told."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["BUDGETS"]

BUDGETS: list[tuple[dict[str, Any], str]] = [
    ({"charges": 0}, "charges is at least 1; got 0"),
    ({"epsilon": 0.0}, "epsilon is finite and above 0; got 0.0"),
    ({"epsilon": math.inf}, "epsilon is finite and above 0; got inf"),
    ({"delta": 1.0}, "delta lies in [0, 1); got 1.0"),
]
