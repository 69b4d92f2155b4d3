"""How much noise: the scales of a sparse vector mechanism, and the best division of its budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from reusable_holdout.errors import InputError

__all__ = ["NoiseScales", "check_privacy", "divided", "optimal_ratio"]


@dataclass(frozen=True, slots=True)
class NoiseScales:
    """Scales of the three noises of a sparse vector mechanism, in grid units.

    Zero means no noise: without noise on the queries there is no privacy, without it on the threshold what
    `target_charging` says.

    Parameters
    ----------
    threshold : Fraction
        Noise of the threshold.
    query : Fraction
        Noise of each comparison.
    answer : Fraction
        Noise of a released number; 0 when the mechanism releases none.

    Examples
    --------
    >>> from fractions import Fraction
    >>> NoiseScales(threshold=Fraction(2), query=Fraction(4), answer=Fraction(0)).query
    Fraction(4, 1)
    """

    threshold: Fraction
    query: Fraction
    answer: Fraction


def optimal_ratio(*, charges: int, monotonic: bool = False) -> float:
    """Ratio ``e2 / e1`` of the queries' part of the budget to the threshold's with the least noise.

    It minimises the variance of the comparison; any other ratio is as private.

    Parameters
    ----------
    charges : int
        Budget ``c``.
    monotonic : bool
        Whether a change of the data moves all queries in the same direction.

    Notes
    -----
    ``(2c)^(2/3)``, or ``c^(2/3)`` for monotonic queries.

    References
    ----------
    .. [1] Lyu, Su and Li (2017), "Understanding the sparse vector technique for differential privacy", PVLDB 10(6),
       section 4.2.

    Examples
    --------
    >>> optimal_ratio(charges=4), round(optimal_ratio(charges=8, monotonic=True), 12)
    (4.0, 4.0)
    """
    return math.cbrt(charges if monotonic else 2 * charges) ** 2


def divided(
    budget: Fraction, *, charges: int, ratio: float | None, monotonic: bool
) -> tuple[Fraction, Fraction]:
    """Scales of the threshold's and the queries' noise at sensitivity 1, with one threshold noise for all `charges`.

    Comparisons with this noise are `budget`-differentially private, whatever the ratio.

    Parameters
    ----------
    budget : Fraction
        Epsilon of the comparisons; above 0.
    charges : int
        Queries above the threshold; at least 1.
    ratio : float, optional
        ``e2 / e1``, above 0; `optimal_ratio` if None.
    monotonic : bool
        Whether a change of the data moves all queries in the same direction.

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
    """Refuse privacy parameters outside the theorems' range."""
    if charges < 1:
        raise InputError(f"charges is at least 1; got {charges}")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    if not 0 <= delta < 1:
        raise InputError(f"delta lies in [0, 1); got {delta}")
