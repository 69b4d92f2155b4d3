"""One-sided noise: its law in closed form, and its sampler word by word and on samples."""

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each, refuses
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import DiscreteExponential
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, key_from_seed


@for_each("scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(7, 3)])
def test_probabilities_add_up_to_one_and_to_the_tails_which_are_powers(scale):
    law = DiscreteExponential(scale)
    masses = [math.exp(law.log_pmf(x)) for x in range(1000)]
    assert math.fsum(masses) == pytest.approx(1, abs=1e-12)
    assert law.mean == pytest.approx(math.fsum(x * mass for x, mass in enumerate(masses)), rel=1e-9)
    for m in (-3, 0, 1, 7):
        assert math.exp(law.log_tail(m)) == pytest.approx(math.fsum(masses[max(m, 0) :]), abs=1e-12)
    assert [law.log_tail(m) for m in (-5, 0, 40)] == pytest.approx([0, 0, -40 / float(scale)], rel=1e-15)
    assert law.log_pmf(-1) == -math.inf
    assert 2 * law.stream_bytes == DiscreteLaplace(scale).stream_bytes


@given(st.fractions(Fraction(1, 10), 10**6, max_denominator=1000), st.floats(-3000, -1e-3))
def test_a_tail_quantile_is_the_smallest_that_holds(scale, log_probability):
    law = DiscreteExponential(scale)
    m = law.tail_quantile(log_probability)
    exact = Fraction(log_probability)
    assert m >= 1
    assert -Fraction(m) / scale <= exact
    assert m == 1 or -Fraction(m - 1) / scale > exact


def test_scale_zero_is_no_noise():
    law = DiscreteExponential(0)
    assert (law.mean, law.stream_bytes) == (0.0, 0)
    assert [law.log_pmf(x) for x in (-1, 0, 1)] == [-math.inf, 0.0, -math.inf]
    assert [law.log_tail(m) for m in (-1, 0, 1)] == [0.0, 0.0, -math.inf]
    assert law.tail_quantile(-1.0) == 1
    refuses(InputError, "a scale above 0", law.decode_many, b"", lambda draw, position: iter(()))


@for_each("scale", [Fraction(1), Fraction(10)])
def test_samples_follow_the_law_and_are_the_same_alone(scale):
    law, noise = DiscreteExponential(scale), KeyedNoise(key_from_seed(5))
    questions = [number.to_bytes(4, "big") for number in range(50_000)]
    draws = noise.draw_many(law, label="query", questions=questions)
    assert [noise.draw(law, label="query", question=q) for q in questions[:200]] == draws[:200].tolist()
    cut = law.tail_quantile(math.log(200 / 50_000))
    observed = np.bincount(np.minimum(draws, cut), minlength=cut + 1)
    expected = [50_000 * math.exp(law.log_pmf(x)) for x in range(cut)]
    expected.append(50_000 - math.fsum(expected))
    assert stats.chisquare(observed, expected).pvalue > 1e-9
