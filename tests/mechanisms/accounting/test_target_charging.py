"""Target charging: every q by the decomposition that defines it, every bound against the exact binomial tail."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import ACCOUNTING
from mechanisms.accounting.charging_adversary import Call, calls_with_q, found_delta, not_prior_calls
from mechanisms.accounting.target_decomposition import (
    largest_mean,
    largest_q,
    largest_q_by_linear_program,
    privacy_loss,
)

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import optimal_composition, passages
from reusable_holdout.mechanisms.accounting.passages import _fewer
from reusable_holdout.mechanisms.accounting.target_charging import (
    TargetChargingBound,
    between_thresholds_q,
    boundary_epsilon,
    boundary_q,
    boundary_wrapped_epsilon,
    differing_runs_q,
    not_prior_mean,
    not_prior_q,
    target_charging,
    target_charging_delta,
    target_charging_epsilon_each,
)

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
def test_not_prior_mean_is_tight(epsilon: float) -> None:
    means = [
        largest_mean(first, second, np.arange(len(first)) != prior, epsilon=epsilon)
        for first, second in private_pairs(epsilon)
        for prior in range(len(first))
    ]
    assert 0.5 * (1 - 1e-8) <= min(means) == pytest.approx(not_prior_mean(epsilon), rel=1e-6)


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


def strategies(each: float, target: str) -> tuple[list[Call], dict[str, float]]:
    """Every extreme call that an adversary may make, and what the accountant is told of it."""
    if target == "not prior":
        return not_prior_calls(each), {"q": not_prior_q(each), "mean": not_prior_mean(each)}
    q = not_prior_q(each) if target == "q of not prior" else boundary_q(each)
    return calls_with_q(each, q), {"q": q}


@pytest.mark.long(*ACCOUNTING)
@for_each("charges", [1, 2, 5, 20])
@for_each("each", [0.03, 0.2, 1.0])
@for_each("steps", [0, 1, 2.5, 7, 12.5, 20.0])
def test_the_best_adversary_against_not_prior_targets_attains_the_promise(
    charges: int, each: float, steps: float
) -> None:
    calls, told = strategies(each, "not prior")
    total = steps * each
    promised = target_charging_delta(total=total, epsilon=each, charges=charges, **told)
    found = found_delta(each=each, epsilon=total, charges=charges, calls=calls, reach=90)
    assert 0.999 * promised <= found <= promised * (1 + 1e-9)


@for_each("charges", [1, 5, 20])
@for_each("each", [0.03, 0.2, 1.0])
@for_each("target", ["q of not prior", "boundary"])
def test_no_adversary_exceeds_the_promise_where_only_q_is_known(
    charges: int, each: float, target: str
) -> None:
    calls, told = strategies(each, target)
    for steps in (0, 2.5, 7, 15):
        promised = target_charging_delta(total=steps * each, epsilon=each, charges=charges, **told)
        found = found_delta(each=each, epsilon=steps * each, charges=charges, calls=calls, reach=60)
        assert found <= promised * (1 + 1e-9)
        if each < 0.1:
            assert found >= 0.88 * promised


@for_each("charges", [1, 2])
def test_the_adversary_is_what_an_enumeration_of_all_transcripts_gives(charges: int) -> None:
    """Randomized response at a prior that the adversary's strategy names, every transcript of six calls."""
    each, total, longest = 0.7, 1.4, 6
    no, yes = 1 / (1 + math.exp(each)), 1 / (1 + math.exp(-each))

    def excess(first: float, second: float, left: int, calls: int) -> float:
        """Largest sum of max(0, P0 - exp(E) P1) over the ends of a transcript with these probabilities."""
        stop = max(0.0, first - math.exp(total) * second)
        if left == 0 or calls == 0:
            return stop
        options = [stop]
        options.extend(
            excess(first * yes, second * no, left - (hit == 0), calls - 1)
            + excess(first * no, second * yes, left - (hit == 1), calls - 1)
            for hit in (0, 1)  # the prior is the other answer
        )
        return max(options)

    found = excess(1.0, 1.0, charges, longest)
    told = strategies(each, "not prior")
    promised = target_charging_delta(total=total, epsilon=each, charges=charges, **told[1])
    assert 0.8 * promised < found <= promised  # it stops after six calls
    assert found <= found_delta(each=each, epsilon=total, charges=charges, calls=told[0], reach=60)


