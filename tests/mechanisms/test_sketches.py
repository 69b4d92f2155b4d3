"""Distinct counts from private sketches: a register's law in exact fractions, the code bit by bit, and a sample."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import MECHANISMS
from mechanisms.accounting.target_decomposition import largest_q
from scipy import stats

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.mechanisms import DistinctSketch, sketches
from reusable_holdout.mechanisms.accounting import not_prior_q
from reusable_holdout.mechanisms.sketches import likeliest_rate

EPSILONS = [0.02, 0.1, 0.5, 1.0, 3.0]
HIGHEST = 40


def at_most(rank):
    """Return F(v), the chance that an item's rank is at most v."""
    return 1 - Fraction(1, 2**rank)


def register(items, *, phantoms, least, highest=HIGHEST):
    """Return the chances of the ranks `least` to `highest` of a register; higher ones count with the last."""
    below = [at_most(rank) ** (items + phantoms) for rank in range(least, highest)]
    return [below[0], *(b - a for a, b in itertools.pairwise(below)), 1 - below[-1]]


def loss(law, other):
    ratio = max(max(p / q, q / p) for p, q in zip(law, other, strict=True))
    return math.log(ratio)


def largest_loss(phantoms, least):
    """Return the largest loss over numbers of items: few, which the phantoms protect, and many."""
    how = {"phantoms": phantoms, "least": least}
    return max(loss(register(items, **how), register(items + 1, **how)) for items in (0, 1, 2, 10, 200))


@for_each("epsilon", EPSILONS)
def test_one_item_more_changes_no_rank_by_more_than_epsilon_and_less_would_not_do(epsilon):
    sketch = DistinctSketch(epsilon=epsilon)
    assert largest_loss(sketch.phantoms, sketch.least) <= epsilon
    if sketch.phantoms > 1:
        assert largest_loss(sketch.phantoms - 1, sketch.least) > epsilon
    if sketch.least > 1:
        assert largest_loss(sketch.phantoms, sketch.least - 1) > epsilon


@for_each("epsilon", [0.3, 1.0])
@for_each("items", [0, 1, 5])
def test_a_count_from_two_registers_is_private_and_publishing_a_large_one_is_a_target(epsilon, items):
    """Use (iv): the estimate above a threshold, or nothing; exact over all ranks and all ways to share the items."""
    sketch = DistinctSketch(epsilon=epsilon, registers=2)
    k, least, highest = sketch.phantoms, sketch.least, 14

    def law(count):
        found = {}
        for left in range(count + 1):
            share = Fraction(math.comb(count, left), 2**count)
            one, two = (register(n, phantoms=k, least=least, highest=highest) for n in (left, count - left))
            for i, p in enumerate(one):
                for j, q in enumerate(two):
                    found[i, j] = found.get((i, j), Fraction(0)) + share * p * q
        return found

    here, there = law(items), law(items + 1)
    assert loss(list(here.values()), list(there.values())) <= epsilon
    how = {"phantoms": k, "least": least}
    estimates = {ranks: 2 * likeliest_rate([least + r for r in ranks], **how) for ranks in here}
    for threshold in (1.0, 5.0, 50.0):
        told = sorted({value for value in estimates.values() if value >= threshold})
        outcomes = {value: place for place, value in enumerate(told)}
        p, r = ([Fraction(0)] * (len(told) + 1) for _ in range(2))
        for ranks, value in estimates.items():
            p[outcomes.get(value, -1)] += here[ranks]
            r[outcomes.get(value, -1)] += there[ranks]
        assert loss(p, r) <= epsilon
        target = [True] * len(told) + [False]
        q = largest_q([float(x) for x in p], [float(x) for x in r], target, epsilon=epsilon)
        assert q >= not_prior_q(epsilon) * (1 - 1e-9)


# The code.


@for_each(
    ("second", "rank"),
    [(2**64 - 1, 1), (2**63, 1), (2**63 - 1, 2), (2**62, 2), (1, 64), (0, 65), (2**40, 24)],
)
def test_a_rank_is_one_more_than_the_zeros_in_front(second, rank, monkeypatch):
    class Digest:
        def digest(self):
            return (8 * 5 + 3).to_bytes(8, "little") + second.to_bytes(8, "little")

    sketch = DistinctSketch(epsilon=1.0, registers=8, seed=0)
    with monkeypatch.context() as inside:
        inside.setattr(sketches.hashlib, "blake2b", lambda *_, **__: Digest())
        assert sketch._place("any") == (3, rank)


def test_a_register_begins_with_its_phantoms_largest_rank_and_no_lower_than_the_least(monkeypatch):
    class Words:
        def __init__(self, seed):
            assert seed is None

        def take(self, count):
            assert count == 6
            return np.array([2**63, 2**50 + 1, 2**62, *[2**63] * 3], dtype=np.uint64)

    monkeypatch.setattr(sketches, "RandomWords", Words)
    sketch = DistinctSketch(epsilon=0.3, registers=2)
    assert (sketch.phantoms, sketch.least) == (3, 2)
    assert sketch._ranks == [14, 2]


