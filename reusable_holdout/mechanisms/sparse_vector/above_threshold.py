"""AboveThreshold, which finds the first query of a stream that is above a threshold."""

from __future__ import annotations

from reusable_holdout.mechanisms.sparse_vector.sparse import Sparse

__all__ = ["AboveThreshold"]


class AboveThreshold(Sparse):
    """A stream that halts at the first query above a threshold.

    The whole stream of answers is (epsilon, 0)-differentially private, however long it is.

    Parameters
    ----------
    threshold : float
        Threshold in the query's unit.
    epsilon : float
        Privacy parameter of the whole stream; finite, > 0.
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
    The threshold's noise is ``Lap(2/e)`` and a query's ``Lap(4/e)``, times the sensitivity, with ``e`` epsilon. It is
    `Sparse` with one charge.

    References
    ----------
    .. [1] Dwork and Roth (2014), Algorithm 1, Theorems 3.23 and 3.24.

    Examples
    --------
    >>> stream = AboveThreshold(100.0, epsilon=1.0, seed=1)
    >>> [stream.ask(value) for value in (0.0, 20.0, 200.0)]
    [False, False, True]
    >>> stream.halted
    True
    """

    def __init__(
        self, threshold: float, *, epsilon: float, sensitivity: float = 1.0, seed: int | None = None
    ) -> None:
        super().__init__(threshold, charges=1, epsilon=epsilon, sensitivity=sensitivity, seed=seed)
