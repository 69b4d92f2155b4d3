"""Sparse vector streams on real numbers; they differ in their noise scales, and in what a charge releases."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.target_charging import not_prior_epsilon_each
from reusable_holdout.mechanisms.sparse_vector.real_stream import Comparison, RealStream, YesNoStream
from reusable_holdout.mechanisms.sparse_vector.scales import (
    Composition,
    Split,
    numeric_sparse_scales,
    sparse_scales,
    standard_svt_scales,
)
from reusable_holdout.noise.sparse_vector import NoiseScales


class Sparse(YesNoStream):
    """A stream that answers whether each query is above a threshold, and halts after `charges` queries above it.

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
        Theorem for the composition of rounds if delta is above 0: the book's [1]_, or the best possible [2]_.
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

    The accuracy is ``alpha = 8c (ln k + ln(2c/beta)) / e`` if delta is 0. Otherwise it is ``sqrt(512 c ln(1/d)) (ln k +
    ln(2c/beta)) / e``, or ``8 (ln k + ln(2c/beta)) / e0`` with optimal composition. At the book's ratio this is ``ln k
    + ln(2c/beta)`` times four threshold scales; at another ratio, times twice the larger scale.

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithm 2, Theorems 3.25 and 3.26.
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
        how: dict[str, Any] = {"composition": composition, "ratio": ratio, "monotonic": monotonic}
        scales = partial(sparse_scales, charges=charges, epsilon=epsilon, delta=delta, **how)
        super().__init__(
            threshold, scales=scales, charges=charges, sensitivity=sensitivity, seed=seed, noise=noise
        )


class AboveThreshold(Sparse):
    """A stream that halts at the first query above a threshold.

    The whole stream of answers is (epsilon, 0)-differentially private, however long it is.

    Parameters
    ----------
    threshold, epsilon, sensitivity, seed
        As for `Sparse`.

    Notes
    -----
    It is `Sparse` with one charge. The threshold's noise is ``Lap(2/e)`` and a query's ``Lap(4/e)``, times the
    sensitivity, with ``e`` epsilon. The accuracy is ``8 (ln k + ln(2/beta)) / e``.

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithm 1, Theorems 3.23 and 3.24.

    Examples
    --------
    >>> stream = AboveThreshold(100.0, epsilon=1.0, seed=1)
    >>> [stream.ask(value) for value in (0.0, 20.0, 200.0)], stream.halted
    ([False, False, True], True)
    """

    def __init__(
        self, threshold: float, *, epsilon: float, sensitivity: float = 1.0, seed: int | None = None
    ) -> None:
        super().__init__(threshold, charges=1, epsilon=epsilon, sensitivity=sensitivity, seed=seed)


