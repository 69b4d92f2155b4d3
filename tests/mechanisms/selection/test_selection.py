"""Selection: the law of every mechanism in closed form, its privacy loss, and that the code follows the law."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import (
    MOVES,
    Array,
    Scripted,
    exponential_law,
    gap_law,
    noisy_max_law,
    permute_and_flip_law,
    plain_zero_gap,
    rounds_law,
    spread,
    worst_loss,
)
from scipy import stats

from reusable_holdout.mechanisms.samplers.discrete_exponential import DiscreteExponential
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection import exponential, noisy_max, race
from reusable_holdout.mechanisms.selection.exponential import (
    exponential_mechanism,
    exponential_top,
    selection_rate,
)
from reusable_holdout.mechanisms.selection.noisy_max import (
    draw_noise,
    permute_and_flip,
    report_noisy_max,
    report_noisy_max_gap,
)
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from reusable_holdout.mechanisms.samplers.digits import Digits

CASES = [(0.5, 1), (1.0, 3), (2.0, 2), (4.0, 1)]


@for_each(("epsilon", "sensitivity"), CASES)
@for_each("moves", MOVES)
@for_each("mechanism", [exponential_law, permute_and_flip_law])
def test_a_choice_loses_at_most_epsilon_and_where_the_theorem_is_tight_nearly_all_of_it(
    mechanism: Callable[[Sequence[int], float], Array], moves: str, epsilon: float, sensitivity: int
) -> None:
    monotonic = moves == "monotonic"
    rate = float(selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic))
    bases = spread(3, far=math.ceil(20 / rate), sensitivity=sensitivity)
    loss = worst_loss(lambda scores: mechanism(scores, rate), bases, moves, sensitivity)
    assert loss <= epsilon + 1e-9
    if moves in ("opposite", "mixed", "monotonic"):
        assert loss >= 0.99 * epsilon
    else:
        assert loss <= 1e-9  # only differences count


@for_each(("epsilon", "sensitivity"), CASES)
@for_each("mechanism", [exponential_law, permute_and_flip_law])
def test_the_monotonic_rate_loses_at_most_twice_epsilon_if_the_promise_is_broken(
    mechanism: Callable[[Sequence[int], float], Array], epsilon: float, sensitivity: int
) -> None:
    rate = float(selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=True))
    bases = spread(3, far=math.ceil(20 / rate), sensitivity=sensitivity)
    loss = worst_loss(lambda scores: mechanism(scores, rate), bases, "opposite", sensitivity)
    assert 1.9 * epsilon <= loss <= 2 * epsilon + 1e-9


@pytest.mark.long(*MECHANISMS)
@for_each("moves", ["opposite", "mixed", "monotonic"])
@for_each(("epsilon", "sensitivity"), CASES)
def test_rounds_of_the_exponential_mechanism_lose_at_most_epsilon_together(
    epsilon: float, sensitivity: int, moves: str
) -> None:
    rate = float(selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=moves == "monotonic")) / 2
    bases = spread(4, far=math.ceil(20 / rate), sensitivity=sensitivity)[::3]
    loss = worst_loss(lambda scores: list(rounds_law(scores, rate, 2).values()), bases, moves, sensitivity)
    assert 0.99 * epsilon <= loss <= epsilon + 1e-9


@pytest.mark.long(*MECHANISMS)
@for_each("noise", [DiscreteLaplace, DiscreteExponential])
@for_each("ties", ["index", "uniform"])
@for_each("moves", MOVES)
@for_each(("epsilon", "sensitivity"), CASES)
def test_noisy_max_of_discrete_noise_loses_at_most_epsilon_however_ties_are_broken(
    noise: type[DiscreteLaplace | DiscreteExponential],
    ties: str,
    moves: str,
    epsilon: float,
    sensitivity: int,
) -> None:
    monotonic = moves == "monotonic"
    law = noise(1 / selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic))
    bases = spread(3, far=math.ceil(8 * law.scale), sensitivity=sensitivity)[::2]
    loss = worst_loss(lambda scores: noisy_max_law(scores, law, ties), bases, moves, sensitivity)
    assert loss <= epsilon + 1e-9
    if moves in ("opposite", "mixed", "monotonic"):
        assert loss >= 0.99 * epsilon


def test_noisy_max_of_laplace_noise_spends_all_of_epsilon_on_a_candidate_far_behind() -> None:
    law = DiscreteLaplace(2)
    loss = worst_loss(lambda scores: noisy_max_law(scores, law, "uniform"), [(0, -500)], "opposite", 1)
    assert 0.99 <= loss <= 1 + 1e-9


@pytest.mark.long(*MECHANISMS)
@for_each("moves", ["all rise", "all fall", "opposite", "monotonic"])
@for_each(("epsilon", "sensitivity"), [(1.0, 1), (4.0, 1), (2.0, 2)])
def test_the_gap_of_noisy_max_is_free(moves: str, epsilon: float, sensitivity: int) -> None:
    monotonic = moves == "monotonic"
    law = DiscreteLaplace(1 / selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic))
    for base in [(0, 0, 0), (0, -3, 3), (0, 8, -8), (5, -1, 0)]:
        loss = worst_loss(lambda scores: gap_law(scores, law, 6), [base], moves, sensitivity)
        assert loss <= epsilon + 1e-9


def test_the_plain_gap_with_ties_broken_by_index_would_lose_nearly_twice_epsilon() -> None:
    ratio = Fraction(1, 2)  # exp(-1/scale); epsilon is 2/scale
    epsilon = 2 * math.log(2)
    here, there = (plain_zero_gap(scores, 2, ratio) for scores in [(0, 8, -8, -8), (1, 9, -9, -9)])
    assert math.log(here / there) == pytest.approx(1.883 * epsilon, abs=0.01)


# The code follows the laws.


def ring_order(words: Sequence[Sequence[int]], behind: Sequence[int], rate: Fraction) -> list[int]:
    """Order of the clocks at 400 digits."""
    with mpmath.workdps(400):
        times = []
        for digits, back in zip(words, behind, strict=True):
            v = sum(
                (mpmath.mpf(w) / mpmath.mpf(2) ** (64 * (k + 1)) for k, w in enumerate(digits)), mpmath.mpf(0)
            )
            v += mpmath.mpf(2) ** (-64 * len(digits) - 1)
            times.append(
                mpmath.log(-mpmath.log(1 - v)) + mpmath.mpf(rate.numerator) * back / rate.denominator
            )
        return sorted(range(len(times)), key=times.__getitem__)


WORD = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 50).map(lambda k: 2**k),
    st.integers(0, 50).map(lambda k: 2**64 - 2**k),
    st.sampled_from([0, 2**63 - 1, 2**63, 2**64 - 1]),
)


@given(WORD, st.integers(0, 2**61), st.fractions(min_value=Fraction(1, 2**60), max_value=2**20))
def test_floating_point_bounds_of_a_clock_contain_it(word: int, behind: int, rate: Fraction) -> None:
    lows, highs = race._log_ring_bounds(
        np.array([word], dtype=np.uint64), np.array([behind], dtype=np.int64), float(rate)
    )
    with mpmath.workdps(80):
        shift = mpmath.mpf(rate.numerator) * behind / rate.denominator
        ends = [mpmath.mpf(end) / mpmath.mpf(2) ** 64 for end in (word, word + 1)]
        if ends[0] > 0:
            assert mpmath.log(-mpmath.log(1 - ends[0])) + shift >= mpmath.mpf(float(lows[0]))
        else:
            assert lows[0] == -math.inf
        if ends[1] < 1:
            assert mpmath.log(-mpmath.log(1 - ends[1])) + shift <= mpmath.mpf(float(highs[0]))
        else:
            assert highs[0] == math.inf


@pytest.mark.long(*MECHANISMS)
@given(st.data())
def test_the_race_is_decided_as_at_four_hundred_digits_also_where_clocks_nearly_tie(
    data: st.DataObject,
) -> None:
    size = data.draw(st.integers(2, 6))
    few = st.sampled_from(data.draw(st.lists(WORD, min_size=1, max_size=2)))
    first = data.draw(st.lists(few, min_size=size, max_size=size))
    behind = data.draw(st.lists(st.sampled_from([0, 0, 1, 70_000]), min_size=size, max_size=size))
    count = data.draw(st.integers(1, size))
    rate = Fraction(1, 2**17)
    further: list[int] = []
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))

    class Recorded(Scripted):
        def take(self, asked: int) -> npt.NDArray[np.uint64]:
            if asked == size and not further:
                return np.array(first, dtype=np.uint64)
            further.append(int(rng.integers(2**64, dtype=np.uint64)))
            return np.array(further[-1:], dtype=np.uint64)

    clocks: dict[int, race._Clock] = {}

    class Kept(race._Clock):
        __slots__ = ()

        def __init__(self, index: int, digits: Digits, back: int) -> None:
            super().__init__(index, digits, back)
            clocks[index] = self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "_Clock", Kept)
        rings = race.first_rings(np.array(behind), rate, count, Recorded())  # type: ignore[arg-type]
    words = [[word] for word in first]
    for index, clock in clocks.items():
        known, bits = clock._digits.known, clock._digits.bits
        words[index] = [known >> 64 * k & 2**64 - 1 for k in reversed(range(bits // 64))]
    assert rings.tolist() == ring_order(words, behind, rate)[:count]


@for_each("word", [2**40, 2**62 + 12345, 2**63 + 7, 2**64 - 2**50])
@for_each("behind", [1, 70_000])
def test_clocks_of_different_rates_that_nearly_tie_are_ordered_by_further_digits(
    word: int, behind: int
) -> None:
    """The first clock is set so that it rings with the second, to 64 digits."""
    rate = Fraction(1, 2**17)
    with mpmath.workdps(60):
        second = -mpmath.log(1 - (mpmath.mpf(word) + 0.5) / mpmath.mpf(2) ** 64)
        first = second * mpmath.exp(mpmath.mpf(behind) / 2**17)
        tie = int(mpmath.floor((1 - mpmath.exp(-first)) * mpmath.mpf(2) ** 64))
    for off, further in itertools.product((-3, -1, 0, 1, 3), ((0, 2**64 - 1), (2**64 - 1, 0), (1, 2))):
        script = Scripted(words=[tie + off, word, *further, 5, 6, 7, 8])
        rings = race.first_rings(np.array([0, behind]), rate, 2, script)  # type: ignore[arg-type]
        # The sort asks whether the second comes before the first, so it is refined first.
        drawn = [[tie + off, further[1], 6, 8], [word, further[0], 5, 7]]
        assert rings.tolist() == ring_order(drawn, [0, behind], rate)


def test_the_first_clock_rings_with_the_probability_of_the_exponential_mechanism(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All pairs of 64 x 64 evenly spaced uniforms: a monotone boundary misplaces at most 2 x 64 cells."""
    cells, scores, wins = 64, [0.0, -1.5], 0
    middles = [(2 * k + 1) * 2**63 // cells for k in range(cells)]
    for pair in itertools.product(middles, repeat=2):
        monkeypatch.setattr(exponential, "RandomWords", lambda seed, pair=pair: Scripted(words=pair))
        wins += exponential_mechanism(scores, epsilon=2.0) == 0
    assert wins / cells**2 == pytest.approx(1 / (1 + math.exp(-1.5)), abs=2 / cells)


@pytest.mark.long(*MECHANISMS)
@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_noisy_max_follows_its_law_over_all_noises(monkeypatch: pytest.MonkeyPatch, noise: Any) -> None:
    """All noises within 12 scales of one step; what is left out weighs less than 3 exp(-12)."""
    law = DiscreteLaplace(1) if noise == "laplace" else DiscreteExponential(1)
    scores, observed = [0, 1, -1], np.zeros(3)
    reach = range(-12 if noise == "laplace" else 0, 13)
    weights = {x: math.exp(law.log_pmf(x)) for x in reach}
    laws_asked = set()
    for noises in itertools.product(reach, repeat=3):
        script = Scripted()
        drawn = np.array(noises)

        def draw(asked: Any, count: int, words: Any, drawn: Any = drawn) -> Any:
            laws_asked.add(asked)
            return drawn

        monkeypatch.setattr(noisy_max, "RandomWords", lambda seed, script=script: script)
        monkeypatch.setattr(noisy_max, "draw_noise", draw)
        ties = math.inf
        while script.pick < ties:
            winner = report_noisy_max(np.array(scores) * 2.0**-16, epsilon=2.0**17, noise=noise)
            ties = script.picked_of
            observed[winner] += math.prod(weights[x] for x in noises) / ties
            script.pick += 1
    assert laws_asked == {law}
    assert observed == pytest.approx(noisy_max_law(scores, law, "uniform"), abs=3 * math.exp(-12))


@for_each(
    ("epsilon", "monotonic", "scale"),
    [(2.0**17, False, 1), (2.0**16, False, 2), (2.0**16, True, 1), (2.0**12, False, 32)],
)
def test_a_gap_has_the_noise_that_its_epsilon_asks_for(
    epsilon: float, monotonic: bool, scale: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the sensitivity over epsilon, in steps of which 2**16 are the sensitivity; its inverse would tell all."""
    laws = []

    def none(law: DiscreteLaplace, count: int, words: RandomWords) -> np.ndarray:
        laws.append(law)
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(noisy_max, "draw_noise", none)
    report_noisy_max_gap([0.0, 1.0, 5.0], epsilon=epsilon, monotonic=monotonic, seed=0)
    assert laws == [DiscreteLaplace(scale)]


@pytest.mark.long(*MECHANISMS)
def test_the_gap_follows_its_law_over_all_noises_and_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    law, scores, gaps = DiscreteLaplace(1), [0, 1, -1], 4
    weights = {x: math.exp(law.log_pmf(x)) for x in range(-7, 8)}
    observed = np.zeros((3, gaps))
    for order in itertools.permutations(range(3)):
        monkeypatch.setattr(noisy_max, "RandomWords", lambda seed, order=order: Scripted(order=order))
        for noises in itertools.product(weights, repeat=3):
            drawn = np.array(noises)
            monkeypatch.setattr(noisy_max, "draw_noise", lambda law, count, words, drawn=drawn: drawn)
            found = report_noisy_max_gap(np.array(scores) * 2.0**-16, epsilon=2.0**17)
            gap = round(found.gap * 2**16)
            if gap < gaps:
                observed[found.index, gap] += math.prod(weights[x] for x in noises) / 6
    assert observed == pytest.approx(gap_law(scores, law, gaps), abs=3 * math.exp(-7))


def test_permute_and_flip_follows_its_law_over_all_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each coin in turn falls heads; its exact exponent gives the probability."""
    scores, epsilon = [0.0, 1.0, -1.5], 2.0
    observed = np.zeros(3)

    class Coins(Scripted):
        def first_decay(self, exponents: Array, exact: Callable[[int], Fraction]) -> int | None:
            assert exponents.tolist() == [float(exact(i)) for i in range(3)]
            self.chances = [math.exp(-exact(i)) for i in range(3)]
            return self.pick

    for order, heads in itertools.product(itertools.permutations(range(3)), range(3)):
        script = Coins(order=order, pick=heads)
        monkeypatch.setattr(noisy_max, "RandomWords", lambda seed, script=script: script)
        winner = permute_and_flip(scores, epsilon=epsilon)
        observed[winner] += math.prod(1 - p for p in script.chances[:heads]) * script.chances[heads] / 6
    assert observed == pytest.approx(permute_and_flip_law([0, 2, -3], 0.5), abs=1e-12)


SAMPLES = 3000
SAMPLED: dict[str, tuple[Callable[..., int], Callable[[float], Array]]] = {
    "exponential": (exponential_mechanism, lambda rate: exponential_law([0, 1, -1], rate)),
    "permute and flip": (permute_and_flip, lambda rate: permute_and_flip_law([0, 1, -1], rate)),
    "laplace": (
        report_noisy_max,
        lambda rate: noisy_max_law([0, 1, -1], DiscreteLaplace(1 / rate), "uniform"),
    ),
    "exponential noise": (
        lambda *a, **k: report_noisy_max(*a, noise="exponential", **k),
        lambda rate: noisy_max_law([0, 1, -1], DiscreteExponential(1 / rate), "uniform"),
    ),
    "gumbel": (
        lambda *a, **k: report_noisy_max(*a, noise="gumbel", **k),
        lambda rate: exponential_law([0, 1, -1], rate),
    ),
}


@pytest.mark.long(*MECHANISMS)
@for_each("name", SAMPLED)
def test_a_sample_has_the_law_and_not_that_of_half_the_rate(name: str) -> None:
    mechanism, law = SAMPLED[name]
    chosen = [
        mechanism(np.array([0, 1, -1]) * 2.0**-16, epsilon=2.0**17, seed=seed) for seed in range(SAMPLES)
    ]
    counts = np.bincount(chosen, minlength=3)
    limit = stats.chi2.isf(1e-9, df=2)

    def distance(expected: Array) -> float:
        return float(((counts - SAMPLES * expected) ** 2 / (SAMPLES * expected)).sum())

    assert distance(law(1.0)) <= limit
    assert distance(law(0.5)) > limit


@pytest.mark.long(*MECHANISMS)
def test_a_sample_of_rounds_has_their_law() -> None:
    law = rounds_law([0, 1, -1], 1.0, 2)
    counts = dict.fromkeys(law, 0)
    for seed in range(SAMPLES):
        counts[tuple(exponential_top([0.0, 1.0, -1.0], 2, epsilon=4.0, seed=seed).tolist())] += 1
    distance = sum((counts[o] - SAMPLES * p) ** 2 / (SAMPLES * p) for o, p in law.items())
    assert distance <= stats.chi2.isf(1e-9, df=5)


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(5, 2)), DiscreteExponential(Fraction(5, 2))])
def test_noise_drawn_from_words_is_that_of_the_law(law: DiscreteLaplace | DiscreteExponential) -> None:
    drawn = draw_noise(law, 20_000, RandomWords(seed=3))
    values = np.arange(-8, 9) if isinstance(law, DiscreteLaplace) else np.arange(0, 17)
    expected = 20_000 * np.exp([law.log_pmf(int(v)) for v in values])
    counts = np.array([(drawn == v).sum() for v in values])
    assert ((counts - expected) ** 2 / expected).sum() <= stats.chi2.isf(1e-9, df=len(values))


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 2500])
def test_many_noises_are_read_from_the_words_one_after_another(count: int) -> None:
    law = DiscreteLaplace(3)
    stream = RandomWords(seed=5).take(-(-count * law.stream_bytes // 8)).astype("<u8").tobytes()
    whole = law.decode_many(stream[: count * law.stream_bytes], lambda *_: pytest.fail("a tie: other words"))
    assert draw_noise(law, count, RandomWords(seed=5)).tolist() == whole.tolist()


# Utility.

SMALL_SCORES = st.lists(st.integers(-20, 20), min_size=1, max_size=6)


@pytest.mark.long(*MECHANISMS)
@given(SMALL_SCORES, st.floats(0.01, 5))
def test_permute_and_flip_never_errs_more_than_the_exponential_mechanism(
    scores: list[int], rate: float
) -> None:
    errors = max(scores) - np.array(scores)
    assert permute_and_flip_law(scores, rate) @ errors <= exponential_law(scores, rate) @ errors + 1e-12


@given(SMALL_SCORES)
def test_the_laws_add_up_to_one(scores: list[int]) -> None:
    assert permute_and_flip_law(scores, 0.3).sum() == pytest.approx(1, abs=1e-12)
    assert noisy_max_law(scores, DiscreteLaplace(2), "uniform").sum() == pytest.approx(1, abs=1e-12)
