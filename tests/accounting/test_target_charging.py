"""Target charging: every q by the decomposition that defines it, every bound against the exact binomial tail."""

from __future__ import annotations

import itertools
import math
import sys
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import pytest
from accounting.target_decomposition import largest_q, largest_q_by_linear_program, privacy_loss
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import ACCOUNTING
from scipy import special

from reusable_holdout.accounting import optimal_composition
from reusable_holdout.accounting.target_charging import (
    TargetChargingBound,
    between_thresholds_q,
    boundary_epsilon,
    boundary_q,
    boundary_wrapped_epsilon,
    differing_runs_q,
    not_prior_q,
    target_charging,
    target_charging_epsilon_each,
)
from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

EPSILONS = [0.01, 0.1, 0.5, 1.0]


def private_pairs(epsilon: float) -> Iterator[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Pairs of distributions that are epsilon-indistinguishable: extreme ones, mixtures, and two-point ones."""
    generator = np.random.default_rng(1)
    growth = math.exp(epsilon)
    for small in np.geomspace(1e-4, 1 / (1 + growth), 15):
        yield np.array([1 - small, small]), np.array([1 - small * growth, small * growth])
    for outcomes, spread in itertools.product([2, 3, 5], [0.1, 1.0, 10.0]):
        for _ in range(25):
            first = generator.dirichlet(np.full(outcomes, spread)) + 1e-4
            first /= first.sum()
            second = first / growth
            for index in generator.permutation(
                outcomes
            ):  # some at their largest, some at their least, one between
                second[index] += min(1 - second.sum(), first[index] * (growth - 1 / growth))
            yield first, second
            yield first, (first + second) / 2


def wrapped(outcome: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Outcome distribution of the boundary wrapper; the boundary comes last."""
    pi = min(0.5, np.delete(outcome, outcome.argmax()).sum())
    return np.append(outcome, pi) / (1 + pi)


def sides(value: int, points: int, scale: float) -> list[float]:
    """Probabilities of below, between (``points`` integers from 0) and above under discrete Laplace noise."""
    q = math.exp(-1 / scale)

    def tail(m: int) -> float:
        return q**m / (1 + q) if m >= 0 else 1 - q ** (1 - m) / (1 + q)

    inside = (
        q ** abs(-value) * (1 - q**points) / (1 + q) if value <= 0 else tail(-value) - tail(points - value)
    )
    return [1 - tail(-value), inside, tail(points - value)]


@pytest.mark.long(*ACCOUNTING)
@for_each("epsilon", EPSILONS)
def test_the_closed_form_of_the_largest_q_solves_the_linear_program(epsilon: float) -> None:
    for first, second in itertools.islice(private_pairs(epsilon), 15, 60, 3):
        target = np.arange(len(first)) > 0
        closed = largest_q(first, second, target, epsilon=epsilon)
        assert largest_q_by_linear_program(first, second, target, epsilon=epsilon) == pytest.approx(
            closed, abs=1e-5
        )


@for_each("epsilon", EPSILONS)
def test_not_prior_q_is_tight(epsilon: float) -> None:
    worst = min(
        largest_q(first, second, np.arange(len(first)) != prior, epsilon=epsilon)
        for first, second in private_pairs(epsilon)
        for prior in range(len(first))
    )
    assert worst == pytest.approx(not_prior_q(epsilon), rel=1e-6)
    assert worst >= not_prior_q(epsilon) * (1 - 1e-8)


@for_each("sensitivity", [1, 3, 6])
@for_each("points", [1, 2, 5, 40])
@for_each("epsilon", EPSILONS)
def test_between_thresholds_q_is_tight_for_discrete_noise(
    epsilon: float, points: int, sensitivity: int
) -> None:
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


def test_a_wide_gap_between_thresholds_is_as_good_as_not_prior() -> None:
    assert between_thresholds_q(0.5, math.inf) == pytest.approx(not_prior_q(0.5), rel=1e-14)
    assert between_thresholds_q(0.5, 1e-3) == pytest.approx(not_prior_q(0.5) * -math.expm1(-5e-4), rel=1e-12)


@for_each("epsilon", EPSILONS)
def test_boundary_epsilon_is_the_privacy_of_the_wrapper(epsilon: float) -> None:
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
@for_each("larger", [1.0, 1.1, 2.0])
def test_boundary_q_holds_for_every_wrapper(epsilon: float, larger: float) -> None:
    call = larger * boundary_epsilon(epsilon)
    for first, second in private_pairs(epsilon):
        target = np.arange(len(first) + 1) == len(first)
        found = largest_q(wrapped(first), wrapped(second), target, epsilon=call)
        assert found >= boundary_q(epsilon, call) * (1 - 1e-9)


@for_each("epsilon", EPSILONS)
def test_differing_runs_q_holds_for_every_pair_of_runs(epsilon: float) -> None:
    for first, second in private_pairs(epsilon):
        differ = ~np.eye(len(first), dtype=bool)
        found = largest_q(
            np.outer(first, first).ravel(),
            np.outer(second, second).ravel(),
            differ.ravel(),
            epsilon=2 * epsilon,
        )
        assert found >= differing_runs_q(epsilon) * (1 - 1e-9)


@for_each("epsilon", [1e-9, 0.01, 1.0, 30.0])
def test_the_formulas_are_those_of_the_paper_rounded_down(epsilon: float) -> None:
    with mpmath.workdps(50):
        e = mpmath.mpf(epsilon)
        t = mpmath.mpf(boundary_epsilon(epsilon))
        expected = {
            not_prior_q(epsilon): 1 / (mpmath.exp(e) + 1),
            between_thresholds_q(epsilon, 2.0): (1 - mpmath.exp(-2 * e)) / (mpmath.exp(e) + 1),
            boundary_q(epsilon): mpmath.expm1(t) / (2 * mpmath.expm1(e + t)),
            differing_runs_q(epsilon): (1 + mpmath.exp(e)) / (1 + mpmath.exp(e) + 2 * mpmath.exp(2 * e)),
        }
        assert t >= e + mpmath.log(3 / (2 + mpmath.exp(-e)))
        for found, exact in expected.items():
            assert exact * (1 - mpmath.mpf("1e-14")) <= found <= exact


@given(st.floats(1e-8, 50.0))
def test_the_wrapped_epsilon_returns(epsilon: float) -> None:
    inside = boundary_wrapped_epsilon(epsilon)
    assert inside == pytest.approx(boundary_wrapped_epsilon(boundary_epsilon(inside)), rel=1e-12)
    assert epsilon * (1 - 1e-12) <= boundary_epsilon(inside) <= epsilon


def binomial_tail(calls: int, charges: int, q: float) -> mpmath.mpf:
    """Chance of fewer than `charges` hits, term by term."""
    with mpmath.workdps(40):
        p = mpmath.mpf(q)
        return mpmath.fsum(
            mpmath.binomial(calls, hits) * p**hits * (1 - p) ** (calls - hits) for hits in range(charges)
        )


@for_each("composition", ["basic", "optimal"])
@for_each("targets", [1, 3])
@for_each(("charges", "delta"), [(1, 0.3), (1, 1e-200), (20, 1e-6), (20, 1e-250), (300, 1e-12)])
@for_each("q", [0.49, 0.07])
def test_the_failure_is_the_binomial_tail_and_delta_is_not_overspent(
    charges: int, delta: float, targets: int, q: float, composition: str
) -> None:
    bound = target_charging(
        epsilon=0.02, charges=charges, delta=delta, q=q, targets=targets, composition=composition
    )
    exact = binomial_tail(bound.calls, charges, q)
    assert exact <= bound.failure <= exact * (1 + mpmath.mpf("1e-8"))
    assert targets * bound.failure <= bound.delta <= delta
    if composition == "basic":
        assert bound.epsilon == bound.calls * 0.02
        assert bound.calls == charges or binomial_tail(bound.calls - 1, charges, q) > delta / targets
    else:
        slack = delta / targets - bound.failure
        composed = optimal_composition(epsilon=0.02, count=bound.calls, delta=slack)
        assert composed <= bound.epsilon <= min(composed * (1 + 1e-8), bound.calls * 0.02)


@for_each(("charges", "q", "epsilon"), [(1, 0.4, 0.1), (7, 0.3, 0.5), (50, 0.49, 0.02), (50, 0.1, 1.0)])
def test_no_other_number_of_calls_is_better(charges: int, q: float, epsilon: float) -> None:
    delta = 1e-6
    bound = target_charging(epsilon=epsilon, charges=charges, delta=delta, q=q)
    others = []
    for calls in range(charges, 2 * bound.calls):
        slack = delta - float(special.bdtr(charges - 1, calls, q))
        if slack >= 0:
            others.append(optimal_composition(epsilon=epsilon, count=calls, delta=slack))
    assert bound.epsilon <= min(others) * (1 + 1e-4)


privacy = st.fixed_dictionaries(
    {
        "epsilon": st.floats(1e-4, 2.0),
        "charges": st.integers(1, 200),
        "delta": st.floats(1e-30, 0.3),
        "q": st.floats(0.05, 1.0),
        "composition": st.sampled_from(["basic", "optimal"]),
    }
)


@settings(deadline=None, max_examples=50)
@given(privacy, st.floats(0.01, 20.0))
def test_the_exact_tail_is_never_worse_than_the_papers_chernoff_bound(
    wish: dict[str, float], alpha: float
) -> None:
    charges, q = wish["charges"], wish["q"]
    failure = math.exp(-(alpha**2) * charges / (2 * (1 + alpha)))
    calls = math.floor((1 + alpha) * charges / q)
    if not 1e-300 < failure < 0.4:
        return
    slack = 0.0 if wish["composition"] == "basic" else failure
    bound = target_charging(**(wish | {"delta": failure + slack}))  # type: ignore[arg-type]
    paper = optimal_composition(epsilon=wish["epsilon"], count=calls, delta=slack)
    assert bound.epsilon <= paper * (1 + 1e-4)


@settings(deadline=None, max_examples=40)
@given(privacy)
def test_a_weaker_wish_costs_less(wish: dict[str, float]) -> None:
    def cost(**change: float) -> float:
        return target_charging(**(wish | change)).epsilon  # type: ignore[arg-type]

    whole = cost() * (1 + 1e-4)  # the best number of calls is searched for, not scanned
    assert cost(epsilon=wish["epsilon"] / 2) <= whole
    assert cost(charges=max(1, wish["charges"] - 1)) <= whole
    assert cost(delta=wish["delta"] * 2) <= whole
    assert cost(q=min(1.0, wish["q"] * 1.5)) <= whole
    assert cost(composition="optimal") <= cost(composition="basic") * (1 + 1e-12)  # type: ignore[arg-type]
    assert cost(targets=2, delta=wish["delta"]) == cost(delta=wish["delta"] / 2)


@settings(deadline=None, max_examples=40)
@given(
    st.floats(1e-3, 20.0),
    st.floats(1e-30, 0.3),
    st.integers(1, 200),
    st.sampled_from([not_prior_q, boundary_q, lambda e: differing_runs_q(e / 2), lambda _: 1.0]),
    st.integers(1, 3),
    st.sampled_from(["basic", "optimal"]),
)
def test_the_epsilon_each_returns_and_never_exceeds(epsilon, delta, charges, q, targets, composition) -> None:  # type: ignore[no-untyped-def]
    rest = {"charges": charges, "delta": delta, "targets": targets, "composition": composition}
    each = target_charging_epsilon_each(epsilon=epsilon, q=q, **rest)
    assert target_charging(epsilon=each, q=q(each), **rest).epsilon <= epsilon
    more = each * (1 + 1e-3)
    assert target_charging(epsilon=more, q=q(more), **rest).epsilon > epsilon


def test_thresholds_a_fixed_distance_apart_need_optimal_composition() -> None:
    # e/q tends to 2/width as e tends to 0, so that the sum over all calls cannot be made small
    wish = {"epsilon": 1.0, "delta": 1e-6, "charges": 10, "q": lambda e: between_thresholds_q(e, 2.0)}
    assert target_charging_epsilon_each(**wish) > 0  # type: ignore[arg-type]
    with pytest.raises(InputError, match="calls that read the data"):
        target_charging_epsilon_each(**wish, composition="basic")  # type: ignore[arg-type]


def test_all_outcomes_as_the_target_are_plain_composition() -> None:
    bound = target_charging(epsilon=0.1, charges=30, delta=1e-6, q=1.0)
    assert bound.calls == 30
    assert bound.failure == 0.0
    assert bound.epsilon == pytest.approx(optimal_composition(epsilon=0.1, count=30, delta=1e-6), rel=1e-8)


def test_ten_thousand_charges_take_few_compositions(monkeypatch: pytest.MonkeyPatch) -> None:
    composed = 0

    def counted(**given: float) -> float:
        nonlocal composed
        composed += 1
        return whole(**given)

    module = sys.modules[target_charging.__module__]
    whole = module._composed
    monkeypatch.setattr(module, "_composed", counted)
    each = target_charging_epsilon_each(epsilon=1.0, delta=1e-6, charges=10_000, q=not_prior_q)
    assert 1e-3 < each < 1e-2
    assert 0 < composed < 1_000


@for_each("function", [not_prior_q, boundary_epsilon, boundary_wrapped_epsilon, boundary_q, differing_runs_q])
@for_each("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_an_epsilon_out_of_range_is_refused(function, epsilon: float) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="epsilon is finite and above 0"):
        function(epsilon)


@for_each(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is finite"),
        ({"epsilon": math.nan}, "epsilon is finite"),
        ({"charges": 0}, "charges is at least 1"),
        ({"delta": 0.0}, "delta in"),
        ({"delta": 1.0}, "delta in"),
        ({"delta": math.nan}, "delta in"),
        ({"q": 0.0}, "q lies in"),
        ({"q": 1.5}, "q lies in"),
        ({"q": math.nan}, "q lies in"),
        ({"q": 1e-6, "charges": 1000}, "calls that read the data"),
        ({"targets": 0}, "targets is at least 1"),
        ({"composition": "advanced"}, "composition is"),
    ],
)
def test_a_parameter_out_of_range_is_refused(change: dict[str, object], message: str) -> None:
    wish: dict[str, object] = {"epsilon": 0.1, "charges": 5, "delta": 1e-6, "q": 0.4}
    with pytest.raises(InputError, match=message):
        target_charging(**(wish | change))  # type: ignore[arg-type]
    if "q" not in change:
        with pytest.raises(InputError, match=message):
            target_charging_epsilon_each(**(wish | change | {"q": not_prior_q}))  # type: ignore[arg-type]


def test_widths_and_wrappers_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="above 0"):
        between_thresholds_q(0.1, 0.0)
    with pytest.raises(InputError, match="above 0"):
        between_thresholds_q(0.1, math.nan)
    with pytest.raises(InputError, match="at best"):
        boundary_q(0.1, 0.1)


def test_a_bound_is_a_record() -> None:
    bound = target_charging(epsilon=0.1, charges=1, delta=0.3, q=0.5, composition="basic")
    assert bound == TargetChargingBound(epsilon=0.2, delta=bound.failure, calls=2, failure=bound.failure)
    assert bound.failure == pytest.approx(0.25)
