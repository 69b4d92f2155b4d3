"""Laws of the selection mechanisms in closed form, their worst privacy loss, and listed words in place of random ones.

Scores are integers, in grid steps; a rate is per step.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy import stats

from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)  # exact to degree 15
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2


def exponential_law(scores, rate):
    weights = np.exp(rate * (np.array(scores) - max(scores)))
    return weights / weights.sum()


def rounds_law(scores, rate, count):
    law = {}
    for order in itertools.permutations(range(len(scores)), count):
        weights = np.exp(rate * (np.array(scores) - max(scores)))
        probability = 1.0
        for index in order:
            probability *= weights[index] / weights.sum()
            weights[index] = 0.0
        law[order] = probability
    return law


def permute_and_flip_law(scores, rate):
    """Integrate over the time u of a candidate: by then another has been taken with probability u p_j."""
    coins = np.exp(rate * (np.array(scores) - max(scores)))
    not_taken = 1 - NODES[:, None] * coins[None, :]
    others = [np.delete(not_taken, i, axis=1).prod(axis=1) for i in range(len(scores))]
    return np.array([coin * (WEIGHTS @ rest) for coin, rest in zip(coins, others, strict=True)])


def permute_and_flip_rounds(scores, rate, count):
    """Return the law of rounds without replacement."""
    law = {(): 1.0}
    for _ in range(count):
        after = {}
        for chosen, probability in law.items():
            left = [i for i in range(len(scores)) if i not in chosen]
            for i, share in zip(left, permute_and_flip_law([scores[i] for i in left], rate), strict=True):
                after[*chosen, i] = probability * float(share)
        law = after
    return law


def densities(law, scores):
    """Return P(noisy score = v) and P(noisy score < v), shape (n, V), to relative errors below exp(-35)."""
    reach = math.ceil(40 * law.scale)
    values = np.arange(min(scores) - reach, max(scores) + reach + 1)
    pmf = np.exp([[law.log_pmf(int(v) - score) for v in values] for score in scores])
    below = np.exp([[_log_below(law, int(v) - score) for v in values] for score in scores])
    return pmf, below


def _log_below(law, m):
    if isinstance(law, DiscreteLaplace):
        return law.log_tail(1 - m)
    return math.log1p(-math.exp(law.log_tail(m))) if m > 0 else -math.inf


def noisy_max_law(scores, law, ties):
    """Return the chance of each index; among ties the first index, or a uniform one."""
    pmf, below = densities(law, scores)
    result = []
    for i in range(len(scores)):
        if ties == "index":
            others = [below[j] + (pmf[j] if j > i else 0) for j in range(len(scores)) if j != i]
            result.append((pmf[i] * np.prod(others, axis=0)).sum())
        else:
            rest = [j for j in range(len(scores)) if j != i]
            others = below[rest] + NODES[:, None, None] * pmf[rest]
            result.append((pmf[i] * (WEIGHTS @ others.prod(axis=1))).sum())
    return np.array(result)


def top_two_gaps_law(scores, law, gaps):
    """Return the chance of two published candidates with their gaps, averaged over the orders of ties."""
    size = len(scores)
    pmf, below = densities(law, scores)
    lowest = min(scores) - math.ceil(40 * law.scale)
    values = np.arange(pmf.shape[1]) + lowest
    orders = list(itertools.permutations(range(size)))
    result = {}
    for place, (one, two) in itertools.product(orders, itertools.permutations(range(size), 2)):
        rest = [j for j in range(size) if j not in (one, two)]
        at_most = np.prod([below[j] + (0 if place[j] < place[two] else pmf[j]) for j in rest], axis=0)
        best_other = np.diff(at_most, prepend=0.0)
        for gap, last in itertools.product(range(gaps), repeat=2):
            noise_two = values + last - scores[two]
            noise_one = values + last + gap + (place[two] < place[one]) - scores[one]
            both = np.exp(-(np.abs(noise_one) + np.abs(noise_two)) / float(law.scale) + 2 * law.log_pmf(0))
            outcome = ((one, two), (gap, last))
            result[outcome] = result.get(outcome, 0.0) + float(best_other @ both) / len(orders)
    return result


def plain_zero_gap(scores, index, ratio):
    """Return the chance that `index` wins with a plain difference of 0, ties broken by index; rational noise."""

    def pmf(x):
        return (1 - ratio) / (1 + ratio) * ratio ** abs(x)

    def at_most(x):
        return ratio ** (-x) / (1 + ratio) if x < 0 else 1 - ratio ** (x + 1) / (1 + ratio)

    others = [j for j in range(len(scores)) if j != index]
    total = Fraction(0)
    for v in range(-30, 31):
        wins = math.prod(at_most(v - scores[j] - (j < index)) for j in others)
        wins_alone = math.prod(at_most(v - 1 - scores[j]) for j in others)
        total += (wins - wins_alone) * pmf(v - scores[index])
    return total


def top_one_tables(shifts, law):
    """Return P(one given member is published with score v), for groups (members, score) and every v."""
    reach = math.ceil(40 * law.scale)
    values = range(-reach, reach + 1)
    scores = [score for _, score in shifts]
    pmf = np.exp([[law.log_pmf(v - s) for v in values] for s in scores])
    below = np.exp([[law.log_tail(1 - v + s) for v in values] for s in scores])
    nodes, weights = np.polynomial.legendre.leggauss(400)
    tables = []
    for own, (members, _) in enumerate(shifts):
        others = np.zeros((len(nodes), len(values)))
        for group, (size, _) in enumerate(shifts):
            share = below[group] + ((nodes + 1) / 2)[:, None] * pmf[group]
            others += (size - (group == own)) * np.log(share)
        tables.append((members, pmf[own] * (weights / 2 @ np.exp(others))))
    return tables


MOVES = {
    "all rise": lambda size: [(1,) * size],
    "all fall": lambda size: [(-1,) * size],
    "opposite": lambda size: list(itertools.product((-1, 1), repeat=size)),
    "mixed": lambda size: list(itertools.product((-1, 0, 1), repeat=size)),
    "monotonic": lambda size: [
        *itertools.product((0, 1), repeat=size),
        *itertools.product((-1, 0), repeat=size),
    ],
}


def worst_loss(law, bases, moves, sensitivity):
    """Return the largest absolute log-ratio of an outcome's chances over all bases and moves."""

    def logs(scores):
        found = law(scores)
        return np.log(list(found.values()) if isinstance(found, dict) else found)

    worst = 0.0
    for base in bases:
        here = logs(base)
        for move in MOVES[moves](len(base)):
            there = logs([s + sensitivity * m for s, m in zip(base, move, strict=True)])
            worst = max(worst, float(np.abs(here - there).max()))
    return worst


