"""Selection: the law of every mechanism in closed form, its privacy loss, and that the code follows the law."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import (
    MOVES,
    Scripted,
    exponential_law,
    is_rejected,
    noisy_max_law,
    permute_and_flip_law,
    plain_zero_gap,
    rounds_law,
    spread,
    worst_loss,
)

from reusable_holdout.mechanisms import (
    DiscreteExponential,
    RandomWords,
    exponential_mechanism,
    exponential_top,
    permute_and_flip,
    report_noisy_max,
)
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.selection import exponential, noisy_max
from reusable_holdout.mechanisms.selection import permute_and_flip as flip_module
from reusable_holdout.mechanisms.selection.exponential import selection_rate
from reusable_holdout.mechanisms.selection.noisy_max import Ranking, draw_noise
from reusable_holdout.noise import DiscreteLaplace

CASES = [(0.5, 1), (1.0, 3), (2.0, 2), (4.0, 1)]
STEP = 2.0**-16  # of a sensitivity of 1
NOISES = {"laplace": DiscreteLaplace, "exponential": DiscreteExponential}


@for_each(("epsilon", "sensitivity"), CASES)
@for_each("moves", MOVES)
@for_each("mechanism", [exponential_law, permute_and_flip_law])
def test_a_choice_loses_at_most_epsilon_and_where_the_theorem_is_tight_nearly_all_of_it(
    mechanism, moves, epsilon, sensitivity
):
    monotonic = moves == "monotonic"
    rate = float(selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic))
    bases = spread(3, far=math.ceil(20 / rate), sensitivity=sensitivity)
    loss = worst_loss(lambda scores: mechanism(scores, rate), bases, moves, sensitivity)
    assert loss <= epsilon + 1e-9
    if moves in ("opposite", "mixed", "monotonic"):
        assert loss >= 0.99 * epsilon
    else:
        assert loss <= 1e-9  # only differences count
    if monotonic:  # a broken promise costs twice epsilon
        broken = worst_loss(lambda scores: mechanism(scores, rate), bases, "opposite", sensitivity)
        assert 1.9 * epsilon <= broken <= 2 * epsilon + 1e-9


@pytest.mark.long(*MECHANISMS)
@for_each("moves", ["opposite", "mixed", "monotonic"])
@for_each(("epsilon", "sensitivity"), CASES)
def test_rounds_of_the_exponential_mechanism_lose_at_most_epsilon_together(epsilon, sensitivity, moves):
    rate = float(selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=moves == "monotonic")) / 2
    bases = spread(4, far=math.ceil(20 / rate), sensitivity=sensitivity)[::3]
    loss = worst_loss(lambda scores: list(rounds_law(scores, rate, 2).values()), bases, moves, sensitivity)
    assert 0.99 * epsilon <= loss <= epsilon + 1e-9


@pytest.mark.long(*MECHANISMS)
@for_each("noise", NOISES.values())
@for_each("ties", ["index", "uniform"])
@for_each("moves", MOVES)
@for_each(("epsilon", "sensitivity"), CASES)
def test_noisy_max_of_discrete_noise_loses_at_most_epsilon_however_ties_are_broken(
    noise, ties, moves, epsilon, sensitivity
):
    monotonic = moves == "monotonic"
    law = noise(1 / selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic))
    bases = spread(3, far=math.ceil(8 * law.scale), sensitivity=sensitivity)[::2]
    loss = worst_loss(lambda scores: noisy_max_law(scores, law, ties), bases, moves, sensitivity)
    assert loss <= epsilon + 1e-9
    if moves in ("opposite", "mixed", "monotonic"):
        assert loss >= 0.99 * epsilon


def test_the_plain_gap_with_ties_broken_by_index_would_lose_nearly_twice_epsilon():
    ratio = Fraction(1, 2)  # exp(-1/scale); epsilon is 2/scale
    epsilon = 2 * math.log(2)
    here, there = (plain_zero_gap(scores, 2, ratio) for scores in [(0, 8, -8, -8), (1, 9, -9, -9)])
    assert math.log(here / there) == pytest.approx(1.883 * epsilon, abs=0.01)


# The code follows the laws.


@for_each("noise", NOISES)
@for_each("monotonic", [False, True])
@for_each(("epsilon", "sensitivity"), [(1.0, 1.0), (0.5, 3.0), (8.0, 0.75)])
def test_the_largest_score_wins_with_the_noise_that_epsilon_asks_for(
    noise, monotonic, epsilon, sensitivity, monkeypatch
):
    laws = []
    monkeypatch.setattr(noisy_max, "RandomWords", lambda seed: Scripted())
    how = {"epsilon": epsilon, "sensitivity": sensitivity, "monotonic": monotonic, "noise": noise}
    grid = Grid.of(sensitivity)
    for drawn, winner in [([9, 0, 0], 0), ([0, 9, 0], 1), ([0, 0, 9], 2), ([-9, -9, -30], 1)]:
        draw = lambda law, *_, drawn=drawn: laws.append(law) or np.array(drawn)  # noqa: E731 - two steps
        monkeypatch.setattr(noisy_max, "draw_noise", draw)
        assert report_noisy_max(np.array([0.0, 3.0, 5.0]) * grid.step, **how) == winner
    scale = Fraction(grid.sensitivity * (1 if monotonic else 2)) / Fraction(epsilon)
    assert set(laws) == {NOISES[noise](scale)}


def test_the_first_clock_rings_with_the_probability_of_the_exponential_mechanism(monkeypatch):
    """All pairs of 64 x 64 evenly spaced uniforms: a monotone boundary misplaces at most 2 x 64 cells."""
    cells, scores, wins = 64, [0.0, -1.5], 0
    middles = [(2 * k + 1) * 2**63 // cells for k in range(cells)]
    for pair in itertools.product(middles, repeat=2):
        monkeypatch.setattr(exponential, "RandomWords", lambda seed, pair=pair: Scripted(words=pair))
        wins += exponential_mechanism(scores, epsilon=2.0) == 0
    assert wins / cells**2 == pytest.approx(1 / (1 + math.exp(-1.5)), abs=2 / cells)


@pytest.mark.long(*MECHANISMS)
@pytest.mark.parametrize("noise", NOISES)
def test_noisy_max_follows_its_law_over_all_noises(monkeypatch, noise):
    """All noises within 12 scales of one step; the rest weighs less than 3 exp(-12)."""
    law = NOISES[noise](1)
    scores, observed = [0, 1, -1], np.zeros(3)
    weights = {x: math.exp(law.log_pmf(x)) for x in range(-12 if noise == "laplace" else 0, 13)}
    for noises in itertools.product(weights, repeat=3):
        script = Scripted()
        monkeypatch.setattr(noisy_max, "RandomWords", lambda seed, script=script: script)
        monkeypatch.setattr(noisy_max, "draw_noise", lambda *_, drawn=noises: np.array(drawn))
        ties = math.inf
        while script.pick < ties:
            winner = report_noisy_max(np.array(scores) * STEP, epsilon=2.0**17, noise=noise)
            ties = script.picked_of
            observed[winner] += math.prod(weights[x] for x in noises) / ties
            script.pick += 1
    assert observed == pytest.approx(noisy_max_law(scores, law, "uniform"), abs=3 * math.exp(-12))


def test_permute_and_flip_follows_its_law_over_all_orders(monkeypatch):
    """Each coin in turn falls heads; its exact exponent gives the probability."""
    observed = np.zeros(3)

    class Coins(Scripted):
        def first_decay(self, exponents, exact):
            assert exponents.tolist() == [float(exact(i)) for i in range(3)]
            self.chances = [math.exp(-exact(i)) for i in range(3)]
            return self.pick

    for order, heads in itertools.product(itertools.permutations(range(3)), range(3)):
        script = Coins(order=order, pick=heads)
        monkeypatch.setattr(flip_module, "RandomWords", lambda seed, script=script: script)
        winner = permute_and_flip([0.0, 1.0, -1.5], epsilon=2.0)
        observed[winner] += math.prod(1 - p for p in script.chances[:heads]) * script.chances[heads] / 6
    assert observed == pytest.approx(permute_and_flip_law([0, 2, -3], 0.5), abs=1e-12)


SCORES = [0, 1, -1]
SAMPLED = {
    "exponential": (exponential_mechanism, exponential_law),
    "permute and flip": (permute_and_flip, permute_and_flip_law),
    "laplace": (report_noisy_max, lambda s, rate: noisy_max_law(s, DiscreteLaplace(1 / rate), "uniform")),
    "exponential noise": (
        lambda *a, **k: report_noisy_max(*a, noise="exponential", **k),
        lambda s, rate: noisy_max_law(s, DiscreteExponential(1 / rate), "uniform"),
    ),
}


@pytest.mark.long(*MECHANISMS)
@for_each("name", SAMPLED)
def test_a_sample_has_the_law_and_not_that_of_half_the_rate(name):
    mechanism, law = SAMPLED[name]
    counts = Counter(mechanism(np.array(SCORES) * STEP, epsilon=2.0**17, seed=seed) for seed in range(3000))
    assert not is_rejected(counts, dict(enumerate(law(SCORES, 1.0))))
    assert is_rejected(counts, dict(enumerate(law(SCORES, 0.5))))


@pytest.mark.long(*MECHANISMS)
def test_a_sample_of_rounds_has_their_law():
    scores = np.array(SCORES) * 1.0
    drawn = (exponential_top(scores, 2, epsilon=4.0, seed=seed).tolist() for seed in range(3000))
    assert not is_rejected(Counter(map(tuple, drawn)), rounds_law(SCORES, 1.0, 2))


def test_gumbel_noise_is_the_exponential_mechanism_and_laplace_noise_the_default():
    def drawn(choose=report_noisy_max, **options):
        return [choose([0.0] * 50, epsilon=1.0, seed=seed, **options) for seed in range(6)]

    assert drawn(noise="gumbel") == drawn(exponential_mechanism)
    assert drawn() == drawn(noise="laplace") != drawn(noise="exponential")


@for_each("law", [DiscreteLaplace(Fraction(5, 2)), DiscreteExponential(Fraction(5, 2))])
def test_noise_drawn_from_words_is_that_of_the_law(law):
    drawn = draw_noise(law, 20_000, RandomWords(seed=3)).tolist()
    values = range(-8, 9) if isinstance(law, DiscreteLaplace) else range(17)
    wanted = {value: math.exp(law.log_pmf(value)) for value in values}
    wanted["other"] = 1 - math.fsum(wanted.values())
    assert not is_rejected(Counter(value if value in wanted else "other" for value in drawn), wanted)


@for_each("count", [1, 1023, 1024, 1025, 2500])
def test_many_noises_are_read_from_the_words_one_after_another(count):
    law = DiscreteLaplace(3)
    stream = RandomWords(seed=5).take(-(-count * law.stream_bytes // 8)).astype("<u8").tobytes()
    whole = law.decode_many(stream[: count * law.stream_bytes], lambda *_: pytest.fail("a tie: other words"))
    assert draw_noise(law, count, RandomWords(seed=5)).tolist() == whole.tolist()


@for_each("noisy", [[5, 5], [3, 9, 9, 1], [0, 0, 0, 0], [4, 1, 2, 2, 7]])
def test_every_gap_is_the_most_its_candidate_can_fall_before_the_next_is_ahead(noisy):
    """Tried for all orders of ties: after one step more the next comes first."""
    for order in itertools.permutations(range(len(noisy))):
        row = np.array(noisy, dtype=np.int64)
        ranking = Ranking(row, Scripted(order=order))
        assert ranking.noisy.tolist() == row[ranking.order].tolist() == sorted(noisy, reverse=True)
        assert len(ranking.gaps) == len(noisy) - 1
        for place, gap in enumerate(ranking.gaps.tolist()):
            assert gap >= 0
            rest = ranking.order[place:].tolist()
            for loss, stays in ((gap, True), (gap + 1, False)):
                fallen = row.copy()
                fallen[rest[0]] -= loss
                after = Ranking(fallen, Scripted(order=order)).order.tolist()
                assert (min(rest, key=after.index) == rest[0]) is stays


@for_each("epsilon", [1e-300, 1e-9, 1e9, 1e300])
def test_coin_mechanisms_take_any_epsilon(epsilon):
    scores = [2.0**44, -(2.0**44), 0.0, 1e-3, -(2.0**44)]
    order = exponential_top(scores, 5, epsilon=epsilon, seed=0).tolist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert epsilon < 1 or order[:3] == [0, 3, 2]
    assert permute_and_flip(scores, epsilon=epsilon, seed=0) in range(5)
