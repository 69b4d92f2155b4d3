"""StandardSVT, a stream with one noisy threshold for all queries, and with the best division of the budget."""

from __future__ import annotations

import math
from fractions import Fraction

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.sparse_vector.budget import check_privacy, divided
from reusable_holdout.mechanisms.sparse_vector.real_stream import (
    Comparison,
    YesNoStream,
    check_tail,
    law_named,
)
from reusable_holdout.noise.sparse_vector import NoiseScales

__all__ = ["StandardSVT", "standard_svt_scales"]


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
    charges : int
        Number ``c`` of charges; at least 1.
    epsilon : float
        Privacy parameter of the whole stream.
    answers : float
        Part ``e3`` of epsilon for the released numbers, in [0, epsilon); at 0 no numbers can be released.
    ratio : float, optional
        The queries' part of epsilon divided by the threshold's part, ``e2 / e1`` in the notes; above 0. By default it
        is the ratio with the least noise, `optimal_ratio`.
    monotonic : bool
        True if a change of the data moves all queries in the same direction, as counts do.
    sensitivity : int
        Largest change ``D`` of one query when one row is replaced, in steps of the integer grid it is counted in.

    Raises
    ------
    InputError
        If a parameter is out of range.

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
        raise InputError(f"answers must be a part of epsilon, between 0 and {epsilon}; got {answers}")
    comparisons = Fraction(epsilon) - Fraction(answers)
    threshold, query = divided(comparisons, charges=charges, ratio=ratio, monotonic=monotonic)
    answer = charges / Fraction(answers) if answers else Fraction(0)
    return NoiseScales(sensitivity * threshold, sensitivity * query, sensitivity * answer)


