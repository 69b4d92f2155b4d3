"""Each published error is caught by the audit that passes the correct mechanisms."""

import math

import pytest
from cases import for_each
from incorrect.published import (
    charges_the_queries_too_little,
    monotonic_scales,
    never_charges,
    noise_inside,
    noise_inside_and_released,
    releases_the_noisy_query,
    threshold_of_the_data,
    unnoised_queries,
    unnoised_threshold,
)
from mechanisms.sparse_vector.audit import (
    MONOTONIC,
    PATTERNS,
    Queries,
    long_loss,
    sparse_vector_law,
    worst_held_loss,
    worst_loss,
)

from reusable_holdout.mechanisms import sparse_scales, standard_svt_scales

MIXED = PATTERNS["mixed"]


@for_each("sensitivity", [1, 3])
def test_a_threshold_without_noise_is_rejected(sensitivity):
    far = 24 * sensitivity
    wish = {"epsilon": 1.0, "sensitivity": sensitivity}
    wrong = unnoised_threshold(queries=Queries((-far, 0, far), sensitivity), **wish)
    assert worst_loss(wrong, length=6, charges=1, pattern=MIXED) > 1.4
    assert long_loss(wrong, charges=1, pattern=MIXED, renewed=True) > 1000
    right = sparse_vector_law(sparse_scales(charges=1, **wish), Queries((-far, far), sensitivity))
    assert worst_loss(right, length=6, charges=1, pattern=MIXED) <= 1 + 1e-9


@for_each("charges", [1, 2])
def test_algorithm_3_which_releases_the_compared_number_is_rejected(charges):
    queries = Queries((-12, 0, 12), 1)
    wrong = releases_the_noisy_query(epsilon=1.0, sensitivity=1, charges=charges, queries=queries)
    assert long_loss(wrong, charges=charges, pattern=MIXED, renewed=False) > 10


@for_each("charges", [1, 2, 3, 10])
@for_each("epsilon", [0.5, 1.0])
def test_algorithm_4_loses_exactly_as_much_as_its_analysis_says(charges, epsilon):
    far = math.ceil(48 / epsilon)
    wrong = charges_the_queries_too_little(epsilon=epsilon, sensitivity=1, queries=Queries((-far, 0, far), 1))
    loss = long_loss(wrong, charges=charges, pattern=MIXED, renewed=False)
    assert loss == pytest.approx((1 + 6 * charges) / 4 * epsilon, abs=1e-3 * epsilon)
    monotonic = max(
        long_loss(wrong, charges=charges, pattern=PATTERNS[name], renewed=False) for name in MONOTONIC
    )
    assert monotonic == pytest.approx((1 + 3 * charges) / 4 * epsilon, abs=1e-3 * epsilon)


def test_algorithm_5_whose_queries_have_no_noise_is_rejected():
    """One query below and one above at the same value: impossible on one of the data sets."""
    wrong = unnoised_queries(epsilon=1.0, sensitivity=1, queries=Queries((0,), 1))
    assert worst_held_loss(wrong, length=2, charges=1, pattern=PATTERNS["below fall, above rise"]) == math.inf


def test_algorithm_6_which_never_charges_is_rejected():
    far = 24
    wrong = never_charges(epsilon=1.0, sensitivity=1, queries=Queries((-far, 0, far), 1))
    losses = [long_loss(wrong, charges=count, pattern=MIXED, renewed=False) for count in (1, 5, 20)]
    assert losses == pytest.approx([0.5 + count for count in (1, 5, 20)], abs=1e-2)


@for_each(("charges", "loss"), [(1, 1.50), (3, 1.68), (10, 1.82)])
def test_scales_for_monotonic_queries_are_rejected_for_others(charges, loss):
    far = 12 * charges
    wrong = monotonic_scales(epsilon=1.0, sensitivity=1, charges=charges, queries=Queries((-far, 0, far), 1))
    assert long_loss(wrong, charges=charges, pattern=MIXED, renewed=False) == pytest.approx(loss, abs=5e-3)
    within = max(
        long_loss(wrong, charges=charges, pattern=PATTERNS[name], renewed=False) for name in MONOTONIC
    )
    assert within <= 1 + 1e-9


@for_each("sensitivity", [1, 3])
def test_thresholds_that_follow_the_data_are_rejected(sensitivity):
    """A query's own threshold may depend on answers, not on the data: else it loses twice what is promised."""
    far = 12 * sensitivity
    queries = Queries((-far, 0, far), sensitivity)
    wrong = threshold_of_the_data(epsilon=1.0, sensitivity=sensitivity, queries=queries)
    assert long_loss(wrong, charges=1, pattern=MIXED, renewed=False) == pytest.approx(2, abs=0.02)
    right = sparse_vector_law(standard_svt_scales(charges=1, epsilon=1.0, sensitivity=sensitivity), queries)
    assert long_loss(right, charges=1, pattern=MIXED, renewed=False) <= 1 + 1e-9


@for_each("charges", [1, 2])
def test_noise_inside_the_absolute_value_with_the_compared_number_released_is_rejected(charges):
    scales = standard_svt_scales(charges=charges, epsilon=1.0, sensitivity=1)
    wrong = noise_inside_and_released(scales=scales, queries=Queries((0, 8), 1))
    assert long_loss(wrong, charges=charges, pattern=MIXED, renewed=False) > 10


def test_one_sided_noise_inside_the_absolute_value_is_rejected():
    """Only shifts upwards are paid for: a query just below minus the threshold needs one downwards."""
    scales = standard_svt_scales(charges=1, epsilon=1.0, sensitivity=1)
    wrong = noise_inside(scales=scales, queries=Queries((-12, -1, 0, 12), 1), comparison="exponential")
    assert worst_held_loss(wrong, length=3, charges=1, pattern=MIXED) > 1.4
    right = sparse_vector_law(scales, Queries((-12, -1, 0, 12), 1), comparison="exponential")
    assert worst_held_loss(right, length=3, charges=1, pattern=MIXED) <= 1 + 1e-9


@for_each("charges", [1, 2])
def test_laplace_noise_inside_the_absolute_value_loses_no_more_than_outside(charges):
    """If only "above" is released, section 3.4 of the paper is too strict: shifts of 2D to each side pay for it."""
    scales = standard_svt_scales(charges=charges, epsilon=1.0, sensitivity=1)
    law = noise_inside(scales=scales, queries=Queries((-8, 0, 8), 1))
    assert worst_held_loss(law, length=4, charges=charges, pattern=MIXED) <= 1 + 1e-9
    assert long_loss(law, charges=charges, pattern=MIXED, renewed=False) <= 1 + 1e-6