def spread(size, *, far, sensitivity):
    return [
        (0, *rest) for rest in itertools.product((-far, -sensitivity, 0, sensitivity, far), repeat=size - 1)
    ]


class Scripted:
    """Listed words, orders and picks in place of RandomWords."""

    def __init__(self, *, words=(), order=(), pick=0):
        self.words, self.order, self.pick = list(words), np.array(order, dtype=np.int64), pick
        self.picked_of = 0

    def take(self, count):
        taken, self.words = self.words[:count], self.words[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)

    def permutation(self, count):
        assert count == len(self.order)
        return self.order

    def below(self, count):
        self.picked_of = count
        return self.pick


def unknown_domain_law(scores, rate, count, *, known, margin):
    """Return the law of the limited-domain selection over all orders of equal scores; a margin of None has no bottom.

    An outcome with fewer items than `count` ends at the bottom.
    """
    law = {}
    orders = list(itertools.permutations(sorted(scores)))
    for order in orders:
        ranked = sorted((item for item in order if scores[item] > 0), key=lambda item: -scores[item])
        floor = scores[ranked[known]] if len(ranked) > known else 0
        weights = {item: math.exp(rate * (scores[item] - floor)) for item in ranked[:known]}
        bottom = 0.0 if margin is None else math.exp(rate * margin)
        for chosen, probability in _until_bottom(weights, bottom, count):
            law[chosen] = law.get(chosen, 0.0) + probability / len(orders)
    return law


def _until_bottom(weights, bottom, count):
    total = math.fsum([*weights.values(), bottom])
    if count == 0 or total == 0:
        yield (), 1.0
        return
    if bottom:
        yield (), bottom / total
    for item, weight in weights.items():
        left = {other: w for other, w in weights.items() if other != item}
        for rest, probability in _until_bottom(left, bottom, count - 1):
            yield (item, *rest), probability * weight / total


def delta_at(epsilon, one, other):
    """Return the smallest delta for two laws, in both directions; an outcome that is not there has chance 0."""
    return max(
        math.fsum(max(0.0, p[outcome] - math.exp(epsilon) * q.get(outcome, 0.0)) for outcome in p)
        for p, q in ((one, other), (other, one))
    )


def worst_delta(law, epsilon, bases, moves, sensitivity):
    return max(
        delta_at(epsilon, law(base), law([s + sensitivity * m for s, m in zip(base, move, strict=True)]))
        for base in bases
        for move in MOVES[moves](len(base))
    )


def item_moves(items, *, items_per_row, monotonic):
    """Give all changes of the scores of at most so many items by one step."""
    for move in itertools.product((0, 1) if monotonic else (-1, 0, 1), repeat=len(items)):
        if 0 < sum(map(abs, move)) <= items_per_row:
            yield dict(zip(items, move, strict=True))


def is_rejected(counts, law):
    """Return True if a chi-squared test at 1e-9 rejects a law, given the counts of its outcomes."""
    samples = sum(counts.values())
    distance = sum((counts[o] - samples * p) ** 2 / (samples * p) for o, p in law.items())
    return bool(distance > stats.chi2.isf(1e-9, df=len(law) - 1))
