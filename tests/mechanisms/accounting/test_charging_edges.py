"""Target charging, its targets, samples and one-shot selections: other ways to the same numbers, and the limits."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import mpmath
import pytest
from cases import for_each
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    boundary_epsilon,
    boundary_q,
    boundary_wrapped_epsilon,
    differing_runs_q,
    epsilon_of_the_sample,
    not_prior_mean,
    not_prior_q,
    one_shot_top_k_epsilon_each,
    optimal_composition,
    optimal_delta,
    optimal_epsilon_each,
    subsampled_epsilon,
    target_charging,
    target_charging_delta,
    target_charging_epsilon_each,
    targets,
)
from reusable_holdout.mechanisms.accounting.passages import passage_delta, passage_epsilon
from reusable_holdout.mechanisms.accounting.target_charging import _delta_by_calls, _few_calls

if TYPE_CHECKING:
    from collections.abc import Callable


module = sys.modules[
    "reusable_holdout.mechanisms.accounting.target_charging"
]  # whose name its function has, too


@for_each(
    ("epsilon", "charges", "q"),
    [(0.5, 3, 0.3), (0.1, 20, 0.6), (1.5, 1, 0.2), (0.06, 2, 0.9), (3.0, 4, 0.05)],
)
@for_each("total", [0.0, 0.7, 4.0, 15.0])
def test_calls_are_counted_at_their_best_number(epsilon: float, charges: int, q: float, total: float) -> None:
    parts = [
        float(stats.binom.cdf(charges - 1, calls, q))
        + optimal_delta(total=total, epsilon=epsilon, count=calls)
        for calls in range(charges, 300)
    ]
    found = _delta_by_calls(total=total, epsilon=epsilon, charges=charges, q=q)
    assert min(parts) * (1 + 0.9e-9) <= found
    if min(parts) < 0.05:  # larger ones have two valleys, and nobody uses them
        assert found <= min(parts) * (1 + 1.1e-9)
    walked = passage_delta(each=epsilon, epsilon=total, charges=charges, mean=q)
    told: dict[str, Any] = {"epsilon": epsilon, "charges": charges, "q": q}
    assert target_charging_delta(total=total, **told) == min(1.0, walked, found)
    assert target_charging_delta(total=total, targets=3, **told) == min(1.0, 3 * min(walked, found))
    assert target_charging_delta(total=total, mean=q, **told) == walked


@for_each(
    ("epsilon", "charges", "delta", "q"), [(0.5, 3, 1e-5, 0.3), (0.1, 20, 1e-3, 0.6), (0.1, 3, 0.02, 0.6)]
)
def test_epsilon_is_where_the_smaller_delta_is_what_was_asked_for(
    epsilon: float, charges: int, delta: float, q: float
) -> None:
    told: dict[str, Any] = {"epsilon": epsilon, "charges": charges, "q": q}
    found = target_charging(delta=delta, **told).epsilon
    walked = passage_epsilon(each=epsilon, delta=delta, charges=charges, mean=q)
    assert found <= walked == target_charging(delta=delta, mean=q, **told).epsilon
    assert target_charging_delta(total=found, **told) <= delta
    assert target_charging_delta(total=found * (1 - 1e-6), **told) > delta
    assert target_charging(delta=delta, targets=2, **told).epsilon == pytest.approx(
        target_charging(delta=delta / 2, **told).epsilon, rel=1e-9
    )


@for_each(
    ("told", "few"),
    [
        ((0.05, 10, 0.5, None), False),
        ((math.nextafter(0.05, 1), 10, 0.5, None), True),
        ((0.01, 10, math.nextafter(0.5, 1), None), True),
        ((0.2, 10, 0.5, 0.5), False),
        ((0.2, 2499, 0.5, None), True),
        ((0.2, 2500, 0.5, None), False),
    ],
)
def test_few_calls_are_counted_where_nothing_but_q_is_known(told: tuple[Any, ...], few: bool) -> None:
    assert _few_calls(*told) == few


@for_each(
    ("epsilon", "delta", "charges", "q", "each"),
    [
        (1.0, 1e-6, 10, not_prior_q, 0.03464763518076134),
        (0.1, 1e-3, 3, boundary_q, 0.013157605352559037),
        (8.0, 1e-9, 2, not_prior_q, 0.21312702152202176),
    ],
)
def test_the_epsilon_of_each_call_uses_delta_up(
    epsilon: float, delta: float, charges: int, q: Callable[[float], float], each: float
) -> None:
    """The values are those of a version that agreed with the best adversary's dynamic program."""
    wish: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "charges": charges}
    found = target_charging_epsilon_each(q=q, **wish)
    assert found == pytest.approx(each, rel=1e-9)
    for more, within in ((1.0, True), (1 + 3e-10, False)):
        there = found * more
        told: dict[str, Any] = {"epsilon": there, "charges": charges, "q": q(there)}
        assert (target_charging_delta(total=epsilon, **told) <= delta) == within
    known = target_charging_epsilon_each(q=not_prior_q, mean=not_prior_mean, **wish)
    told = {"epsilon": known, "charges": charges, "q": not_prior_q(known), "mean": not_prior_mean(known)}
    assert delta * (1 - 1e-7) < target_charging_delta(total=epsilon, **told) <= delta
    double = target_charging_epsilon_each(q=q, targets=2, **wish)
    half = target_charging_epsilon_each(q=q, **(wish | {"delta": delta / 2}))
    assert double == pytest.approx(half, rel=1e-9)


