"""Exact laws of the best of a random number of runs."""

import math

import mpmath

from reusable_holdout.mechanisms.accounting import Repetitions

COMMON_LAWS = [
    Repetitions(mean=4.0, shape=1.0),
    Repetitions(mean=4.0),
    Repetitions(mean=12.0, shape=0.5),
    Repetitions(mean=3.0, shape=-0.5),
    Repetitions(mean=5.0, shape=math.inf),
]


def run_probabilities(law):
    """Compute the chance of each number of runs by gamma functions, until hardly anything is left."""
    chances = {}
    left, runs = mpmath.mpf(1), 0
    while left > mpmath.mpf("1e-14"):
        chance = _chance(law, runs)
        left -= chance
        chances[runs] = chance
        runs += 1
    return chances


def _chance(law, runs):
    if law.shape == math.inf:
        return mpmath.exp(-law.mean) * mpmath.mpf(law.mean) ** runs / mpmath.factorial(runs)
    stop, shape = mpmath.mpf(law.stop), mpmath.mpf(law.shape)
    if runs == 0:
        return mpmath.mpf(0)
    if stop == 1:
        return mpmath.mpf(runs == 1)
    if shape == 0:
        return (1 - stop) ** runs / (runs * -mpmath.log(stop))
    ways = mpmath.gammaprod([runs + shape], [shape, runs + 1])
    return (1 - stop) ** runs * ways / (stop**-shape - 1)


def generating(law, z):
    """Compute the mean of ``z**runs``, in closed form."""
    if law.shape == math.inf:
        return mpmath.exp(law.mean * (mpmath.mpf(z) - 1))
    stop, shape = mpmath.mpf(law.stop), mpmath.mpf(law.shape)
    rest = 1 - (1 - stop) * z
    return mpmath.log(rest) / mpmath.log(stop) if shape == 0 else (rest**-shape - 1) / (stop**-shape - 1)


def best_of(law, run):
    """Compute the chance that each outcome is the best, given those of one run, worst first."""
    below, found = mpmath.mpf(0), []
    for chance in run:
        found.append(generating(law, below + chance) - generating(law, below))
        below += mpmath.mpf(chance)
    return found


def border(epsilon, *, rare):
    """Return randomized response between a bad and a good half, with a rare outcome at the border."""
    more, less = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return [(1 - rare) * more, rare * more, less], [(1 - rare) * less, rare * less, more]
