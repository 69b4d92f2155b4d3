"""The sparse vector technique with a budget for each record, which pays for the published counts that include it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.mechanisms.accounting.target_charging import not_prior_epsilon_each
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace
from reusable_holdout.noise.keyed import KeyedNoise, key_from_seed, new_key


class IndividualCharging:
    """Counts of the records that satisfy a predicate, published if they are large.

    All answers together are (epsilon, delta)-differentially private, however many are asked. Each record pays only for
    the published counts that include it. Neighbouring data sets differ by one record that is added or removed. If they
    differ by a replaced record, the guarantee is ``(2 epsilon, (1 + exp(epsilon)) delta)``.

    Parameters
    ----------
    records : int
        Number of records; at least 1. It is never released.
    charges : int
        Number ``tau`` of published counts that may include a record; then it leaves the data. At least 1.
    epsilon, delta, seed
        As for `TargetCharging`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The count of matching records that are still in the data gets discrete Laplace noise of scale ``1/e``. This noisy
    count is compared with the threshold, and the same number is published. ``e`` is that of target charging with
    `charges` hits of a NotPrior target. A query whose predicate a record does not satisfy has the same answer with and
    without the record. A record is removed at its ``tau``-th charge, so it takes part in an interaction with ``tau``
    target hits.

    The interaction never halts, but the counts fall as records leave.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", Algorithm 5, Theorem 2.10.
    .. [2] Kaplan, Mansour and Stemmer (2021), "The sparse vector technique, revisited".

    Examples
    --------
    >>> counts = IndividualCharging(1000, charges=1, epsilon=1.0, delta=1e-6, seed=1)
    >>> first_half, all_records = np.arange(1000) < 500, np.ones(1000, dtype=bool)
    >>> abs(counts.ask(first_half, 250.0) - 500) < 250, counts.ask(first_half, 250.0)
    (True, None)
    >>> abs(counts.ask(all_records, 250.0) - 500) < 250
    True
    """

    def __init__(
        self, records: int, *, charges: int, epsilon: float, delta: float, seed: int | None = None
    ) -> None:
        if records < 1:
            raise InputError(f"records is at least 1; got {records}")
        self._epsilon_each = not_prior_epsilon_each(epsilon=epsilon, delta=delta, charges=charges)
        self._law = DiscreteLaplace(1 / Fraction(self._epsilon_each))
        self._noise = KeyedNoise(new_key() if seed is None else key_from_seed(seed))
        self._charges_left = np.full(records, charges, dtype=np.int64)
        self._asked = 0

    def __repr__(self) -> str:
        return f"IndividualCharging(epsilon_each={self._epsilon_each})"

    def __reduce__(self) -> NoReturn:
        raise HandleError("an interaction cannot be pickled or copied: a copy would spend its budget again")

    @property
    def epsilon_each(self) -> float:
        """Privacy parameter of one count."""
        return self._epsilon_each

    def ask(self, predicate: npt.ArrayLike, threshold: float) -> int | None:
        """Publish the noisy number of records that satisfy a predicate, if it is at least a threshold.

        If it is published, each record that satisfies the predicate pays one charge. Otherwise it is free.

        Parameters
        ----------
        predicate : array-like of bool, shape (records,)
            True for each record that satisfies the predicate. It may depend on that record and on the answers so far,
            not on other records.
        threshold : float
            A number of records; finite.

        Returns
        -------
        int or None
            The noisy count, which may be negative, or None if it is below the threshold.

        Raises
        ------
        InputError
            If the predicate is not one boolean per record or the threshold is not finite; nothing is answered and
            nothing is charged.

        Examples
        --------
        >>> counts = IndividualCharging(3, charges=1, epsilon=1.0, delta=1e-6, seed=1)
        >>> counts.ask([True, False, True], 1e6) is None
        True
        """
        try:
            truth = np.asarray(predicate)
        except ValueError:  # rows of different lengths
            truth = np.array(None)
        if truth.dtype != np.bool_ or truth.shape != self._charges_left.shape:
            raise InputError(
                "a predicate has one boolean for each record; got something else; nothing was charged"
            )
        if not math.isfinite(threshold):
            raise InputError(f"a threshold is a finite number; got {threshold}; nothing was charged")
        question = self._asked.to_bytes(8, "big")
        self._asked += 1
        count = int(np.count_nonzero(truth & (self._charges_left > 0)))
        noisy = count + self._noise.draw(self._law, label="count", question=question)
        if noisy < threshold:
            return None
        self._charges_left -= truth  # below 0 for records that have left
        return noisy
