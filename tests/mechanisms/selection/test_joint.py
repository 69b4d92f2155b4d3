"""The joint exponential mechanism: its law by enumeration of all sequences, and its exact privacy loss."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import (
    MOVES,
    exponential_law,
    joint_law,
    joint_shortfalls,
    spread,
    worst_loss,
)
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import RandomWords, joint_exponential_top
from reusable_holdout.mechanisms.selection import joint
from reusable_holdout.mechanisms.selection.joint import (
    _Cells,
    _draw_reach,
    _drawn_sequence,
    _odds,
    _Sequences,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTANCES = [
    ((0, 0, 0, 0), 2, Fraction(1, 7)),
    ((9, 7, 7, 2, 0), 3, Fraction(1, 7)),
    ((0, 60, 3, 30), 2, Fraction(1, 5)),
    ((5, 1, 4), 3, Fraction(3, 2)),
    ((5, 1, 4, 4, 0, 2), 1, Fraction(1, 3)),
    ((0, 40, 41, 900), 2, Fraction(1, 10)),
]
EXTREME = [
    ((0, 3, 2**50), 2, Fraction(1, 2**80)),  # a tail whose sum takes 24 digits away
    ((0, 3, 2**50), 2, Fraction(7, 2**4)),
    ((0, 0, 0), 2, Fraction(1, 3)),
    ((4, 2, 0), 1, Fraction(5, 3)),
]


def sequences_of(scores: Sequence[int], count: int) -> _Sequences:
    behind = np.sort(max(scores) - np.array(scores, dtype=np.int64))
    return _Sequences(behind, count)


@for_each(("scores", "count", "rate"), INSTANCES + EXTREME)
@for_each("bits", [64, 128, 256])
def test_the_odds_of_a_cell_are_bracketed_to_more_digits_than_are_drawn(
    scores: Sequence[int], count: int, rate: Fraction, bits: int
) -> None:
    sequences = sequences_of(scores, count)
    cells = _Cells.of(sequences, rate)
    with mpmath.workdps(300):
        exponent = mpmath.mpf(rate.numerator) / rate.denominator
        for cell, (start, width, end) in enumerate(zip(cells.starts, cells.widths, cells.ends, strict=True)):
            area = mpmath.exp(-exponent * start - cells.shift) * sequences.number(end) * width
            if cell == len(cells.starts) - 1:
                area /= -mpmath.expm1(-exponent * width)
            odds = area * cells.scale / (cells.weights[cell] * (1 + mpmath.mpf(cells.doubt)))
            low, high = (
                mpmath.mpf(end.numerator) / end.denominator
                for end in _odds(cells, sequences, rate, cell, bits)
            )
            assert low < odds < high
            for bound, side in ((low, -1), (high, 1)):
                assert bound / odds - 1 == pytest.approx(side * mpmath.mpf(2) ** -bits, rel=1e-9)


@for_each("bits", [64, 512, 1024])
def test_more_digits_lie_between_fewer_at_any_rate(bits: int) -> None:
    sequences, rate = sequences_of([0, 0, 1, 3], 2), Fraction(10) ** 60
    cells = _Cells.of(sequences, rate)
    low, high = _odds(cells, sequences, rate, 0, bits)
    least, most = _odds(cells, sequences, rate, 0, 8192)
    assert low < least < most < high


@for_each(("scores", "count", "rate"), INSTANCES + EXTREME)
def test_the_cells_are_as_narrow_and_as_flat_as_they_are_said_to_be(
    scores: Sequence[int], count: int, rate: Fraction
) -> None:
    sequences = sequences_of(scores, count)
    cells = _Cells.of(sequences, rate)
    most = math.log(sequences.number(sequences.span))
    *starts, tail = cells.starts
    assert sorted(
        reach for s, w in zip(starts, cells.widths, strict=False) for reach in (s, s + w)
    ) == sorted([*([0, tail] if tail else []), *2 * [start for start in starts if start]])  # without a gap
    assert tail == sequences.span or rate * tail >= most + joint._TAIL
    assert rate * tail < most + joint._TAIL + 1 or tail == 0
    for start, width, end in zip(starts, cells.widths, cells.ends, strict=False):
        assert rate * width <= 1 or width == 1
        assert end == start + width - 1
        assert sequences.number(end) <= sequences.number(start) * math.exp(joint._RISE) * (1 + 1e-12)
    assert cells.widths[-1] == (1 if tail == sequences.span else max(1, math.floor(1 / rate)))
    assert cells.ends[-1] == sequences.span


@pytest.mark.long(*MECHANISMS)
@for_each("tail", [-2.0, 1.0])
def test_reaches_have_their_law_also_where_the_tail_is_likely(
    tail: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells that end early, so that many draws come from the geometric tail behind them."""
    monkeypatch.setattr(joint, "_TAIL", tail)
    rate, draws, bins = Fraction(1, 10), 600, 10
    sequences, words = sequences_of((0, 40, 41, 900), 2), RandomWords(5)
    cells = _Cells.of(sequences, rate)
    assert float(rate * cells.starts[-1]) < 7
    reaches = [_draw_reach(cells, sequences, rate, words) for _ in range(draws)]
    weights = np.array([sequences.number(t) * math.exp(-float(rate) * t) for t in range(1500)])
    law = weights / weights.sum()
    edges = np.searchsorted(np.cumsum(law), np.arange(1, bins) / bins)
    expected = np.array([part.sum() for part in np.split(law, edges)]) * draws
    counts = np.array(
        [len(part) for part in np.split(np.sort(reaches), np.searchsorted(np.sort(reaches), edges))]
    )
    assert min(reaches) >= 0
    assert ((counts - expected) ** 2 / expected).sum() <= stats.chi2.isf(1e-6, df=bins - 1)


