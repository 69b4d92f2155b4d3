"""Thresholds of one state of the budget, for every prior, computed once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.validity.certificate import Certificate

__all__ = ["ThresholdTable"]


class ThresholdTable:
    """Thresholds after so many charges, rounded down to a table over the priors.

    An agreed answer keeps the certificate's tolerance as with the exact threshold, which is at most 2e-4 of the range
    larger. The state changes only at charges, so a question costs a look-up instead of two inversions.

    Parameters
    ----------
    certificate : Certificate
        Of the plan.
    charges : int
        Charges made.
    nats : float
        Description length of their values.

    Notes
    -----
    The exact threshold is the smaller of two smooth functions of the prior, each without a dip inside a cell of
    1/2,048 of the range, so the smaller of a cell's two ends is a lower bound on it (tested).
    """

    def __init__(self, certificate: Certificate, *, charges: int, nats: float) -> None:
        self.charges, self.nats = charges, nats
        self._lower, self._last = certificate.lower, certificate.theory.threshold_cells - 1
        self._cell = certificate.span / certificate.theory.threshold_cells
        self._cells = _cells(certificate, charges, nats)

    def at(self, prior: float) -> float:
        """Threshold at one prior, in the metric's unit."""
        cell = min(max(int((prior - self._lower) / self._cell), 0), self._last)
        return float(self._cells[cell])

    def at_each(self, priors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Thresholds at many priors; the same numbers as :meth:`at`."""
        cells = ((priors - self._lower) / self._cell).astype(np.int64)
        return self._cells[np.clip(cells, 0, self._last)]


@lru_cache(maxsize=64)
def _cells(certificate: Certificate, charges: int, nats: float) -> NDArray[np.float64]:
    """Threshold of each cell; a process that opens or verifies a ledger again finds it here."""
    theory = certificate.theory
    nodes = np.linspace(certificate.lower, certificate.upper, theory.threshold_cells + 1)
    exact = np.asarray(certificate.threshold(nodes, charges=charges, nats=nats))
    cells: NDArray[np.float64] = np.minimum(exact[:-1], exact[1:])
    if certificate.fixed_threshold is None:
        cells = np.maximum(cells - theory.threshold_slack * certificate.span, certificate.least_threshold)
    cells.flags.writeable = False
    return cells