def exact_not_prior(each: float, steps: int, charges: int) -> mpmath.mpf:
    """The best adversary's delta, term by term: ballot numbers in place of binomial tails."""
    with mpmath.workdps(40):
        e = mpmath.mpf(each)
        up = 1 / (1 + mpmath.exp(-e))
        total = mpmath.mpf(0)
        for i in range(4000):
            m = steps + 1 + 2 * i
            reached = mpmath.fsum(
                mpmath.mpf(m) / (2 * d + m) * mpmath.binomial(2 * d + m, d) * up ** (m + d) * (1 - up) ** d
                for d in range(charges)
            )
            term = (1 - mpmath.exp(-e)) * mpmath.exp(-i * e) * reached
            total += term
            if term < total * mpmath.mpf(10) ** -15:
                break
        return total


@for_each(
    ("each", "steps", "charges"), [(0.05, 20, 1), (0.3, 4, 7), (2.0, 3, 2), (0.02, 200, 3), (0.01, 0, 5)]
)
def test_the_promise_is_the_sum_of_ballot_numbers_rounded_up(each: float, steps: int, charges: int) -> None:
    found = target_charging_delta(
        total=steps * each, epsilon=each, charges=charges, q=not_prior_q(each), mean=0.5
    )
    exact = exact_not_prior(each, steps, charges)
    assert exact * (1 - mpmath.mpf("1e-11")) <= found <= exact * (1 + mpmath.mpf("2e-5"))


@for_each(("charges", "calls", "q"), [(50, 117, 0.4), (400_000, 880_000, 0.45), (3, 2000, 0.01)])
def test_the_chance_of_too_few_hits_is_the_binomial_tail_at_any_size(
    charges: int, calls: int, q: float
) -> None:
    with mpmath.workdps(40):
        term = (
            mpmath.exp(
                mpmath.loggamma(calls + 1) - mpmath.loggamma(charges) - mpmath.loggamma(calls - charges + 2)
            )
            * mpmath.mpf(q) ** (charges - 1)
            * (1 - mpmath.mpf(q)) ** (calls - charges + 1)
        )
        exact, hits = term, charges - 1
        while hits and term > exact * mpmath.mpf(10) ** -20:
            term *= mpmath.mpf(hits) / (calls - hits + 1) * (1 - mpmath.mpf(q)) / mpmath.mpf(q)
            exact, hits = exact + term, hits - 1
    assert float(_fewer(np.array([calls]), charges, q)[0]) == pytest.approx(float(exact), rel=1e-10)


privacy = st.fixed_dictionaries(
    {
        "epsilon": st.floats(1e-4, 2.0),
        "charges": st.integers(1, 200),
        "delta": st.floats(1e-30, 0.3),
        "q": st.floats(0.05, 1.0),
    }
)


@pytest.mark.long(*ACCOUNTING)
@settings(deadline=None, max_examples=25)
@given(privacy, st.floats(0.01, 20.0))
def test_the_promise_is_never_worse_than_the_papers(wish: dict[str, float], alpha: float) -> None:
    charges, q = wish["charges"], min(wish["q"], 1 / (1 + math.exp(wish["epsilon"])))
    failure = math.exp(-(alpha**2) * charges / (2 * (1 + alpha)))
    calls = math.floor((1 + alpha) * charges / q)
    if not 1e-300 < failure < 0.4:
        return
    bound = target_charging(**(wish | {"delta": 2 * failure, "q": q}))  # type: ignore[arg-type]
    paper = optimal_composition(epsilon=wish["epsilon"], count=calls, delta=failure)
    assert bound.epsilon <= paper * (1 + 1e-4)


@pytest.mark.long(*ACCOUNTING)
@settings(deadline=None, max_examples=20)
@given(privacy)
def test_a_weaker_wish_costs_less(wish: dict[str, float]) -> None:
    def cost(**change: float) -> float:
        return target_charging(**({**wish, "mean": max(wish["q"], 0.4)} | change)).epsilon  # type: ignore[arg-type]

    whole = cost() * (1 + 2e-2)  # chords and blocks are rounded up
    assert cost(epsilon=wish["epsilon"] / 2) <= whole
    assert cost(charges=max(1, wish["charges"] - 1)) <= whole
    assert cost(delta=wish["delta"] * 2) <= whole
    assert cost(mean=min(1.0, max(wish["q"], 0.4) * 1.5)) <= whole
    assert cost(targets=2, delta=wish["delta"]) == cost(delta=wish["delta"] / 2)


