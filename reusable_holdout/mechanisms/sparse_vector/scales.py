"""The noise scales of the sparse vector streams; each stream divides its epsilon among its noises."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, TypeAlias

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.composition import optimal_epsilon_each
from reusable_holdout.noise.calibration import optimal_ratio
from reusable_holdout.noise.sparse_vector import NoiseScales

Composition: TypeAlias = Literal["advanced", "optimal"]
Split: TypeAlias = Literal["lecture", "book"]

_ROUND_UP = 1 + Fraction(1, 2**48)  # pays for the rounding of a few floating-point operations: more noise
_ROUND_DOWN = 1 - Fraction(1, 2**30)  # pays for the rounding of a composition


def sparse_scales(
    *,
    charges: int,
    epsilon: float,
    delta: float = 0.0,
    composition: Composition = "advanced",
    ratio: float | None = 1.0,
    monotonic: bool = False,
    sensitivity: int,
) -> NoiseScales:
    """Compute the noise scales of Sparse.

    A `SparseVector` with these scales that releases no number is (epsilon, delta)-differentially private.

    Parameters
    ----------
    charges : int
        Number ``c`` of charges; at least 1.
    epsilon, delta : float
        Privacy parameters of the whole stream.
    composition : {"advanced", "optimal"}
        Theorem for the composition of rounds if delta is above 0: the book's [1]_, or the best possible.
    ratio : float, optional
        The queries' part of a round's epsilon divided by the threshold's part, above 0. The book's ratio is 1; None
        stands for the ratio with the least noise, `optimal_ratio` of one charge.
    monotonic : bool
        True if a change of the data moves all queries in the same direction, as counts do.
    sensitivity : int
        Largest change of one query, grid units.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Let ``e`` be epsilon and ``d`` delta. The threshold's scale ``s`` is ``2c/e``. With delta above 0 it is ``sqrt(32 c
    ln(1/d))/e``, or ``2/e0`` where ``c`` rounds of epsilon ``e0`` compose optimally to (e, d). The queries' scale is
    ``2 s``. Both are multiplied by the sensitivity. Each round is `standard_svt_scales` with one charge. So with
    another ratio ``r`` the threshold's scale is ``s (1+r) / 2`` and the queries' ``s (1+r) / r``, and half of the
    latter if queries are monotonic.

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithm 2, Theorem 3.25.

    Examples
    --------
    >>> sparse_scales(charges=3, epsilon=0.5, sensitivity=1)
    NoiseScales(threshold=Fraction(12, 1), query=Fraction(24, 1), answer=Fraction(0, 1))
    """
    check_privacy(charges=charges, epsilon=epsilon, delta=delta)
    _check_composition(composition)
    if composition == "advanced" and delta > 0:
        each = 2 / composed_scale(charges=charges, epsilon=epsilon, delta=delta)
    else:
        each = epsilon_of_a_round(charges=charges, epsilon=epsilon, delta=delta)
    threshold, query = _divided(each, charges=1, ratio=ratio, monotonic=monotonic)
    return NoiseScales(sensitivity * threshold, sensitivity * query, Fraction(0))


def numeric_sparse_scales(
    *,
    charges: int,
    epsilon: float,
    delta: float = 0.0,
    split: Split = "lecture",
    composition: Composition = "advanced",
    sensitivity: int,
) -> NoiseScales:
    """Compute the noise scales of NumericSparse.

    A `SparseVector` with these scales is (epsilon, delta)-differentially private, the released numbers included.

    Parameters
    ----------
    charges, epsilon, delta, composition, sensitivity
        As for `sparse_scales`, with the same errors.
    split : {"lecture", "book"}
        The division of epsilon if delta is above 0 and composition is advanced.

    Notes
    -----
    Let ``e`` be epsilon and ``d`` delta. Let ``s(x) = 2c/x``, or ``sqrt(32 c ln(2/d))/x`` with delta above 0. The
    scales are ``s(e1)`` for the threshold, ``2 s(e1)`` for queries and ``s(e2)`` for answers, times the sensitivity.
    "lecture" means ``e1 = 8e/9, e2 = 2e/9``. "book" means ``e1 = sqrt(512) e / (sqrt(512)+1)``, ``e2 = 2e /
    (sqrt(512)+1)``, where the ``e`` in ``e2`` is missing in the book's text. With delta 0 both mean the lecture's.

    With optimal composition a round has epsilon ``e0``, of which the comparison takes ``8/9`` and the number ``1/9``.
    The scales are ``9/(4 e0)`` for the threshold, twice that for queries, and ``9/e0`` for answers. At epsilon 1, delta
    1e-6 and 50 charges or more, the lecture's constants need 2.6 times this noise. The book's constants need 2.4 times
    this noise in the comparisons and 6.8 times in the numbers.

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithm 3, Theorem 3.28.
    .. [2] Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy", Theorem 3.3.

    Examples
    --------
    >>> numeric_sparse_scales(charges=1, epsilon=9.0, sensitivity=4)
    NoiseScales(threshold=Fraction(1, 1), query=Fraction(2, 1), answer=Fraction(4, 1))
    """
    check_privacy(charges=charges, epsilon=epsilon, delta=delta)
    _check_composition(composition)
    comparisons, answers = _parts(epsilon, delta, split)
    if composition == "optimal":
        each = epsilon_of_a_round(charges=charges, epsilon=epsilon, delta=delta)
        threshold, answer = Fraction(9, 4) / each, 9 / each
    elif delta > 0:
        # Each part gets half of delta. The answers spend less than the comparisons, so they are in range, too.
        whole = composed_scale(charges=charges, epsilon=float(comparisons), delta=delta / 2)
        threshold, answer = whole, whole * Fraction(float(comparisons)) / answers
    else:
        threshold, answer = 2 * charges / comparisons, 2 * charges / answers
    return NoiseScales(sensitivity * threshold, sensitivity * 2 * threshold, sensitivity * answer)


def standard_svt_scales(
    *,
    charges: int,
    epsilon: float,
    answers: float = 0.0,
    ratio: float | None = None,
    monotonic: bool = False,
    sensitivity: int,
) -> NoiseScales:
    """Compute the noise scales of the standard sparse vector technique.

    A `SparseVector` with these scales and ``threshold_noise="held"`` is epsilon-differentially private, released
    numbers and gaps included.

    Parameters
    ----------
    charges, epsilon, monotonic, sensitivity
        As for `sparse_scales`, with the same errors.
    answers : float
        Part ``e3`` of epsilon for the released numbers, in [0, epsilon); at 0 no numbers can be released.
    ratio : float, optional
        The queries' part of epsilon divided by the threshold's part, ``e2 / e1`` in the notes; above 0. By default it
        is the ratio with the least noise, `optimal_ratio`.

    Notes
    -----
    Epsilon is divided as ``e1 + e2 + e3``. The scales are ``D/e1`` for the threshold, ``2cD/e2`` for queries (``cD/e2``
    if they are monotonic), and ``cD/e3`` for answers.

    References
    ----------
    .. [1] Lyu, Su and Li (2017), Algorithm 7, Theorems 4 and 5.

    Examples
    --------
    >>> standard_svt_scales(charges=4, epsilon=5.0, sensitivity=1)
    NoiseScales(threshold=Fraction(1, 1), query=Fraction(2, 1), answer=Fraction(0, 1))
    """
    check_privacy(charges=charges, epsilon=epsilon, delta=0.0)
    if not 0 <= answers < epsilon:
        raise InputError(f"answers must be a part of epsilon, from 0 to below {epsilon}; got {answers}")
    comparisons = Fraction(epsilon) - Fraction(answers)
    threshold, query = _divided(comparisons, charges=charges, ratio=ratio, monotonic=monotonic)
    answer = charges / Fraction(answers) if answers else Fraction(0)
    return NoiseScales(sensitivity * threshold, sensitivity * query, sensitivity * answer)


def _divided(
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
    >>> _divided(Fraction(5), charges=4, ratio=None, monotonic=False)
    (Fraction(1, 1), Fraction(2, 1))
    """
    if ratio is None:
        ratio = optimal_ratio(charges=charges, monotonic=monotonic)
    if not (math.isfinite(ratio) and ratio > 0):
        raise InputError(f"the ratio e2/e1 is finite and above 0; got {ratio}; pass None for the best ratio")
    first = budget / (1 + Fraction(ratio))
    return 1 / first, (charges if monotonic else 2 * charges) / (budget - first)


