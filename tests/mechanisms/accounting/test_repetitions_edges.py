"""Repetitions at sixty digits: rounded up and hardly, at the limits of a law's parameters, and over which orders."""

from __future__ import annotations

import math

import mpmath
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import Repetitions, repetitions
from reusable_holdout.mechanisms.accounting.repetitions import _mean

LAWS = [
    Repetitions(mean=4.0, shape=1.0),
    Repetitions(mean=4.0),
    Repetitions(mean=12.0, shape=0.5),
    Repetitions(mean=3.0, shape=-0.5),
    Repetitions(mean=1.0 + 1e-9, shape=3.0),
    Repetitions(mean=5.0, shape=math.inf),
]


def slightly_above(found: float, exact: mpmath.mpf) -> bool:
    """Above a number by no more than a few units in its twelfth digit."""
    return bool(exact * (1 + mpmath.mpf("0.5e-12")) <= found <= exact * (1 + mpmath.mpf("2e-12")))


@for_each("law", LAWS)
@for_each("epsilon", [1e-3, 0.5, 6.0])
def test_costs_are_the_formulas_rounded_up(law: Repetitions, epsilon: float) -> None:
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        if law.poisson:
            exact = e + law.mean * mpmath.tanh(e / 2)
        else:
            g = mpmath.mpf(law.stop)
            exact = e + (1 + law.shape) * mpmath.log((mpmath.exp(e) + g) / (1 + g * mpmath.exp(e)))
        assert slightly_above(law.epsilon(epsilon), exact)
        for delta in (1e-9, 0.01, 0.4):
            d = mpmath.mpf(delta)
            if law.poisson:
                failed = -mpmath.expm1(-law.mean * d)
            elif law.shape == 0:
                failed = 1 - mpmath.log(1 - (1 - g) * (1 - d)) / mpmath.log(g)
            else:
                eta = mpmath.mpf(law.shape)
                failed = 1 - ((1 - (1 - g) * (1 - d)) ** -eta - 1) / (g**-eta - 1)
            if law.mean > 2:  # the other's stopping probability keeps few digits
                assert slightly_above(law.delta(delta), failed)
            each = law.delta_each(delta)
            assert law.delta(each) <= delta < law.delta(math.nextafter(each, 1.0) * (1 + 1e-15))
    assert law.delta(1.0) == 1.0 or law.poisson
    assert Repetitions(mean=100.0, shape=math.inf).delta(1.0) == 1.0
    assert law.delta(0.0) == law.epsilon(0.0) == 0.0
    each = law.epsilon_each(epsilon)
    assert law.epsilon(each) <= epsilon < law.epsilon(math.nextafter(each, 9.0) * (1 + 1e-15))


def test_a_single_run_costs_itself() -> None:
    for shape in (0.0, 1.0, -0.5):
        law = Repetitions(mean=1.0, shape=shape)
        assert (law.stop, law.epsilon(0.3), law.delta(0.2)) == (1.0, 0.3, 0.2)
        assert (law.epsilon_each(0.3), law.delta_each(0.2)) == (0.3, 0.2)


@for_each("shape", [0.0, 0.5, 2.0, -0.5])
@for_each("mean", [1 + 1e-9, 1.5, 40.0, 1e7])
def test_a_law_stops_where_it_has_its_mean(shape: float, mean: float) -> None:
    with mpmath.workdps(60):
        g, eta = mpmath.mpf(Repetitions(mean=mean, shape=shape).stop), mpmath.mpf(shape)
        exact = (1 - g) / (-mpmath.log(g) * g) if shape == 0 else eta * (1 - g) / (g * (1 - g**eta))
        assert float(exact) == pytest.approx(mean, rel=1e-11)
    assert Repetitions(mean=1 + 1e-13, shape=shape).stop == math.exp(-1e-12)
    assert Repetitions(mean=7.0, shape=1.0).stop == 1 / 7


@for_each("law", LAWS)
def test_an_epsilon_that_is_used_up_exactly_has_its_run(law: Repetitions) -> None:
    for run in (1e-9, 0.1, 0.3, 0.7, 2.0):
        assert law.epsilon_each(law.epsilon(run)) >= run
        assert law.delta_each(law.delta(run / 9)) >= run / 9


def test_the_law_is_logarithmic_unless_told_and_its_orders_are_a_fixed_grid() -> None:
    assert Repetitions(mean=3.0).shape == 0.0
    assert repetitions._ORDERS.tolist() == pytest.approx(ORDERS, rel=1e-13)


@for_each("mean", [0.0, -1.0, math.inf, math.nan])
def test_the_mean_of_a_law_that_runs_at_least_once_is_not_called_poissons(mean: float) -> None:
    with pytest.raises(InputError, match="the mean number of runs"):
        Repetitions(mean=mean, shape=2.0)