def test_no_epsilon_of_a_call_is_small_enough_for_some(monkeypatch: pytest.MonkeyPatch) -> None:
    wish: dict[str, Any] = {"epsilon": 0.1, "delta": 1e-6, "charges": 3, "q": lambda _: 0.1}
    assert target_charging_epsilon_each(**wish) > 0
    monkeypatch.setattr(module, "_FARTHEST", 1.0)  # no epsilon that small may be tried
    with pytest.raises(InputError, match="use fewer charges"):
        target_charging_epsilon_each(**wish)


@for_each("epsilon", [1e-20, 1e-12])
def test_even_the_least_epsilon_has_a_share_for_each_call(epsilon: float) -> None:
    each = target_charging_epsilon_each(
        epsilon=epsilon, delta=1e-6, charges=1, q=not_prior_q, mean=not_prior_mean
    )
    told: dict[str, Any] = {"charges": 1, "q": not_prior_q(each), "mean": not_prior_mean(each)}
    assert target_charging_delta(total=epsilon, epsilon=each, **told) <= 1e-6


def test_all_outcomes_as_targets_cost_the_composition_rounded_up() -> None:
    told: dict[str, Any] = {"epsilon": 0.2, "charges": 9, "q": 1.0}
    alone = optimal_composition(epsilon=0.2, count=9, delta=1e-3)
    assert target_charging(delta=1e-3, **told).epsilon == alone * (1 + 1e-9)
    assert target_charging(delta=1e-300, **told).epsilon == 9 * 0.2
    assert target_charging(delta=2e-3, targets=2, **told) == target_charging(delta=2e-3, targets=2, **told)
    assert target_charging(delta=2e-3, targets=2, **told).epsilon == alone * (1 + 1e-9)
    delta = optimal_delta(total=0.9, epsilon=0.2, count=9)
    assert target_charging_delta(total=0.9, mean=1.0, **told) == delta * (1 + 1e-9)
    assert target_charging_delta(total=0.0, epsilon=9.0, charges=99, q=1.0) == 1.0


@for_each("k", [1, 3, 6])
@for_each(("epsilon", "delta"), [(1.0, 1e-6), (5.0, 0.01), (0.2, 1e-12)])
def test_a_one_shot_selection_is_the_cheaper_of_two(k: int, epsilon: float, delta: float) -> None:
    revised = target_charging_epsilon_each(
        epsilon=epsilon, delta=delta, charges=k, q=not_prior_q, mean=not_prior_mean
    )
    for candidates in (k, k + 1, 30, 2000):
        found = one_shot_top_k_epsilon_each(k=k, candidates=candidates, epsilon=epsilon, delta=delta)
        whole = optimal_epsilon_each(epsilon=epsilon, count=candidates, delta=delta)
        assert found == max(revised / 2, whole)
        exact = one_shot_top_k_epsilon_each(k=k, candidates=candidates, epsilon=epsilon, delta=0.0)
        assert exact == optimal_epsilon_each(epsilon=epsilon, count=candidates, delta=0.0)
    for bad in (0, -1, 31):
        with pytest.raises(InputError, match="k lies between"):
            one_shot_top_k_epsilon_each(k=bad, candidates=30, epsilon=epsilon, delta=delta)


@for_each("epsilon", [1e-12, 1e-3, 0.9, 1.0, 1.5, 20.0, 699.0, 700.0, 701.0, 2000.0])
@for_each("rate", [1e-200, 1e-6, 0.3, 0.999])
def test_a_sample_costs_the_formula_rounded_up_and_hardly(epsilon: float, rate: float) -> None:
    with mpmath.workdps(1200):
        e, p = mpmath.mpf(epsilon), mpmath.mpf(rate)
        exact = mpmath.log1p(p * mpmath.expm1(e))
        found = subsampled_epsilon(epsilon, rate=rate)
        assert found == epsilon or exact <= found <= exact * (
            1 + mpmath.mpf(4e-15 if epsilon < 700 else 3e-12)
        )
        assert found <= epsilon
        inside = epsilon_of_the_sample(epsilon, rate=rate)
        root = mpmath.log1p(mpmath.expm1(e) / p)
        assert subsampled_epsilon(inside, rate=rate) <= epsilon
        assert root * (1 - mpmath.mpf(1e-11)) <= inside <= root * (1 + mpmath.mpf(1e-15))
        if epsilon < 1 and rate > 1e-7:
            assert inside >= root * (1 - mpmath.mpf(2e-14))


