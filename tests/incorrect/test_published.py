"""Each published error is caught by the audit that passes the correct mechanisms."""

from __future__ import annotations

import pytest
from incorrect.published import releases_the_noisy_query, unnoised_threshold
from mechanisms.audit import PATTERNS, Queries, sparse_vector_law, worst_loss

from reusable_holdout.mechanisms import numeric_sparse_scales, sparse_scales


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_a_threshold_without_noise_is_rejected(sensitivity: int) -> None:
    far = 24 * sensitivity
    queries = Queries((-far, far), sensitivity)
    wrong = unnoised_threshold(epsilon=1.0, sensitivity=sensitivity, queries=queries)
    assert worst_loss(wrong, length=6, charges=1, pattern=PATTERNS["mixed"]) > 1.4


def test_a_threshold_with_noise_passes_the_same_audit() -> None:
    scales = sparse_scales(charges=1, epsilon=1.0, sensitivity=1)
    right = sparse_vector_law(scales, Queries((-24, 24), 1))
    assert worst_loss(right, length=6, charges=1, pattern=PATTERNS["mixed"]) <= 1 + 1e-9


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_releasing_the_compared_number_is_rejected(sensitivity: int) -> None:
    queries = Queries((-12 * sensitivity, 0, 12 * sensitivity), sensitivity)
    wrong = releases_the_noisy_query(epsilon=1.0, sensitivity=sensitivity, charges=1, queries=queries)
    assert worst_loss(wrong, length=4, charges=1, pattern=PATTERNS["mixed"]) > 1.4


def test_releasing_a_fresh_number_passes_the_same_audit() -> None:
    scales = numeric_sparse_scales(charges=1, epsilon=1.0, sensitivity=1)
    right = sparse_vector_law(scales, Queries((-12, 0, 12), 1))
    assert worst_loss(right, length=4, charges=1, pattern=PATTERNS["mixed"]) <= 1 + 1e-9
