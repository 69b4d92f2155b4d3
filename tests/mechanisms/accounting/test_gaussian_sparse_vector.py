"""A sparse vector with normal noise: its epsilon from its divergences, its noise, and the limits of its parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cases import for_each
from long_tests import ACCOUNTING
from scipy import special

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    gaussian_sparse_vector,
    gaussian_sparse_vector_deviations,
    gaussian_sparse_vector_epsilon,
    gaussian_sparse_vector_rdp,
)
from reusable_holdout.mechanisms.accounting.gaussian_sparse_vector import divergences

ORDERS = [1 + 0.02 * 10 ** (5 * place / 119) for place in range(120)]  # from 1.02 to 2,001


@for_each(
    ("delta", "threshold", "query"),
    [(1e-6, 4.0, 8.0), (0.9, 20.0, 30.0), (1e-6, 0.02, 0.03), (1e-9, 900.0, 700.0)],
)
def test_epsilon_is_the_least_over_the_orders(delta: float, threshold: float, query: float) -> None:
    costs = divergences(np.array(ORDERS), 5, 2, 0.5 / threshold, 0.5 * 2 / query)
    exact = min(
        cost + math.log(1 - 1 / a) - math.log(delta * a) / (a - 1)
        for cost, a in zip(costs, ORDERS, strict=True)
    )
    stream: dict[str, Any] = {
        "queries": 5,
        "charges": 2,
        "threshold": threshold,
        "query": query,
        "sensitivity": 0.5,
    }
    found = gaussian_sparse_vector_epsilon(delta=delta, **stream)
    assert found == pytest.approx(max(exact, 5e-324), rel=1e-10)
    for order in (ORDERS[3], ORDERS[70]):
        again = gaussian_sparse_vector_rdp(order, **stream)
        assert again == pytest.approx(costs[ORDERS.index(order)], rel=1e-12)
    less = gaussian_sparse_vector_epsilon(delta=delta, monotonic=True, **stream)
    single = gaussian_sparse_vector_epsilon(delta=delta, **(stream | {"query": 2 * query}))
    assert less == pytest.approx(single, rel=1e-12)


@for_each(("queries", "charges"), [(1, 1), (1, 5), (2, 1), (7, 3), (7, 7), (50, 2)])
def test_at_large_orders_the_published_bound_counts(queries: int, charges: int) -> None:
    """Where the grid would be too coarse for the other: every term of Zhu and Wang's bound."""
    order, shift, moved = 1e6, 0.7, 0.2
    found = divergences(np.array([order]), queries, charges, moved, shift)[0]
    places = sum(math.comb(queries - 1, above) for above in range(min(charges, queries - 1) + 1))
    exact = order * moved**2 / 2 + charges * order * shift**2 / 2 + math.log(places) / (order - 1)
    assert found == pytest.approx(exact, rel=1e-12)
    small = divergences(np.array([1.0 + 1e-3]), queries, charges, moved, 1e-4)[0] - 1.001 * moved**2 / 2
    assert small <= charges * 1.001 * 1e-8 / 2 + math.log(places) / 1e-3


def gain(order: float, queries: int, shift: float) -> float:
    """Log of V_k of the notes, step by step, the next query at the worst of the same places."""
    at = np.linspace(-4.0, 12.0, 1201)
    above, moved = special.log_ndtr(-at), special.log_ndtr(-at - shift)
    below, less = special.log_ndtr(at), special.log_ndtr(at + shift)
    charged = np.exp(order * above + (1 - order) * moved)
    kept = np.exp(order * below + (1 - order) * less)
    value = 1.0
    for step in range(queries):
        del step
        value += 1.01 * max(0.0, float((charged + (kept - 1) * value).max()))
    return math.log(value)