@for_each(("scores", "count", "rate"), INSTANCES[-1:] + EXTREME[1:2])
def test_a_cell_that_is_rarer_than_its_digits_is_only_known_to_be_so(
    scores: Sequence[int], count: int, rate: Fraction
) -> None:
    sequences = sequences_of(scores, count)
    cells = _Cells.of(sequences, rate)
    last = len(cells.starts) - 1
    area = mpmath.exp(-float(rate) * cells.starts[last] - cells.shift) * sequences.number(cells.ends[last])
    area *= cells.widths[last] / -mpmath.expm1(-float(rate) * cells.widths[last])
    zeros = -int(
        mpmath.floor(mpmath.log10(area))
    )  # decimal ones: so many binary digits are enough for the weight
    assert zeros > 10
    assert _odds(cells, sequences, rate, last, zeros)[0] > 0
    assert _odds(cells, sequences, rate, last, zeros - 1) == (0, Fraction(1, 2 ** (zeros - 1)))


def reach_law(scores: Sequence[int], count: int, rate: Fraction) -> dict[int, float]:
    """Law of the reach that the cells, their integer weights and the coins give, over all that can be drawn."""
    sequences = sequences_of(scores, count)
    cells = _Cells.of(sequences, rate)
    mass: dict[int, float] = {}
    for cell, (start, width, end) in enumerate(zip(cells.starts, cells.widths, cells.ends, strict=True)):
        kept = cells.weights[cell] * float(_odds(cells, sequences, rate, cell, 256)[0])
        last = cell == len(cells.starts) - 1
        if last and start == sequences.span:
            mass[start] = mass.get(start, 0.0) + kept
            continue
        laps = math.ceil(60 / float(rate * width)) if last else 1
        for lap, offset in itertools.product(range(laps), range(width)):
            reach = start + lap * width + offset
            stays = (
                math.exp(-float(rate) * (lap * width)) * -math.expm1(-float(rate) * width) if last else 1.0
            )
            share = sequences.number(reach) / sequences.number(end)
            mass[reach] = kept / width * math.exp(-float(rate) * offset) * share * stays
    total = math.fsum(mass.values())
    return {reach: part / total for reach, part in mass.items()}


@for_each(("scores", "count", "rate"), INSTANCES)
def test_the_law_is_that_of_all_sequences_weighed_by_their_worst_place(
    scores: tuple[int, ...], count: int, rate: Fraction
) -> None:
    reaches, sequences = reach_law(scores, count, rate), sequences_of(scores, count)
    wanted, shortfalls = joint_law(scores, float(rate), count), joint_shortfalls(scores, count)
    for chosen, probability in wanted.items():
        found = math.fsum(
            part / sequences.number(reach) for reach, part in reaches.items() if shortfalls[chosen] <= reach
        )
        assert found == pytest.approx(probability, abs=1e-12, rel=1e-11)


