"""Laws of the selection mechanisms in closed form, their worst privacy loss, and a script in place of random words.

Scores are integers, in grid steps; a rate is per step.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from reusable_holdout.mechanisms.samplers.discrete_exponential import DiscreteExponential

Array = np.ndarray[Any, np.dtype[np.float64]]
Outcome = tuple[tuple[int, int], tuple[int, int]]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)  # exact to degree 15
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2


def exponential_law(scores: Sequence[int], rate: float) -> Array:
    weights = np.exp(rate * (np.array(scores) - max(scores)))
    return weights / weights.sum()


def rounds_law(scores: Sequence[int], rate: float, count: int) -> dict[tuple[int, ...], float]:
    law = {}
    for order in itertools.permutations(range(len(scores)), count):
        weights = np.exp(rate * (np.array(scores) - max(scores)))
        probability = 1.0
        for index in order:
            probability *= weights[index] / weights.sum()
            weights[index] = 0.0
        law[order] = probability
    return law


def permute_and_flip_law(scores: Sequence[int], rate: float) -> Array:
    """Candidates arrive at independent uniform times; at time u another has been taken with probability u p_j."""
    coins = np.exp(rate * (np.array(scores) - max(scores)))
    not_taken = 1 - NODES[:, None] * coins[None, :]
    others = [np.delete(not_taken, i, axis=1).prod(axis=1) for i in range(len(scores))]
    return np.array([coin * (WEIGHTS @ rest) for coin, rest in zip(coins, others, strict=True)])


def densities(law: DiscreteLaplace | DiscreteExponential, scores: Sequence[int]) -> tuple[Array, Array]:
    """P(noisy score = v) and P(noisy score < v), shape (n, V), far enough for relative errors below exp(-35)."""
    reach = math.ceil(40 * law.scale)
    values = np.arange(min(scores) - reach, max(scores) + reach + 1)
    pmf = np.exp([[law.log_pmf(int(v) - score) for v in values] for score in scores])
    below = np.exp([[_log_below(law, int(v) - score) for v in values] for score in scores])
    return pmf, below


def _log_below(law: DiscreteLaplace | DiscreteExponential, m: int) -> float:
    if isinstance(law, DiscreteLaplace):
        return law.log_tail(1 - m)
    return math.log1p(-math.exp(law.log_tail(m))) if m > 0 else -math.inf


def noisy_max_law(scores: Sequence[int], law: DiscreteLaplace | DiscreteExponential, ties: str) -> Array:
    """Probability of each index; among ties the first index, or a uniform one (the first of a uniform priority)."""
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


def gap_law(scores: Sequence[int], law: DiscreteLaplace, gaps: int) -> Array:
    """Probability of (index, gap), gaps below a bound, averaged over the orders of ties."""
    size = len(scores)
    reach = math.ceil(40 * law.scale)
    values = np.arange(min(scores) - reach, max(scores) + reach + 1)
    pmf, below = densities(law, scores)
    orders = list(itertools.permutations(range(size)))
    result = np.zeros((size, gaps))
    for order, i in itertools.product(orders, range(size)):
        # others' noisy score, plus one for those ranked before i, is at most v
        at_most = np.prod(
            [below[j] + (0 if order[j] < order[i] else pmf[j]) for j in range(size) if j != i], axis=0
        )
        best_other = np.diff(at_most, prepend=0.0)
        for gap in range(gaps):
            own = np.exp([law.log_pmf(int(v) + gap - scores[i]) for v in values])
            result[i, gap] += best_other @ own / len(orders)
    return result


def top_two_gaps_law(scores: Sequence[int], law: DiscreteLaplace, gaps: int) -> dict[Outcome, float]:
    """Probability of two published candidates with their gaps, averaged over the orders of ties."""
    size = len(scores)
    pmf, below = densities(law, scores)
    lowest = min(scores) - math.ceil(40 * law.scale)
    values = np.arange(pmf.shape[1]) + lowest
    orders = list(itertools.permutations(range(size)))
    result: dict[Outcome, float] = {}
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


def plain_zero_gap(scores: Sequence[int], index: int, ratio: Fraction) -> Fraction:
    """Probability that `index` wins with a plain difference of 0, ties broken by index; rational noise."""

    def pmf(x: int) -> Fraction:
        return (1 - ratio) / (1 + ratio) * ratio ** abs(x)

    def at_most(x: int) -> Fraction:
        return ratio ** (-x) / (1 + ratio) if x < 0 else 1 - ratio ** (x + 1) / (1 + ratio)

    others = [j for j in range(len(scores)) if j != index]
    total = Fraction(0)
    for v in range(-30, 31):
        wins = math.prod(at_most(v - scores[j] - (j < index)) for j in others)
        wins_alone = math.prod(at_most(v - 1 - scores[j]) for j in others)
        total += (wins - wins_alone) * pmf(v - scores[index])
    return total


def top_one_tables(shifts: Sequence[tuple[int, int]], law: DiscreteLaplace) -> list[tuple[int, Array]]:
    """For groups (members, score): P(one given member is published with score v), for every v."""
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


MOVES: dict[str, Callable[[int], list[tuple[int, ...]]]] = {
    "all rise": lambda size: [(1,) * size],
    "all fall": lambda size: [(-1,) * size],
    "opposite": lambda size: list(itertools.product((-1, 1), repeat=size)),
    "mixed": lambda size: list(itertools.product((-1, 0, 1), repeat=size)),
    "monotonic": lambda size: [
        *itertools.product((0, 1), repeat=size),
        *itertools.product((-1, 0), repeat=size),
    ],
}


def worst_loss(
    law: Callable[[Sequence[int]], Any], bases: Sequence[Sequence[int]], moves: str, sensitivity: int
) -> float:
    """Largest absolute log-ratio of an outcome's probabilities over all bases and moves."""
    worst = 0.0
    for base in bases:
        one = np.asarray(law(base), dtype=float).ravel()
        for move in MOVES[moves](len(base)):
            other = np.asarray(
                law([s + sensitivity * m for s, m in zip(base, move, strict=True)]), dtype=float
            )
            worst = max(worst, float(np.abs(np.log(one) - np.log(other.ravel())).max()))
    return worst