@pytest.mark.long(*ACCOUNTING)
@settings(deadline=None, max_examples=15)
@given(st.floats(1e-3, 1.5), st.integers(1, 300), st.floats(1e-12, 0.2), st.floats(0.1, 0.5))
def test_delta_and_epsilon_are_inverse(each: float, charges: int, delta: float, mean: float) -> None:
    wish = {"epsilon": each, "charges": charges, "q": mean / 2, "mean": mean}
    total = target_charging(delta=delta, **wish).epsilon  # type: ignore[arg-type]
    assert target_charging_delta(total=total, **wish) <= delta  # type: ignore[arg-type]
    if total > 0:
        less = max(0.0, total - 1e-4 * each - 1e-7 * total)
        assert target_charging_delta(total=less, **wish) > delta * (1 - 1e-9)  # type: ignore[arg-type]


@pytest.mark.long(*ACCOUNTING)
@settings(deadline=None, max_examples=20)
@given(
    st.floats(1e-3, 20.0),
    st.floats(1e-30, 0.3),
    st.integers(1, 200),
    st.sampled_from([not_prior_q, boundary_q, lambda e: differing_runs_q(e / 2), lambda _: 1.0]),
    st.integers(1, 3),
)
def test_the_epsilon_each_returns_and_never_exceeds(epsilon, delta, charges, q, targets) -> None:  # type: ignore[no-untyped-def]
    rest = {"charges": charges, "targets": targets}
    each = target_charging_epsilon_each(epsilon=epsilon, delta=delta, q=q, **rest)
    assert target_charging_delta(total=epsilon, epsilon=each, q=q(each), **rest) <= delta
    more = each * 1.02
    assert target_charging_delta(total=epsilon, epsilon=more, q=q(more), **rest) > delta


def test_many_charges_take_few_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0

    def counted(*given: Any) -> Any:
        nonlocal taken
        taken += math.prod(np.broadcast_shapes(given[0].shape, given[2].shape))
        return whole(*given)

    whole = passages._reaches
    monkeypatch.setattr(passages, "_reaches", counted)
    each = target_charging_epsilon_each(epsilon=0.9, delta=1e-6, charges=400_000, q=not_prior_q)
    assert 1e-4 < each < 3e-4
    assert 0 < taken < 500_000  # terms, each of two incomplete beta functions of a third of a microsecond


@for_each("guess", [0, 1, 7, 2**20])
@for_each("wanted", [0, 1, 2, 9, 1000, 2**20 - 1, 2**50])
def test_the_first_number_that_has_reached_is_found_from_any_guess(guess: int, wanted: int) -> None:
    assert passages.first_reached(lambda number: number >= wanted, guess) == wanted


def test_an_epsilon_beyond_all_steps_is_refused() -> None:
    with pytest.raises(InputError, match="an epsilon beyond"):
        passages.first_reached(lambda number: number > 2**50, 1)


def test_all_outcomes_as_the_target_are_plain_composition() -> None:
    bound = target_charging(epsilon=0.1, charges=30, delta=1e-6, q=1.0)
    assert bound.epsilon == pytest.approx(optimal_composition(epsilon=0.1, count=30, delta=1e-6), rel=1e-8)
    found = target_charging_delta(total=bound.epsilon, epsilon=0.1, charges=30, q=1.0)
    assert found == pytest.approx(1e-6, rel=1e-6)


def test_an_epsilon_that_one_call_does_not_reach_costs_nothing() -> None:
    assert target_charging(epsilon=0.1, charges=1, delta=0.9, q=0.3).epsilon == 0.0


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
        ({"mean": 0.3}, "at least the least of them"),
        ({"mean": 1.5}, "at least the least of them"),
        ({"mean": math.nan}, "at least the least of them"),
        ({"targets": 0}, "targets is at least 1"),
    ],
)
def test_a_parameter_out_of_range_is_refused(change: dict[str, object], message: str) -> None:
    wish: dict[str, object] = {"epsilon": 0.1, "charges": 5, "delta": 1e-6, "q": 0.4}
    with pytest.raises(InputError, match=message):
        target_charging(**(wish | change))  # type: ignore[arg-type]
    if not {"q", "mean"} & set(change):
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
    bound = target_charging(epsilon=0.1, charges=1, delta=0.3, q=1.0)
    assert bound == TargetChargingBound(epsilon=bound.epsilon, delta=0.3)


def test_a_total_is_a_number_that_is_not_negative() -> None:
    for total in (-0.1, math.inf, math.nan):
        with pytest.raises(InputError, match="total is finite"):
            target_charging_delta(total=total, epsilon=0.1, charges=1, q=0.5)
