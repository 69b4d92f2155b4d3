"""Amplification by subsampling: every sample of a few rows, and the exact loss of what was read from them."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import epsilon_of_the_sample, subsampled_epsilon

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Law = np.ndarray


def fixed(rows: Sequence[int], size: int, algorithm: Callable[[Sequence[int]], Law]) -> Law:
    """Outcome distribution over all samples of a size, drawn without replacement."""
    samples = list(itertools.combinations(rows, size))
    return np.sum([algorithm(sample) for sample in samples], axis=0) / len(samples)


def independent(rows: Sequence[int], rate: float, algorithm: Callable[[Sequence[int]], Law]) -> Law:
    """Outcome distribution where each row is taken with a chance of its own."""
    return np.sum(
        [
            rate ** sum(taken)
            * (1 - rate) ** (len(rows) - sum(taken))
            * algorithm([row for row, here in zip(rows, taken, strict=True) if here])
            for taken in itertools.product([False, True], repeat=len(rows))
        ],
        axis=0,
    )


def loss(one: Law, other: Law) -> float:
    return float(np.abs(np.log(one) - np.log(other)).max())


def excess(one: Law, other: Law, epsilon: float) -> float:
    """Delta at an epsilon, the larger of both directions."""
    return max(
        float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) for a, b in ((one, other), (other, one))
    )


def response(epsilon: float, delta: float = 0.0) -> Callable[[Sequence[int]], Law]:
    """Say whether a 1 is among the rows: the truth with delta, in words of its own, or else a coin of epsilon."""

    def algorithm(rows: Sequence[int]) -> Law:
        truth, right = 1 in rows, math.exp(epsilon) / (1 + math.exp(epsilon))
        coin = [1 - right, right] if truth else [right, 1 - right]
        told = [delta * (not truth), delta * truth] if delta else []
        return np.array([*(part * (1 - delta) for part in coin), *told])

    return algorithm


def noisy_count(epsilon: float) -> Callable[[Sequence[int]], Law]:
    """Count the rows of 1 with discrete Laplace noise, the tails in one outcome each."""

    def algorithm(rows: Sequence[int]) -> Law:
        outputs = np.arange(-6, 12)
        weights = np.exp(-epsilon * np.abs(outputs - sum(rows))) * math.tanh(epsilon / 2)
        below, above = (
            math.exp(-epsilon * far) / (1 + math.exp(-epsilon)) for far in (sum(rows) + 7, 12 - sum(rows))
        )
        return np.array([*weights, below, above])

    return algorithm


@for_each("epsilon", [0.05, 1.0, 4.0])
@for_each(("rows", "size"), [(1, 1), (4, 1), (5, 2), (6, 5)])
def test_a_sample_of_fixed_size_amplifies_exactly_so_for_a_replaced_row(
    epsilon: float, rows: int, size: int
) -> None:
    bound = subsampled_epsilon(epsilon, rate=size / rows)
    for algorithm in (response(epsilon), noisy_count(epsilon)):
        worst = max(
            loss(fixed([mine, *others], size, algorithm), fixed([1 - mine, *others], size, algorithm))
            for mine in (0, 1)
            for others in itertools.product([0, 1], repeat=rows - 1)
        )
        assert worst <= bound + 1e-13
    alone = [[mine] + [0] * (rows - 1) for mine in (0, 1)]
    told = [fixed(each, size, response(epsilon)) for each in alone]
    assert loss(*told) == pytest.approx(bound, rel=1e-9)  # tight


@for_each("epsilon", [0.05, 1.0, 4.0])
@for_each("rate", [0.01, 0.4, 0.9])
def test_rows_taken_one_by_one_amplify_exactly_so_for_an_added_row(epsilon: float, rate: float) -> None:
    bound = subsampled_epsilon(epsilon, rate=rate)
    for algorithm in (response(epsilon), noisy_count(epsilon)):
        worst = max(
            loss(independent([1, *others], rate, algorithm), independent(others, rate, algorithm))
            for others in itertools.product([0, 1], repeat=3)
        )
        assert worst <= bound + 1e-13
    without, added = (independent(rows, rate, response(epsilon)) for rows in ([0], [0, 1]))
    assert loss(added, without) == pytest.approx(bound, rel=1e-9)


@for_each("rate", [(5, 2), (4, 3)])
@for_each("delta", [1e-3, 0.1])
def test_delta_is_multiplied_by_the_rate(rate: tuple[int, int], delta: float) -> None:
    rows, size = rate
    epsilon = 1.0
    one, other = (fixed([mine] + [0] * (rows - 1), size, response(epsilon, delta)) for mine in (0, 1))
    bound = subsampled_epsilon(epsilon, rate=size / rows)
    assert excess(one, other, bound) == pytest.approx(delta * size / rows, rel=1e-9)


def test_a_sample_that_is_told_amplifies_nothing() -> None:
    """The same algorithm, with the drawn places among its outcomes, loses all of its epsilon."""
    places = list(itertools.combinations(range(4), 2))
    told = [
        np.concatenate([response(1.0)([rows[i] for i in drawn]) / len(places) for drawn in places])
        for rows in ([0, 0, 0, 0], [1, 0, 0, 0])
    ]
    assert loss(*told) == pytest.approx(1.0) != pytest.approx(subsampled_epsilon(1.0, rate=0.5))


@given(
    st.tuples(st.floats(1e-9, 700), st.floats(1e-6, 1)) | st.tuples(st.floats(690, 800), st.floats(1e-300, 1))
)
def test_it_is_the_formula_rounded_up(how: tuple[float, float]) -> None:
    epsilon, rate = how
    with mpmath.workdps(400):
        exact = mpmath.log1p(mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(epsilon)))
        found = subsampled_epsilon(epsilon, rate=rate)
        assert exact <= found or found == epsilon
        assert found == pytest.approx(float(exact), rel=2e-12, abs=0)


@given(st.floats(0, 700), st.floats(1e-6, 1))
def test_the_inverse_returns_and_never_exceeds(epsilon: float, rate: float) -> None:
    inside = epsilon_of_the_sample(epsilon, rate=rate)
    assert subsampled_epsilon(inside, rate=rate) <= epsilon
    assert subsampled_epsilon(inside, rate=rate) == pytest.approx(epsilon, rel=1e-9)


def test_no_row_and_all_rows() -> None:
    for epsilon in (0.0, 5e-324, 1e-300, 1e-9, 0.1, 1.0, 3.0, 37.0, 699.0, 700.0, 701.0, 1e5, 1e308):
        assert subsampled_epsilon(epsilon, rate=0.0) == 0.0
        assert subsampled_epsilon(epsilon, rate=1.0) == epsilon


@pytest.mark.parametrize("function", [subsampled_epsilon, epsilon_of_the_sample])
@pytest.mark.parametrize(
    ("epsilon", "rate"), [(-1.0, 0.5), (math.inf, 0.5), (1.0, -0.1), (1.0, 1.1), (math.nan, 0.5)]
)
def test_what_is_out_of_range_is_refused(function: Callable[..., float], epsilon: float, rate: float) -> None:
    with pytest.raises(InputError):
        function(epsilon, rate=rate)


def test_an_empty_sample_has_no_largest_epsilon() -> None:
    with pytest.raises(InputError, match="above 0"):
        epsilon_of_the_sample(1.0, rate=0.0)