class StandardSVT(YesNoStream):
    """The standard sparse vector technique: a stream that answers whether each query is above its threshold.

    The whole stream of answers is epsilon-differentially private, however long it is. It halts after `charges` queries
    above their thresholds.

    Parameters
    ----------
    threshold : float
        Threshold in the query's unit.
    charges : int
        Number of queries above the threshold before the stream halts; at least 1.
    epsilon : float
        Privacy parameter of the whole stream; finite, > 0.
    answers : float
        Part of epsilon for the values that `ask_value` releases, in [0, epsilon).
    ratio : float, optional
        The queries' part of the remaining epsilon divided by the threshold's part; `optimal_ratio` by default.
    monotonic : bool
        Promise that replacing a row moves all queries in the same direction, or none. It halves the queries' noise. If
        the promise is false, the stream costs up to ``e1 + 2 e2`` (see `standard_svt_scales`).
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
    The scales are those of `standard_svt_scales`. The threshold's noise is drawn once. Proof: take a neighbouring data
    set, and threshold noise that is higher by the sensitivity ``D``. Every query that was below stays below, at a cost
    of ``e1``. Each query that was above needs noise that is higher by at most ``2D`` to stay above by the same gap, at
    a cost of ``e2/c``. If monotonic queries rise, at most ``D`` is enough. If they fall, the threshold's noise stays as
    it is, and again at most ``D`` is enough.

    References
    ----------
    .. [1] Lyu, Su and Li (2017), "Understanding the sparse vector technique for differential privacy", PVLDB 10(6),
       Algorithm 7.
    .. [2] Ding, Wang, Zhang and Kifer (2019), "Free gap information from the differentially private sparse vector and
       noisy max mechanisms", PVLDB 13(3).
    .. [3] Liu, Wang, Liu, Li and Chen (2025), "Accuracy-enhanced sparse vector technique with exponential noise and
       optimal threshold correction", PVLDB 18(2).

    Examples
    --------
    >>> stream = StandardSVT(100.0, charges=2, epsilon=1.0, seed=1)
    >>> stream.ask(0.0), stream.ask(200.0), stream.ask(200.0, threshold=300.0), stream.charges_left
    (False, True, False, 1)
    """

    def __init__(
        self,
        threshold: float,
        *,
        charges: int,
        epsilon: float,
        answers: float = 0.0,
        ratio: float | None = None,
        monotonic: bool = False,
        noise: Comparison = "laplace",
        sensitivity: float = 1.0,
        seed: int | None = None,
    ) -> None:
        law = law_named(noise)
        grid = Grid.of(sensitivity)
        scales = standard_svt_scales(
            charges=charges,
            epsilon=epsilon,
            answers=answers,
            ratio=ratio,
            monotonic=monotonic,
            sensitivity=grid.sensitivity,
        )
        super().__init__(
            threshold,
            grid=grid,
            scales=scales,
            charges=charges,
            seed=seed,
            threshold_noise="held",
            law=law,
        )

    def ask_gap(self, value: float, *, threshold: float | None = None) -> float | None:
        """Return how far a noisy query is above its noisy threshold, or None if it is below.

        The gap costs nothing beyond the charge that `ask` would make, too.

        Parameters
        ----------
        value : float
            The query's value on the private data.
        threshold : float, optional
            The query's own threshold; the stream's by default.

        Raises
        ------
        BudgetError
            If the mechanism has halted; nothing is answered.
        InputError
            If the value or the threshold is not a number.

        References
        ----------
        .. [1] Ding, Wang, Zhang and Kifer (2019), Theorem 4.

        Examples
        --------
        >>> stream = StandardSVT(0.0, charges=1, epsilon=1.0, seed=1)
        >>> abs(stream.ask_gap(1000.0) - 1000.0) < 50.0
        True
        """
        found = self._compare(value, threshold)
        if found is None:
            return None
        steps, limit, question = found
        gap = self._core.gap(steps, limit, question)
        self._core.charge(steps, question)
        return self._grid.real(gap)

    def ask_value(self, value: float, *, threshold: float | None = None) -> float | None:
        """Return the value of a query above its threshold, with fresh noise; None if it is below.

        A query above its threshold costs one charge; others cost nothing.

        Parameters
        ----------
        value : float
            The query's value on the private data.
        threshold : float, optional
            The query's own threshold; the stream's by default.

        Raises
        ------
        BudgetError
            If the mechanism has halted; nothing is answered.
        InputError
            If the value or the threshold is not a number, or the stream was made with ``answers=0``.

        Examples
        --------
        >>> stream = StandardSVT(0.0, charges=1, epsilon=1.0, answers=0.2, seed=1)
        >>> abs(stream.ask_value(1000.0) - 1000.0) < 100.0
        True
        """
        if not self.scales.answer:
            raise InputError("a value needs a part of epsilon: answers is above 0; got 0; use ask or ask_gap")
        released = self._released(value, threshold)
        return None if released is None else self._grid.real(released)

    def accuracy(self, *, queries: int, beta: float) -> float:
        """Bound the error of every answer.

        Let ``alpha`` be the result, and let at most `charges` of `queries` queries reach ``threshold - alpha``. With
        probability at least ``1 - beta``, True is answered only for values above ``threshold - alpha``, False only for
        values below ``threshold + alpha``, and released values err by at most ``alpha``.

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
        Let ``b1``, ``b2`` and ``b3`` be the noise scales of threshold, queries and answers, and ``c`` the charges. A
        union bound divides beta into ``m`` equal parts: 3 if values are released, else 2. The result is the larger of
        ``b1 ln(m/beta) + b2 ln(m k/beta)`` and ``b3 ln(m c/beta)``, plus a few grid steps for rounding.
        """
        check_tail(queries=queries, beta=beta)
        scales = self.scales
        log_parts = math.log((3 if scales.answer else 2) / beta)
        # Exponential noise lies below its mean by less than a scale: a log of at least one covers it.
        held = scales.threshold * Fraction(max(1.0, log_parts))
        comparison = held + scales.query * Fraction(max(1.0, log_parts + math.log(queries)))
        answer = scales.answer * Fraction(log_parts + math.log(self._core.charges))
        return self._grid.real(math.ceil(max(comparison, answer)) + 4)
