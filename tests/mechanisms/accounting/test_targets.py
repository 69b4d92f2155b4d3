"""Every q and every mean of a target by the decomposition that defines it, and rounded to the safe side."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import ACCOUNTING
from mechanisms.accounting.target_decomposition import (
    largest_mean,
    largest_q,
    largest_q_by_linear_program,
    privacy_loss,
    wrapped,
)

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    between_thresholds_q,
    boundary_epsilon,
    boundary_q,
    boundary_wrapped_epsilon,
    differing_runs_q,
    not_prior_mean,
    not_prior_q,
)

EPSILONS = [0.01, 0.1, 0.5, 1.0]


def private_pairs(epsilon):
    """Give pairs of epsilon-indistinguishable distributions: extreme ones, mixtures, and two-point ones."""
    generator = np.random.default_rng(1)
    growth = math.exp(epsilon)
    for small in np.geomspace(1e-4, 1 / (1 + growth), 15):
        yield np.array([1 - small, small]), np.array([1 - small * growth, small * growth])
    for outcomes, spread in itertools.product([2, 3, 5], [0.1, 1.0, 10.0]):
        for _ in range(25):
            first = generator.dirichlet(np.full(outcomes, spread)) + 1e-4
            first /= first.sum()
            second = first / growth
            # some outcomes at their largest, some at their least, one between
            for index in generator.permutation(outcomes):
                second[index] += min(1 - second.sum(), first[index] * (growth - 1 / growth))
            yield first, second
            yield first, (first + second) / 2


def sides(value, points, scale):
    """Return the chances of below, between (``points`` integers from 0) and above under discrete Laplace noise."""
    q = math.exp(-1 / scale)

    def tail(m):
        return q**m / (1 + q) if m >= 0 else 1 - q ** (1 - m) / (1 + q)

    inside = (
        q ** abs(-value) * (1 - q**points) / (1 + q) if value <= 0 else tail(-value) - tail(points - value)
    )
    return [1 - tail(-value), inside, tail(points - value)]


@pytest.mark.long(*ACCOUNTING)
@for_each("epsilon", EPSILONS)
def test_the_closed_form_of_the_largest_q_solves_the_linear_program(epsilon):
    for first, second in itertools.islice(private_pairs(epsilon), 15, 60, 3):
        target = np.arange(len(first)) > 0
        closed = largest_q(first, second, target, epsilon=epsilon)
        solved = largest_q_by_linear_program(first, second, target, epsilon=epsilon)
        assert solved == pytest.approx(closed, abs=1e-5)


@for_each("epsilon", EPSILONS)
def test_the_q_and_the_mean_of_a_not_prior_target_are_tight(epsilon):
    pairs = [
        (first, second, np.arange(len(first)) != prior)
        for first, second in private_pairs(epsilon)
        for prior in range(len(first))
    ]
    for largest, promised in ((largest_q, not_prior_q), (largest_mean, not_prior_mean)):
        worst = min(largest(*pair, epsilon=epsilon) for pair in pairs)
        assert promised(epsilon) * (1 - 1e-8) <= worst == pytest.approx(promised(epsilon), rel=1e-6)


@for_each("epsilon", [0.1, 1.0])
@for_each("delta", [0.01, 0.2])
def test_a_not_prior_target_of_an_approximately_private_algorithm_has_the_same_q(epsilon, delta):
    """Lemma C.1: the pure part has it, whichever outcome is the prior; with all outcomes as targets it is 1."""
    for hit, moved in ((0.3, -epsilon), (0.02, epsilon)):
        first, second = ([1 - p, p] for p in (hit, hit * math.exp(moved)))
        whole = [(1 - delta) * np.array(law) for law in (first, second)]
        assert np.maximum(0, whole[0] - math.exp(epsilon) * whole[1]).sum() <= 1e-12
        for target in ([True, False], [False, True]):
            assert largest_q(first, second, target, epsilon=epsilon) >= not_prior_q(epsilon) * (1 - 1e-9)
        own = privacy_loss(first, second)
        assert largest_q(first, second, [True, True], epsilon=own) == pytest.approx(1)


@for_each("sensitivity", [1, 3, 6])
@for_each("points", [1, 2, 5, 40])
@for_each("epsilon", EPSILONS)
def test_between_thresholds_q_is_tight_for_discrete_noise(epsilon, points, sensitivity):
    reach = 3 * sensitivity
    worst = min(
        largest_q(
            sides(value, points, sensitivity / epsilon),
            sides(value + shift, points, sensitivity / epsilon),
            [False, True, False],
            epsilon=epsilon,
        )
        for value in range(-reach, points + reach)
        for shift in range(1, sensitivity + 1)
    )
    assert worst == pytest.approx(between_thresholds_q(epsilon, points / sensitivity), rel=1e-9)


def test_a_wide_gap_between_thresholds_is_as_good_as_not_prior():
    assert between_thresholds_q(0.5, math.inf) == pytest.approx(not_prior_q(0.5), rel=1e-14)
    assert between_thresholds_q(0.5, 1e-3) == pytest.approx(not_prior_q(0.5) * -math.expm1(-5e-4), rel=1e-12)


@for_each("epsilon", EPSILONS)
def test_boundary_epsilon_is_the_privacy_of_the_wrapper(epsilon):
    call = boundary_epsilon(epsilon)
    assert epsilon < call <= 4 * epsilon / 3
    for first, second in private_pairs(epsilon):
        assert privacy_loss(wrapped(first), wrapped(second)) <= call + 1e-9
    # Tight: a rare outcome gets likelier while the other rare ones leave, so that one comes to dominate.
    rare, half = 1e-9, 0.5 * math.exp(-epsilon)
    first = np.array([0.5, 0.5 - rare, rare])
    second = np.array([1 - half - rare * math.exp(epsilon), half, rare * math.exp(epsilon)])
    assert privacy_loss(wrapped(first), wrapped(second)) == pytest.approx(call, rel=1e-6)


@for_each("epsilon", EPSILONS)
def test_boundary_q_and_differing_runs_q_hold_for_every_algorithm(epsilon):
    for first, second in private_pairs(epsilon):
        target = np.arange(len(first) + 1) == len(first)
        for larger in (1.0, 1.1, 2.0):
            call = larger * boundary_epsilon(epsilon)
            found = largest_q(wrapped(first), wrapped(second), target, epsilon=call)
            assert found >= boundary_q(epsilon, call) * (1 - 1e-9)
        twice = [np.outer(law, law).ravel() for law in (first, second)]
        differ = ~np.eye(len(first), dtype=bool).ravel()
        assert largest_q(*twice, differ, epsilon=2 * epsilon) >= differing_runs_q(epsilon) * (1 - 1e-9)


@for_each("epsilon", [1e-12, 1e-9, 1e-6, 0.01, 0.5, 1.0, 7.0, 40.0])
def test_targets_are_the_papers_formulas_rounded_to_the_safe_side_and_hardly(epsilon):
    with mpmath.workdps(60):
        e, small = mpmath.mpf(epsilon), mpmath.mpf("1e-14")
        wrapper = e + mpmath.log(3 / (2 + mpmath.exp(-e)))
        assert wrapper <= boundary_epsilon(epsilon) <= wrapper * (1 + small)
        y = mpmath.exp(e)
        down = {
            boundary_wrapped_epsilon(epsilon): mpmath.log((y + mpmath.sqrt(y * y + 3 * y)) / 3),
            not_prior_q(epsilon): 1 / (1 + y),
            between_thresholds_q(epsilon, 2.0): (1 - mpmath.exp(-2 * e)) / (1 + y),
            differing_runs_q(epsilon): (1 + y) / (1 + y + 2 * y * y),
        }
        for call in (boundary_epsilon(epsilon), 2 * epsilon):
            t = mpmath.mpf(call)
            down[boundary_q(epsilon, call)] = mpmath.expm1(t) / (2 * mpmath.expm1(e + t))
        for found, exact in down.items():
            assert exact * (1 - small) <= found <= exact
    assert boundary_epsilon(boundary_wrapped_epsilon(epsilon)) <= epsilon
    assert boundary_q(epsilon) == boundary_q(epsilon, boundary_epsilon(epsilon))
    for bad in (math.nextafter(boundary_epsilon(epsilon), 0), math.inf, math.nan):
        refuses(InputError, "wrapped is finite and at least", boundary_q, epsilon, bad)


def test_the_smallest_numbers_have_a_wrapped_epsilon_and_a_mean():
    for place in range(1, 60):
        inside = boundary_wrapped_epsilon(place * 5e-324)
        assert inside == 0 or boundary_epsilon(inside) <= place * 5e-324
    assert boundary_epsilon(5e-324) == boundary_wrapped_epsilon(5e-324) == 5e-324
    assert not_prior_mean(5e-324) == not_prior_mean(1e300) == 0.5
