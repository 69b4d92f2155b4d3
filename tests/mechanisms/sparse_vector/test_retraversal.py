"""Retraversal: one stream in which a query may come again."""

import math

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import StandardSVT, retraversal, standard_svt_scales

QUIET = {"epsilon": 1.0, "sensitivity": 1e-6}


def test_it_selects_the_highest_and_goes_round_until_enough_are_selected():
    values = np.random.default_rng(0).permutation(100) / 100
    chosen = retraversal(values, 0.895, charges=10, raised_by=3.0, **QUIET)
    assert sorted(values[chosen]) == pytest.approx(np.arange(90, 100) / 100)
    # Raised by 3 deviations few pass in the first round.
    chosen = retraversal(np.zeros(5), 0.0, charges=5, epsilon=1.0, raised_by=3.0, passes=10_000, seed=1)
    assert sorted(chosen) == [0, 1, 2, 3, 4]


def test_it_gives_up_after_its_passes():
    assert retraversal([0.0, 0.0], 1.0, charges=2, passes=3, **QUIET).tolist() == []
    once = retraversal([-1e9, 1e9, -1e9], 0.0, charges=2, epsilon=1.0, passes=1, seed=1)
    assert once.tolist() == [1]
    none = retraversal([], 0.0, charges=2, epsilon=1.0, passes=3)
    assert (none.shape, none.dtype) == ((0,), np.dtype(np.int64))
    everything = retraversal([1e9, 1e9], 0.0, charges=9, epsilon=1.0, passes=5, seed=1)
    assert everything.tolist() == [0, 1]


def test_each_query_is_compared_with_its_own_threshold():
    chosen = retraversal([1.0, 5.0, 3.0], [0.5, 9.0, 2.0], charges=3, passes=3, **QUIET)
    assert sorted(chosen) == [0, 2]
    noisy = {"charges": 3, "epsilon": 1.0, "seed": 4}
    values, limits = np.linspace(-20, 20, 50), np.linspace(5, 40, 50)
    own = retraversal(values, limits, **noisy)
    assert own.tolist() == retraversal(values - limits, 0.0, **noisy).tolist()


@for_each(
    "threshold", ["secret", [], [0.0, 1.0], [0.0, math.nan, 1.0], [[0.0] * 3], math.nan, math.inf, None]
)
def test_a_threshold_that_is_none_is_refused(threshold):
    with pytest.raises(InputError, match="thresholds are one finite number, or one for each of 3 queries"):
        retraversal([1.0, 5.0, 3.0], threshold, charges=1, epsilon=1.0)


def test_the_threshold_is_raised_by_one_deviation_and_all_go_round_a_hundred_times_by_default(monkeypatch):
    asked = []

    def nothing_is_above(self, values, thresholds):
        asked.append(thresholds.tolist())
        return np.zeros(len(values), dtype=bool)

    monkeypatch.setattr(StandardSVT, "ask_many", nothing_is_above)
    for noise, sd in (("laplace", math.sqrt(2.0)), ("exponential", 1.0)):
        asked.clear()
        retraversal([0.0, 0.0], 7.0, charges=2, epsilon=0.5, noise=noise)
        deviation = sd * float(standard_svt_scales(charges=2, epsilon=0.5, sensitivity=1).query)
        assert asked == 100 * [2 * [pytest.approx(7.0 + deviation, rel=1e-6)]]
