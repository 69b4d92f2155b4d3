"""A sparse vector stream whose threshold has no noise, so that the noisy value that was compared may be released."""

from __future__ import annotations

import math
from fractions import Fraction

from reusable_holdout.mechanisms.accounting.target_charging import not_prior_epsilon_each
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.sparse_vector.real_stream import YesNoStream, check_tail
from reusable_holdout.noise.sparse_vector import NoiseScales

__all__ = ["ConditionalStream"]


class ConditionalStream(YesNoStream):
    """A stream that reports the queries above a threshold, and their values if asked; only these cost privacy.

    All answers and values together are (epsilon, delta)-differentially private, however many there are. The stream
    halts after `charges` queries above the threshold.

    Parameters
    ----------
    threshold : float
        Threshold in the query's unit.
    charges : int
        Number of queries above the threshold before the stream halts; at least 1.
    epsilon, delta : float
        Privacy parameters of the whole stream; epsilon finite and above 0, delta in (0, 1).
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
    Each query has noise ``Lap(1/e)`` times the sensitivity, where ``e`` is `target_charging_epsilon_each` with
    `not_prior_q` and `not_prior_mean`. It is compared with the threshold itself, which has no noise. This is a
    conditional release of real numbers, so the same noisy number that was compared may be released.

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
        each = not_prior_epsilon_each(epsilon=epsilon, delta=delta, charges=charges)
        scales = NoiseScales(Fraction(0), grid.sensitivity / Fraction(each), Fraction(0))
        super().__init__(
            threshold, grid=grid, scales=scales, charges=charges, seed=seed, threshold_noise="held"
        )

    def ask_value(self, value: float, *, threshold: float | None = None) -> float | None:
        """Return the noisy value that was compared, if it is above the threshold; otherwise None.

        As with `ask`, a query above its threshold costs one charge, and others cost nothing.

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
        found = self._compare(value, threshold)
        if found is None:
            return None
        steps, limit, question = found
        compared = limit + self._core.gap(steps, limit, question)
        self._core.charge(steps, question)
        return self._grid.real(compared)

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
        With ``e`` as in the notes of the class it is ``ln(k/beta) / e`` times the sensitivity, plus three grid steps
        for the rounding of value and threshold, and because noise is discrete.
        """
        check_tail(queries=queries, beta=beta)
        log_failure = math.log(queries) - math.log(beta)
        return self._grid.real(math.ceil(self.scales.query * Fraction(log_failure)) + 3)
