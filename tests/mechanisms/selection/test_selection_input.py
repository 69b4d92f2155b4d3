"""Selection: input that is refused without telling it, seeds, and parameters at the ends of their ranges."""

import math

import numpy as np
import pytest
from cases import for_each, refuses

from reusable_holdout import mechanisms
from reusable_holdout.errors import InputError

WORDS = {"delta": 1e-6, "known": 3}
EVERY = {
    "exponential": mechanisms.exponential_mechanism,
    "rounds": lambda scores, **o: mechanisms.exponential_top(scores, 1, **o),
    "rounds with a delta": lambda scores, **o: mechanisms.exponential_top(scores, 1, delta=1e-6, **o),
    "noisy max": mechanisms.report_noisy_max,
    "permute and flip": mechanisms.permute_and_flip,
    "rounds of permute and flip": lambda scores, **o: mechanisms.permute_and_flip_top(scores, 1, **o),
    "tightest": lambda scores, **o: mechanisms.select_top(scores, 1, **o),
    "measured": lambda scores, **o: mechanisms.select_then_measure(scores, 1, **o).indices,
    "one shot": lambda scores, **o: mechanisms.one_shot_top_k(scores, 1, delta=1e-6, **o).indices,
    "gaps": lambda scores, **o: mechanisms.noisy_top_k_gaps(scores, 1, **o).indices,
}
NO_ROWS = [
    *([], [4711.25, math.nan], ["secret 4711.25", "b"], [[4711.25, 1.0]], 4711.25, None, [4711.25, [1.0]])
]
OPTIONS = [
    *({"epsilon": bad} for bad in (0.0, -1.0, math.inf, math.nan)),
    *({"epsilon": 1.0, "sensitivity": bad} for bad in (0.0, -1.0, math.inf, math.nan)),
    {"epsilon": 1.0, "seed": "x"},
]
FAR = [2.0**44 * (1 + 2.0**-52), -(2.0**45), 1e300, math.inf, -math.inf]


@for_each("name", EVERY)
def test_bad_scores_and_options_are_refused_without_telling_the_scores(name):
    """Clipped to the grid's end, a winner by far would tie with the runner-up."""
    cases = [(scores, {"epsilon": 1.0}, "") for scores in NO_ROWS]
    cases += [([4711.25, 1.0], options, "") for options in OPTIONS]
    beyond = "at most 17592186044416 from 0, which is 2**60 grid steps"
    cases += [([4711.25, far], {"epsilon": 1.0}, beyond) for far in FAR]
    for scores, options, words in cases:
        caught = refuses(InputError, "", EVERY[name], scores, **options)
        assert "4711" not in str(caught)
        assert words in str(caught)
        assert caught.__cause__ is None
    for epsilon in (0.0, -2.0, math.nan):  # not as the half, or the share, that a part of the budget is
        with pytest.raises(InputError, match=f"^epsilon is finite and above 0; got {epsilon}$"):
            EVERY[name]([1.0, 2.0], epsilon=epsilon)
    EVERY[name]([-(2.0**44), 2.0**44], epsilon=1.0)


@for_each("bad", [-77.125, math.nan, 2.0**45])
def test_a_bad_score_of_an_item_is_refused_without_telling_it_or_the_item(bad):
    refused = refuses(InputError, "", mechanisms.unknown_domain_top, {"secret": bad}, 2, epsilon=1.0, **WORDS)
    assert "secret" not in str(refused)
    assert "77" not in str(refused)


@for_each("name", EVERY)
def test_a_seed_repeats_the_choice_and_no_seed_does_not(name):
    def drawn(*seeds):
        return [np.asarray(EVERY[name]([0.0] * 10_000, epsilon=1.0, seed=seed)).tolist() for seed in seeds]

    assert drawn(5, 6) == drawn(5, 6)
    assert len({str(each) for each in drawn(5, 6, 7)}) > 1
    assert len({str(each) for each in drawn(None, None, None, None)}) > 1  # agree by chance: 1e-12


@for_each("name", EVERY)
def test_options_have_the_defaults_of_the_docstring_and_count(name):
    scores = np.random.default_rng(1).uniform(0, 300, 200).tolist()

    def drawn(**options):
        return [np.asarray(EVERY[name](scores, epsilon=1.0, seed=s, **options)).tolist() for s in range(12)]

    plain = {"sensitivity": 1.0} | ({} if name == "one shot" else {"monotonic": False})
    assert drawn() == drawn(**plain)
    for option, other in {"sensitivity": 3.0, "monotonic": True}.items():
        if option in plain:
            assert drawn() != drawn(**{option: other}), f"{option} counts for nothing"


@for_each("name", EVERY)
@for_each("big", [1e9, 2.0**40, 2.0**44])
def test_huge_scores_do_not_overflow(name, big):
    assert np.ravel(EVERY[name]([-big, big, 0.0], epsilon=1.0, seed=1))[0] == 1


def test_next_to_a_limit_a_parameter_is_accepted():
    for name, choose in EVERY.items():
        if name != "gaps":  # which need a runner-up
            assert np.ravel(choose([-3.0], epsilon=0.1)).tolist() == [0]
    for choose in (mechanisms.exponential_top, mechanisms.permute_and_flip_top, mechanisms.select_top):
        assert choose([1e9, 2e9], 2, epsilon=1.0).tolist() == [1, 0]
    how = {"epsilon": 1.0}
    assert mechanisms.one_shot_top_k([1e9, 2e9], 2, **how).indices.tolist() == [1, 0]
    assert mechanisms.one_shot_top_k([1e9, 2e9], 1, stop_gap=math.ulp(0.0), **how).indices.tolist() == [1]
    assert mechanisms.noisy_top_k_gaps([1e9, 2e9], 1, **how).indices.tolist() == [1]
