"""What a sparse vector mechanism with normal noise costs: its Renyi divergence, and the epsilon and delta of it."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import optimize, special
from reusable_holdout.errors import InputError

__all__ = [
    "divergences",
    "gaussian_sparse_vector_deviations",
    "gaussian_sparse_vector_epsilon",
    "gaussian_sparse_vector_rdp",
]

_ORDERS = 1 + np.geomspace(0.02, 2_000.0, 120)
_FARTHEST = 12.0  # deviations; an answer "above" is less likely than 2e-33 there
_CELLS = 1_200
_BETWEEN = 1.01  # a largest gain between two points of the grid is above them by (slope * step)**2 / 8 < .004 of itself
_STEEPEST = (
    0.1  # log-ratio from one point of the grid to the next, times the order: beyond it the grid is too coarse
)
_ROUND_UP = 1 + 1e-9
_MOST_TERMS = 10**6  # of a sum of binomial coefficients
_MOST = 10**15  # queries, and charges


def gaussian_sparse_vector_rdp(
    order: float,
    *,
    queries: int,
    charges: int,
    threshold: float,
    query: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
) -> float:
    """Renyi divergence of a sparse vector mechanism with normal noise, an upper bound.

    All answers to `queries` queries, of which at most `charges` are above, have on neighbouring data sets a Renyi
    divergence of this order of at most the result. The threshold's noise is drawn once.

    Parameters
    ----------
    order : float
        Order ``a`` of the divergence; finite, above 1.
    queries : int
        Largest number ``k`` of queries answered; at least 1. Without an end to the queries there is no bound.
    charges : int
        Largest number ``c`` of queries above; at least 1.
    threshold, query : float
        Standard deviations of the noises, in the queries' unit; above 0, the threshold's may be infinite.
    sensitivity : float
        Largest change ``D`` of one query, in its unit; finite, > 0.
    monotonic : bool
        Whether a change of the data moves all queries in the same direction.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Given the threshold's noise ``z`` on one data set and ``z + D`` on its neighbour, a query below is as likely or
    likelier on the neighbour, and one above lies at most ``2D`` lower against its threshold (``D`` if monotonic). Renyi
    divergences are jointly convex: the result is ``a D^2 / (2 s1^2)`` for the threshold and for the rest the largest,
    over ``z`` and all ways to ask, of the divergence given ``z``. That is at most the smaller of

    - the paper's, ``2 c a D^2 / s2^2 + ln(N) / (a - 1)``, with ``N`` the number of transcripts before the last answer,
      which is k for one charge: each transcript's share is at most that of its charges, and of the last answer, alone;
    - ``c ln(V_k) / (a - 1)`` with ``V_0 = 1``, ``V_j = max_x A(x) + B(x) V_(j-1)``, where ``A = P^a P'^(1-a)`` for
      "above" at a distance of ``x`` deviations, ``P`` and ``P'`` its probabilities on the two data sets, and ``B`` the
      same for "below": what the worst next query adds. (It is convex in ``P'``: a shift by all of ``2D`` or by nothing
      is worst.) The gain of a step falls as ``V`` grows, so that many steps gain at most as many times the first of
      them: that is how k steps are taken in some hundred.

    References
    ----------
    .. [1] Zhu and Wang (2020), "Improving sparse vector technique with Renyi differential privacy", NeurIPS 33,
       Theorem 8, for one charge.

    Examples
    --------
    >>> round(gaussian_sparse_vector_rdp(8.0, queries=1_000, charges=1, threshold=4.0, query=8.0), 3)
    0.947
    """
    if not (math.isfinite(order) and order > 1):
        raise InputError(f"an order is finite and above 1; got {order}")
    _check(queries=queries, charges=charges, sensitivity=sensitivity)
    if not (threshold > 0 and query > 0):
        raise InputError(f"deviations are above 0; got {threshold} and {query}")
    shift = sensitivity / query * (1 if monotonic else 2)
    orders = np.array([order])
    return float(divergences(orders, queries, charges, sensitivity / threshold, shift)[0])


def gaussian_sparse_vector_epsilon(
    *,
    delta: float,
    queries: int,
    charges: int,
    threshold: float,
    query: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
) -> float:
    """Epsilon of a sparse vector mechanism with normal noise.

    All its answers are (result, `delta`)-differentially private.

    Parameters
    ----------
    delta : float
        In (0, 1).
    queries, charges, threshold, query, sensitivity, monotonic
        As for `gaussian_sparse_vector_rdp`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The least, over a grid of orders ``a``, of ``rdp(a) + ln(1 - 1/a) - ln(delta a) / (a - 1)``.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", Proposition 12.

    Examples
    --------
    >>> round(
    ...     gaussian_sparse_vector_epsilon(delta=1e-6, queries=1_000, charges=1, threshold=10.0, query=20.0), 2
    ... )
    0.77
    """
    _check(queries=queries, charges=charges, sensitivity=sensitivity)
    if not 0 < delta < 1:
        raise InputError(f"normal noise needs a delta in (0, 1); got {delta}")
    if not (threshold > 0 and query > 0):
        raise InputError(f"deviations are above 0; got {threshold} and {query}")
    shift = sensitivity / query * (1 if monotonic else 2)
    return _epsilon(delta, queries, charges, sensitivity / threshold, shift)


@functools.lru_cache(maxsize=128)
def gaussian_sparse_vector_deviations(
    *,
    epsilon: float,
    delta: float,
    queries: int,
    charges: int,
    sensitivity: float = 1.0,
    monotonic: bool = False,
) -> tuple[float, float]:
    """Standard deviations of the threshold's and the queries' normal noise that keep a promise.

    A sparse vector mechanism with this noise is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of the whole stream; epsilon finite and above 0, delta in (0, 1).
    queries, charges, sensitivity, monotonic
        As for `gaussian_sparse_vector_rdp`.

    Returns
    -------
    (float, float)
        In the queries' unit, rounded up: `gaussian_sparse_vector_epsilon` of them is at most `epsilon`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    With ``g`` 2, or 1 for monotonic queries: the smallest with a ratio ``s2 / s1`` of ``(g^2 c L)^(1/4)``, ``L`` 1,
    ``sqrt(2 ln(1 + k))`` or ``2 ln(1 + k)``, whichever has the least variance. Any other ratio is as private.

    Examples
    --------
    >>> [
    ...     round(deviation, 1)
    ...     for deviation in gaussian_sparse_vector_deviations(
    ...         epsilon=1.0, delta=1e-6, queries=1_000, charges=1
    ...     )
    ... ]
    [9.6, 13.5]
    """
    _check(queries=queries, charges=charges, sensitivity=sensitivity)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    if not 0 < delta < 1:
        raise InputError(f"normal noise needs a delta in (0, 1); got {delta}")
    least = _epsilon(delta, queries, charges, 0.0, 0.0) * _ROUND_UP
    if epsilon <= least:
        raise InputError(
            f"epsilon is above {least:.2g} at delta {delta:g}, which is told of however much noise; got {epsilon:g}"
        )
    factor = 1 if monotonic else 2
    spread = [(factor**2 * charges * (2 * math.log1p(queries)) ** power) ** 0.25 for power in (0.0, 0.5, 1.0)]
    found = [_smallest(epsilon, delta, queries, charges, factor, ratio) for ratio in spread]
    size, ratio = min(zip(found, spread, strict=True), key=lambda each: each[0] * math.hypot(1, each[1]))
    return size * sensitivity * _ROUND_UP, size * ratio * sensitivity * _ROUND_UP


def _smallest(epsilon: float, delta: float, queries: int, charges: int, factor: int, ratio: float) -> float:
    """Deviation of the threshold's noise that keeps epsilon, in sensitivities; `ratio` is the queries' to it."""

    def excess(log_deviation: float) -> float:
        moved = math.exp(-log_deviation)
        there = _epsilon(delta, queries, charges, moved, moved * factor / ratio)
        return math.log(max(there / epsilon, 5e-324))

    start = -math.log(epsilon)
    low = high = start
    while excess(low) <= 0:
        low -= 1.0
    while excess(high) > 0:
        high += 1.0
    root = float(optimize.brentq(excess, low, high, xtol=1e-4))
    while excess(root) > 0:
        root += 1e-4
    return math.exp(root)


def _check(*, queries: int, charges: int, sensitivity: float) -> None:
    if queries < 1 or charges < 1:
        raise InputError(f"queries and charges are at least 1; got {queries} and {charges}")
    if queries > _MOST or charges > _MOST:
        raise InputError(f"queries and charges are at most {_MOST:,}; got {queries} and {charges}")
    if not 0 < sensitivity < math.inf:
        raise InputError(f"a sensitivity is finite and above 0; got {sensitivity}")


def _epsilon(delta: float, queries: int, charges: int, moved: float, shift: float) -> float:
    """Least epsilon over the orders; `moved` and `shift` are sensitivities in deviations of the two noises."""
    costs = divergences(_ORDERS, queries, charges, moved, shift)
    epsilons = costs + np.log1p(-1 / _ORDERS) - np.log(delta * _ORDERS) / (_ORDERS - 1)
    return max(5e-324, float(epsilons.min()))


def divergences(
    orders: npt.NDArray[np.float64], queries: int, charges: int, moved: float, shift: float
) -> npt.NDArray[np.float64]:
    """Bound of each order's divergence, as `gaussian_sparse_vector_rdp` gives it for one.

    Parameters
    ----------
    orders : ndarray of float64, shape (n,)
    queries, charges : int
    moved, shift : float
        What a neighbour moves the threshold and a query by, in deviations of their noises.
    """
    transcripts = _log_transcripts(queries, charges)
    published = charges * orders * shift**2 / 2 + transcripts / (orders - 1)
    worst = published.copy()
    fine = (orders - 1) * (shift + shift**2) * _FARTHEST / _CELLS <= _STEEPEST
    if fine.any():
        worst[fine] = np.minimum(
            published[fine], charges * _log_gain(orders[fine], queries, shift) / (orders[fine] - 1)
        )
    return orders * moved**2 / 2 + worst


def _log_transcripts(queries: int, charges: int) -> float:
    """Log of the number of ways to place at most `charges` answers "above" among all queries but the last.

    Beyond a million charges it is a closed bound: there are two ways for each query, or as many terms as charges.
    """
    places = queries - 1
    most = min(charges, places)
    if most <= _MOST_TERMS:
        above = np.arange(most + 1, dtype=np.float64)
        logs = -special.betaln(above + 1, places - above + 1) - math.log(queries)
        return float(special.logsumexp(logs))
    if most > places / 2:
        return places * math.log(2.0) * _ROUND_UP
    largest = -float(special.betaln(most + 1.0, places - most + 1.0)) - math.log(queries)
    return min(largest + math.log(most + 1), places * math.log(2.0)) * _ROUND_UP


def _log_gain(orders: npt.NDArray[np.float64], queries: int, shift: float) -> npt.NDArray[np.float64]:
    """Bound of ``ln V_k`` of each order: what one charge among k queries costs, times the order less one."""
    at = np.linspace(-4.0, _FARTHEST, _CELLS + 1)
    logs = [special.log_ndtr(sign * points) for sign in (-1, 1) for points in (at, at + shift)]
    above, above_, below, below_ = logs
    powers = orders[:, None]
    charged = np.exp(powers * above + (1 - powers) * above_)
    kept = -np.expm1(powers * below + (1 - powers) * below_)
    value, steps = np.ones(len(orders)), 0
    while steps < queries:
        block = min(max(1, steps // 8), queries - steps)
        gain = (charged - kept * value[:, None]).max(axis=1)
        value += block * _BETWEEN * np.maximum(gain, 0.0)
        steps += block
    return np.log(value)