@for_each("order", [1.5, 3.0, 9.0])
@for_each("queries", [1, 2, 15, 16])
def test_few_queries_are_taken_one_by_one(order: float, queries: int) -> None:
    found = divergences(np.array([order]), queries, 1, 0.0, 0.5)[0]
    published = order * 0.125 + math.log(queries) / (order - 1)
    assert found == pytest.approx(min(published, gain(order, queries, 0.5) / (order - 1)), rel=1e-9)
    twice = divergences(np.array([order]), 30, 2, 0.0, 0.2)[0]
    assert gain(order, 30, 0.2) <= twice / 2 * (order - 1) <= gain(order, 30, 0.2) * 1.05


@for_each("order", [20.0, 37.9, 38.1, 60.0])
def test_the_grid_is_used_as_long_as_it_is_fine_enough(order: float) -> None:
    """Up to a log-ratio of a tenth from one of its points to the next, times the order less one."""
    shift, queries = 0.21, 1000
    published = order * shift**2 / 2 + math.log(queries) / (order - 1)
    fine = (order - 1) * (shift + shift**2) * 12.0 / 1200 <= 0.1
    found = divergences(np.array([order]), queries, 1, 0.0, shift)[0]
    assert (found < published * (1 - 1e-3)) == fine


def test_a_grid_that_is_just_fine_enough_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_sparse_vector, "_STEEPEST", (5.0 - 1) * (0.25 + 0.0625) * 12.0 / 1200)
    for order, fine in ((5.0, True), (5.01, False)):
        found = divergences(np.array([order]), 1000, 1, 0.0, 0.25)[0]
        published = order * 0.03125 + math.log(1000) / (order - 1)
        assert (found < published * (1 - 1e-3)) == fine


def test_a_large_delta_needs_less_noise_than_where_the_search_starts() -> None:
    stream: dict[str, Any] = {"queries": 1, "charges": 1}
    threshold, query = gaussian_sparse_vector_deviations(epsilon=1.0, delta=0.9, **stream)
    assert threshold < 1
    for more, within in ((1.0, True), (1 - 3e-4, False)):
        noise = {"threshold": threshold * more, "query": query * more}
        assert (gaussian_sparse_vector_epsilon(delta=0.9, **stream, **noise) <= 1.0) == within


@pytest.mark.long(*ACCOUNTING)
def test_noise_is_what_it_was_and_keeps_epsilon() -> None:
    """Values of a version whose epsilons had been checked against integrals."""
    for (epsilon, delta, queries, charges, monotonic), wanted in {
        (1.0, 1e-06, 10, 1, False): (8.16620298638007, 11.548755016430366),
        (0.3, 0.001, 200, 2, True): (15.437293812789525, 24.661855173482753),
        (0.6, 0.3, 300, 100, True): (5.279309101626202, 30.6858851544497),  # by the largest ratio
        (1.0, 0.2, 10, 1, True): (1.614765960091984, 1.9643420413784416),
    }.items():
        stream: dict[str, Any] = {"queries": queries, "charges": charges, "monotonic": monotonic}
        found = gaussian_sparse_vector_deviations(epsilon=epsilon, delta=delta, **stream)
        assert found == pytest.approx(wanted, rel=4e-10)
        threshold, query = found
        there = gaussian_sparse_vector_epsilon(delta=delta, threshold=threshold, query=query, **stream)
        assert epsilon * (1 - 1e-3) <= there <= epsilon
        if monotonic:
            tripled = gaussian_sparse_vector_deviations(
                epsilon=epsilon, delta=delta, sensitivity=3.0, **stream
            )
            assert tripled == pytest.approx((3 * threshold, 3 * query), rel=1e-12)


WISH: dict[str, dict[str, Any]] = {
    "rdp": {"order": 2.0, "queries": 3, "charges": 1, "threshold": 0.5, "query": 0.5},
    "epsilon": {"delta": 0.1, "queries": 3, "charges": 1, "threshold": 0.5, "query": 0.5},
    "deviations": {"epsilon": 1.0, "delta": 0.1, "queries": 3, "charges": 1},
}
FUNCTIONS: dict[str, Any] = {
    "rdp": gaussian_sparse_vector_rdp,
    "epsilon": gaussian_sparse_vector_epsilon,
    "deviations": gaussian_sparse_vector_deviations,
}


