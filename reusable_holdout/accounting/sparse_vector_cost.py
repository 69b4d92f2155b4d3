"""What a sparse vector with normal noise costs, in Renyi divergence."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.deferred import special
from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["sparse_vector_renyi"]

_CELL = 0.004  # width of the cells that chances are tried in, in standard deviations
_LARGEST_EXPONENT = 600.0  # exp overflows beyond
_BLOCK = 32  # the numbers of queries grow by this part of themselves at a time


@functools.lru_cache(maxsize=64)
def sparse_vector_renyi(
    orders: tuple[float, ...],
    *,
    threshold_deviation: float,
    query_deviation: float,
    queries: int,
    monotonic: bool = False,
) -> tuple[float, ...]:
    """Renyi divergence of a sparse vector with normal noise that stops at its first "above".

    With `c` charges, the threshold's noise drawn anew after each, the whole stream has ``c`` times as much.

    Parameters
    ----------
    orders : tuple of float
        Each above 1.
    threshold_deviation, query_deviation : float
        Standard deviations of the noises, in sensitivities of the queries; finite, above 0.
    queries : int
        Most queries that are answered; at least 1.
    monotonic : bool
        Whether between neighbours all queries change in the same direction.

    Returns
    -------
    tuple of float
        For each order, rounded up.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Let ``z`` be the threshold's noise, of density ``f``, ``B_i`` the chance that query ``i`` is above at ``z`` here,
    and ``b_i`` that it is above at ``z + 1`` under the neighbour. A query moves by at most one sensitivity, so ``b_i
    <= B_i <= Phi(Phi^-1(b_i) + d)``, ``d`` being 2 sensitivities (1 for monotonic queries) over the queries'
    deviation. The chance of a first "above" at ``i`` is the integral of ``f(z) S_i B_i`` here, ``S_i`` the product of
    ``1 - B_j`` over the queries before, and there that of ``f(z+1) s_i b_i``. As ``x**a y**(1-a)`` is jointly convex
    and homogeneous, the moment of order ``a`` is at most the integral of ``f(z)**a f(z+1)**(1-a)``, which is ``exp(a
    (a-1)/(2 s**2))``, times the largest moment of the answers for a ``z``. That is at most ``V_k``, with ``V_0 = 1``
    and ``V_k`` the maximum over ``b`` and ``B`` of ``B**a b**(1-a) + (1-B)**a (1-b)**(1-a) V_(k-1)``, however
    adaptively the queries were chosen. It is convex in ``B``, so that ``B`` is as large as it can be, or ``V_k =
    V_(k-1)``. The maximum over ``b`` is taken on a grid, with what a curve can rise between two points; ``V`` grows
    ever more slowly, so it is followed in blocks.

    References
    ----------
    .. [1] Zhu and Wang (2020), "Improving sparse vector technique with Renyi differential privacy", whose bound has the
       expected number of queries where this has the worst.

    Examples
    --------
    >>> costs = {"threshold_deviation": 10.0, "query_deviation": 20.0}
    >>> [round(cost, 3) for cost in sparse_vector_renyi((2.0, 8.0), queries=1000, **costs)]
    [0.088, 0.227]
    """
    if not (0 < threshold_deviation < math.inf and 0 < query_deviation < math.inf):
        raise InputError(
            f"deviations are finite and above 0; got {threshold_deviation} and {query_deviation}"
        )
    if queries < 1 or not all(1 < order < math.inf for order in orders):
        raise InputError(f"queries are at least 1 and orders above 1; got {queries} and {orders}")
    shift = (1.0 if monotonic else 2.0) / query_deviation
    return tuple(
        order / (2 * threshold_deviation**2) + _log_worst(order, shift, queries) / (order - 1)
        for order in orders
    )


def _log_worst(order: float, shift: float, queries: int) -> float:
    """Log of ``V_k`` of the notes, rounded up; infinite where it overflows."""
    lowest = -order * shift - 12.0
    u = np.linspace(lowest, 9.0, math.ceil((9.0 - lowest) / _CELL))
    bend = (
        (u[1] - u[0]) ** 2 / 8 * 1.1
    )  # times a curvature: what a curve can be above the larger end of a cell
    log_above = order * special.log_ndtr(u + shift) + (1 - order) * special.log_ndtr(u)
    log_below = order * special.log_ndtr(-u - shift) + (1 - order) * special.log_ndtr(-u)
    if log_above.max() > _LARGEST_EXPONENT:
        return math.inf
    # Slopes of the logs, from the normal law's hazards, whose own slopes lie between 0 and 1.
    steepest = np.maximum(_hazard(-u - shift), (order - 1) * shift)
    above = np.exp(log_above) * (1 + bend * (steepest**2 + order))
    hazard = _hazard(u + shift)
    turn = hazard * (hazard - u - shift)
    below = np.exp(log_below) * (1 + bend * ((order * shift * turn + hazard) ** 2 + order * turn))
    # Left of the grid "above" only gets cheaper; right of it both are surely above.
    gain, loss = np.append(above, above[0]), np.append(1 - np.minimum(below, 1.0), 0.0)
    value, asked = 1.0, 0
    while asked < queries:
        block = min(queries - asked, max(1, asked // _BLOCK))
        value += block * max(0.0, float(np.max(gain - loss * value)))
        asked += block
    return math.log(value) * (1 + 1e-12)


def _hazard(u: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Density of the normal law over its upper tail."""
    return np.asarray(np.exp(-0.5 * u**2 - 0.5 * math.log(2 * math.pi) - special.log_ndtr(-u)))
