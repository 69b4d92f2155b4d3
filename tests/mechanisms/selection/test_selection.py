"""Selection: the law of every mechanism in closed form, its privacy loss, and that the code follows the law."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.selection import selection_laws as laws
from mechanisms.selection.selection_laws import MOVES, Scripted, delta_at, is_rejected, noisy_max_law, spread

from reusable_holdout import mechanisms
from reusable_holdout.mechanisms import (
    DiscreteExponential,
    RandomWords,
    exponential_top,
    permute_and_flip_top,
)
from reusable_holdout.mechanisms.accounting import bounded_range_epsilon_each, optimal_epsilon_each
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.selection import exponential, noisy_max
from reusable_holdout.mechanisms.selection import permute_and_flip as flip_module
from reusable_holdout.mechanisms.selection.exponential import selection_rate
from reusable_holdout.mechanisms.selection.noisy_max import Ranking, draw_noise
from reusable_holdout.noise import DiscreteLaplace

CASES = [(0.5, 1), (1.0, 3), (2.0, 2), (4.0, 1)]
STEP = 2.0**-16  # of a sensitivity of 1
NOISES = {"laplace": DiscreteLaplace, "exponential": DiscreteExponential}
DIFFERENCES = ("opposite", "mixed", "monotonic")  # moves that change differences of scores


class Law(NamedTuple):
    """The chances of all outcomes, given scores and a rate, and the instances on which they are audited."""

    chances: Callable
    size: int = 3  # candidates
    far: int = 20  # of a candidate that hardly counts, in inverse rates
    every: int = 1  # of all instances
    rounds: int = 1
    moves: tuple[str, ...] = tuple(MOVES)

    def bases(self, rate, sensitivity):
        far = math.ceil(self.far / rate)
        return spread(self.size, far=far, sensitivity=sensitivity)[:: self.every]


def noisy(noise, ties):
    return lambda scores, rate: noisy_max_law(scores, NOISES[noise](1 / Fraction(rate)), ties)


LAWS = {
    "exponential": Law(laws.exponential_law),
    "permute and flip": Law(laws.permute_and_flip_law),
    "two rounds": Law(lambda s, rate: laws.rounds_law(s, rate, 2), 4, every=3, rounds=2, moves=DIFFERENCES),
    "two rounds of permute and flip": Law(
        lambda s, rate: laws.permute_and_flip_rounds(s, rate, 2), 4, 20, 5, 2, ("opposite", "monotonic")
    ),
}
LAWS |= {
    f"{noise} noise, ties by {ties}": Law(noisy(noise, ties), far=8, every=2)
    for noise, ties in itertools.product(NOISES, ("index", "uniform"))
}


@pytest.mark.long(*MECHANISMS)
@pytest.mark.parametrize(("name", "moves"), [(name, moves) for name in LAWS for moves in LAWS[name].moves])
@for_each(("epsilon", "sensitivity"), CASES)
def test_a_choice_loses_at_most_epsilon_and_where_the_theorem_is_tight_nearly_all_of_it(
    name, moves, epsilon, sensitivity
):
    law, monotonic = LAWS[name], moves == "monotonic"
    rate = float(selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic)) / law.rounds
    bases = law.bases(rate, sensitivity)

    def worst(moves):
        return laws.worst_loss(lambda scores: law.chances(scores, rate), bases, moves, sensitivity)

    loss = worst(moves)
    assert loss <= epsilon + 1e-9
    assert loss >= 0.99 * epsilon if moves in DIFFERENCES else loss <= 1e-9  # only differences count
    if monotonic:  # a broken promise costs twice epsilon
        assert 1.9 * epsilon <= worst("opposite") <= 2 * epsilon + 1e-9


def test_the_plain_gap_with_ties_broken_by_index_would_lose_nearly_twice_epsilon():
    ratio = Fraction(1, 2)  # exp(-1/scale); epsilon is 2/scale
    epsilon = 2 * math.log(2)
    here, there = (laws.plain_zero_gap(scores, 2, ratio) for scores in [(0, 8, -8, -8), (1, 9, -9, -9)])
    assert math.log(here / there) == pytest.approx(1.883 * epsilon, abs=0.01)


# Rounds at an (epsilon, delta) budget.


def group_rounds(members, risen, lead, rate, count):
    """Return the law of the group that each round chooses from: `risen` of `members` items are ahead by `lead`.

    The member that is chosen tells nothing about the lead, so this is all of the privacy loss.
    """
    law = {}
    for outcome in itertools.product((0, 1), repeat=count):
        left, probability = [members - risen, risen], 1.0
        for group in outcome:
            weights = [left[0], left[1] * math.exp(rate * lead)]
            probability *= weights[group] / sum(weights)
            left[group] -= 1
        law[outcome] = probability
    return law


@pytest.mark.long(*MECHANISMS)
@for_each(
    ("law", "rounds", "each_of", "far", "size", "budget"),
    [
        *((laws.rounds_law, 3, bounded_range_epsilon_each, 2, 4, budget)
          for budget in ((0.5, 1e-2, 1), (1.0, 1e-3, 3), (2.0, 0.1, 2))),
        *((laws.permute_and_flip_rounds, 2, optimal_epsilon_each, 3, 3, budget)
          for budget in ((1.0, 0.05, 1), (2.0, 0.2, 1))),
    ],
)  # fmt: skip
@pytest.mark.parametrize("moves", ["opposite", "monotonic"])
def test_rounds_stay_within_their_delta_on_small_instances(law, rounds, each_of, far, size, budget, moves):
    epsilon, delta, sensitivity = budget
    each = each_of(epsilon=epsilon, count=rounds, delta=delta)
    assert each > 1.02 * epsilon / rounds
    rate = float(selection_rate(epsilon=each, sensitivity=sensitivity, monotonic=moves == "monotonic"))
    bases = spread(size, far=math.ceil(far / rate), sensitivity=sensitivity)[:: size - 2]
    worst = laws.worst_delta(lambda s: law(s, rate, rounds), epsilon, bases, moves, sensitivity)
    assert 0.05 * delta <= worst <= delta


@pytest.mark.long(*MECHANISMS)
@for_each(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-4), (3.0, 1e-8)])
def test_many_candidates_use_all_of_the_budget_and_a_range_a_tenth_too_wide_is_caught(epsilon, delta):
    """The worst share of a million equal items rises by one."""
    count = 10
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)

    def worst(total, each):
        return max(
            delta_at(total, *(group_rounds(10**6, risen, lead, each, count) for lead in (0, 1)))
            for risen in range(10**6 // 4, 8 * 10**5, 10**6 // 20)
        )

    assert worst(epsilon, each) <= delta
    assert worst(0.95 * epsilon, each) > delta
    assert worst(epsilon, 1.1 * each) > delta


def test_permute_and_flip_at_the_rate_of_the_exponential_mechanism_is_caught():
    """A single round is as private, but has twice the range: its losses lie between -e and e."""
    epsilon, delta, count = 1.0, 0.02, 2
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    bases = spread(3, far=math.ceil(3 / each), sensitivity=1)
    for law, caught in ((laws.permute_and_flip_rounds, True), (laws.rounds_law, False)):
        found = laws.worst_delta(lambda s, law=law: law(s, each, count), epsilon, bases, "monotonic", 1)
        assert (found > delta) is caught


# The code follows the laws.


@for_each("noise", NOISES)
@for_each("monotonic", [False, True])
@for_each(("epsilon", "sensitivity"), [(1.0, 1.0), (0.5, 3.0), (8.0, 0.75)])
def test_the_largest_score_wins_with_the_noise_that_epsilon_asks_for(
    noise, monotonic, epsilon, sensitivity, monkeypatch
):
    asked = []
    monkeypatch.setattr(noisy_max, "RandomWords", lambda seed: Scripted())
    how = {"epsilon": epsilon, "sensitivity": sensitivity, "monotonic": monotonic, "noise": noise}
    grid = Grid.of(sensitivity)
    for drawn, winner in [([9, 0, 0], 0), ([0, 9, 0], 1), ([0, 0, 9], 2), ([-9, -9, -30], 1)]:
        draw = lambda law, *_, drawn=drawn: asked.append(law) or np.array(drawn)  # noqa: E731 - two steps
        monkeypatch.setattr(noisy_max, "draw_noise", draw)
        assert mechanisms.report_noisy_max(np.array([0.0, 3.0, 5.0]) * grid.step, **how) == winner
    scale = Fraction(grid.sensitivity * (1 if monotonic else 2)) / Fraction(epsilon)
    assert set(asked) == {NOISES[noise](scale)}


def test_the_first_clock_rings_with_the_probability_of_the_exponential_mechanism(monkeypatch):
    """All pairs of 64 x 64 evenly spaced uniforms: a monotone boundary misplaces at most 2 x 64 cells."""
    cells, scores, wins = 64, [0.0, -1.5], 0
    middles = [(2 * k + 1) * 2**63 // cells for k in range(cells)]
    for pair in itertools.product(middles, repeat=2):
        monkeypatch.setattr(exponential, "RandomWords", lambda seed, pair=pair: Scripted(words=pair))
        wins += mechanisms.exponential_mechanism(scores, epsilon=2.0) == 0
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
            winner = mechanisms.report_noisy_max(np.array(scores) * STEP, epsilon=2.0**17, noise=noise)
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
        winner = mechanisms.permute_and_flip([0.0, 1.0, -1.5], epsilon=2.0)
        observed[winner] += math.prod(1 - p for p in script.chances[:heads]) * script.chances[heads] / 6
    assert observed == pytest.approx(laws.permute_and_flip_law([0, 2, -3], 0.5), abs=1e-12)


@for_each("monotonic", [False, True])
@for_each("delta", [0.0, 1e-6])
def test_the_clocks_run_at_the_rate_of_the_budget(monotonic, delta, monkeypatch):
    rates = []

    def none(behind, rate, count, words):
        assert (behind.min(), behind.max()) == (0, 2**16)  # the race wants it so
        rates.append((float(rate) * 2**16, count))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(exponential, "first_rings", none)
    exponential_top([-2.0, *[0.0] * 8], 5, epsilon=1.0, delta=delta, sensitivity=2.0, monotonic=monotonic)
    each = bounded_range_epsilon_each(epsilon=1.0, count=5, delta=delta)
    assert rates == [(pytest.approx(each / (1 if monotonic else 2), rel=1e-12), 5)]


@for_each("delta", [0.0, 1e-6])
@for_each("monotonic", [False, True])
def test_each_round_flips_at_the_rate_of_its_share_among_the_candidates_left(monotonic, delta, monkeypatch):
    asked = []

    def second(steps, rate, words):
        asked.append(((steps // 2**16).tolist(), float(rate)))
        return 1

    monkeypatch.setattr(flip_module, "flip_in_order", second)
    how = {"epsilon": 1.0, "delta": delta, "monotonic": monotonic, "seed": 0}
    assert permute_and_flip_top([9.0, 5.0, 7.0, 6.0], 3, **how).tolist() == [1, 2, 3]
    assert [left for left, _ in asked] == [[9, 5, 7, 6], [9, 7, 6], [9, 6]]
    each = optimal_epsilon_each(epsilon=1.0, count=3, delta=delta) / (1 if monotonic else 2)
    assert [rate * 2**16 for _, rate in asked] == pytest.approx([each] * 3, rel=1e-12)


def test_the_foremost_is_taken_where_all_others_are_hopeless():
    steps = np.array([-(2**50), 0, -(2**59)], dtype=np.int64)
    assert {flip_module.flip_in_order(steps, 1, RandomWords(seed)) for seed in range(20)} == {1}


SCORES = [0, 1, -1]
SAMPLED = {  # a mechanism of the scores, a number of rounds' epsilon and a seed, and its law
    "exponential": (mechanisms.exponential_mechanism, laws.exponential_law),
    "permute and flip": (mechanisms.permute_and_flip, laws.permute_and_flip_law),
    "rounds": (lambda s, **how: pair(exponential_top, s, **how), lambda s, r: laws.rounds_law(s, r, 2)),
    "rounds of permute and flip": (
        lambda s, **how: pair(permute_and_flip_top, s, **how),
        lambda s, r: laws.permute_and_flip_rounds(s, r, 2),
    ),
    **{
        noise: (partial(mechanisms.report_noisy_max, noise=noise), noisy(noise, "uniform"))
        for noise in NOISES
    },
}


def pair(choose, scores, *, epsilon, seed):
    """Choose two at twice the budget, so that each round has the rate of one choice."""
    return tuple(choose(scores, 2, epsilon=2 * epsilon, seed=seed).tolist())


@pytest.mark.long(*MECHANISMS)
@for_each("name", SAMPLED)
def test_a_sample_has_the_law_and_not_that_of_half_the_rate(name):
    choose, law = SAMPLED[name]
    counts = Counter(choose(np.array(SCORES) * STEP, epsilon=2.0**17, seed=seed) for seed in range(3000))
    for rate, wrong in ((1.0, False), (0.5, True)):
        found = law(SCORES, rate)
        assert is_rejected(counts, found if isinstance(found, dict) else dict(enumerate(found))) is wrong


def test_gumbel_noise_is_the_exponential_mechanism_and_laplace_noise_the_default():
    def drawn(choose=mechanisms.report_noisy_max, **options):
        return [choose([0.0] * 50, epsilon=1.0, seed=seed, **options) for seed in range(6)]

    assert drawn(noise="gumbel") == drawn(mechanisms.exponential_mechanism)
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
    assert mechanisms.permute_and_flip(scores, epsilon=epsilon, seed=0) in range(5)