class NumericSparse(RealStream):
    """A stream that answers each query with None below the threshold and a noisy value above it.

    The whole stream of answers is (epsilon, delta)-differentially private, however long it is. It halts after `charges`
    values.

    Parameters
    ----------
    threshold, charges, epsilon, delta, composition, sensitivity, seed
        As for `Sparse`.
    split : {"lecture", "book"}
        The division of epsilon if delta is above 0 and composition is advanced.

    Notes
    -----
    The scales are those of `numeric_sparse_scales`. The released value's noise is fresh: releasing the noisy
    value of the comparison instead would not be private (Lyu, Su and Li 2017, Algorithm 3).

    With ``e`` epsilon, ``d`` delta and ``c`` charges, the accuracy is ``alpha = 9c (ln k + ln(4c/beta)) / e``, or ``9
    (ln k + ln(4c/beta)) sqrt(8 c ln(2/d)) / e`` with delta above 0. It is ``ln k + ln(4c/beta)`` times the larger of
    four threshold scales and one answer scale. With the book's split the latter is larger, and ``alpha =
    sqrt(8) (sqrt(512)+1) (ln k + ln(4c/beta)) sqrt(c ln(2/d)) / e``.

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithm 3, Theorem 3.28.

    Examples
    --------
    >>> stream = NumericSparse(1000.0, charges=2, epsilon=1.0, seed=1)
    >>> stream.ask(0.0) is None, abs(stream.ask(5000.0) - 5000.0) < 500.0, stream.charges_left
    (True, True, 1)
    """

    _events = 4

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
        how: dict[str, Any] = {"delta": delta, "split": split, "composition": composition}
        scales = partial(numeric_sparse_scales, charges=charges, epsilon=epsilon, **how)
        super().__init__(threshold, scales=scales, charges=charges, sensitivity=sensitivity, seed=seed)

    def ask(self, value: float, *, threshold: float | None = None) -> float | None:
        """Answer one query: None below its threshold, a noisy value above it.

        The arguments, the price and the errors are those of `Sparse.ask`.
        """
        return self._value(value, threshold)

    def ask_many(
        self, values: npt.ArrayLike, thresholds: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.float64]:
        """Answer many queries: `ask` for each, up to the last charge.

        The arguments and the errors are those of `Sparse.ask_many`.

        Returns
        -------
        ndarray of float, shape (answered,)
            The noisy values, and NaN for queries below the threshold. If the last charge was spent, the array ends with
            that query's value, and is shorter than `values`.

        Examples
        --------
        >>> len(NumericSparse(1000.0, charges=1, epsilon=1.0, seed=1).ask_many([0.0, 5000.0, 0.0]))
        2
        """
        above, released = self._released_many(values, thresholds)
        answers = np.full(len(above), np.nan)
        answers[above] = released * self._grid.step
        return answers


