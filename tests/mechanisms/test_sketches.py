"""Distinct counts from private sketches: a register's law in exact fractions, the code bit by bit, a sample at last."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.accounting.target_decomposition import largest_q
from scipy import stats

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.mechanisms import DistinctSketch, TargetInteraction, sketches
from reusable_holdout.mechanisms.accounting import not_prior_q
from reusable_holdout.mechanisms.sketches import likeliest_rate

EPSILONS = [0.02, 0.1, 0.5, 1.0, 3.0]
HIGHEST = 40


def at_most(rank: int) -> Fraction:
    """F(v): the chance that an item's rank is at most v."""
    return 1 - Fraction(1, 2**rank)


def register(items: int, *, phantoms: int, least: int, highest: int = HIGHEST) -> list[Fraction]:
    """Probabilities of the ranks `least` to `highest` of a register, all higher ones counted with the last."""
    below = [at_most(rank) ** (items + phantoms) for rank in range(least, highest)]
    return [below[0], *(b - a for a, b in itertools.pairwise(below)), 1 - below[-1]]


def loss(law: list[Fraction], other: list[Fraction]) -> float:
    ratio = max(max(p / q, q / p) for p, q in zip(law, other, strict=True))
    return math.log(ratio)


def largest_loss(phantoms: int, least: int) -> float:
    """Over all numbers of items: of few, for whom the phantoms are, and of many."""
    return max(
        loss(
            register(items, phantoms=phantoms, least=least),
            register(items + 1, phantoms=phantoms, least=least),
        )
        for items in (0, 1, 2, 10, 200)
    )


@for_each("epsilon", EPSILONS)
def test_one_item_more_changes_no_rank_by_more_than_epsilon_and_less_would_not_do(epsilon: float) -> None:
    sketch = DistinctSketch(epsilon=epsilon)
    assert largest_loss(sketch.phantoms, sketch.least) <= epsilon
    if sketch.phantoms > 1:
        assert largest_loss(sketch.phantoms - 1, sketch.least) > epsilon
    if sketch.least > 1:
        assert largest_loss(sketch.phantoms, sketch.least - 1) > epsilon


@for_each("epsilon", [0.3, 1.0])
@for_each("items", [0, 1, 5])
def test_a_count_from_two_registers_is_private_and_publishing_a_large_one_is_a_target(
    epsilon: float, items: int
) -> None:
    """Use (iv): the estimate above a threshold, or nothing; exact over all ranks and all ways to share the items."""
    sketch = DistinctSketch(epsilon=epsilon, registers=2)
    k, least, highest = sketch.phantoms, sketch.least, 14

    def law(count: int) -> dict[tuple[int, int], Fraction]:
        found: dict[tuple[int, int], Fraction] = {}
        for left in range(count + 1):
            share = Fraction(math.comb(count, left), 2**count)
            one, two = (register(n, phantoms=k, least=least, highest=highest) for n in (left, count - left))
            for i, p in enumerate(one):
                for j, q in enumerate(two):
                    found[i, j] = found.get((i, j), Fraction(0)) + share * p * q
        return found

    here, there = law(items), law(items + 1)
    assert loss(list(here.values()), list(there.values())) <= epsilon
    estimates = {
        ranks: 2 * likeliest_rate([least + r for r in ranks], phantoms=k, least=least) for ranks in here
    }
    for threshold in (1.0, 5.0, 50.0):
        told = sorted({value for value in estimates.values() if value >= threshold})
        outcomes = {value: place for place, value in enumerate(told)}
        p, r = ([Fraction(0)] * (len(told) + 1) for _ in range(2))
        for ranks, value in estimates.items():
            p[outcomes.get(value, -1)] += here[ranks]
            r[outcomes.get(value, -1)] += there[ranks]
        assert loss(p, r) <= epsilon
        target = [True] * len(told) + [False]
        assert largest_q(
            [float(x) for x in p], [float(x) for x in r], target, epsilon=epsilon
        ) >= not_prior_q(epsilon) * (1 - 1e-9)


# The code ----------------------------------------------------------------------------------------------


