"""NumericSparse, which is Sparse but also releases a noisy value of each query above the threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.sparse_vector.budget import check_privacy
from reusable_holdout.mechanisms.sparse_vector.real_stream import RealStream
from reusable_holdout.mechanisms.sparse_vector.sparse import (
    Composition,
    check_composition,
    composed_scale,
    epsilon_of_a_round,
)
from reusable_holdout.noise.sparse_vector import NoiseScales

__all__ = ["NumericSparse", "Split", "numeric_sparse_scales"]

Split: TypeAlias = Literal["lecture", "book"]


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
    charges : int
        Number ``c`` of charges; at least 1.
    epsilon, delta : float
        Privacy parameters of the whole stream.
    split : {"lecture", "book"}
        The division of epsilon if delta is above 0 and composition is advanced.
    composition : {"advanced", "optimal"}
        The composition of rounds if delta is above 0: the book's theorem, or the best possible.
    sensitivity : int
        Largest change of one query, grid units.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Let ``e`` be epsilon and ``d`` delta. Let ``s(x) = 2c/x``, or ``sqrt(32 c ln(2/d))/x`` with delta above 0. The
    scales are ``s(e1)`` for the threshold, ``2 s(e1)`` for queries and ``s(e2)`` for answers, times the sensitivity.
    "lecture" means ``e1 = 8e/9, e2 = 2e/9``. "book" means ``e1 = sqrt(512) e / (sqrt(512)+1)``, ``e2 = 2e /
    (sqrt(512)+1)``, where the ``e`` in ``e2`` is missing in the book's text. With delta 0 both are the lecture's.

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
    check_composition(composition)
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


class NumericSparse(RealStream):
    """A stream that answers each query with None below the threshold and a noisy value above it.

    The whole stream of answers is (epsilon, delta)-differentially private, however long it is. It halts after `charges`
    values.

    Parameters
    ----------
    threshold : float
        Threshold in the query's unit.
    charges : int
        Values released before it halts; at least 1.
    epsilon : float
        Privacy parameter of the whole stream; finite, > 0.
    delta : float
        In [0, 1). Above 0 many charges need less noise.
    split : {"lecture", "book"}
        The division of epsilon if delta is above 0 and composition is advanced.
    composition : {"advanced", "optimal"}
        The composition of rounds if delta is above 0: the book's theorem, or the best possible.
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
    The scales are those of `numeric_sparse_scales`. The released value's noise is fresh: releasing the noisy
    value of the comparison instead would not be private (Lyu, Su and Li 2017, Algorithm 3).

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithm 3, Theorem 3.28.

    Examples
    --------
    >>> stream = NumericSparse(1000.0, charges=2, epsilon=1.0, seed=1)
    >>> stream.ask(0.0) is None, abs(stream.ask(5000.0) - 5000.0) < 500.0, stream.charges_left
    (True, True, 1)
    """

    def __init__(
        self,
        threshold: float,
        *,
        charges: int,
        epsilon: float,
        delta: float = 0.0,
        split: Split = "lecture",
        composition: Composition = "advanced",
        sensitivity: float = 1.0,
        seed: int | None = None,
    ) -> None:
        grid = Grid.of(sensitivity)
        scales = numeric_sparse_scales(
            charges=charges,
            epsilon=epsilon,
            delta=delta,
            split=split,
            composition=composition,
            sensitivity=grid.sensitivity,
        )
        super().__init__(threshold, grid=grid, scales=scales, charges=charges, seed=seed)

    def ask(self, value: float, *, threshold: float | None = None) -> float | None:
        """Answer one query: None below its threshold, a noisy value above it.

        A query above its threshold costs one charge; others cost nothing.

        Parameters
        ----------
        value : float
            The query's value on the private data.
        threshold : float, optional
            The query's own threshold; by default the stream's. It may depend on earlier answers, not on the data.

        Raises
        ------
        BudgetError
            If the mechanism has halted; nothing is answered.
        InputError
            If the value or the threshold is not finite, or beyond 2**60 grid steps; nothing is answered.
        """
        released = self._released(value, threshold)
        return None if released is None else self._grid.real(released)

    def ask_many(
        self, values: npt.ArrayLike, thresholds: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.float64]:
        """Answer many queries: `ask` for each, up to the last charge.

        Parameters
        ----------
        values : array-like, shape (queries,)
            The queries' values on the private data.
        thresholds : array-like, shape (queries,), optional
            The queries' own thresholds; by default the stream's.

        Returns
        -------
        ndarray of float, shape (answered,)
            The noisy values, and NaN for queries below the threshold. If the last charge was spent, the array ends with
            that query's value, and is shorter than `values`.

        Raises
        ------
        BudgetError
            If the mechanism has halted before.
        InputError
            If the values or thresholds are not rows of numbers within 2**60 grid steps, or differ in length; nothing is
            answered.

        Examples
        --------
        >>> stream = NumericSparse(1000.0, charges=1, epsilon=1.0, seed=1)
        >>> len(stream.ask_many([0.0, 5000.0, 0.0]))
        2
        """
        above, released = self._released_many(values, thresholds)
        answers = np.full(len(above), np.nan)
        answers[above] = released * self._grid.step
        return answers

    def accuracy(self, *, queries: int, beta: float) -> float:
        """Bound the error of every answer.

        Let ``alpha`` be the result, and let at most `charges` of `queries` queries reach ``threshold - alpha``. With
        probability at least ``1 - beta``, every released value errs by at most ``alpha``, None is answered only for
        values below ``threshold + alpha``, and a value only for those above ``threshold - alpha``.

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
        With ``e`` epsilon, ``d`` delta and ``c`` charges, ``alpha = 9c (ln k + ln(4c/beta)) / e``, or ``9 (ln k +
        ln(4c/beta)) sqrt(8 c ln(2/d)) / e`` with delta above 0. It is ``ln k + ln(4c/beta)`` times the larger of four
        threshold scales and one answer scale. With the book's split the answers' noise is decisive, and ``alpha =
        sqrt(8) (sqrt(512)+1) (ln k + ln(4c/beta)) sqrt(c ln(2/d)) / e``.

        References
        ----------
        .. [1] Dwork and Roth (2014), Theorem 3.28.
        """
        return self._radius(queries=queries, beta=beta, events=4 * self._core.charges)
