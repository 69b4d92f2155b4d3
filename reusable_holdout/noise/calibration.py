"""Mechanisms on which guards run, or ran in earlier versions: their noise, their privacy cost, their integer core."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from reusable_holdout.errors import InputError
from reusable_holdout.noise.composition import LARGEST_EXPONENT, composed_epsilon

GuardMechanism: TypeAlias = Literal["numeric-sparse", "standard-svt", "target-charging", "noiseless"]

_COMPARISON = 20.0  # 2**2 + 4**2: sum of squared scales in Thresholdout's comparison, which the others match
_MOST_PARTS = 1_000_000  # time and memory of the optimal composition grow with the parts


@dataclass(frozen=True, slots=True)
class Calibration:
    """The noise scales of one mechanism with one budget, in units of the plan's noise scale ``s``.

    At the same ``s`` the noise of a comparison has the same variance under all mechanisms with noise. Guards run on
    "numeric-sparse" or "noiseless". The scales of "standard-svt" and "target-charging" are needed only to verify
    ledgers of earlier versions.

    Parameters
    ----------
    mechanism : {"numeric-sparse", "standard-svt", "target-charging", "noiseless"}
        Name of the mechanism.
    charges : int
        Budget C, the number of charges; at least 0.

    Raises
    ------
    InputError
        If the mechanism's name is unknown.

    Notes
    -----
    ===============  ============================  =======================  ==========================
    mechanism        threshold noise               comparison's noise       charged value's noise
    ===============  ============================  =======================  ==========================
    numeric-sparse   Lap(2s), renewed by a charge  Lap(4s)                  Lap(s), fresh
    standard-svt     Lap(b), held for good         Lap((2C)^(1/3) b)        Lap(s), fresh
    target-charging  none                          Lap(sqrt(20) s)          the comparison's, released
    noiseless        none                          none                     none
    ===============  ============================  =======================  ==========================

    Here ``b = sqrt(20 / (1 + (2C)^(2/3))) s``, for the best division of the privacy budget between the threshold and
    the queries.

    References
    ----------
    .. [1] Dwork et al. (2015), "Generalization in Adaptive Data Analysis and Holdout Reuse", Figure 1.
    .. [2] Lyu, Su and Li (2017), "Understanding the sparse vector technique for differential privacy", section 4.2.
    .. [3] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive computations",
       Lemma 2.4.

    Examples
    --------
    >>> Calibration("numeric-sparse", 3).scales
    (2.0, 4.0, 1.0)
    >>> threshold, query, _ = Calibration("standard-svt", 4).scales
    >>> threshold, query, round(threshold**2 + query**2, 9)
    (2.0, 4.0, 20.0)
    """

    mechanism: GuardMechanism
    charges: int

    def __post_init__(self) -> None:
        if self.mechanism not in get_args(GuardMechanism):
            known = ", ".join(get_args(GuardMechanism))
            raise InputError(f"mechanism is one of {known}; got {self.mechanism!r}")

    @property
    def scales(self) -> tuple[float, float, float]:
        """Noise scales of the threshold, of a comparison and of a charged value, in units of ``s``."""
        if self.mechanism == "numeric-sparse":
            return 2.0, 4.0, 1.0
        if self.mechanism == "target-charging":
            return 0.0, math.sqrt(_COMPARISON), math.sqrt(_COMPARISON)
        if self.mechanism == "noiseless":
            return 0.0, 0.0, 0.0
        threshold = math.sqrt(_COMPARISON / (1.0 + optimal_ratio(charges=self.charges)))
        return threshold, threshold * math.cbrt(2 * self.charges), 1.0

    @property
    def threshold_draws(self) -> int:
        """Number of draws of the threshold's noise: the first, and one for each charge that renews it."""
        return self.charges + 1 if self.mechanism == "numeric-sparse" else 1

    @property
    def releases_the_comparison(self) -> bool:
        """True if the value that a charge releases is the noisy number that was compared."""
        return self.mechanism == "target-charging"

    def epsilon(self, *, each: float, delta: float, told: int = 0) -> float:
        """Compute the epsilon of everything that is released, at a given delta.

        It is infinite without noise, and for mechanisms of earlier versions.

        Parameters
        ----------
        each : float
            Sensitivity of a score divided by ``s``; infinite without noise.
        delta : float
            Privacy parameter of everything released, in [0, 1).
        told : int
            Number of values released in addition to those of charges, each with the noise of a charged value.

        Examples
        --------
        >>> Calibration("numeric-sparse", 2).epsilon(each=0.25, delta=0.0)
        1.0
        """
        if self.mechanism == "numeric-sparse":
            return _composed(each, 2 * self.charges + told, delta)
        return math.inf


def _composed(each: float, parts: int, delta: float) -> float:
    """Compute the epsilon of `parts` releases of epsilon `each` together: their sum, or less if delta is above 0."""
    if each > LARGEST_EXPONENT or parts > _MOST_PARTS:
        return each * parts
    whole = float(Fraction(repr(float(each))) * parts)  # the same sum as `basic_composition` computes
    return min(whole, composed_epsilon(epsilon=each, count=parts, delta=delta))


def optimal_ratio(*, charges: int, monotonic: bool = False) -> float:
    """Compute the ratio ``e2 / e1`` that minimises the noise of a comparison in the sparse vector technique.

    The privacy budget is divided into ``e1`` for the threshold and ``e2`` for the queries. The ratio minimises the
    variance of the comparison. Every other ratio gives the same privacy.

    Parameters
    ----------
    charges : int
        Number of charges ``c``.
    monotonic : bool
        True if a change of the data moves all queries in the same direction.

    Notes
    -----
    The ratio is ``(2c)^(2/3)``, or ``c^(2/3)`` for monotonic queries.

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