@for_each(
    ("second", "rank"),
    [(2**64 - 1, 1), (2**63, 1), (2**63 - 1, 2), (2**62, 2), (1, 64), (0, 65), (2**40, 24)],
)
def test_a_rank_is_one_more_than_the_zeros_in_front(
    second: int, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Digest:
        def digest(self) -> bytes:
            return (8 * 5 + 3).to_bytes(8, "little") + second.to_bytes(8, "little")

    sketch = DistinctSketch(epsilon=1.0, registers=8, seed=0)
    with monkeypatch.context() as inside:
        inside.setattr(sketches.hashlib, "blake2b", lambda *_, **__: Digest())
        assert sketch._place("any") == (3, rank)


def test_a_register_begins_with_its_phantoms_largest_rank_and_no_lower_than_the_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Words:
        def __init__(self, seed: int | None) -> None:
            assert seed is None

        def take(self, count: int) -> np.ndarray:
            assert count == 6
            return np.array([2**63, 2**50 + 1, 2**62, *[2**63] * 3], dtype=np.uint64)

    monkeypatch.setattr(sketches, "RandomWords", Words)
    sketch = DistinctSketch(epsilon=0.3, registers=2)
    assert (sketch.phantoms, sketch.least) == (3, 2)
    assert sketch._ranks == [14, 2]


def test_registers_of_many_items_have_the_law_and_not_that_of_three_tenths_more() -> None:
    """False alarm 1e-9; 4,096 registers of about 20 items each."""
    registers, items = 4096, 20 * 4096
    sketch = DistinctSketch(epsilon=0.3, registers=registers, seed=4)
    sketch.add(range(items))
    ranks = np.bincount(sketch._ranks, minlength=66)

    def p_value(rate: float) -> float:
        v = np.arange(sketch.least, 66)
        law = np.diff((1 - 2.0**-v) ** sketch.phantoms * np.exp(-rate * 2.0**-v), prepend=0.0)
        expected, seen = law * registers, ranks[sketch.least :].astype(float)
        few = expected < 8
        groups = np.append(expected[~few], expected[few].sum()), np.append(seen[~few], seen[few].sum())
        statistic = ((groups[1] - groups[0]) ** 2 / groups[0]).sum()
        return float(stats.chi2.sf(statistic, len(groups[0]) - 1))

    assert p_value(20.0) > 1e-9
    assert p_value(26.0) < 1e-9


def test_the_estimate_is_the_likeliest_number_of_items() -> None:
    ranks, k, least = [3, 5, 4, 9, 3, 7, 2, 6], 2, 2

    def log_likelihood(rate: float) -> float:
        def below(v: int) -> float:
            return (1 - 2.0**-v) ** k * math.exp(-rate * 2.0**-v)

        return sum(math.log(below(rank) - (below(rank - 1) if rank > least else 0.0)) for rank in ranks)

    found = likeliest_rate(ranks, phantoms=k, least=least)
    grid = np.linspace(0.01, 200, 20_000)
    assert found == pytest.approx(grid[np.argmax([log_likelihood(rate) for rate in grid])], abs=0.02)
    assert likeliest_rate([least] * 8, phantoms=k, least=least) == 0


@for_each("phantoms", [1, 2, 40])
@for_each("ranks", [[3, 5, 4, 9, 3, 7, 2, 6], [9], [40, 38, 2], [3, 3, 3, 4], [60] * 5])
def test_the_likeliest_rate_is_the_root_of_its_slope_to_the_last_digits(
    ranks: list[int], phantoms: int
) -> None:
    least = 2

    def slope(rate: mpmath.mpf) -> mpmath.mpf:
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


def test_the_highest_ranks_of_all_are_likeliest_at_a_number_of_items_that_has_an_end() -> None:
    assert likeliest_rate([65] * 3, phantoms=10**6, least=1) == pytest.approx(2.0**65 * math.log(2), rel=1e-9)
    assert likeliest_rate([80] * 3, phantoms=1, least=1) == 2.0**65


@pytest.mark.long(*MECHANISMS)
@for_each(("registers", "items"), [(64, 0), (64, 2_000), (256, 5_000)])
def test_the_error_is_the_one_that_is_stated(registers: int, items: int) -> None:
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


def test_what_occurs_again_or_in_another_order_changes_nothing() -> None:
    visits = ["a", "b", b"a", 1, "1", "c", "ü", -3]
    one, two = (DistinctSketch(epsilon=1.0, registers=4, seed=7) for _ in range(2))
    one.add(visits)
    two.add(reversed(visits * 3))
    assert one._ranks == two._ranks


def test_numbers_texts_and_bytes_are_different_items_and_numpys_integers_are_numbers() -> None:
    sketch = DistinctSketch(epsilon=1.0, registers=2**16, seed=7)
    places = {sketch._place(item) for item in (1, "1", b"1")}
    assert len(places) == 3
    assert sketch._place(np.int64(1)) == sketch._place(1)


def test_a_sketch_that_has_told_its_estimate_takes_no_more() -> None:
    sketch = DistinctSketch(epsilon=1.0, seed=1)
    sketch.add(range(100))
    told = sketch.estimate()
    with pytest.raises(HandleError, match="make another"):
        sketch.add([1])
    assert sketch.estimate() == told


def test_a_seed_repeats_a_sketch_and_no_seed_does_not() -> None:
    def ranks(seed: int | None) -> list[int]:
        sketch = DistinctSketch(epsilon=1.0, registers=256, seed=seed)
        sketch.add(range(1000))
        return sketch._ranks

    assert ranks(1) == ranks(1) != ranks(2)
    assert ranks(None) != ranks(None)


def test_neither_its_text_nor_its_pickle_tells_a_rank() -> None:
    sketch = DistinctSketch(epsilon=1.0, registers=4, seed=1)
    assert repr(sketch) == "DistinctSketch(registers=4)"
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(HandleError, match="twice"):
            copied(sketch)


def test_tests_on_sketches_pay_for_what_they_release_alone() -> None:
    """Use (iv) as it is written: many counts, each released if it is above a threshold."""
    tests = TargetInteraction(charges=2, epsilon=2.0, delta=1e-6)
    each, told = tests.epsilon_each, []
    for page, visitors in enumerate([10, 20, 50_000, 5, 60_000, 15]):
        if tests.halted:
            break
        sketch = DistinctSketch(epsilon=each, registers=64, seed=page)
        sketch.add(range(visitors))
        told.append(tests.release_if(sketch.estimate, lambda count: count >= 20_000, epsilon=each))
    assert [count is None for count in told] == [True, True, False, True, False]
    assert told[2] == pytest.approx(50_000, rel=0.4)
    assert tests.halted


@for_each(
    ("wrong", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is finite"),
        ({"epsilon": math.nan}, "epsilon is finite"),
        ({"epsilon": math.inf}, "epsilon is finite"),
        ({"registers": 0}, "power of two"),
        ({"registers": 48}, "power of two"),
        ({"registers": 2**17}, "power of two"),
        ({"epsilon": 1e-4, "registers": 2**16}, "fewer registers"),
        ({"epsilon": 1e-300}, "fewer registers"),
    ],
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DistinctSketch(**{"epsilon": 1.0} | wrong)  # type: ignore[arg-type]


@for_each("item", [None, 0.5, ("a",)])
def test_what_is_no_item_is_refused_and_not_told(item: object) -> None:
    with pytest.raises(InputError, match="something else"):
        DistinctSketch(epsilon=1.0).add([item])  # type: ignore[list-item]


@for_each("count", [1, 2, 5, 100])
def test_phantoms_and_least_rank_are_rounded_up_where_floats_might_fall_short(count: int) -> None:
    """At an epsilon of which so many phantoms, or this rank, are just enough."""
    assert DistinctSketch(epsilon=math.log1p(1 / count), registers=1).phantoms == count + 1
    rank = count % 20
    sketch = DistinctSketch(epsilon=-math.log1p(-(2.0**-rank)), registers=1) if rank else None
    assert sketch is None or sketch.least == rank + 1


def test_a_sketch_has_64_registers_and_up_to_65536_but_not_too_many_phantoms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert repr(DistinctSketch(epsilon=1.0)) == "DistinctSketch(registers=64)"
    assert repr(DistinctSketch(epsilon=50.0, registers=2**16)) == "DistinctSketch(registers=65536)"
    monkeypatch.setattr(sketches, "_MOST_PHANTOMS", 8)
    assert DistinctSketch(epsilon=0.5, registers=4).phantoms == 2
    with pytest.raises(InputError, match="fewer registers"):
        DistinctSketch(epsilon=0.5, registers=8)


def test_a_large_epsilon_needs_one_phantom() -> None:
    sketch = DistinctSketch(epsilon=1000.0, seed=1)
    assert (sketch.phantoms, sketch.least) == (1, 1)
    assert sketch.estimate() >= 0


def test_one_register_is_a_sketch_too() -> None:
    sketch = DistinctSketch(epsilon=1.0, registers=1, seed=1)
    sketch.add(range(1000))
    assert 0 <= sketch.estimate() < 1e6


def test_so_many_phantoms_are_drawn_and_no_more() -> None:
    with pytest.raises(InputError, match="at most 16777216"):
        DistinctSketch(epsilon=1 / 300, registers=2**16)