@for_each(("scores", "count", "rate"), INSTANCES)
def test_the_number_within_a_reach_is_that_of_an_enumeration(
    scores: tuple[int, ...], count: int, rate: Fraction
) -> None:
    shortfalls, sequences = joint_shortfalls(scores, count).values(), sequences_of(scores, count)
    reaches = range(max(shortfalls) + 3)
    counted = [sum(short <= reach for short in shortfalls) for reach in reaches]
    assert [sequences.number(reach) for reach in reaches] == counted
    assert sequences.logs(np.array(reaches)).tolist() == pytest.approx([math.log(n) for n in counted])


@for_each("choices", [[1, 1, 1], [2, 2, 1], [4], [3, 4, 4]])
def test_every_sequence_within_a_reach_comes_from_one_draw(choices: list[int]) -> None:
    class Listed:
        def __init__(self, draws: tuple[int, ...]) -> None:
            self.draws = iter(draws)

        def below(self, count: int) -> int:
            draw = next(self.draws)
            assert draw < count
            return draw

    ends = [left + place for place, left in enumerate(choices)]
    drawn = [
        tuple(_drawn_sequence(np.arange(9), choices, Listed(draws)).tolist())  # type: ignore[arg-type]
        for draws in itertools.product(*map(range, choices))
    ]
    assert len(set(drawn)) == len(drawn) == math.prod(choices)
    for chosen in drawn:
        assert len(set(chosen)) == len(chosen)
        assert all(place < end for place, end in zip(chosen, ends, strict=True))


@given(
    st.lists(st.sampled_from([0, 1, 2, 1000, 2**30, 2**60]), min_size=2, max_size=8),
    st.integers(1, 8),
    st.sampled_from(
        [Fraction(1, 2**80), Fraction(1, 2**40), Fraction(1, 1000), Fraction(1), Fraction(2**40)]
    ),
)
def test_integer_weights_are_large_enough_and_hardly_larger(
    scores: list[int], count: int, rate: Fraction
) -> None:
    sequences = sequences_of(scores, min(count, len(scores)))
    cells = _Cells.of(sequences, rate)
    assert 2**60 < sum(cells.weights) < 2**62
    for cell, weight in enumerate(cells.weights):
        low, high = _odds(cells, sequences, rate, cell, 192)
        assert 0 <= high - low <= Fraction(1, 2**190)
        assert high <= 1
        assert low > 1 - Fraction(1, 2**30) - Fraction(1, weight)


@given(st.integers(0, 2**32), st.sampled_from([Fraction(1, 2**70), Fraction(1, 2**20), Fraction(5)]))
def test_any_rate_gives_a_reach_and_a_sequence(seed: int, rate: Fraction) -> None:
    scores = [0, 5, 2**59, 7, 2**59 + 1, 2**40]
    sequences = sequences_of(scores, 3)
    reach = _draw_reach(_Cells.of(sequences, rate), sequences, rate, RandomWords(seed))
    drawn = _drawn_sequence(np.arange(len(scores)), sequences.choices(reach), RandomWords(seed))
    assert reach >= 0
    assert len(set(drawn.tolist())) == 3


@pytest.mark.long(*MECHANISMS)
@for_each("moves", ["opposite", "monotonic"])
@for_each(("epsilon", "sensitivity", "count"), [(0.5, 1, 2), (2.0, 3, 3), (1.0, 2, 1)])
def test_no_sequence_loses_more_than_epsilon(
    epsilon: float, sensitivity: int, count: int, moves: str
) -> None:
    rate = float(
        joint.joint_rate(count, epsilon=epsilon, sensitivity=sensitivity, monotonic=moves == "monotonic")
    )
    bases = spread(4, far=math.ceil(4 / rate), sensitivity=sensitivity)[:: 3 if count == 3 else 1]
    loss = worst_loss(lambda scores: list(joint_law(scores, rate, count).values()), bases, moves, sensitivity)
    assert (0.99 if count == 1 else 0.77) * epsilon <= loss <= epsilon + 1e-9


