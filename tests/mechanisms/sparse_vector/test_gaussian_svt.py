"""Normal noise in the sparse vector technique: exact laws of streams by quadrature beside what the accountant says."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.sparse_vector.gaussian_audit import excess, renyi, transcript_laws
from scipy import optimize, special

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import GaussianSVT, RoundedNormal
from reusable_holdout.mechanisms.accounting import (
    gaussian_sparse_vector_deviations,
    gaussian_sparse_vector_epsilon,
    gaussian_sparse_vector_rdp,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS = (1.1, 2.0, 5.0, 16.0, 60.0)
DELTA = 1e-4


def one_charge(length: int, query: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Streams of a length: one distance from the threshold, and queries that rise, fall, or do one after the other."""
    place = -special.ndtri(min(0.5, 1 / length)) * query
    for distance in (0.0, 0.6 * place, place, 1.5 * place):
        for rising in (0, length // 2, length - 1, length):
            moves = np.where(np.arange(length) < rising, 1.0, -1.0)
            yield np.full(length, -distance), moves
            yield np.full(length, -distance), -moves


def mixed(length: int, query: float, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Streams of queries at different distances, each with a move of its own."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        yield rng.choice([-2.0, -1.0, 0.0, 1.0], length) * query, rng.choice([-1.0, 1.0], length)


STREAMS = {
    "one query": (1, 1, 3.0, 3.0),
    "ten queries": (10, 1, 2.0, 4.0),
    "ten queries, little noise": (10, 1, 0.8, 1.5),
    "many queries": (400, 1, 4.0, 9.0),
    "two charges": (12, 2, 3.0, 6.0),
    "three charges": (9, 3, 1.0, 3.0),
    "as many charges as queries": (5, 5, 2.0, 4.0),
}


def streams_of(name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    length, _, _, query = STREAMS[name]
    streams = list(one_charge(length, query))
    return streams if length > 20 else [*streams, *mixed(length, query, seed=length)]


@pytest.mark.long(*MECHANISMS)
@for_each("name", STREAMS)
def test_no_stream_diverges_more_than_the_accountant_says(name: str) -> None:
    """Of every order, in both directions; and no epsilon has a larger delta."""
    length, charges, threshold, query = STREAMS[name]
    wish = {"queries": length, "charges": charges, "threshold": threshold, "query": query}
    bounds = {order: gaussian_sparse_vector_rdp(order, **wish) for order in ORDERS}  # type: ignore[arg-type]
    epsilon = gaussian_sparse_vector_epsilon(delta=DELTA, **wish)  # type: ignore[arg-type]
    for values, moves in streams_of(name):
        own, neighbours = transcript_laws(values, moves, threshold=threshold, query=query, charges=charges)
        assert own.sum() == pytest.approx(1, abs=1e-9)
        for order in ORDERS:
            assert renyi(own, neighbours, order) <= bounds[order] * (1 + 1e-9)
            assert renyi(neighbours, own, order) <= bounds[order] * (1 + 1e-9)
        assert excess(own, neighbours, epsilon) <= DELTA


@pytest.mark.long(*MECHANISMS)
@for_each("name", ["ten queries", "many queries", "two charges"])
def test_monotonic_queries_diverge_less_and_never_more_than_said_of_them(name: str) -> None:
    length, charges, threshold, query = STREAMS[name]
    wish = {"queries": length, "charges": charges, "threshold": threshold, "query": query}
    bounds = {order: gaussian_sparse_vector_rdp(order, monotonic=True, **wish) for order in ORDERS}  # type: ignore[arg-type]
    for values, moves in streams_of(name)[:: 1 if length < 20 else 4]:
        for together in (np.maximum(moves, 0), np.minimum(moves, 0)):
            laws = transcript_laws(values, together, threshold=threshold, query=query, charges=charges)
            for order, bound in bounds.items():
                assert renyi(*laws, order) <= bound * (1 + 1e-9)
                assert renyi(*laws[::-1], order) <= bound * (1 + 1e-9)


def test_with_many_charges_the_step_by_step_bound_is_a_fraction_of_the_published_one() -> None:
    order, charges, queries, query = 12.0, 30, 10_000, 150.0
    ours = gaussian_sparse_vector_rdp(
        order, queries=queries, charges=charges, threshold=math.inf, query=query
    )
    transcripts = sum(math.comb(queries - 1, above) for above in range(charges + 1))
    published = 2 * charges * order / query**2 + math.log(transcripts) / (order - 1)
    assert 0 < ours < 0.1 * published


@for_each("order", [1.5, 4.0, 20.0])
@for_each("shift", [0.1, 0.5])
def test_the_worst_next_query_is_found_and_no_more_is_added_than_a_hundredth(
    order: float, shift: float
) -> None:
    """Step by step, each maximum sought by Brent's method: no shorter way, no grid."""

    def gained(x: float, value: float) -> float:
        logs = [special.log_ndtr(side) for side in (-x, -x - shift, x, x + shift)]
        above = math.exp(order * logs[0] + (1 - order) * logs[1])
        return above + math.exp(order * logs[2] + (1 - order) * logs[3]) * value

    value, query = 1.0, 2 / shift
    for steps in range(1, 41):
        best = optimize.minimize_scalar(
            lambda x, value=value: -gained(x, value),
            bounds=(-4, 10),
            method="bounded",
            options={"xatol": 1e-9},
        )
        value = -best.fun
        bound = gaussian_sparse_vector_rdp(order, queries=steps, charges=1, threshold=math.inf, query=query)
        exact = math.log(value) / (order - 1)
        published = 2 * order / query**2 + math.log(steps) / (order - 1)
        assert exact * (1 - 1e-12) <= bound <= min(published, 1.07 * exact) * (1 + 1e-12)


@pytest.mark.long(*MECHANISMS)
@for_each("queries", [1, 10_000])
@for_each("charges", [1, 20])
@for_each("epsilon", [0.1, 3.0])
def test_deviations_spend_all_of_epsilon_and_no_more(queries: int, charges: int, epsilon: float) -> None:
    held, each = gaussian_sparse_vector_deviations(
        epsilon=epsilon, delta=1e-6, queries=queries, charges=charges
    )
    wish = {"delta": 1e-6, "queries": queries, "charges": charges}
    spent = gaussian_sparse_vector_epsilon(threshold=held, query=each, **wish)  # type: ignore[arg-type]
    assert 0.99 * epsilon <= spent <= epsilon
    scaled = gaussian_sparse_vector_deviations(
        epsilon=epsilon, delta=1e-6, queries=queries, charges=charges, sensitivity=3.0
    )
    assert scaled == pytest.approx((3 * held, 3 * each))
    spread = math.hypot(held, each)
    for factor in (0.5, 2.0):  # another division of the noise is not much better

        def excessive(size: float, factor: float = factor) -> float:
            return (
                gaussian_sparse_vector_epsilon(
                    threshold=size / math.sqrt(factor) * held,
                    query=size * math.sqrt(factor) * each,
                    **wish,  # type: ignore[arg-type]
                )
                - epsilon
            )

        size = optimize.brentq(excessive, 0.3, 4.0, xtol=1e-2)
        other = size * math.hypot(held / math.sqrt(factor), each * math.sqrt(factor))
        assert spread <= 1.05 * other


def test_more_queries_charges_and_less_noise_cost_more() -> None:
    base = {"delta": 1e-6, "queries": 100, "charges": 3, "threshold": 10.0, "query": 30.0}
    least = gaussian_sparse_vector_epsilon(**base)  # type: ignore[arg-type]
    for more in ({"queries": 200}, {"charges": 4}, {"threshold": 9.0}, {"query": 29.0}, {"delta": 1e-7}):
        assert gaussian_sparse_vector_epsilon(**(base | more)) > least  # type: ignore[arg-type]


# The stream ------------------------------------------------------------------------------------------------


def test_it_draws_this_noise_and_rounds_it_up() -> None:
    stream = GaussianSVT(0.0, queries=50, charges=2, epsilon=0.7, delta=1e-6, sensitivity=0.3)
    held, each = gaussian_sparse_vector_deviations(
        epsilon=0.7, delta=1e-6, queries=50, charges=2, sensitivity=0.3
    )
    for scale, deviation in ((stream.scales.threshold, held), (stream.scales.query, each)):
        assert deviation * (1 - 1e-12) <= float(scale) * stream.step <= deviation * (1 + 2**-15)
    assert isinstance(stream._core._query_law, RoundedNormal)
    assert isinstance(stream._core._threshold_law, RoundedNormal)


def test_it_halts_after_its_charges_and_after_its_queries() -> None:
    stream = GaussianSVT(0.5, queries=5, charges=2, epsilon=1.0, delta=1e-6, sensitivity=1e-6)
    assert [stream.ask(value) for value in (0.1, 0.9, 0.2)] == [False, True, False]
    assert not stream.halted
    assert stream.ask_many([0.1, 0.2, 0.9]).tolist() == [False, False]
    assert (stream.halted, stream.charges_left) == (True, 1)
    for ask in (lambda: stream.ask(0.1), lambda: stream.ask_many([0.1])):
        with pytest.raises(BudgetError, match="0 left of 5; nothing was answered"):
            ask()
    assert stream.ask_many([]).tolist() == []
    charged = GaussianSVT(0.5, queries=50, charges=1, epsilon=1.0, delta=1e-6, sensitivity=1e-6)
    assert charged.ask_many([0.1, 0.9, 0.9]).tolist() == [False, True]
    with pytest.raises(BudgetError, match="0 left of 1"):
        charged.ask(0.1)


@for_each("seed", range(10))
def test_all_answers_are_within_the_accuracy(seed: int) -> None:
    stream = GaussianSVT(0.0, queries=100, charges=3, epsilon=1.0, delta=1e-6, seed=seed)
    alpha = stream.accuracy(queries=100, beta=1e-9)
    assert not stream.ask_many(np.full(97, -1.001 * alpha)).any()
    assert stream.ask_many(np.full(3, 1.001 * alpha)).all()


def test_accuracy_is_the_quantile_of_both_noises() -> None:
    stream = GaussianSVT(0.0, queries=1_000, epsilon=1.0, delta=1e-6)
    spread = math.hypot(float(stream.scales.threshold), float(stream.scales.query)) * stream.step
    expected = -spread * special.ndtri(0.05 / 2 / 1_000)
    assert expected <= stream.accuracy(queries=1_000, beta=0.05) <= expected * (1 + 1e-4)


@for_each("seed", range(3))
def test_many_at_once_are_answered_as_one_by_one(seed: int) -> None:
    one, many = (
        GaussianSVT(0.0, queries=40, charges=3, epsilon=2.0, delta=1e-6, seed=seed) for _ in range(2)
    )
    values = np.random.default_rng(seed).normal(-20, 20, 60)
    singly = []
    for value in values:
        if one.halted:
            break
        singly.append(one.ask(value))
    assert many.ask_many(values).tolist() == singly
    assert (many.charges_left, many.halted) == (one.charges_left, one.halted)


@for_each(
    "bad",
    [
        {"queries": 0},
        {"charges": 0},
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"delta": 0.0},
        {"delta": 1.0},
        {"sensitivity": 0.0},
        {"threshold": math.nan},
    ],
)
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    given = {"threshold": 0.0, "queries": 10, "charges": 1, "epsilon": 1.0, "delta": 1e-6} | bad
    with pytest.raises(InputError):
        GaussianSVT(**given)  # type: ignore[arg-type]


@for_each(
    "bad",
    [{"order": 1.0}, {"order": math.inf}, {"threshold": 0.0}, {"query": -1.0}, {"sensitivity": math.inf}],
)
def test_the_accountant_refuses_what_is_out_of_range(bad: dict[str, float]) -> None:
    given = {"order": 2.0, "queries": 10, "charges": 1, "threshold": 1.0, "query": 1.0} | bad
    order = given.pop("order")
    with pytest.raises(InputError):
        gaussian_sparse_vector_rdp(order, **given)  # type: ignore[arg-type]


def test_the_scales_are_fractions_of_the_deviations() -> None:
    stream = GaussianSVT(0.0, queries=10, epsilon=1.0, delta=1e-6)
    assert isinstance(stream.scales.query, Fraction)
    assert stream.scales.answer == 0
