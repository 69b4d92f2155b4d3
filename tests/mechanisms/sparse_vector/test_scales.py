"""Noise scales of the streams: the papers' formulas, their division of epsilon, and the reach of their noise."""

import math
from fractions import Fraction

import mpmath
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from mechanisms.sparse_vector.audit import Queries, log_sum, sparse_vector_law

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import (
    AboveThreshold,
    ConditionalStream,
    NumericSparse,
    Sparse,
    accounting,
    numeric_sparse_scales,
    sparse_scales,
    standard_svt_scales,
)
from reusable_holdout.mechanisms.sparse_vector.reach import DEVIATIONS, reach_of, tail_of
from reusable_holdout.mechanisms.sparse_vector.scales import composed_scale, epsilon_of_a_round
from reusable_holdout.noise import optimal_ratio

E = 0.5


def root(share, inverse):
    """Return the scale of a threshold of 7 charges under advanced composition, at a share of epsilon."""
    return math.sqrt(32 * 7 * math.log(inverse)) / (share * E)


BOOK = 1 / (math.sqrt(512) + 1)  # the book's half of the answers' share
TABLE = {
    "AboveThreshold": (AboveThreshold, {}, (2 / E, 4 / E, 0)),
    "Sparse": (Sparse, {}, (14 / E, 28 / E, 0)),
    "Sparse, d > 0": (Sparse, {"delta": 1e-6}, (root(1, 1e6), 2 * root(1, 1e6), 0)),
    "NumericSparse": (NumericSparse, {}, (14 / (8 * E / 9), 28 / (8 * E / 9), 63 / E)),
    "NumericSparse, d > 0": (
        NumericSparse,
        {"delta": 1e-6},
        (root(8 / 9, 2e6), 2 * root(8 / 9, 2e6), root(2 / 9, 2e6)),
    ),
    "NumericSparse, the book": (
        NumericSparse,
        {"delta": 1e-6, "split": "book"},
        (root(1 - BOOK, 2e6), 2 * root(1 - BOOK, 2e6), root(2 * BOOK, 2e6)),
    ),
}


@for_each("name", TABLE)
@for_each("sensitivity", [1.0, 0.3, 1e-200, 1e200])
def test_noise_scales_are_the_formulas_rounded_up(name, sensitivity):
    make, how, expected = TABLE[name]
    charges = {} if make is AboveThreshold else {"charges": 7}
    stream = make(0.0, epsilon=E, sensitivity=sensitivity, **charges, **how)
    scales = stream.scales.threshold, stream.scales.query, stream.scales.answer
    for scale, wanted in zip(scales, expected, strict=True):
        found = float(scale) * stream.step / sensitivity
        assert wanted * (1 - 1e-15) <= found <= wanted * (1 + (1e-12 if sensitivity == 1.0 else 2**-16))


@for_each("maker", [sparse_scales, numeric_sparse_scales, standard_svt_scales])
def test_a_sensitivity_in_grid_units_multiplies_exactly(maker):
    one, four = (maker(charges=3, epsilon=0.7, sensitivity=d) for d in (1, 4))
    assert (four.threshold, four.query, four.answer) == (4 * one.threshold, 4 * one.query, 4 * one.answer)


@for_each("split", ["lecture", "book"])
def test_both_splits_spend_all_of_epsilon_by_advanced_composition(split):
    """Comparisons e1 and answers e2/2, each e'/sqrt(8 c ln(1/d')) per round, make up epsilon."""
    charges, delta = 20, 1e-5
    scales = numeric_sparse_scales(charges=charges, epsilon=E, delta=delta, sensitivity=1, split=split)
    each = math.sqrt(8 * charges * math.log(2 / delta))
    spent = each * 2 / float(scales.threshold) + each / float(scales.answer)
    assert spent <= E == pytest.approx(spent, rel=1e-12)


@given(st.integers(1, 300), st.floats(0.01, 3.0), st.floats(1e-12, 0.1))
def test_each_round_composes_to_epsilon_wherever_the_scale_is_granted(charges, epsilon, delta):
    try:
        scale = composed_scale(charges=charges, epsilon=epsilon, delta=delta)
    except InputError:
        return
    each = 2 / float(scale)
    total = each * math.sqrt(2 * charges * math.log(1 / delta)) + charges * each * math.expm1(each)
    assert total <= epsilon * (1 + 1e-12)


