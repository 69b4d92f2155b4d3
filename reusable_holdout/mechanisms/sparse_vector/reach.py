"""The tail of a comparison's noise, which is the query's noise minus the threshold's noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

from reusable_holdout.deferred import special
from reusable_holdout.mechanisms.accounting.bisection import smallest_between

Law: TypeAlias = Literal["laplace", "exponential"]

DEVIATIONS: Mapping[Law, float] = {"laplace": math.sqrt(2.0), "exponential": 1.0}
"""Standard deviation of each law at scale 1."""


def reach_of(law: Law, threshold: float, query: float, probability: float) -> float:
    """Find the smallest distance that a comparison's noise exceeds, on either side, with at most a given probability.

    Parameters
    ----------
    law : {"laplace", "exponential"}
        Law of both noises; exponential noise is measured from its mean.
    threshold, query : float
        Scales of the two noises; the threshold's may be 0.
    probability : float
        Probability of exceeding the result, in (0, 1).

    Examples
    --------
    >>> round(reach_of("laplace", 0.0, 4.0, 0.05), 3)  # 4 ln(20)
    11.983
    """
    # Either noise alone exceeds half of `high` with at most half of the probability.
    high = 4 * (threshold + query) * (math.log(2) - math.log(probability))
    return smallest_between(
        lambda distance: tail_of(law, threshold, query, distance) <= probability, 0.0, high
    )


def tail_of(law: Law, threshold: float, query: float, distance: float) -> float:
    """Compute the probability that a comparison's noise exceeds a distance on either side.

    Parameters
    ----------
    law, threshold, query
        The noise, as for `reach_of`.
    distance : float
        The distance ``t``; at least 0.

    Notes
    -----
    For Laplace noise of scales ``b1 <= b2`` it is ``(b2^2 exp(-t/b2) - b1^2 exp(-t/b1)) / (b2^2 - b1^2)``. This equals
    ``exp(-u) (1 + r u / (1+r) (1 - exp(-x))/x)`` with ``r = b1/b2``, ``u = t/b2`` and ``x = u (1-r) / r``, a form in
    which no digits cancel. For exponential noise of scales ``b1`` (threshold) and ``b2`` (query) it is the sum over
    both sides, ``b2/(b1+b2) exp(-(t+b2-b1)/b2)`` and ``b1/(b1+b2) exp(-(t+b1-b2)/b1)`` where the exponents are
    negative, and otherwise one minus the probability of the opposite event.

    Examples
    --------
    >>> round(tail_of("laplace", 0.0, 2.0, 2.0), 6)  # exp(-1)
    0.367879
    """
    if law == "exponential":
        shift = query - threshold
        return _difference(query, threshold, distance + shift) + _difference(
            threshold, query, distance - shift
        )
    small, large = sorted((threshold, query))
    share, far = small / large, distance / large  # ratios work for very large and very small scales
    if not share:
        return math.exp(-far)
    ratio = float(special.exprel(-far * (1 - share) / share))
    return math.exp(-far) * (1 + share * far / (1 + share) * ratio)


def _difference(first: float, second: float, least: float) -> float:
    """Compute the probability that an exponential variable exceeds another by at least `least`, given both scales."""
    if least >= 0:
        return first / (first + second) * math.exp(-least / first) if first else 0.0
    return 1 - second / (first + second) * math.exp(least / second)