def spread(size: int, *, far: int, sensitivity: int) -> list[tuple[int, ...]]:
    return [
        (0, *rest) for rest in itertools.product((-far, -sensitivity, 0, sensitivity, far), repeat=size - 1)
    ]


class Scripted:
    """Stands in for RandomWords."""

    def __init__(self, *, words: Sequence[int] = (), order: Sequence[int] = (), pick: int = 0) -> None:
        self.words, self.order, self.pick = list(words), np.array(order, dtype=np.int64), pick
        self.picked_of = 0

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        taken, self.words = self.words[:count], self.words[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)

    def permutation(self, count: int) -> npt.NDArray[np.int64]:
        assert count == len(self.order)
        return self.order

    def below(self, count: int) -> int:
        self.picked_of = count
        return self.pick


def joint_shortfalls(scores: Sequence[int], count: int) -> dict[tuple[int, ...], int]:
    """For each sequence how far its worst place is behind the best that could stand there."""
    best = sorted(scores, reverse=True)
    return {
        chosen: max(best[place] - scores[index] for place, index in enumerate(chosen))
        for chosen in itertools.permutations(range(len(scores)), count)
    }


def joint_law(scores: Sequence[int], rate: float, count: int) -> dict[tuple[int, ...], float]:
    """Law of the joint exponential mechanism, by enumeration."""
    weights = {chosen: math.exp(-rate * short) for chosen, short in joint_shortfalls(scores, count).items()}
    total = math.fsum(weights.values())
    return {chosen: weight / total for chosen, weight in weights.items()}


def unknown_domain_law(
    scores: dict[str, int], rate: float, count: int, *, known: int, margin: int | None
) -> dict[tuple[str, ...], float]:
    """Law of the limited-domain selection, averaged over the orders of equal scores; a margin of None has no bottom.

    An outcome with fewer items than `count` ends at the bottom.
    """
    law: dict[tuple[str, ...], float] = {}
    orders = list(itertools.permutations(sorted(scores)))
    for order in orders:
        ranked = sorted((item for item in order if scores[item] > 0), key=lambda item: -scores[item])
        floor = scores[ranked[known]] if len(ranked) > known else 0
        weights = {item: math.exp(rate * (scores[item] - floor)) for item in ranked[:known]}
        bottom = 0.0 if margin is None else math.exp(rate * margin)
        for chosen, probability in _until_bottom(weights, bottom, count):
            law[chosen] = law.get(chosen, 0.0) + probability / len(orders)
    return law


def _until_bottom(
    weights: dict[str, float], bottom: float, count: int
) -> Iterator[tuple[tuple[str, ...], float]]:
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


def delta_at(epsilon: float, one: Mapping[Any, float], other: Mapping[Any, float]) -> float:
    """Smallest delta for two laws, in both directions; an outcome that is not there has probability 0."""
    return max(
        math.fsum(max(0.0, p[outcome] - math.exp(epsilon) * q.get(outcome, 0.0)) for outcome in p)
        for p, q in ((one, other), (other, one))
    )


def item_moves(items: Sequence[str], *, items_per_row: int, monotonic: bool) -> Iterator[dict[str, int]]:
    """All changes of the scores of at most so many items by one step."""
    for move in itertools.product((0, 1) if monotonic else (-1, 0, 1), repeat=len(items)):
        if 0 < sum(map(abs, move)) <= items_per_row:
            yield dict(zip(items, move, strict=True))
