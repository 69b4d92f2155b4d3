"""Sparse, a stream that pays only for the few queries above a threshold, and not for the many below it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, TypeAlias

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.composition import optimal_epsilon_each
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.sparse_vector.budget import check_privacy, divided
from reusable_holdout.mechanisms.sparse_vector.real_stream import Comparison, YesNoStream, law_named
from reusable_holdout.noise.sparse_vector import NoiseScales

__all__ = ["Composition", "Sparse", "composed_scale", "epsilon_of_a_round", "sparse_scales"]

Composition: TypeAlias = Literal["advanced", "optimal"]

_ROUND_UP = 1 + Fraction(1, 2**48)  # pays for the rounding of a few floating-point operations: more noise
_ROUND_DOWN = 1 - Fraction(1, 2**30)  # pays for the rounding of a composition


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
            f"with delta > 0 the noise follows from advanced composition, which needs a smaller epsilon or "
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


def check_composition(composition: Composition) -> None:
    """Refuse an unknown name of a composition theorem."""
    if composition not in ("advanced", "optimal"):
        raise InputError(f"composition is 'advanced' or 'optimal'; got {composition!r}")


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
        The composition of rounds if delta is above 0: the book's theorem, or the best possible.
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
    check_composition(composition)
    if composition == "advanced" and delta > 0:
        each = 2 / composed_scale(charges=charges, epsilon=epsilon, delta=delta)
    else:
        each = epsilon_of_a_round(charges=charges, epsilon=epsilon, delta=delta)
    threshold, query = divided(each, charges=1, ratio=ratio, monotonic=monotonic)
    return NoiseScales(sensitivity * threshold, sensitivity * query, Fraction(0))


class Sparse(YesNoStream):
    """A stream that answers whether each query is above a threshold, and halts after `charges` queries that are.

    The whole stream of answers is (epsilon, delta)-differentially private, however long it is.

    Parameters
    ----------
    threshold : float
        Threshold in the query's unit.
    charges : int
        Number of queries above the threshold before the stream halts; at least 1.
    epsilon : float
        Privacy parameter of the whole stream; finite, > 0.
    delta : float
        Delta of the whole stream, in [0, 1). If it is above 0, many charges need less noise.
    composition : {"advanced", "optimal"}
        The composition of rounds if delta is above 0: the book's theorem, or the best possible.
    ratio : float, optional
        The queries' part of a round's epsilon divided by the threshold's part, above 0. The book's ratio is 1; None
        stands for the ratio with the least noise.
    monotonic : bool
        Promise that replacing a row moves all queries in the same direction, or none. It halves the queries' noise.
    noise : {"laplace", "exponential"}
        Law of the threshold's and the queries' noise; exponential noise has half the variance.
    sensitivity : float
        Largest change of one query when one row is replaced, in the query's unit.
    seed : int, optional
        Seed for reproducible noise, which protects nobody. By default the noise is unpredictable.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    With ``c`` charges, ``e`` epsilon and ``d`` delta, the threshold's noise is ``Lap(s)`` and a query's ``Lap(2s)``,
    times the sensitivity. If delta is 0, ``s = 2c/e``. Otherwise ``s = sqrt(32 c ln(1/d)) / e``, or ``s = 2/e0`` with
    optimal composition of rounds of epsilon ``e0``. `sparse_scales` has the scales for other ratios. The threshold's
    noise is renewed after each charge.

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithm 2, Theorem 3.25.
    .. [2] Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy", Theorem 3.3.

    Examples
    --------
    >>> stream = Sparse(100.0, charges=1, epsilon=1.0, seed=1)
    >>> stream.ask(0.0), stream.ask(200.0), stream.halted
    (False, True, True)
    """

    def __init__(
        self,
        threshold: float,
        *,
        charges: int,
        epsilon: float,
        delta: float = 0.0,
        composition: Composition = "advanced",
        ratio: float | None = 1.0,
        monotonic: bool = False,
        noise: Comparison = "laplace",
        sensitivity: float = 1.0,
        seed: int | None = None,
    ) -> None:
        law = law_named(noise)
        grid = Grid.of(sensitivity)
        scales = sparse_scales(
            charges=charges,
            epsilon=epsilon,
            delta=delta,
            composition=composition,
            ratio=ratio,
            monotonic=monotonic,
            sensitivity=grid.sensitivity,
        )
        super().__init__(threshold, grid=grid, scales=scales, charges=charges, seed=seed, law=law)

    def accuracy(self, *, queries: int, beta: float) -> float:
        """Bound the distance from the threshold beyond which every answer is right.

        Let ``alpha`` be the result, and let at most `charges` of `queries` queries reach ``threshold - alpha``. With
        probability at least ``1 - beta``, True is answered only for values above ``threshold - alpha``, and False only
        for values below ``threshold + alpha``.

        Parameters
        ----------
        queries : int
            Number ``k`` of queries; at least 1.
        beta : float
            Failure probability, in (0, 1).

        Raises
        ------
        InputError
            If a parameter is out of range.

        Notes
        -----
        In the symbols of the class, ``alpha = 8c (ln k + ln(2c/beta)) / e`` if delta is 0. Otherwise it is ``sqrt(512 c
        ln(1/d)) (ln k + ln(2c/beta)) / e``, or ``8 (ln k + ln(2c/beta)) / e0`` with optimal composition. At the book's
        ratio this is ``ln k + ln(2c/beta)`` times four threshold scales; at another ratio, times twice the larger
        scale. For one charge it is AboveThreshold's ``8 (ln k + ln(2/beta)) / e``.

        References
        ----------
        .. [1] Dwork and Roth (2014), Theorems 3.24 and 3.26.
        """
        return self._radius(queries=queries, beta=beta, events=2 * self._core.charges)