ORDERS = [10 ** (-6 + 12 * place / 480) for place in range(481)]  # less 1


@for_each(
    "law", [*LAWS[:4], LAWS[5], Repetitions(mean=1.0, shape=math.inf), Repetitions(mean=30.0, shape=2.0)]
)
@for_each("rho", [1e-7, 0.01, 3.0])
@for_each("order", [1.01, 8.0, 400.0])
def test_the_renyi_cost_is_the_least_over_the_orders(law: Repetitions, rho: float, order: float) -> None:
    first = order * rho + math.log(law.mean) / (order - 1)
    if law.poisson:
        at = math.log1p(1 / (order - 1))
        logs = [b * ((1 + b) * rho - at) + b * math.log(b) - (1 + b) * math.log1p(b) for b in ORDERS]
        exact = first + law.mean * math.exp(min(0.0, *logs))
    else:
        rest = -math.log(law.stop)
        second = min(rest, *((b * (1 + b) * rho + rest) / (1 + b) for b in ORDERS))
        exact = first + (1 + law.shape) * second
    found = law.renyi(order, lambda a: a * rho)
    assert exact * (1 + 0.8e-12) < found < exact * (1 + 1.2e-12)


def test_an_order_may_be_infinitely_bad() -> None:
    """What no order bounds costs what the number of runs tells."""
    law = Repetitions(mean=4.0, shape=1.0)
    found = law.renyi(3.0, lambda order: 0.5 if order == 3.0 else math.inf)
    assert found == pytest.approx(0.5 + 2 * math.log(4) + math.log(4) / 2, rel=1e-11)
    poisson = Repetitions(mean=4.0, shape=math.inf)
    found = poisson.renyi(3.0, lambda order: 0.5 if order == 3.0 else math.inf)
    assert found == pytest.approx(0.5 + 4 + math.log(4) / 2, rel=1e-11)


@for_each(
    ("taken", "refused"),
    [
        ([(3.0, 1e-12), (3.0, -1e-12), (3.0, 0.0)], [(3.0, 0.9e-12), (3.0, -0.9e-12), (3.0, 1e-300)]),
        ([(1.0, -0.999), (1.0, 9.0)], [(1.0, -1.0), (1.0, -1.5), (1.0, math.nan)]),
        (
            [(1.0, 0.0), (1e9, 0.0)],
            [(math.nextafter(1.0, 0), 0.0), (0.0, 1.0), (math.inf, 0.0), (math.nan, 0.0)],
        ),
        ([(1e-9, math.inf), (1e9, math.inf)], [(0.0, math.inf), (-1.0, math.inf), (math.inf, math.inf)]),
        ([(_mean(1e-280, -0.9) * (1 - 1e-9), -0.9)], [(_mean(1e-280, -0.9), -0.9), (1e300, -0.9)]),
    ],
)
def test_a_law_is_taken_up_to_its_limits(
    taken: list[tuple[float, float]], refused: list[tuple[float, float]]
) -> None:
    for mean, shape in taken:
        Repetitions(mean=mean, shape=shape)
    for mean, shape in refused:
        with pytest.raises(InputError):
            Repetitions(mean=mean, shape=shape)


def test_a_shape_is_above_minus_one() -> None:
    for shape in (-1.0, -1.5, math.nan):
        with pytest.raises(InputError, match="shape is 0, or above -1"):
            Repetitions(mean=1.0, shape=shape)


def test_costs_are_taken_up_to_their_limits() -> None:
    law = Repetitions(mean=3.0)
    for bad in (-1e-9, math.inf, math.nan):
        with pytest.raises(InputError, match="epsilon is finite"):
            law.epsilon(bad)
        with pytest.raises(InputError, match="epsilon is finite and above 0"):
            law.epsilon_each(bad)
    with pytest.raises(InputError, match="above 0"):
        law.epsilon_each(0.0)
    assert law.renyi(1.0 + 1e-9, lambda _: 0.0) > 1.0
    assert law.delta_each(1 - 1e-9) < 1.0
    for bad in (1.0, 1.5, -1e-9, math.nan):
        with pytest.raises(InputError, match="delta lies in"):
            law.delta_each(bad)
    for bad in (1 + 1e-9, 1.5, -1e-9, math.nan):
        with pytest.raises(InputError, match="delta lies in"):
            law.delta(bad)
    for bad in (1.0, 0.5, math.inf, math.nan):
        with pytest.raises(InputError, match="an order is finite"):
            law.renyi(bad, lambda _: 0.0)
    with pytest.raises(InputError, match="a mean of at least 1"):
        Repetitions(mean=math.nextafter(1.0, 0), shape=math.inf).renyi(2.0, lambda _: 0.0)