def test_registers_of_many_items_have_the_law_and_not_that_of_three_tenths_more():
    """False alarm 1e-9; 4,096 registers of about 20 items each."""
    registers, items = 4096, 20 * 4096
    sketch = DistinctSketch(epsilon=0.3, registers=registers, seed=4)
    sketch.add(range(items))
    ranks = np.bincount(sketch._ranks, minlength=66)

    def p_value(rate):
        v = np.arange(sketch.least, 66)
        law = np.diff((1 - 2.0**-v) ** sketch.phantoms * np.exp(-rate * 2.0**-v), prepend=0.0)
        expected, seen = law * registers, ranks[sketch.least :].astype(float)
        few = expected < 8
        groups = np.append(expected[~few], expected[few].sum()), np.append(seen[~few], seen[few].sum())
        statistic = ((groups[1] - groups[0]) ** 2 / groups[0]).sum()
        return float(stats.chi2.sf(statistic, len(groups[0]) - 1))

    assert p_value(20.0) > 1e-9
    assert p_value(26.0) < 1e-9


@for_each("phantoms", [1, 2, 40])
@for_each("ranks", [[3, 5, 4, 9, 3, 7, 2, 6], [9], [40, 38, 2], [3, 3, 3, 4], [60] * 5])
def test_the_likeliest_rate_is_the_root_of_its_slope_to_the_last_digits(ranks, phantoms):
    least = 2

    def slope(rate):
        total = mpmath.mpf(0)
        for rank in ranks:
            ends = [
                (v, (1 - mpmath.mpf(2) ** -v) ** phantoms) for v in (rank, rank - 1)[: 1 + (rank > least)]
            ]
            parts = [share * mpmath.exp(-rate * mpmath.mpf(2) ** -v) for v, share in ends]
            falls = [part * mpmath.mpf(2) ** -v for part, (v, _) in zip(parts, ends, strict=True)]
            total += (falls[-1] - falls[0] if len(ends) == 2 else -falls[0]) / (
                parts[0] - parts[1] if len(ends) == 2 else parts[0]
            )
        return total

    found = likeliest_rate(ranks, phantoms=phantoms, least=least)
    with mpmath.workdps(60):
        assert slope(mpmath.mpf(0)) <= 0 if found == 0 else slope(found * (1 - mpmath.mpf("1e-10"))) > 0
        assert slope(found * (1 + mpmath.mpf("1e-10"))) < 0


def test_the_highest_ranks_of_all_are_likeliest_at_a_number_of_items_that_has_an_end():
    assert likeliest_rate([65] * 3, phantoms=10**6, least=1) == pytest.approx(2.0**65 * math.log(2), rel=1e-9)
    assert likeliest_rate([80] * 3, phantoms=1, least=1) == pytest.approx(2.0**65, rel=1e-15)


@pytest.mark.long(*MECHANISMS)
@for_each(("registers", "items"), [(64, 0), (64, 2_000), (256, 5_000)])
def test_the_error_is_the_one_that_is_stated(registers, items):
    """Root mean square over 60 sketches, whose own relative error is about .09; of none, estimates below 0 are 0."""
    errors = []
    for seed in range(60):
        sketch = DistinctSketch(epsilon=0.2, registers=registers, seed=seed)
        sketch.add(range(items))
        errors.append(sketch.estimate() - items)
    stated = 1.04 * (items + registers * sketch.phantoms) / math.sqrt(registers)
    assert math.sqrt(np.mean(np.square(errors))) < 1.3 * stated
    if items:
        assert math.sqrt(np.mean(np.square(errors))) > 0.7 * stated
        assert abs(np.mean(errors)) < 4 * stated / math.sqrt(60)


def test_items_that_come_again_or_in_another_order_change_nothing():
    visits = ["a", "b", b"a", 1, "1", "c", "ü", -3]
    one, two, other = (DistinctSketch(epsilon=1.0, registers=256, seed=seed) for seed in (7, 7, None))
    one.add(visits)
    two.add(reversed(visits * 3))
    other.add(visits)
    assert one._ranks == two._ranks != other._ranks
    assert len({one._place(item) for item in (1, "1", b"1")}) == 3
    assert one._place(np.int64(1)) == one._place(1)


def test_a_sketch_that_has_told_its_estimate_takes_no_more():
    sketch = DistinctSketch(epsilon=1.0, seed=1)
    sketch.add(range(100))
    told = sketch.estimate()
    refuses(HandleError, "make another", sketch.add, [1])
    assert sketch.estimate() == told


@for_each("item", [None, 0.5, ("a",)])
def test_an_item_of_another_type_is_refused_without_telling_it(item):
    refuses(InputError, "something else", DistinctSketch(epsilon=1.0).add, [item])


@for_each("count", [1, 2, 5, 100])
def test_phantoms_and_least_rank_are_rounded_up_where_floats_might_fall_short(count):
    """At an epsilon of which so many phantoms, or this rank, are just enough."""
    assert DistinctSketch(epsilon=math.log1p(1 / count), registers=1).phantoms == count + 1
    rank = count % 20
    sketch = DistinctSketch(epsilon=-math.log1p(-(2.0**-rank)), registers=1) if rank else None
    assert sketch is None or sketch.least == rank + 1


def test_a_sketch_has_64_registers_and_up_to_65536_but_not_too_many_phantoms(monkeypatch):
    assert repr(DistinctSketch(epsilon=1.0)) == "DistinctSketch(registers=64)"
    assert repr(DistinctSketch(epsilon=50.0, registers=2**16)) == "DistinctSketch(registers=65536)"
    large = DistinctSketch(epsilon=1000.0, registers=1, seed=1)
    assert (large.phantoms, large.least) == (1, 1)
    large.add(range(1000))
    assert 0 <= large.estimate() < 1e6
    monkeypatch.setattr(sketches, "_MOST_PHANTOMS", 8)
    assert DistinctSketch(epsilon=0.5, registers=4).phantoms == 2
    refuses(InputError, "fewer registers", DistinctSketch, epsilon=0.5, registers=8)