def composed_scale(*, charges: int, epsilon: float, delta: float) -> Fraction:
    """Compute the Laplace scale ``sqrt(32 c ln(1/d)) / e`` of the threshold's noise under advanced composition.

    With this scale ``c`` rounds are together (e, d)-differentially private. The scale is rounded up. An error is raised
    where the corollary of advanced composition does not hold.

    Parameters
    ----------
    charges : int
        Number ``c`` of rounds; at least 1.
    epsilon, delta : float
        Privacy parameters ``e`` and ``d`` of all rounds together; delta in (0, 1).

    Raises
    ------
    InputError
        If epsilon is too large, or delta too near 1, for the corollary.

    Notes
    -----
    One round is AboveThreshold with epsilon ``e0 = e / sqrt(8 c ln(1/d))``. Advanced composition gives ``e/2 + c e0
    (exp(e0)-1)`` for ``c`` rounds, which is at most ``e`` if the second term is at most ``e/2``.

    References
    ----------
    .. [1] Dwork and Roth (2014), Theorem 3.20 and Corollary 3.21.

    Examples
    --------
    >>> round(float(composed_scale(charges=10, epsilon=1.0, delta=1e-6)), 3)
    66.49
    """
    log_inverse = -math.log(delta)
    each = epsilon / math.sqrt(8 * charges * log_inverse)
    if each > 1 or charges * each * math.expm1(each) > epsilon / 2:
        raise InputError(
            f"with delta > 0 the noise is computed by advanced composition, which needs a smaller epsilon or "
            f"delta; got epsilon {epsilon}, delta {delta} for {charges} charges; use delta=0"
        )
    return Fraction(math.sqrt(32 * charges * log_inverse)) / Fraction(epsilon) * _ROUND_UP


