"""Target charging: every bound against the best adversary, two ways to the same numbers, and the limits."""

import itertools
import math
import sys

import mpmath
import numpy as np
import pytest
from cases import for_each, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import ACCOUNTING
from mechanisms.accounting.charging_adversary import calls_with_q, found_delta, not_prior_calls
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    boundary_q,
    differing_runs_q,
    not_prior_mean,
    not_prior_q,
    one_shot_top_k_epsilon_each,
    optimal_composition,
    optimal_delta,
    optimal_epsilon_each,
    passages,
    target_charging,
    target_charging_delta,
    target_charging_epsilon_each,
)
from reusable_holdout.mechanisms.accounting.target_charging import _delta_by_calls

module = sys.modules[
    "reusable_holdout.mechanisms.accounting.target_charging"
]  # its function has the same name
NOT_PRIOR = {"q": not_prior_q, "mean": not_prior_mean}


def of_not_prior(each):
    return {"q": not_prior_q(each), "mean": not_prior_mean(each)}


def strategies(each, target):
    """Return every extreme call that an adversary may make, and what the accountant is told of it."""
    if target == "not prior":
        return not_prior_calls(each), of_not_prior(each)
    q = not_prior_q(each) if target == "q of not prior" else boundary_q(each)
    return calls_with_q(each, q), {"q": q}


@pytest.mark.long(*ACCOUNTING)
@for_each("charges", [1, 2, 5, 20])
@for_each("each", [0.03, 0.2, 1.0])
@for_each("steps", [0, 1, 2.5, 7, 12.5, 20.0])
def test_the_best_adversary_against_not_prior_targets_attains_the_promise(charges, each, steps):
    calls, told = strategies(each, "not prior")
    total = steps * each
    promised = target_charging_delta(total=total, epsilon=each, charges=charges, **told)
    found = found_delta(each=each, epsilon=total, charges=charges, calls=calls, reach=90)
    assert 0.999 * promised <= found <= promised * (1 + 1e-9)


@for_each("charges", [1, 5, 20])
@for_each("each", [0.03, 0.2, 1.0])
@for_each("target", ["q of not prior", "boundary"])
def test_no_adversary_exceeds_the_promise_where_only_q_is_known(charges, each, target):
    calls, told = strategies(each, target)
    for steps in (0, 2.5, 7, 15):
        promised = target_charging_delta(total=steps * each, epsilon=each, charges=charges, **told)
        found = found_delta(each=each, epsilon=steps * each, charges=charges, calls=calls, reach=60)
        assert found <= promised * (1 + 1e-9)
        if each < 0.1:
            assert found >= 0.88 * promised


@for_each("charges", [1, 2])
def test_an_enumeration_of_all_transcripts_gives_what_the_adversary_finds(charges):
    """Randomized response at a prior that the adversary's strategy names, every transcript of six calls."""
    each, total, longest = 0.7, 1.4, 6
    no, yes = 1 / (1 + math.exp(each)), 1 / (1 + math.exp(-each))

    def excess(first, second, left, calls):
        """Return the largest sum of max(0, P0 - exp(E) P1) over the ends of a transcript with these chances."""
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
    calls, told = strategies(each, "not prior")
    promised = target_charging_delta(total=total, epsilon=each, charges=charges, **told)
    assert 0.8 * promised < found <= promised  # it stops after six calls
    assert found <= found_delta(each=each, epsilon=total, charges=charges, calls=calls, reach=60)


def ballot_delta(each, steps, charges):
    """Sum the best adversary's delta term by term: ballot numbers in place of binomial tails."""
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
def test_the_promise_is_the_sum_of_ballot_numbers_rounded_up(each, steps, charges):
    found = target_charging_delta(total=steps * each, epsilon=each, charges=charges, **of_not_prior(each))
    exact = ballot_delta(each, steps, charges)
    assert exact * (1 - mpmath.mpf("1e-11")) <= found <= exact * (1 + mpmath.mpf("2e-5"))


