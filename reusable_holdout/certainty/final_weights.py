"""The weights of a final's answers: how its failure probability is divided among them before the rows are read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError

WEIGHT_UNITS = 1 << 20
"""Number of units in a weight of one; all weights of a final together have at most this many."""

_BELOW, _ABOVE, _NODES = 6.0, 8.0, 281  # the quadrature's range around the best prior, in a prior's errors


def final_weights(priors: Sequence[float], error: float, units: int = WEIGHT_UNITS) -> list[int]:
    """Return the weight of each answer of a final, in whole units.

    Parameters
    ----------
    priors : sequence of float, of shape (answers,)
        The analyst's own estimates; greater is better. They may depend on everything released before.
    error : float
        Standard deviation of a prior's own error, > 0.
    units : int
        Number of units to divide.

    Returns
    -------
    list of int
        At least 1 each; their sum is at most `units`. Equal priors have equal weights.

    Raises
    ------
    InputError
        If there are too many answers for the units.

    Notes
    -----
    Half of the units follow the ranks of the priors, as ``1/(r (r + 1))``; half follow the probability that each is the
    best, if priors have independent normal errors. Any weights are valid that are fixed before the rows are read and
    sum to at most one, as in a union bound; these are large for the candidates that are likely to win.

    Examples
    --------
    >>> final_weights([0.5, 0.5], 0.01)
    [524288, 524288]
    >>> best, second, last = final_weights([0.9, 0.89, 0.5], 0.01)
    >>> best > second > last > 0
    True
    """
    count = len(priors)
    if count > units // 2:
        raise InputError(
            f"a final has at most {units // 2:,} answers; got {count:,}; nothing was asked; name fewer"
        )
    each = np.asarray(priors, dtype=np.float64)
    parts = (_by_rank(each) + _chances_to_be_best(each, error)) / 2.0
    whole = np.floor(parts / parts.sum() * (units - count)).astype(np.int64) + 1
    return [int(one) for one in whole]


def weight_nats(weight: int | None) -> float:
    """Return the cost of a weight: minus its logarithm, in nats; 0 for None."""
    return 0.0 if weight is None else math.log(WEIGHT_UNITS / weight)


def _by_rank(priors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return shares that sum to one and fall with the rank; equal priors have the mean of their ranks' shares."""
    ranks = np.arange(1.0, len(priors) + 1.0)
    shares = 1.0 / (ranks * (ranks + 1.0))
    _, groups, sizes = np.unique(-priors, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    totals = np.add.reduceat(shares, ends - sizes)
    return np.asarray((totals / sizes)[groups] / shares.sum())


def _chances_to_be_best(priors: NDArray[np.float64], error: float) -> NDArray[np.float64]:
    """Return each prior's probability to be the best, for independent normal errors, integrated numerically."""
    from scipy.special import log_ndtr  # noqa: PLC0415 - slow to import, and only a final of several needs it

    nodes = np.linspace(-_BELOW, _ABOVE, _NODES)  # in errors above the best prior
    behind = (priors.max() - priors) / error
    below = np.zeros(_NODES)
    for distance in behind:
        below += log_ndtr(nodes + distance)
    each = (nodes + distance for distance in behind)
    chances = [float(np.exp(below - log_ndtr(one) - one**2 / 2.0).sum()) for one in each]
    return np.array(chances) / sum(chances)
