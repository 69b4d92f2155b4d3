"""The best adversary against target charging, found by dynamic programming over all adaptive strategies."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_banded

_ROUNDS = 200  # of improvement of a strategy; few are needed


class Call(NamedTuple):
    """Law of one call under the neighbour; under the data ``up`` masses are exp(e) times, ``down`` exp(-e) times.

    ``up_hit + up_free + down_hit + down_free = 1``.
    """

    up_hit: float
    up_free: float
    down_hit: float
    down_free: float


def not_prior_calls(each):
    """List randomized responses whose prior is one answer or the other: every extreme call with a NotPrior target."""
    up = 1 / (1 + math.exp(each))
    return [Call(up, 0.0, 0.0, 1 - up), Call(0.0, up, 1 - up, 0.0)]


def calls_with_q(each, q):
    """List the extreme calls of Definition 2.1: both outcome laws give the target at least q, q <= 1/(exp(e) + 1)."""
    up = 1 / (1 + math.exp(each))
    hits = [(q, 0.0), (0.0, q * math.exp(each)), (q * up, q * (1 - up))]
    return [Call(plus, up - plus, minus, 1 - up - minus) for plus, minus in hits]


def found_delta(*, each, epsilon, charges, calls, reach):
    """Compute the delta of the best strategy that also stops when its evidence is `reach` calls from the start."""
    evidence = np.arange(-reach, reach + 1) * each
    stop = np.maximum(np.exp(evidence) - math.exp(epsilon), 0.0)
    values = stop
    choice = np.zeros(len(stop) - 2, dtype=int)
    for _ in range(charges):
        values, choice = _level(values, stop, calls, choice)
    return float(values[reach])


def _level(spent, stop, calls, choice):
    """Compute the values with one charge more than `spent` has, by improving a strategy until nothing improves it."""
    table = np.array(calls)
    values = stop
    for _ in range(_ROUNDS):
        up_hit, up_free, down_hit, down_free = table[choice].T
        bands = np.array([np.zeros(len(stop)), np.ones(len(stop)), np.zeros(len(stop))])
        bands[0, 2:] = -up_free  # of what follows evidence one step up: a call's system has three diagonals
        bands[2, :-2] = -down_free
        right = stop.copy()
        right[1:-1] = up_hit * spent[2:] + down_hit * spent[:-2]
        values = solve_banded((1, 1), bands, right)
        options = np.array(
            [
                call.up_hit * spent[2:]
                + call.up_free * values[2:]
                + call.down_hit * spent[:-2]
                + call.down_free * values[:-2]
                for call in calls
            ]
        )
        better = options.max(axis=0) > values[1:-1] * (1 + 1e-13)
        if not better.any():
            return values, choice
        choice = np.where(better, options.argmax(axis=0), choice)
    raise AssertionError("the strategy kept improving")
