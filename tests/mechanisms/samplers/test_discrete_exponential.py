"""One-sided noise: its law in closed form, its sampler word by word and on samples."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import DiscreteExponential
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, key_from_seed

SCALES = [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(7, 3)]


@for_each("scale", SCALES)
def test_probabilities_add_up_to_one_and_to_the_tails(scale: Fraction) -> None:
    law = DiscreteExponential(scale)
    masses = [math.exp(law.log_pmf(x)) for x in range(1000)]
    assert math.fsum(masses) == pytest.approx(1, abs=1e-12)
    assert law.mean == pytest.approx(math.fsum(x * mass for x, mass in enumerate(masses)), rel=1e-9)
    for m in (-3, 0, 1, 7):
        assert math.exp(law.log_tail(m)) == pytest.approx(math.fsum(masses[max(m, 0) :]), abs=1e-12)


@given(st.fractions(Fraction(1, 10), 10**6, max_denominator=1000), st.floats(-3000, -1e-3))
def test_a_tail_quantile_is_the_smallest_that_holds(scale: Fraction, log_probability: float) -> None:
    law = DiscreteExponential(scale)
    m = law.tail_quantile(log_probability)
    exact = Fraction(log_probability)
    assert m >= 1
    assert -Fraction(m) / scale <= exact
    assert m == 1 or -Fraction(m - 1) / scale > exact


@for_each("scale", SCALES)
def test_its_tails_are_powers(scale: Fraction) -> None:
    law = DiscreteExponential(scale)
    assert [law.log_tail(m) for m in (-5, 0)] == [0.0, 0.0]
    assert [law.log_tail(m) for m in (1, 40)] == pytest.approx(
        [-1 / float(scale), -40 / float(scale)], rel=1e-15
    )
    assert [law.log_pmf(x) for x in (-1, -9)] == [-math.inf] * 2


def test_scale_zero_is_no_noise() -> None:
    law = DiscreteExponential(0)
    assert (law.mean, law.stream_bytes) == (0.0, 0)
    assert [law.log_pmf(x) for x in (-1, 0, 1)] == [-math.inf, 0.0, -math.inf]
    assert [law.log_tail(m) for m in (-1, 0, 1)] == [0.0, 0.0, -math.inf]
    assert law.tail_quantile(-1.0) == 1
    assert law.decode(b"", lambda position: iter(())) == 0
    with pytest.raises(InputError, match="scale 0"):
        law.decode_many(b"", lambda draw, position: iter(()))


@for_each("scale", [Fraction(1, 3), Fraction(10), Fraction(2**40)])
def test_a_draw_reads_no_more_words_than_one_variable_has(scale: Fraction) -> None:
    assert 2 * DiscreteExponential(scale).stream_bytes == DiscreteLaplace(scale).stream_bytes


def test_its_variance_is_half_that_of_laplace_noise() -> None:
    q = math.exp(-1 / 50)
    one_sided = q / (1 - q) ** 2
    noise = KeyedNoise(key_from_seed(3))
    questions = [number.to_bytes(4, "big") for number in range(40_000)]
    sampled = [
        noise.draw_many(law(50), label="query", questions=questions).var()
        for law in (DiscreteExponential, DiscreteLaplace)
    ]
    # relative standard deviation of a sample variance: sqrt(8/n) and sqrt(5/n); 6 of them
    assert sampled[0] == pytest.approx(one_sided, rel=6 * math.sqrt(8 / 40_000))
    assert sampled[1] == pytest.approx(2 * one_sided, rel=6 * math.sqrt(5 / 40_000))


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10)])
def test_samples_follow_the_law(scale: Fraction) -> None:
    law = DiscreteExponential(scale)
    draws = KeyedNoise(key_from_seed(5)).draw_many(
        law, label="query", questions=[number.to_bytes(4, "big") for number in range(50_000)]
    )
    cut = law.tail_quantile(math.log(200 / 50_000))
    observed = np.bincount(np.minimum(draws, cut), minlength=cut + 1)
    expected = [50_000 * math.exp(law.log_pmf(x)) for x in range(cut)]
    expected.append(50_000 - math.fsum(expected))
    assert stats.chisquare(observed, expected).pvalue > 1e-9


def test_one_draw_is_the_same_alone_and_among_many() -> None:
    noise, law = KeyedNoise(key_from_seed(1)), DiscreteExponential(1000)
    questions = [bytes([number]) for number in range(200)]
    many = noise.draw_many(law, label="query", questions=questions)
    assert many.tolist() == [noise.draw(law, label="query", question=question) for question in questions]
    assert many.min() >= 0


@for_each("scale", [-1.0, math.nan, math.inf, 2.0**-21, 2.0**51])
def test_scales_out_of_range_are_refused(scale: float) -> None:
    with pytest.raises(InputError):
        DiscreteExponential(scale)


@for_each("log_probability", [0.0, 1.0, math.nan, -math.inf])
def test_a_quantile_needs_a_probability_below_one(log_probability: float) -> None:
    with pytest.raises(InputError):
        DiscreteExponential(1).tail_quantile(log_probability)
