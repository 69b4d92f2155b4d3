"""Rows and guards whose budgets a registry knows."""

import numpy as np
from made_guards import made_guard

__all__ = ["FRESH", "ROWS", "WISH", "X", "Y", "made"]

ROWS = 600
_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(ROWS, 4))
Y = (X[:, 0] + _RNG.normal(size=ROWS) > 0).astype(int)
FRESH = np.random.default_rng(1).normal(size=(ROWS, 4))
WISH = {"queries": 20, "charges": 2, "estimate": 0.7}


def made(ledger, x=X, y=Y, **changes):
    """Guard of these rows, or of others."""
    return made_guard(x, y, ledger=ledger, **WISH | changes)