@for_each(("charges", "delta"), [(1, 1e-6), (7, 1e-6), (100, 1e-3), (3, 0.5)])
def test_a_composed_scale_is_rounded_up_and_by_next_to_nothing(charges, delta):
    with mpmath.workdps(50):
        true = mpmath.sqrt(32 * charges * -mpmath.log(mpmath.mpf(delta))) / mpmath.mpf(0.1)
        found = composed_scale(charges=charges, epsilon=0.1, delta=delta)
        over = mpmath.mpf(found.numerator) / found.denominator / true - 1
        assert 2.0**-50 < over < 2.0**-46


@for_each(
    ("charges", "delta", "largest"),
    [
        (1, 1e-6, math.sqrt(8 * 1 * -math.log(1e-6))),  # each round has 1
        (3, 1e-6, math.sqrt(8 * 3 * -math.log(1e-6))),
        (2, 0.1, 5.603781907852259),  # the second term is half of epsilon, as floats are multiplied
        (3, 0.3, 3.4386529724762145),
        (4, 0.01, 11.207563815704518),
    ],
)
def test_a_composed_scale_is_granted_up_to_the_corollarys_last_epsilon(charges, delta, largest):
    each = largest / math.sqrt(-8 * charges * math.log(delta))
    assert each == 1 or charges * each * math.expm1(each) == largest / 2
    assert composed_scale(charges=charges, epsilon=largest, delta=delta) > 0
    with pytest.raises(InputError, match="advanced composition, which needs a smaller epsilon"):
        composed_scale(charges=charges, epsilon=largest * (1 + 1e-9), delta=delta)


def test_the_epsilon_of_a_round_is_rounded_down_and_by_next_to_nothing():
    each = Fraction(accounting.optimal_epsilon_each(epsilon=0.5, count=7, delta=1e-6))
    found = epsilon_of_a_round(charges=7, epsilon=0.5, delta=1e-6)
    assert each * (1 - Fraction(1, 2**28)) < found < each * (1 - Fraction(1, 2**32))
    assert epsilon_of_a_round(charges=7, epsilon=0.5, delta=0.0) == Fraction(1, 14)
    given = {"charges": 7, "epsilon": 0.5, "delta": 1e-6, "sensitivity": 1}
    assert sparse_scales(**given, composition="optimal").threshold == 2 / found
    assert sparse_scales(**given).threshold == composed_scale(charges=7, epsilon=0.5, delta=1e-6)


def test_without_delta_compositions_and_splits_are_alike():
    given = {"charges": 3, "epsilon": 0.5, "sensitivity": 1}
    assert numeric_sparse_scales(**given) == numeric_sparse_scales(**given, split="book")
    for maker in (sparse_scales, numeric_sparse_scales):
        assert maker(**given) == maker(**given, composition="optimal")
    given["delta"] = 1e-6
    assert numeric_sparse_scales(**given) != numeric_sparse_scales(**given, split="book")


@for_each("charges", [50, 100, 400])
def test_the_books_constants_waste_as_much_as_the_docstring_says(charges):
    given_ = {"charges": charges, "epsilon": 1.0, "delta": 1e-6, "sensitivity": 1}
    best = numeric_sparse_scales(**given_, composition="optimal")
    lecture, book = numeric_sparse_scales(**given_), numeric_sparse_scales(**given_, split="book")
    assert 2.5 < lecture.query / best.query < 2.7
    assert lecture.answer / best.answer == pytest.approx(float(lecture.query / best.query))
    assert 2.3 < book.query / best.query < 2.5
    assert 6.7 < book.answer / best.answer < 6.9


@for_each("monotonic", [False, True])
@for_each("charges", [1, 2, 7, 50])
def test_the_default_ratio_minimises_the_variance_of_the_comparison(charges, monotonic):
    def variance(ratio):
        how = {"epsilon": 1.0, "monotonic": monotonic, "sensitivity": 1}
        scales = standard_svt_scales(charges=charges, ratio=ratio, **how)
        return float(scales.threshold**2 + scales.query**2)

    best = optimal_ratio(charges=charges, monotonic=monotonic)
    assert best == pytest.approx((charges if monotonic else 2 * charges) ** (2 / 3))
    assert variance(None) == variance(best)
    assert all(variance(best) <= variance(best * factor) for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))
    book = sparse_scales(charges=charges, epsilon=1.0, sensitivity=1)
    assert variance(None) < book.threshold**2 + book.query**2