@pytest.mark.long(*ACCOUNTING)
@settings(deadline=None, max_examples=15)
@given(st.floats(1e-3, 1.5), st.integers(1, 300), st.floats(1e-12, 0.2), st.floats(0.1, 0.5))
def test_delta_and_epsilon_are_inverse(each, charges, delta, mean):
    wish = {"epsilon": each, "charges": charges, "q": mean / 2, "mean": mean}
    total = target_charging(delta=delta, **wish).epsilon
    assert target_charging_delta(total=total, **wish) <= delta
    if total > 0:
        less = max(0.0, total - 1e-4 * each - 1e-7 * total)
        assert target_charging_delta(total=less, **wish) > delta * (1 - 1e-9)


@pytest.mark.long(*ACCOUNTING)
@settings(deadline=None, max_examples=20)
@given(
    st.floats(1e-3, 20.0),
    st.floats(1e-30, 0.3),
    st.integers(1, 200),
    st.sampled_from([not_prior_q, boundary_q, lambda e: differing_runs_q(e / 2), lambda _: 1.0]),
    st.integers(1, 3),
)
def test_the_epsilon_each_returns_and_never_exceeds(epsilon, delta, charges, q, targets):
    rest = {"charges": charges, "targets": targets}
    each = target_charging_epsilon_each(epsilon=epsilon, delta=delta, q=q, **rest)
    assert target_charging_delta(total=epsilon, epsilon=each, q=q(each), **rest) <= delta
    more = each * 1.02
    assert target_charging_delta(total=epsilon, epsilon=more, q=q(more), **rest) > delta


def test_many_charges_take_few_sums(monkeypatch):
    taken, whole = 0, passages._reaches

    def counted(*given):
        nonlocal taken
        taken += math.prod(np.broadcast_shapes(given[0].shape, given[2].shape))
        return whole(*given)

    monkeypatch.setattr(passages, "_reaches", counted)
    each = target_charging_epsilon_each(epsilon=0.9, delta=1e-6, charges=400_000, q=not_prior_q)
    assert 1e-4 < each < 3e-4
    assert 0 < taken < 500_000  # terms, each of two incomplete beta functions of a third of a microsecond


@for_each(
    ("epsilon", "charges", "q"),
    [(0.5, 3, 0.3), (0.1, 20, 0.6), (1.5, 1, 0.2), (0.06, 2, 0.9), (3.0, 4, 0.05)],
)
@for_each("total", [0.0, 0.7, 4.0, 15.0])
def test_calls_are_counted_at_their_best_number(epsilon, charges, q, total):
    parts = [
        float(stats.binom.cdf(charges - 1, calls, q))
        + optimal_delta(total=total, epsilon=epsilon, count=calls)
        for calls in range(charges, 300)
    ]
    found = _delta_by_calls(total=total, epsilon=epsilon, charges=charges, q=q)
    assert min(parts) * (1 + 0.9e-9) <= found
    if min(parts) < 0.05:  # larger ones have two valleys, and nobody uses them
        assert found <= min(parts) * (1 + 1.1e-9)
    walked = passages.passage_delta(each=epsilon, epsilon=total, charges=charges, mean=q)
    told = {"total": total, "epsilon": epsilon, "charges": charges, "q": q}
    assert target_charging_delta(**told) == min(1.0, walked, found)
    assert target_charging_delta(targets=3, **told) == min(1.0, 3 * min(walked, found))
    assert target_charging_delta(mean=q, **told) == walked


@for_each(
    ("epsilon", "charges", "delta", "q"), [(0.5, 3, 1e-5, 0.3), (0.1, 20, 1e-3, 0.6), (0.1, 3, 0.02, 0.6)]
)
def test_epsilon_is_where_the_smaller_delta_is_the_one_asked_for(epsilon, charges, delta, q):
    told = {"epsilon": epsilon, "charges": charges, "q": q}
    found = target_charging(delta=delta, **told).epsilon
    walked = passages.passage_epsilon(each=epsilon, delta=delta, charges=charges, mean=q)
    assert found <= walked == target_charging(delta=delta, mean=q, **told).epsilon
    assert target_charging_delta(total=found, **told) <= delta
    assert target_charging_delta(total=found * (1 - 1e-6), **told) > delta
    half = target_charging(delta=delta / 2, **told).epsilon
    assert target_charging(delta=delta, targets=2, **told).epsilon == pytest.approx(half, rel=1e-9)