def pair_loss(scores: np.ndarray, move: np.ndarray, rate: float) -> float:  # type: ignore[type-arg]
    """Largest loss of a sequence of two, over all of many candidates."""

    def logs(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        first, second = np.sort(values)[::-1][:2]
        short = np.maximum(first - values[:, None], second - values[None, :]).astype(float)
        np.fill_diagonal(short, np.inf)
        weights = -rate * short
        return weights - np.log(np.exp(weights).sum())  # type: ignore[no-any-return]

    one, other = logs(scores), logs(scores + move)
    apart = ~np.eye(len(scores), dtype=bool)
    return float(np.abs(one[apart] - other[apart]).max())


@for_each("monotonic", [True, False])
@for_each("epsilon", [0.1, 1.0])
def test_two_among_many_lose_all_of_epsilon(epsilon: float, monotonic: bool) -> None:
    """Most sequences have another first, which falls behind; the few with the true first and a riser catch up."""
    rate = float(joint.joint_rate(2, epsilon=epsilon, sensitivity=1, monotonic=monotonic))
    gap = math.ceil(0.5 / rate)
    scores = np.array([2 * gap, gap, *[0] * 1500])
    move = np.zeros(len(scores), dtype=int) if monotonic else np.full(len(scores), -1)
    move[[0, 2]] = 1
    loss = pair_loss(scores, move, rate)
    assert 0.99 * epsilon <= loss <= epsilon + 1e-9


@for_each(("moves", "monotonic"), [("monotonic", True), ("opposite", False)])
def test_one_candidate_is_chosen_by_the_exponential_mechanism(moves: str, monotonic: bool) -> None:
    rate = joint.joint_rate(1, epsilon=1.0, sensitivity=1, monotonic=monotonic)
    assert rate == 2 * joint.joint_rate(2, epsilon=1.0, sensitivity=1, monotonic=monotonic)
    for scores in [(3, 1, 0), (2, 2, 5)]:
        law = list(joint_law(scores, float(rate), 1).values())
        assert law == pytest.approx(exponential_law(scores, float(rate)).tolist())
        assert len(MOVES[moves](3)) > 1


@pytest.mark.long(*MECHANISMS)
def test_a_sample_has_the_law_and_not_that_of_a_rate_a_third_larger() -> None:
    samples, scores = 4000, [0.0, 1.0, 0.5, -1.0]
    steps = [round(score * 2**16) for score in scores]
    rates = [float(joint.joint_rate(2, epsilon=e, sensitivity=2**16, monotonic=False)) for e in (4.0, 5.2)]
    right, wrong = (joint_law(steps, rate, 2) for rate in rates)
    counts = dict.fromkeys(right, 0)
    for seed in range(samples):
        counts[tuple(joint_exponential_top(scores, 2, epsilon=4.0, seed=seed).tolist())] += 1
    limit = stats.chi2.isf(1e-9, df=len(right) - 1)

    def distance(expected: dict[tuple[int, ...], float]) -> float:
        return sum((counts[o] - samples * p) ** 2 / (samples * p) for o, p in expected.items())

    assert distance(right) <= limit < distance(wrong)


@for_each(("size", "count"), [(12, 3), (1000, 30)])
def test_the_best_are_all_found_when_they_lead_by_what_the_notes_say(size: int, count: int) -> None:
    beta, epsilon = 0.05, 1.0
    rate = epsilon / 2
    lead = math.ceil(math.log(math.comb(size, count) / beta) / rate)
    missed = (math.comb(size, count) - 1) * math.exp(-rate * lead)
    assert missed / (1 + missed) <= beta
    scores = np.concatenate([np.full(count, float(lead)), np.zeros(size - count)])
    found = [
        set(joint_exponential_top(scores, count, epsilon=epsilon, monotonic=True, seed=seed).tolist())
        for seed in range(100)
    ]
    assert sum(chosen == set(range(count)) for chosen in found) >= stats.binom.ppf(1e-9, 100, 1 - beta)


@for_each(
    "bad",
    [
        {"scores": [1.0, math.nan]},
        {"count": 0},
        {"count": 4},
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"epsilon": 1e-300},
        {"sensitivity": 0.0},
    ],
)
def test_what_is_out_of_range_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InputError):
        joint_exponential_top(**({"scores": [1.0, 77.125, 3.0], "count": 2, "epsilon": 1.0} | bad))  # type: ignore[arg-type]


def test_the_smallest_rate_is_drawn_with_and_a_smaller_one_refused() -> None:
    least = Fraction(1, 2**900)
    assert joint.joint_rate(1, epsilon=float(least), sensitivity=1, monotonic=True) == least
    with pytest.raises(InputError, match="needs an epsilon above"):
        joint.joint_rate(1, epsilon=float(least / 2), sensitivity=1, monotonic=True)
    rest = {"epsilon": 1e-250, "monotonic": True}
    chosen = {
        tuple(joint_exponential_top([1.0, 2.0, 3.0], 2, seed=seed, **rest).tolist()) for seed in range(60)
    }
    assert chosen == set(itertools.permutations(range(3), 2))  # scores count for nothing