def epsilon_of_a_round(*, charges: int, epsilon: float, delta: float) -> Fraction:
    """Compute the largest epsilon of each of `charges` rounds that are together (epsilon, delta)-private.

    It is rounded down by far more than the floating-point error of the composition.

    Parameters
    ----------
    charges : int
        Number of rounds; at least 1.
    epsilon, delta : float
        Privacy parameters of all rounds together.

    Examples
    --------
    >>> round(float(epsilon_of_a_round(charges=100, epsilon=1.0, delta=1e-6)), 4)
    0.024
    """
    if delta == 0:
        return Fraction(epsilon) / charges
    each = optimal_epsilon_each(epsilon=epsilon, count=charges, delta=delta)
    return Fraction(each) * _ROUND_DOWN


def _parts(epsilon: float, delta: float, split: Split) -> tuple[Fraction, Fraction]:
    """Return the parameters ``e1`` for the comparisons and ``e2`` for the answers, with ``e1 + e2/2 = epsilon``."""
    if split not in ("lecture", "book"):
        raise InputError(f"split is 'lecture' or 'book'; got {split!r}")
    exact = Fraction(epsilon)
    if split == "lecture" or delta == 0:
        return exact * Fraction(8, 9), exact * Fraction(2, 9)
    # The book prints e2 = 2/(sqrt(512)+1); with the missing epsilon, as here, e1 + e2/2 = e.
    answers = exact / Fraction(math.sqrt(512.0) + 1)
    return exact - answers, 2 * answers


def check_privacy(*, charges: int, epsilon: float, delta: float) -> None:
    """Refuse privacy parameters outside the range of the theorems."""
    if charges < 1:
        raise InputError(f"charges is at least 1; got {charges}")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    if not 0 <= delta < 1:
        raise InputError(f"delta lies in [0, 1); got {delta}")


def _check_composition(composition: Composition) -> None:
    """Refuse an unknown name of a composition theorem."""
    if composition not in ("advanced", "optimal"):
        raise InputError(f"composition is 'advanced' or 'optimal'; got {composition!r}")
