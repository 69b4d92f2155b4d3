"""Amplification by subsampling: every sample of a few rows, and the exact loss of the answers from them."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from cases import for_each

from reusable_holdout.mechanisms.accounting import epsilon_of_the_sample, subsampled_epsilon


def fixed(rows, size, algorithm):
    """Return the outcome distribution over all samples of a size, drawn without replacement."""
    samples = list(itertools.combinations(rows, size))
    return np.sum([algorithm(sample) for sample in samples], axis=0) / len(samples)


def independent(rows, rate, algorithm):
    """Return the outcome distribution where each row is taken with a chance of its own."""
    return np.sum(
        [
            rate ** sum(taken)
            * (1 - rate) ** (len(rows) - sum(taken))
            * algorithm([row for row, here in zip(rows, taken, strict=True) if here])
            for taken in itertools.product([False, True], repeat=len(rows))
        ],
        axis=0,
    )


def loss(one, other):
    return float(np.abs(np.log(one) - np.log(other)).max())


def excess(one, other, epsilon):
    """Return delta at an epsilon, the larger of both directions."""
    return max(
        float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) for a, b in ((one, other), (other, one))
    )


def response(epsilon, delta=0.0):
    """Answer if a 1 is among the rows: with chance delta the truth, marked as such, otherwise a coin of epsilon."""

    def algorithm(rows):
        truth, right = 1 in rows, math.exp(epsilon) / (1 + math.exp(epsilon))
        coin = [1 - right, right] if truth else [right, 1 - right]
        told = [delta * (not truth), delta * truth] if delta else []
        return np.array([*(part * (1 - delta) for part in coin), *told])

    return algorithm


def noisy_count(epsilon):
    """Count the rows of 1 with discrete Laplace noise, the tails in one outcome each."""

    def algorithm(rows):
        outputs = np.arange(-6, 12)
        weights = np.exp(-epsilon * np.abs(outputs - sum(rows))) * math.tanh(epsilon / 2)
        below, above = (
            math.exp(-epsilon * far) / (1 + math.exp(-epsilon)) for far in (sum(rows) + 7, 12 - sum(rows))
        )
        return np.array([*weights, below, above])

    return algorithm


@for_each("epsilon", [0.05, 1.0, 4.0])
@for_each(("rows", "size"), [(1, 1), (4, 1), (5, 2), (6, 5)])
def test_a_sample_of_fixed_size_amplifies_exactly_so_for_a_replaced_row(epsilon, rows, size):
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
def test_rows_taken_one_by_one_amplify_exactly_so_for_an_added_row(epsilon, rate):
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
def test_delta_is_multiplied_by_the_rate(rate, delta):
    rows, size = rate
    epsilon = 1.0
    one, other = (fixed([mine] + [0] * (rows - 1), size, response(epsilon, delta)) for mine in (0, 1))
    bound = subsampled_epsilon(epsilon, rate=size / rows)
    assert excess(one, other, bound) == pytest.approx(delta * size / rows, rel=1e-9)


@for_each("epsilon", [1e-12, 1e-3, 0.9, 1.0, 1.5, 20.0, 699.0, 700.0, 701.0, 2000.0])
@for_each("rate", [1e-200, 1e-6, 0.3, 0.999])
def test_a_sample_costs_the_formula_rounded_up_and_its_inverse_is_rounded_down(epsilon, rate):
    with mpmath.workdps(1200):
        e, p = mpmath.mpf(epsilon), mpmath.mpf(rate)
        exact, few = mpmath.log1p(p * mpmath.expm1(e)), mpmath.mpf(4e-15 if epsilon < 700 else 3e-12)
        found = subsampled_epsilon(epsilon, rate=rate)
        assert found == epsilon or exact <= found <= min(exact * (1 + few), epsilon)
        inside = epsilon_of_the_sample(epsilon, rate=rate)
        root = mpmath.log1p(mpmath.expm1(e) / p)
        assert subsampled_epsilon(inside, rate=rate) <= epsilon
        assert root * (1 - mpmath.mpf(1e-11)) <= inside <= root * (1 + mpmath.mpf(1e-15))
        if epsilon < 1 and rate > 1e-7:
            assert inside >= root * (1 - mpmath.mpf(2e-14))


def test_a_rate_that_is_too_small_to_divide_by_has_an_inverse():
    """A quotient of them overflows."""
    with mpmath.workdps(400):
        root = mpmath.log1p(mpmath.expm1(0.5) / mpmath.mpf(1e-310))
        inside = epsilon_of_the_sample(0.5, rate=1e-310)
        assert root * (1 - mpmath.mpf(1e-11)) <= inside <= root


def test_no_row_and_all_rows():
    for epsilon in (0.0, 5e-324, 1e-300, 1e-9, 0.1, 1.0, 3.0, 37.0, 699.0, 700.0, 701.0, 1e5, 1e308):
        assert subsampled_epsilon(epsilon, rate=0.0) == 0.0
        assert subsampled_epsilon(epsilon, rate=1.0) == epsilon
    assert epsilon_of_the_sample(0.7, rate=1.0) == 0.7
    assert subsampled_epsilon(0.0, rate=0.4) == epsilon_of_the_sample(0.0, rate=0.4) == 0.0