def test_samples_of_nothing_and_of_everything() -> None:
    assert subsampled_epsilon(0.7, rate=0.0) == 0.0
    assert subsampled_epsilon(0.7, rate=1.0) == epsilon_of_the_sample(0.7, rate=1.0) == 0.7
    assert subsampled_epsilon(0.0, rate=0.4) == epsilon_of_the_sample(0.0, rate=0.4) == 0.0
    for bad in (-1e-9, math.inf, math.nan):
        for function in (subsampled_epsilon, epsilon_of_the_sample):
            with pytest.raises(InputError, match="epsilon is finite"):
                function(bad, rate=0.5)
    for bad in (-1e-9, 1 + 1e-9, 1.5, math.nan):
        for function in (subsampled_epsilon, epsilon_of_the_sample):
            with pytest.raises(InputError, match="a rate lies in"):
                function(0.5, rate=bad)
    with pytest.raises(InputError, match="always empty"):
        epsilon_of_the_sample(0.5, rate=0.0)


@for_each("epsilon", [1e-12, 1e-6, 0.01, 0.5, 1.0, 7.0, 40.0])
def test_targets_are_rounded_to_the_safe_side_and_hardly(epsilon: float) -> None:
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        small = mpmath.mpf("6e-15")
        wrapper = e + mpmath.log(3 / (2 + mpmath.exp(-e)))
        assert wrapper <= boundary_epsilon(epsilon) <= wrapper * (1 + small)
        y = mpmath.exp(e)
        inside = mpmath.log((y + mpmath.sqrt(y * y + 3 * y)) / 3)
        assert inside * (1 - small) <= boundary_wrapped_epsilon(epsilon) <= inside
        assert boundary_epsilon(boundary_wrapped_epsilon(epsilon)) <= epsilon
        exact = 1 / (1 + y)
        assert exact * (1 - small) <= not_prior_q(epsilon) <= exact
        runs = (1 + y) / (1 + y + 2 * y * y)
        assert runs * (1 - small) <= differing_runs_q(epsilon) <= runs
        for call in (boundary_epsilon(epsilon), 2 * epsilon):
            t = mpmath.mpf(call)
            least = mpmath.expm1(t) / (2 * mpmath.expm1(e + t))
            assert least * (1 - small) <= boundary_q(epsilon, call) <= least
    assert boundary_q(epsilon) == boundary_q(epsilon, boundary_epsilon(epsilon))
    for bad in (math.nextafter(boundary_epsilon(epsilon), 0), math.inf, math.nan):
        with pytest.raises(InputError, match="at best"):
            boundary_q(epsilon, bad)


def test_the_smallest_numbers_have_a_wrapped_epsilon() -> None:
    for place in range(1, 60):
        inside = boundary_wrapped_epsilon(place * 5e-324)
        assert inside == 0 or boundary_epsilon(inside) <= place * 5e-324


@for_each("epsilon", [1e-9, 0.01, 0.1, 1.0, 3.0, 30.0])
def test_a_wrapped_epsilon_is_found_in_a_few_looks(monkeypatch: pytest.MonkeyPatch, epsilon: float) -> None:
    looks: list[float] = []

    def look(inside: float) -> float:
        looks.append(inside)
        return boundary_epsilon(inside)

    monkeypatch.setattr(targets, "boundary_epsilon", look)
    boundary_wrapped_epsilon(epsilon)
    assert 0 < len(looks) <= 3


def test_the_smallest_number_is_its_own_wrapped_epsilon() -> None:
    assert boundary_epsilon(5e-324) == boundary_wrapped_epsilon(5e-324) == 5e-324


def test_the_mean_of_a_not_prior_target_needs_an_epsilon() -> None:
    assert not_prior_mean(5e-324) == not_prior_mean(1e300) == 0.5
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="epsilon is finite"):
            not_prior_mean(bad)


@for_each(
    ("change", "words"),
    [
        ({"epsilon": 0.0}, "epsilon is finite"),
        ({"epsilon": math.inf}, "epsilon is finite"),
        ({"charges": 0}, "charges is at least 1"),
        ({"targets": 0}, "targets is at least 1"),
        ({"q": 0.0}, "q lies in"),
        ({"q": 1.0 + 1e-9}, "q lies in"),
        ({"q": 1.9}, "q lies in"),
        ({"mean": 0.4 - 1e-9}, "at least the least"),
        ({"mean": 1 + 1e-9}, "at least the least"),
        ({"total": -1e-9}, "total is finite"),
        ({"total": math.inf}, "total is finite"),
    ],
)
def test_what_is_just_out_of_range_is_refused(change: dict[str, float], words: str) -> None:
    least: dict[str, Any] = {"total": 0.0, "epsilon": 5e-3, "charges": 1, "q": 0.4, "mean": 0.4, "targets": 1}
    target_charging_delta(**least)
    target_charging_delta(**(least | {"mean": 1.0}))
    with pytest.raises(InputError, match=words):
        target_charging_delta(**(least | change))