class StandardSVT(YesNoStream):
    """The standard sparse vector technique: a stream that answers whether each query is above its threshold.

    The whole stream of answers is epsilon-differentially private, however long it is. It halts after `charges` queries
    above their thresholds.

    Parameters
    ----------
    threshold, charges, epsilon, noise, sensitivity, seed
        As for `Sparse`.
    answers : float
        Part of epsilon for the values that `ask_value` releases, in [0, epsilon).
    ratio : float, optional
        The queries' part of the remaining epsilon divided by the threshold's part; `optimal_ratio` by default.
    monotonic : bool
        As for `Sparse`. If the promise is false, epsilon may be up to ``e1 + 2 e2 + e3`` (see `standard_svt_scales`).

    Notes
    -----
    The scales are those of `standard_svt_scales`. The threshold's noise is drawn once. Proof: take a neighbouring data
    set, and threshold noise that is higher by the sensitivity ``D``. Every query that was below stays below, at a cost
    of ``e1``. Each query that was above needs noise that is higher by at most ``2D`` to stay above by the same gap, at
    a cost of ``e2/c``. If monotonic queries rise, at most ``D`` is enough. If they fall, the threshold's noise stays as
    it is, and again at most ``D`` is enough.

    For the accuracy, let ``b1``, ``b2`` and ``b3`` be the noise scales of threshold, queries and answers, and ``c`` the
    charges. A union bound divides beta into ``m`` equal parts: 3 if values are released, else 2. The result is the
    larger of ``b1 ln(m/beta) + b2 ln(m k/beta)`` and ``b3 ln(m c/beta)``, plus a few grid steps for rounding.

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
        how: dict[str, Any] = {"answers": answers, "ratio": ratio, "monotonic": monotonic}
        scales = partial(standard_svt_scales, charges=charges, epsilon=epsilon, **how)
        stream: dict[str, Any] = {
            "charges": charges,
            "sensitivity": sensitivity,
            "seed": seed,
            "noise": noise,
        }
        super().__init__(threshold, scales=scales, threshold_noise="held", **stream)

    def ask_gap(self, value: float, *, threshold: float | None = None) -> float | None:
        """Return how far a noisy query is above its noisy threshold, or None if it is below.

        The arguments, the price and the errors are those of `ask`: the gap costs nothing more.

        References
        ----------
        .. [1] Ding, Wang, Zhang and Kifer (2019), Theorem 4.

        Examples
        --------
        >>> stream = StandardSVT(0.0, charges=1, epsilon=1.0, seed=1)
        >>> abs(stream.ask_gap(1000.0) - 1000.0) < 50.0
        True
        """
        return self._compared(value, threshold, less_threshold=True)

    def ask_value(self, value: float, *, threshold: float | None = None) -> float | None:
        """Return the value of a query above its threshold, with fresh noise; None if it is below.

        The arguments, the price and the errors are those of `ask`.

        Raises
        ------
        InputError
            If the stream was made with ``answers=0``.

        Examples
        --------
        >>> stream = StandardSVT(0.0, charges=1, epsilon=1.0, answers=0.2, seed=1)
        >>> abs(stream.ask_value(1000.0) - 1000.0) < 100.0
        True
        """
        if not self.scales.answer:
            raise InputError("make the stream with answers above 0 to get values; got 0; or use ask")
        return self._value(value, threshold)

    def _reach(self, queries: int, beta: float) -> int:
        scales = self.scales
        log_parts = math.log((3 if scales.answer else 2) / beta)
        # Exponential noise is at most one scale below its mean, which a log of at least one covers.
        held = scales.threshold * Fraction(max(1.0, log_parts))
        comparison = held + scales.query * Fraction(max(1.0, log_parts + math.log(queries)))
        answer = scales.answer * Fraction(log_parts + math.log(self._core.charges))
        return math.ceil(max(comparison, answer)) + 4


class ConditionalStream(YesNoStream):
    """A stream that reports the queries above a threshold, and their values if asked; only these cost privacy.

    All answers and values together are (epsilon, delta)-differentially private, however many there are. The stream
    halts after `charges` queries above the threshold.

    Parameters
    ----------
    threshold, charges, epsilon, sensitivity, seed
        As for `Sparse`.
    delta : float
        Delta of the whole stream, in (0, 1).

    Notes
    -----
    Each query has noise ``Lap(1/e)`` times the sensitivity, where ``e`` is `target_charging_epsilon_each` with
    `not_prior_q` and `not_prior_mean`. It is compared with the threshold itself, which has no noise. This is a
    conditional release of real numbers, so the same noisy number that was compared may be released.

    The accuracy is ``ln(k/beta) / e`` times the sensitivity, plus three grid steps for the rounding of value and
    threshold, and because noise is discrete.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive computations",
       Lemma 2.4.

    Examples
    --------
    >>> stream = ConditionalStream(100.0, charges=2, epsilon=1.0, delta=1e-6, seed=1)
    >>> stream.ask(-200.0), abs(stream.ask_value(900.0) - 900.0) < 100.0, stream.charges_left
    (False, True, 1)
    """

    def __init__(
        self,
        threshold: float,
        *,
        charges: int,
        epsilon: float,
        delta: float,
        sensitivity: float = 1.0,
        seed: int | None = None,
    ) -> None:
        def scales(sensitivity: int) -> NoiseScales:
            each = not_prior_epsilon_each(epsilon=epsilon, delta=delta, charges=charges)
            return NoiseScales(Fraction(0), sensitivity / Fraction(each), Fraction(0))

        stream: dict[str, Any] = {"charges": charges, "sensitivity": sensitivity, "seed": seed}
        super().__init__(threshold, scales=scales, threshold_noise="held", **stream)

    def ask_value(self, value: float, *, threshold: float | None = None) -> float | None:
        """Return the noisy value that was compared, if it is above the threshold; otherwise None.

        The arguments, the price and the errors are those of `ask`.
        """
        return self._compared(value, threshold, less_threshold=False)

    def _reach(self, queries: int, beta: float) -> int:
        return math.ceil(self.scales.query * Fraction(math.log(queries) - math.log(beta))) + 3
