"""What the best of a random number of private runs costs: exact laws, by the series over the number of runs."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import mpmath
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import ACCOUNTING
from mechanisms.accounting.repeated import best_of, border, generating, run_probabilities

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import Repetitions

if TYPE_CHECKING:
    from collections.abc import Sequence

LAWS = [
    Repetitions(mean=4.0, shape=1.0),
    Repetitions(mean=4.0),
    Repetitions(mean=12.0, shape=0.5),
    Repetitions(mean=3.0, shape=-0.5),
    Repetitions(mean=6.0, shape=3.0),
    Repetitions(mean=5.0, shape=math.inf),
]


@for_each("law", [*LAWS, Repetitions(mean=0.3, shape=math.inf), Repetitions(mean=1.0, shape=2.0)])
def test_the_law_sums_to_one_and_has_its_mean(law: Repetitions) -> None:
    runs = run_probabilities(law)
    assert float(mpmath.fsum(runs.values())) == pytest.approx(1.0, abs=1e-12)
    assert float(mpmath.fsum(k * p for k, p in runs.items())) == pytest.approx(law.mean, rel=1e-9)


@for_each("law", LAWS)
def test_the_series_over_the_runs_is_the_generating_function(law: Repetitions) -> None:
    runs = run_probabilities(law)
    for z in (0.0, 0.2, 0.9, 1.0):
        series = mpmath.fsum(p * mpmath.mpf(z) ** k for k, p in runs.items())
        assert float(series) == pytest.approx(float(generating(law, z)), abs=1e-12)


def loss(law: Repetitions, one: Sequence[float], other: Sequence[float]) -> float:
    """Largest loss of the best run, in both directions."""
    pairs = zip(best_of(law, one), best_of(law, other), strict=True)
    return max(abs(float(mpmath.log(p / q))) for p, q in pairs)


@for_each("law", LAWS)
@for_each("epsilon", [0.05, 0.5, 2.0])
def test_epsilon_is_what_an_algorithm_with_a_rare_outcome_at_its_border_loses(
    law: Repetitions, epsilon: float
) -> None:
    found = loss(law, *border(epsilon, rare=1e-4))
    assert 0.999 * law.epsilon(epsilon) <= found <= law.epsilon(epsilon)


@given(
    st.sampled_from(LAWS),
    st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(-1.0, 1.0)), min_size=2, max_size=6),
)
def test_no_algorithm_loses_more(law: Repetitions, outcomes: list[tuple[float, float]]) -> None:
    one = [weight / math.fsum(w for w, _ in outcomes) for weight, _ in outcomes]
    tilted = [p * math.exp(log) for p, (_, log) in zip(one, outcomes, strict=True)]
    other = [p / math.fsum(tilted) for p in tilted]
    epsilon = max(abs(math.log(p / q)) for p, q in zip(one, other, strict=True))
    assert loss(law, one, other) <= law.epsilon(epsilon) + 1e-9


@for_each("law", LAWS)
def test_equal_scores_do_not_cost_more(law: Repetitions) -> None:
    """Outcomes of equal score share what the best of their group has in proportion to their chances."""
    for epsilon in (0.3, 1.5):
        (low, rare, high), (low_, rare_, high_) = border(epsilon, rare=0.1)
        ours, theirs = best_of(law, [low + rare, high]), best_of(law, [low_ + rare_, high_])
        shares = [rare / (low + rare), rare_ / (low_ + rare_)]
        assert abs(mpmath.log(ours[0] * shares[0] / (theirs[0] * shares[1]))) <= law.epsilon(epsilon)


@for_each("shape", [-0.9, -0.5, 0.0, 0.5, 1.0, 4.0])
def test_epsilon_is_below_the_published_bound_and_close_to_it_for_many_runs(shape: float) -> None:
    for epsilon in (0.01, 0.5, 3.0):
        bounds = [Repetitions(mean=mean, shape=shape).epsilon(epsilon) for mean in (1.0, 1.5, 3.0, 8.0)]
        assert bounds == sorted(bounds)
        assert bounds[0] == epsilon
        assert bounds[-1] < (2 + shape) * epsilon
    many = Repetitions(mean=1e6, shape=max(shape, -0.5))
    assert many.epsilon(0.5) == pytest.approx((2 + many.shape) * 0.5, rel=1e-5)


@for_each("law", LAWS)
def test_the_inverses_stay_below_and_come_close(law: Repetitions) -> None:
    for epsilon in (0.01, 1.0, 8.0):
        each = law.epsilon_each(epsilon)
        assert law.epsilon(each) <= epsilon
        assert law.epsilon(each) == pytest.approx(epsilon, rel=1e-9)
    for delta in (1e-12, 1e-6, 0.3):
        assert law.delta(law.delta_each(delta)) <= delta
        assert law.delta(law.delta_each(delta)) == pytest.approx(delta, rel=1e-9)
    assert law.delta_each(0.0) == 0.0


@for_each("law", LAWS)
def test_delta_is_the_chance_that_any_run_fails(law: Repetitions) -> None:
    for delta in (1e-9, 1e-3, 0.5, 1.0):
        failed = float(1 - generating(law, mpmath.mpf(1) - delta))
        assert law.delta(delta) == pytest.approx(failed, rel=1e-9)
        assert law.delta(delta) <= law.mean * delta * (1 + 1e-9)


@for_each("law", LAWS)
@for_each(("epsilon", "delta"), [(0.5, 0.01), (1.0, 0.2)])
def test_runs_that_are_approximately_private_stay_within_epsilon_and_delta(
    law: Repetitions, epsilon: float, delta: float
) -> None:
    """The outcomes that betray are the best, so that any run that has one is published."""
    one, other = border(epsilon, rare=1e-3)
    ours = [*((1 - delta) * p for p in one), delta, 0.0]
    theirs = [*((1 - delta) * p for p in other), 0.0, delta]
    total = law.epsilon(epsilon)
    pairs = list(zip(best_of(law, ours), best_of(law, theirs), strict=True))
    found = mpmath.fsum(max(mpmath.mpf(0), p - mpmath.exp(total) * q) for p, q in pairs)
    assert 0.999 * law.delta(delta) <= float(found) <= law.delta(delta) + 1e-12


@pytest.mark.long(*ACCOUNTING)
@for_each("law", LAWS)
@for_each("order", [1.5, 3.0, 20.0])
def test_the_renyi_cost_is_above_the_exact_divergence(law: Repetitions, order: float) -> None:
    for epsilon, rare in itertools.product((0.1, 1.0), (1e-3, 0.2)):
        one, other = border(epsilon, rare=rare)

        def run(a: float, one: Sequence[float] = one, other: Sequence[float] = other) -> float:
            pairs = [*zip(one, other, strict=True)]
            both = (mpmath.fsum(mpmath.mpf(p) ** a * mpmath.mpf(q) ** (1 - a) for p, q in way)
                    for way in (pairs, [(q, p) for p, q in pairs]))  # fmt: skip
            return float(max(mpmath.log(total) for total in both) / (a - 1))

        ours, theirs = best_of(law, one), best_of(law, other)
        exact = max(
            mpmath.log(mpmath.fsum(p**order * q ** (1 - order) for p, q in zip(*way, strict=True)))
            for way in ((ours, theirs), (theirs, ours))
        ) / (order - 1)
        assert float(exact) <= law.renyi(order, run)


def test_the_renyi_cost_is_the_published_formula() -> None:
    law = Repetitions(mean=30.0, shape=1.0)
    second = min((1 - 1 / b) * 0.01 * b + math.log(30) / b for b in (1 + x / 1000 for x in range(1, 10**5)))
    wanted = 0.01 * 8 + 2 * second + math.log(30) / 7
    assert law.renyi(8.0, lambda order: 0.01 * order) == pytest.approx(wanted, rel=1e-4)
    poisson = Repetitions(mean=30.0, shape=math.inf)
    # Of (epsilon, 0)-private runs delta is 0 where epsilon is below ln(1 + 1/(order - 1)).
    assert poisson.renyi(1.5, lambda order: min(0.02, 0.0002 * order)) == pytest.approx(
        0.0003 + math.log(30) / 0.5, rel=1e-6
    )


def test_pure_runs_cost_two_or_three_times_their_epsilon_at_large_orders() -> None:
    for shape in (0.0, 1.0):
        law = Repetitions(mean=10.0, shape=shape)
        assert law.renyi(1e6, lambda order: 0.3) == pytest.approx((2 + shape) * 0.3, rel=1e-3)
        assert law.epsilon(0.3) <= law.renyi(1e6, lambda order: 0.3)


@for_each(
    "bad",
    [
        {"mean": 0.5},
        {"mean": math.inf},
        {"mean": math.nan},
        {"mean": 3.0, "shape": -1.0},
        {"mean": 3.0, "shape": math.nan},
        {"mean": 3.0, "shape": 1e-20},
        {"mean": 3.0, "shape": -0.9999},
        {"mean": 0.0, "shape": math.inf},
    ],
)
def test_laws_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Repetitions(**bad)


@for_each("law", [Repetitions(mean=3.0), Repetitions(mean=3.0, shape=math.inf)])
def test_costs_out_of_range_are_refused(law: Repetitions) -> None:
    for bad in (-0.1, math.inf, math.nan):
        with pytest.raises(InputError):
            law.epsilon(bad)
    for bad in (0.0, math.inf):
        with pytest.raises(InputError):
            law.epsilon_each(bad)
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError):
            law.delta(bad)
    for bad in (-0.1, 1.0):
        with pytest.raises(InputError):
            law.delta_each(bad)
    for bad in (1.0, math.inf):
        with pytest.raises(InputError):
            law.renyi(bad, lambda order: order)


def test_a_poisson_law_of_small_mean_has_no_renyi_cost_and_no_stopping_probability() -> None:
    law = Repetitions(mean=0.5, shape=math.inf)
    with pytest.raises(InputError, match="at least 1"):
        law.renyi(2.0, lambda order: order)
    with pytest.raises(InputError, match="stopping"):
        law.stop  # noqa: B018 - a property that raises
