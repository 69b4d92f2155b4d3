"""The privacy loss of every mechanism, computed exactly and compared with the epsilon it promises."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from mechanisms.audit import PATTERNS, Queries, segment_losses, sparse_vector_law, worst_loss

from reusable_holdout.mechanisms import (
    DiscreteLaplace,
    NoiseScales,
    SparseVector,
    numeric_sparse_scales,
    sparse_scales,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def spread(scales: NoiseScales, sensitivity: int) -> Queries:
    far = math.ceil(6 * scales.query)
    return Queries((-far, 0, far), sensitivity)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.5, 1), (1.0, 1), (1.0, 4), (2.0, 3)])
def test_above_threshold_loses_no_more_than_epsilon(pattern: str, epsilon: float, sensitivity: int) -> None:
    scales = sparse_scales(charges=1, epsilon=epsilon, sensitivity=sensitivity)
    law = sparse_vector_law(scales, spread(scales, sensitivity))
    assert worst_loss(law, length=4, charges=1, pattern=PATTERNS[pattern]) <= epsilon + 1e-9


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.5, 1), (1.0, 4)])
def test_above_threshold_spends_at_least_nine_tenths_of_epsilon(epsilon: float, sensitivity: int) -> None:
    scales = sparse_scales(charges=1, epsilon=epsilon, sensitivity=sensitivity)
    law = sparse_vector_law(scales, spread(scales, sensitivity))
    assert worst_loss(law, length=4, charges=1, pattern=PATTERNS["mixed"]) >= 0.9 * epsilon


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("charges", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1), (3.0, 4)])
def test_sparse_loses_no_more_than_epsilon(
    pattern: str, charges: int, epsilon: float, sensitivity: int
) -> None:
    scales = sparse_scales(charges=charges, epsilon=epsilon, sensitivity=sensitivity)
    law = sparse_vector_law(scales, spread(scales, sensitivity))
    assert worst_loss(law, length=4, charges=charges, pattern=PATTERNS[pattern]) <= epsilon + 1e-9


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("charges", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1), (3.0, 4)])
def test_numeric_sparse_loses_no_more_than_epsilon(
    pattern: str, charges: int, epsilon: float, sensitivity: int
) -> None:
    scales = numeric_sparse_scales(charges=charges, epsilon=epsilon, sensitivity=sensitivity)
    law = sparse_vector_law(scales, spread(scales, sensitivity))
    assert worst_loss(law, length=4, charges=charges, pattern=PATTERNS[pattern]) <= epsilon + 1e-9


def test_numeric_sparse_spends_on_the_number_what_the_comparison_leaves() -> None:
    scales = numeric_sparse_scales(charges=1, epsilon=1.0, sensitivity=2)
    law = sparse_vector_law(scales, spread(scales, 2))
    silent = NoiseScales(scales.threshold, scales.query, Fraction(0))
    number_free = sparse_vector_law(silent, spread(scales, 2))
    with_number, without = (
        segment_losses(each, 4, PATTERNS["mixed"], charged=True).max() for each in (law, number_free)
    )
    assert without <= 8 / 9 + 1e-9
    assert with_number == pytest.approx(without + 1 / 9, abs=1e-9)


class EnumeratedNoise:
    """Stands in for keyed noise: each draw is what the enumeration says."""

    def __init__(self, threshold: int, queries: dict[bytes, int]) -> None:
        self.threshold, self.queries = threshold, queries

    def draw(self, law: DiscreteLaplace, *, label: str, question: bytes) -> int:
        if label == "query":
            return self.queries[question]
        return self.threshold if label == "threshold" else 0

    def draw_many(self, law: DiscreteLaplace, *, label: str, questions: Sequence[bytes]) -> np.ndarray:
        return np.array([self.draw(law, label=label, question=question) for question in questions])


def test_the_audited_law_is_the_law_of_the_code() -> None:
    """All noises within 12 are run through SparseVector; what is left out weighs less than exp(-12)."""
    scales = NoiseScales(Fraction(1), Fraction(1), Fraction(0))
    threshold_law, query_law = DiscreteLaplace(scales.threshold), DiscreteLaplace(scales.query)
    reach, questions, deviations = 12, [b"0", b"1"], np.array([1, -1])
    observed: dict[int | None, float] = dict.fromkeys((0, 1, None), 0.0)
    for rho, nu0, nu1 in itertools.product(range(-reach, reach + 1), repeat=3):
        noise = EnumeratedNoise(rho, dict(zip(questions, (nu0, nu1), strict=True)))
        core = SparseVector(scales=scales, noise=noise, charges=1)  # type: ignore[arg-type]
        first = core.first_above(deviations, np.zeros(2, dtype=np.int64), questions)
        observed[first] += math.exp(
            threshold_law.log_pmf(rho) + query_law.log_pmf(nu0) + query_law.log_pmf(nu1)
        )
    law = sparse_vector_law(scales, Queries((0,), 1))  # values -1, 0, 1
    low, high = 0, 2
    expected = {
        0: law.weights @ law.above[0, high],
        1: law.weights @ (law.below[high] * law.above[0, low]),
        None: law.weights @ (law.below[high] * law.below[low]),
    }
    assert sum(expected.values()) == pytest.approx(1, abs=1e-12)
    for outcome, probability in expected.items():
        assert observed[outcome] == pytest.approx(float(probability), abs=3 * math.exp(-12))