@given(
    st.integers(1, 500),
    st.floats(0.01, 10.0),
    st.floats(0.0, 0.9),
    st.floats(0.01, 100.0),
    st.booleans(),
    st.integers(1, 10**6),
)
def test_the_three_parts_spend_exactly_epsilon(charges, epsilon, share, ratio, monotonic, sensitivity):
    how = {"answers": share * epsilon, "ratio": ratio, "monotonic": monotonic, "sensitivity": sensitivity}
    scales = standard_svt_scales(charges=charges, epsilon=epsilon, **how)
    spent = sensitivity / scales.threshold
    spent += sensitivity * (charges if monotonic else 2 * charges) / scales.query
    spent += sensitivity * charges / scales.answer if scales.answer else 0
    assert spent == Fraction(epsilon)


@for_each("charges", [1, 10])
@for_each("distance", [1, 2, 4])
def test_exponential_noise_makes_fewer_mistakes_than_laplace_noise(charges, distance):
    """Exact chances of "above" for a query some query scales below its threshold, and of "below" above it."""
    scales = standard_svt_scales(charges=charges, epsilon=0.2, sensitivity=1)
    far = math.ceil(distance * scales.query)
    below, above = 1, 4  # unshifted values of the two bases
    mistakes = {}
    for noise in ("exponential", "laplace"):
        law = sparse_vector_law(scales, Queries((-far, far), 1), comparison=noise)
        sides = law.weights + law.above[0, below], law.weights + law.below[above]
        mistakes[noise] = [float(log_sum(side)) for side in sides]
    assert all(ours < theirs for ours, theirs in zip(*mistakes.values(), strict=True))


def test_a_conditional_stream_has_noise_on_its_queries_alone():
    privacy = {"epsilon": E, "delta": 1e-6, "charges": 3}
    stream = ConditionalStream(0.0, sensitivity=3.0, **privacy)
    each = accounting.target_charging_epsilon_each(
        q=accounting.not_prior_q, mean=accounting.not_prior_mean, **privacy
    )
    assert (stream.scales.threshold, stream.scales.answer) == (0, 0)
    assert stream.scales.query == math.ceil(3.0 / stream.step) / Fraction(each)


# Reach.


@for_each(
    "scales",
    [(0.0, 2.0), (1.0, 3.0), (3.0, 1.0), (2.0, 2.0), (2.0, 2.0 + 1e-7), (2.0 - 1e-11, 2.0), (1e-9, 1.0)],
)
@for_each("distance", [0.0, 0.1, 1.0, 7.0, 200.0])
def test_the_tail_of_laplace_noises_is_exact_however_near_their_scales(scales, distance):
    with mpmath.workdps(60):
        held, each, t = (mpmath.mpf(number) for number in (*scales, distance))
        if held == each:
            true = (1 + t / (2 * each)) * mpmath.exp(-t / each)
        else:
            first = held**2 * mpmath.exp(-t / held) if held else 0
            true = (each**2 * mpmath.exp(-t / each) - first) / (each**2 - held**2)
        assert tail_of("laplace", *scales, distance) == pytest.approx(float(true), rel=1e-13)


@for_each("distance", [0.0, 0.5, 2.0, 5.0])
def test_the_tail_of_one_exponential_noise_is_its_own_about_its_mean(distance):
    below = -math.expm1(-(2.0 - distance) / 2.0) if distance < 2 else 0.0
    true = math.exp(-(distance + 2.0) / 2.0) + below
    assert tail_of("exponential", 0.0, 2.0, distance) == pytest.approx(true, rel=1e-14)


@for_each("law", DEVIATIONS)
@for_each("scales", [(2.0, 3.0), (3.0, 3.0), (9.0, 0.5), (0.01, 40.0), (0.0, 1.0)])
@for_each("probability", [0.9, 0.3, 0.05, 1e-9, 1e-40])
def test_a_reach_is_the_smallest_distance_with_so_small_a_tail_in_any_unit(law, scales, probability):
    found = reach_of(law, *scales, probability)
    assert tail_of(law, *scales, found) <= probability
    assert tail_of(law, *scales, found * (1 - 1e-13)) > probability * (1 - 1e-14)
    assert tail_of(law, *scales, found) == pytest.approx(probability, rel=1e-11)
    for unit in (1e-300, 1e160):
        in_units = reach_of(law, *(scale * unit for scale in scales), probability)
        assert in_units == pytest.approx(found * unit, rel=1e-12)
