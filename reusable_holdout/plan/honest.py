"""Honest searches, whose priors are off by chance alone: their number of charges, and the cost of honest claims."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import Theory

_REACH = 7.0  # standard deviations of the holdout's own error; beyond lies less than 1e-11
_NODES_PER_BEND = 4.0  # in a standard deviation of the integrand; twice as many change nothing by 1e-6
_MOST_NODES = 1_001
_LEADS = 2.0  # nats that a new lead costs; K honest claims bring about ln K new leads


def charges_of_a_search(
    thresholds: Sequence[float],
    *,
    prior_error: float,
    standard_error: float,
    noise_sd: float,
    queries: int,
    common: float = 1.0,
) -> NDArray[np.float64]:
    """Return the distribution of the number of charges in an honest search, of shape (C + 1,).

    The C thresholds are in force after 0, 1, ... charges; after C the guard has halted. A prior's own error is
    independent from question to question. `common` is the share of the variance of the holdout's error that all
    questions have in common, because all models of the search make some mistakes alike. Given the common error e,
    questions are independent. Each is charged with the probability that ``N(e, prior_error**2 + (1 - common)
    standard_error**2)`` lies beyond the threshold in force. So the number of charges is a Markov chain of C + 1 states.
    Its distribution is averaged over e, exactly but for the error of the numerical integration.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - slow to import, and only a plan that is printed needs it

    apart, together = (standard_error * math.sqrt(part) for part in (1.0 - common, common))
    own, beyond = math.hypot(prior_error, noise_sd, apart), np.asarray(thresholds, dtype=np.float64)
    bends = max(1.0, together / own)
    count = min(_MOST_NODES, 2 * math.ceil(_REACH * _NODES_PER_BEND * bends) + 1)
    nodes = np.linspace(-_REACH, _REACH, count)
    weights = np.exp(-(nodes**2) / 2.0)
    error = nodes[:, None] * together
    charged = np.clip(ndtr((-beyond - error) / own) + ndtr((error - beyond) / own), 0.0, 1.0)
    size = len(beyond)
    step = np.zeros((count, size + 1, size + 1))
    places = np.arange(size)
    step[:, places, places] = 1.0 - charged
    step[:, places, places + 1] = charged
    step[:, size, size] = 1.0
    law = np.linalg.matrix_power(step, queries)[:, 0, :]
    return np.asarray(weights @ law / weights.sum(), dtype=np.float64)


def honest_nats(claims: int, theory: Theory) -> float:
    """Return the nats that honest claims probably cost: most stand, some take the lead, few are wrong by chance."""
    code = theory.claims
    others = len(theory.charge.cells) * code.charge + code.failed
    start, end = code.stands, code.stands + others
    each = math.lgamma(claims + end) - math.lgamma(end) - math.lgamma(claims + start) + math.lgamma(start)
    stands = 2.0 * each  # once for series with a claim that stood, once for the others
    by_chance = math.erfc(code.reach / math.sqrt(2.0)) * claims
    return stands + _LEADS * math.log(claims) + by_chance * (math.log(claims) + _LEADS)
