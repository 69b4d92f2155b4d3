"""A stream of conditional releases: no noise on the threshold, and each answer above tells the value compared."""

from __future__ import annotations

import math
from fractions import Fraction

from reusable_holdout.mechanisms.accounting.target_charging import (
    not_prior_mean,
    not_prior_q,
    target_charging_epsilon_each,
)
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.sparse_vector.real_stream import WhetherStream, check_tail
from reusable_holdout.noise.sparse_vector import NoiseScales

__all__ = ["ConditionalStream"]


class ConditionalStream(WhetherStream):
    """A stream of queries: which are above the threshold, and their values; only those above cost privacy.

    All answers together are (epsilon, delta)-differentially private, however many there are, the values of those above
    included; after `charges` queries above it halts.

    Parameters
    ----------
    threshold : float
        The query's unit.
    charges : int
        Queries above the threshold before it halts; at least 1.
    epsilon, delta : float
        Privacy parameters of the whole stream; epsilon finite and above 0, delta in (0, 1).
    sensitivity : float
        Largest change of one query when one row is replaced, in the query's unit.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Each query has noise ``Lap(1/e)`` times the sensitivity, ``e`` of `target_charging_epsilon_each` with
    `not_prior_q` and `not_prior_mean`, and is compared as it is: a conditional release of real numbers, in one
    direction. With the threshold's noise the sparse vector technique hides what "above" says of queries asked before;
    here nothing needs hiding, so that the very number that was compared is released.

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
        grid = Grid.of(sensitivity)
        each = target_charging_epsilon_each(
            epsilon=epsilon, delta=delta, charges=charges, q=not_prior_q, mean=not_prior_mean
        )
        scales = NoiseScales(Fraction(0), grid.sensitivity / Fraction(each), Fraction(0))
        super().__init__(
            threshold, grid=grid, scales=scales, charges=charges, seed=seed, threshold_noise="held"
        )

    def ask_value(self, value: float, *, threshold: float | None = None) -> float | None:
        """Value of a query above its threshold, with the noise with which it was compared; None if it is below.

        Costs nothing when it is below and one charge when it is above, as `ask`.

        Parameters
        ----------
        value : float
            The query's value on the private data.
        threshold : float, optional
            The query's own; the stream's by default. It may depend on earlier answers, not on the data.

        Raises
        ------
        BudgetError
            If the mechanism has halted; nothing is answered.
        InputError
            If the value or the threshold is not finite, or beyond 2**60 grid steps; nothing is answered.
        """
        found = self._compare(value, threshold)
        if found is None:
            return None
        steps, limit, question = found
        compared = limit + self._core.gap(steps, limit, question)
        self._core.charge(steps, question)
        return self._grid.real(compared)

    def accuracy(self, *, queries: int, beta: float) -> float:
        """Largest error of any answer.

        With probability ``1 - beta``, over `queries` queries of which at most `charges` reach the threshold less this
        error: True is said only above ``threshold - alpha``, False only below ``threshold + alpha``, and released
        values are this near.

        Parameters
        ----------
        queries : int
            Length ``k`` of the stream; at least 1.
        beta : float
            Failure probability, in (0, 1).

        Raises
        ------
        InputError
            If a parameter is out of range.

        Notes
        -----
        ``ln(k/beta) / e``, and three steps for the rounding of value and threshold and for noise being discrete.
        """
        check_tail(queries=queries, beta=beta)
        log_failure = math.log(queries) - math.log(beta)
        return self._grid.real(math.ceil(self.scales.query * Fraction(log_failure)) + 3)