@for_each("name", FUNCTIONS)
@for_each(
    ("parameter", "refused", "words"),
    [
        ("order", [1.0, 0.5, math.inf, math.nan], "an order is finite"),
        ("queries", [0, -1], "queries and charges are at least 1"),
        ("charges", [0, -1], "queries and charges are at least 1"),
        ("sensitivity", [0.0, -1.0, math.inf, math.nan], "a sensitivity is finite"),
        ("threshold", [0.0, -1.0, math.nan], "deviations are above 0"),
        ("query", [0.0, -1.0, math.nan], "deviations are above 0"),
        ("delta", [0.0, -0.1, 1.0, 1.5, math.nan], "needs a delta"),
        ("epsilon", [0.0, -1.0, math.inf, math.nan], "epsilon is finite"),
    ],
)
def test_parameters_out_of_range_are_refused(
    name: str, parameter: str, refused: list[float], words: str
) -> None:
    FUNCTIONS[name](**WISH[name])
    if parameter not in WISH[name] and parameter != "sensitivity":
        return
    for value in refused:
        with pytest.raises(InputError, match=words):
            FUNCTIONS[name](**(WISH[name] | {parameter: value}))


def test_unless_said_otherwise_queries_change_by_one_in_either_direction() -> None:
    stream: dict[str, Any] = {"queries": 3, "charges": 1}
    noise = {"threshold": 2.0, "query": 3.0}
    found = gaussian_sparse_vector_rdp(2.0, **stream, **noise)
    assert found == gaussian_sparse_vector_rdp(2.0, sensitivity=1.0, monotonic=False, **stream, **noise)
    less = gaussian_sparse_vector_rdp(2.0, monotonic=True, **stream, **noise)
    assert less == gaussian_sparse_vector_rdp(2.0, **stream, **(noise | {"query": 6.0})) < found
    wish: dict[str, Any] = {"epsilon": 0.7, "delta": 1e-3, **stream}
    either = gaussian_sparse_vector_deviations(**wish)
    assert either == gaussian_sparse_vector_deviations(sensitivity=1.0, monotonic=False, **wish)
    assert gaussian_sparse_vector_deviations(monotonic=True, **wish) < either


def test_a_threshold_whose_noise_is_infinite_costs_nothing() -> None:
    stream: dict[str, Any] = {"queries": 3, "charges": 1, "query": 2.0}
    without = gaussian_sparse_vector_rdp(2.0, threshold=math.inf, **stream)
    assert without == pytest.approx(gaussian_sparse_vector_rdp(2.0, threshold=1e9, **stream), rel=1e-12)


def test_where_an_epsilon_of_0_is_in_reach_noise_is_found_all_the_same() -> None:
    stream: dict[str, Any] = {"queries": 10, "charges": 3}
    threshold, query = gaussian_sparse_vector_deviations(epsilon=8.0, delta=0.95, **stream)
    for more, within in ((1.0, True), (1 - 3e-4, False)):
        noise = {"threshold": threshold * more, "query": query * more}
        assert (gaussian_sparse_vector_epsilon(delta=0.95, **stream, **noise) <= 8.0) == within


def test_no_noise_keeps_less_than_the_largest_order_can_tell() -> None:
    stream: dict[str, Any] = {"delta": 4.8e-9, "queries": 1, "charges": 2}
    with pytest.raises(InputError, match=r"epsilon is above 0\.0053 at delta 4\.8e-09"):
        gaussian_sparse_vector_deviations(epsilon=0.00113, **stream)
    threshold, query = gaussian_sparse_vector_deviations(epsilon=0.0054, **stream)
    assert gaussian_sparse_vector_epsilon(threshold=threshold, query=query, **stream) <= 0.0054