@for_each(
    ("epsilon", "delta", "charges", "q", "each"),
    [
        (1.0, 1e-6, 10, not_prior_q, 0.03464763518076134),
        (0.1, 1e-3, 3, boundary_q, 0.013157605352559037),
        (8.0, 1e-9, 2, not_prior_q, 0.21312702152202176),
    ],
)
def test_the_epsilon_of_each_call_uses_delta_up(epsilon, delta, charges, q, each):
    """The values were recorded from a version that agreed with the best adversary's dynamic program."""
    wish = {"epsilon": epsilon, "delta": delta, "charges": charges}
    found = target_charging_epsilon_each(q=q, **wish)
    assert found == pytest.approx(each, rel=1e-9)
    for more, within in ((1.0, True), (1 + 3e-10, False)):
        there = found * more
        cost = target_charging_delta(total=epsilon, epsilon=there, charges=charges, q=q(there))
        assert (cost <= delta) == within
    known = target_charging_epsilon_each(**NOT_PRIOR, **wish)
    cost = target_charging_delta(total=epsilon, epsilon=known, charges=charges, **of_not_prior(known))
    assert delta * (1 - 1e-7) < cost <= delta
    half = target_charging_epsilon_each(q=q, **(wish | {"delta": delta / 2}))
    assert target_charging_epsilon_each(q=q, targets=2, **wish) == pytest.approx(half, rel=1e-9)


@for_each(
    ("epsilon", "delta", "charges"),
    [
        (5e-324, 0.99, 1),
        (5e-324, 1e-6, 1000),
        (1e-290, 1e-6, 1),
        (1e-217, 1e-6, 3),
        (1e-20, 1e-6, 1),
        (1e-9, 0.9999, 3),
        (1.0, 1e-300, 3),
        (1.0, 1e-310, 1),
        (0.3, math.nextafter(1, 0), 2),
        (1e5, 1e-6, 2),
        (1e300, 1e-6, 2),
        (1.7e308, 0.5, 1),
    ],
)
def test_extreme_wishes_have_a_largest_epsilon_of_a_call(epsilon, delta, charges):
    wish = {"epsilon": epsilon, "delta": delta, "charges": charges}
    each = target_charging_epsilon_each(**NOT_PRIOR, **wish)
    for more, within in ((1.0, True), (1.0001, False)):
        told = of_not_prior(each * more) | {"epsilon": each * more}
        assert (target_charging_delta(total=epsilon, charges=charges, **told) <= delta) == within


def test_wishes_beyond_all_numbers_are_refused(monkeypatch):
    for q in (boundary_q, lambda _: 1.0):
        for epsilon in (1e300, 1e308):
            refuses(InputError, "", target_charging_epsilon_each, epsilon=epsilon, delta=1e-6, charges=2, q=q)
    with pytest.raises(InputError, match="less extreme"):
        target_charging_epsilon_each(epsilon=1.0, delta=5e-324, charges=3, **NOT_PRIOR)
    monkeypatch.setattr(module, "_FARTHEST", 1.0)  # no small epsilon may be tried
    with pytest.raises(InputError, match="use fewer charges"):
        target_charging_epsilon_each(epsilon=0.1, delta=1e-6, charges=3, q=lambda _: 0.1)


def test_charges_are_taken_up_to_their_limit():
    assert target_charging_delta(total=1e6, epsilon=1.0, charges=10**9, q=0.5) == 1.0
    for charges in (10**9 + 1, 10**30, 10**400):
        with pytest.raises(InputError, match="at most 1,000,000,000"):
            target_charging_delta(total=1e6, epsilon=1.0, charges=charges, q=0.5)


def test_chances_of_a_hit_are_taken_down_to_their_limit():
    told = {"total": 10.0, "epsilon": 3.0, "charges": 500}
    assert target_charging_delta(q=1e-300, mean=500 / 10**12, **told) == 1.0
    assert target_charging_delta(total=10.0, epsilon=3.0, charges=5**12, q=2.0**-12) == 1.0
    for q, mean in ((499.9 / 10**12, None), (1e-300, None), (1e-300, 499.9 / 10**12)):
        with pytest.raises(InputError, match="charges divided by the mean chance"):
            target_charging_delta(q=q, mean=mean, **told)


