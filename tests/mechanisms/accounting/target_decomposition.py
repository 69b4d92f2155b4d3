"""Laws on a finite outcome space: the largest q of a target, neighbours, the boundary wrapper, and calls that stop."""

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy import optimize, special


def arrays(first, second, target):
    """Return two laws as floats, and the outcomes in the target as booleans."""
    return np.asarray(first, dtype=float), np.asarray(second, dtype=float), np.asarray(target, dtype=bool)


def privacy_loss(first, second):
    """Compute the largest log-ratio, in both directions, of two outcome distributions."""
    p, r = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    return float(np.max(np.abs(np.log(p) - np.log(r))))


def largest_q(first, second, target, *, epsilon):
    """Give the largest q in closed form.

    Taking common mass away from the target makes both sides of ``P(T) - c(T) >= q (1 - sum c)`` larger by the same,
    so it is best empty; off the target as much as indistinguishability allows is common.
    """
    p, r, hit = arrays(first, second, target)
    # exp(e) p - r, written so that small differences are not lost
    common = np.minimum(np.expm1(epsilon) * p - (r - p), np.expm1(epsilon) * r - (p - r)) / np.expm1(epsilon)
    # 1 - sum of the common mass, likewise: the target's mass and what each other outcome keeps
    rest = min(p[hit].sum() + (p - common)[~hit].sum(), r[hit].sum() + (r - common)[~hit].sum())
    return float(min(p[hit].sum(), r[hit].sum()) / rest)


def largest_mean(first, second, target, *, epsilon):
    """Give the largest mean of the two chances of the target, with as much common mass as `largest_q` takes."""
    p, r, hit = arrays(first, second, target)
    least = largest_q(p, r, hit, epsilon=epsilon)
    return float((p[hit].sum() + r[hit].sum()) / (2 * min(p[hit].sum(), r[hit].sum())) * least)


def largest_q_by_linear_program(first, second, target, *, epsilon):
    """Give the largest q by bisection over the linear programs of Definition 2.1."""
    p, r, hit = arrays(first, second, target)
    growth = np.exp(epsilon)
    upper = np.minimum(np.minimum(p, r), np.minimum(growth * p - r, growth * r - p) / (growth - 1))
    low, high = 0.0, 1.0
    for _ in range(40):
        q = (low + high) / 2
        # P_b(T) - c(T) >= q (1 - sum c): the left side less the right is to be as large as possible
        gain = q - hit.astype(float)
        solved = optimize.linprog(
            -gain, bounds=[(0.0, max(bound, 0.0)) for bound in upper.tolist()], method="highs"
        )
        margin = -solved.fun + min(p[hit].sum(), r[hit].sum()) - q
        low, high = (q, high) if margin >= 0 else (low, q)
    return low


def wrapped(law):
    """Return the law of the boundary wrapper, Algorithm 4; the boundary comes last."""
    rare = sum(sorted(law)[:-1])
    pi = min(type(rare)(1) / 2, rare)
    return [*(p / (1 + pi) for p in law), pi / (1 + pi)]


def neighbours(law, ratio):
    """Give laws as far as a private algorithm may move: all outcomes but one at an extreme, one makes the sum 1."""
    for free in range(len(law)):
        for moves in itertools.product((ratio, 1 / ratio, Fraction(1)), repeat=len(law) - 1):
            factors = [*moves[:free], Fraction(0), *moves[free:]]
            other = [p * factor for p, factor in zip(law, factors, strict=True)]
            other[free] = 1 - sum(other)
            if law[free] / ratio <= other[free] <= law[free] * ratio:
                yield other


def stopped_delta(first, second, *, charges, calls, epsilon, reveals=0.0):
    """Return delta of calls that betray the data set with a chance `reveals` and else hit with one of these chances.

    To betray is an outcome of its own, which the other data set does not have. The calls stop at the last charge.
    """
    t = np.arange(charges, calls + 1)
    ways = special.gammaln(t) - special.gammaln(charges) - special.gammaln(t - charges + 1)
    j = np.arange(min(charges, calls + 1))
    left = special.gammaln(calls + 1) - special.gammaln(j + 1) - special.gammaln(calls - j + 1)
    kept = math.log1p(-reveals)

    def probabilities(p):
        stopped = ways + charges * math.log(p) + (t - charges) * math.log1p(-p) + t * kept
        ended = left + j * math.log(p) + (calls - j) * math.log1p(-p) + calls * kept
        return np.exp(np.concatenate([stopped, ended]))

    here, there = probabilities(first), probabilities(second)
    return float(1 - here.sum() + np.maximum(0.0, here - math.exp(epsilon) * there).sum())
