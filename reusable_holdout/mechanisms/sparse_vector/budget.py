"""The privacy budget of a sparse vector stream: checks of its parameters, and the division of epsilon."""

from __future__ import annotations

import math
from fractions import Fraction

from reusable_holdout.errors import InputError
from reusable_holdout.noise.calibration import optimal_ratio

__all__ = ["check_privacy", "divided"]


def divided(
    budget: Fraction, *, charges: int, ratio: float | None, monotonic: bool
) -> tuple[Fraction, Fraction]:
    """Compute the noise scales of threshold and queries at sensitivity 1, if the threshold's noise is drawn once.

    Comparisons with this noise are `budget`-differentially private at every ratio.

    Parameters
    ----------
    budget : Fraction
        Epsilon of all comparisons together; above 0.
    charges : int
        Number of queries above the threshold; at least 1.
    ratio : float, optional
        The queries' part of the budget divided by the threshold's part, above 0; `optimal_ratio` if None.
    monotonic : bool
        True if a change of the data moves all queries in the same direction.

    Raises
    ------
    InputError
        If the ratio is out of range.

    Examples
    --------
    >>> divided(Fraction(5), charges=4, ratio=None, monotonic=False)
    (Fraction(1, 1), Fraction(2, 1))
    """
    if ratio is None:
        ratio = optimal_ratio(charges=charges, monotonic=monotonic)
    if not (math.isfinite(ratio) and ratio > 0):
        raise InputError(f"the ratio e2/e1 is finite and above 0; got {ratio}; None for the best one")
    first = budget / (1 + Fraction(ratio))
    return 1 / first, (charges if monotonic else 2 * charges) / (budget - first)


def check_privacy(*, charges: int, epsilon: float, delta: float) -> None:
    """Refuse privacy parameters outside the range of the theorems."""
    if charges < 1:
        raise InputError(f"charges is at least 1; got {charges}")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    if not 0 <= delta < 1:
        raise InputError(f"delta lies in [0, 1); got {delta}")