def test_a_delta_that_is_exactly_the_slack_is_enough(monkeypatch):
    monkeypatch.setattr(module, "_delta_by_calls", lambda **told: 1e-5 if told["total"] >= 0.3 else 1.0)
    found = target_charging(epsilon=0.5, charges=3, delta=1e-5, q=0.3).epsilon
    assert found == pytest.approx(0.3, rel=1e-9)
    monkeypatch.setattr(
        module, "target_charging_delta", lambda **told: 1e-6 if told["epsilon"] < 0.1 else 1.0
    )
    each = target_charging_epsilon_each(epsilon=1.0, delta=1e-6, charges=3, q=not_prior_q)
    assert 0.02 < each < 0.1


def test_all_outcomes_as_targets_cost_the_composition_rounded_up():
    told = {"epsilon": 0.2, "charges": 9, "q": 1.0}
    alone = optimal_composition(epsilon=0.2, count=9, delta=1e-3)
    assert target_charging(delta=1e-3, **told).epsilon == alone * (1 + 1e-9)
    assert target_charging(delta=1e-300, **told).epsilon == 9 * 0.2
    assert target_charging(delta=2e-3, targets=2, **told).epsilon == alone * (1 + 1e-9)
    delta = optimal_delta(total=0.9, epsilon=0.2, count=9)
    assert target_charging_delta(total=0.9, mean=1.0, **told) == delta * (1 + 1e-9)
    assert target_charging_delta(total=0.0, epsilon=9.0, charges=99, q=1.0) == 1.0
    assert target_charging(epsilon=0.1, charges=1, delta=0.9, q=0.3).epsilon == 0.0


@for_each("k", [1, 3, 6])
@for_each(("epsilon", "delta"), [(1.0, 1e-6), (5.0, 0.01), (0.2, 1e-12)])
def test_a_one_shot_selection_is_the_cheaper_of_two(k, epsilon, delta):
    revised = target_charging_epsilon_each(epsilon=epsilon, delta=delta, charges=k, **NOT_PRIOR)
    for candidates in (k, k + 1, 30, 2000):
        found = one_shot_top_k_epsilon_each(k=k, candidates=candidates, epsilon=epsilon, delta=delta)
        whole = optimal_epsilon_each(epsilon=epsilon, count=candidates, delta=delta)
        assert found == max(revised / 2, whole)
        exact = one_shot_top_k_epsilon_each(k=k, candidates=candidates, epsilon=epsilon, delta=0.0)
        assert exact == optimal_epsilon_each(epsilon=epsilon, count=candidates, delta=0.0)


def test_a_hit_costs_a_logarithm_of_delta_alone_and_two_calls_among_many():
    """Section 1, Lemma 2.2 and Remark B.5: the uncertain number of calls costs less the more hits there are."""
    for epsilon, delta in itertools.product((0.1, 0.3), (1e-3, 1e-6, 1e-12, 1e-24)):
        one = target_charging(epsilon=epsilon, charges=1, delta=delta, **of_not_prior(epsilon)).epsilon
        assert 0.9 < one / (epsilon * math.log(1 / delta)) < 1.8
    epsilon, delta, overhead = 1e-3, 1e-6, []
    for charges in (10, 100, 1000, 10_000):
        bound = target_charging(epsilon=epsilon, charges=charges, delta=delta, **of_not_prior(epsilon))
        calls = optimal_composition(epsilon=epsilon, count=2 * charges, delta=delta)
        overhead.append(bound.epsilon / calls - 1)
        log = math.log(1 / delta) / charges
        assert overhead[-1] < log + math.sqrt(log**2 + 2 * log)  # the document's share of further calls
    ratios = [more / fewer for fewer, more in itertools.pairwise(overhead)]
    assert ratios == pytest.approx([10**-0.5] * 3, rel=0.15)
    assert overhead[-1] < 0.02
