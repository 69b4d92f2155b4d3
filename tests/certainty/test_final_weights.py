"""Weights of a final's answers: whole, at most all there are, alike for equal priors, larger for better ones."""

import math

import numpy as np
import pytest
from cases import for_each, refuses
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reusable_holdout.certainty import WEIGHT_UNITS, final_weights, weight_nats
from reusable_holdout.errors import InputError

PRIORS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40)


@given(priors=PRIORS, error=st.floats(1e-4, 0.5), metrics=st.integers(1, 3))
def test_weights_are_whole_and_together_at_most_all_units(priors, error, metrics):
    units = WEIGHT_UNITS // metrics
    weights = final_weights(priors, error, units)
    assert all(isinstance(weight, int) and weight >= 1 for weight in weights)
    assert units - 2 * len(priors) <= sum(weights) <= units
    order = np.argsort(priors, kind="stable")
    ranked = [weights[place] for place in order]
    assert ranked == sorted(ranked)
    assert len({weight for weight, prior in zip(weights, priors, strict=True) if prior == max(priors)}) == 1


@for_each("count", [2, 7, 100])
def test_without_differences_all_weigh_the_same(count):
    (weight,) = set(final_weights([0.3] * count, 0.01))
    assert count * (weight + 1) > WEIGHT_UNITS - count


def test_half_follow_the_ranks_and_half_the_chances_to_be_best():
    """Two priors that differ by d standard errors: the better one is the best with probability Phi(d / sqrt 2)."""
    for behind in (0.0, 0.5, 1.0, 3.0):
        better, worse = final_weights([0.8, 0.8 - behind * 0.01], 0.01)
        chance = stats.norm.cdf(behind / math.sqrt(2.0))
        rank = 3 / 4 if behind else 1 / 2  # of 1/2 and 1/6
        assert better / WEIGHT_UNITS == pytest.approx((rank + chance) / 2.0, abs=1e-5)
        assert worse / WEIGHT_UNITS == pytest.approx((2.0 - rank - chance) / 2.0, abs=1e-5)


def test_many_hopeless_candidates_cost_the_best_little():
    few = final_weights([0.9, 0.899], 0.01)
    many = final_weights([0.9, 0.899, *[0.5] * 98], 0.01)
    assert weight_nats(many[0]) < weight_nats(few[0]) + 0.4
    assert weight_nats(many[-1]) < math.log(WEIGHT_UNITS)


def test_a_thousand_candidates_are_weighed_and_too_many_are_refused():
    assert len(final_weights(np.linspace(0.5, 0.9, 1_000).tolist(), 0.01)) == 1_000
    refuses(InputError, "at most 4 answers; got 5", final_weights, [0.5] * 5, 0.01, 8)
