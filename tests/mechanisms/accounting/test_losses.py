"""Grids of privacy losses: how far they reach, how fine they are, and what is infinite."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import pytest
from cases import for_each

from reusable_holdout.mechanisms.accounting import losses, optimal_composition, optimal_delta
from reusable_holdout.mechanisms.accounting.losses import composed_delta, composed_epsilon, pure_profile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def with_failure(failure: float, epsilon: float) -> losses.Profile:
    """Randomized response, all of whose secret is told with some probability."""

    def profile(epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return failure + (1 - failure) * pure_profile(epsilon, epsilons)

    return profile


@for_each("epsilon", [0.01, 0.3, 7.0, 150.0])
@for_each("failure", [0.0, 1e-9, 0.01, 0.9])
def test_a_loss_reaches_as_far_as_its_profile_falls(epsilon: float, failure: float) -> None:
    assert losses._reach(with_failure(failure, epsilon), 0.0) == pytest.approx(epsilon, rel=1e-5)


def test_a_loss_beyond_the_least_delta_that_matters_is_infinite() -> None:
    """Where the profile of randomized response is at the least delta: in closed form."""
    least = 0.25
    reach = losses._reach(functools.partial(pure_profile, 2.0), least)
    assert reach == pytest.approx(2.0 + math.log1p(-least * (1 + math.exp(-2.0))), rel=1e-9)


def test_no_grid_has_more_points_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """One large loss among many small ones, which would have a finer grid."""
    parts = [(functools.partial(pure_profile, 4.0), 1), (functools.partial(pure_profile, 0.001), 10_000)]
    found, step = losses._discretised(parts, 1e-12)
    wished = math.sqrt(0.0005 * 16 / 10_001)
    assert step == pytest.approx(
        0.001 / math.ceil(0.001 / wished), rel=1e-9
    )  # the commonest loss is on the grid
    monkeypatch.setattr(losses, "_MOST_POINTS", 2**12)
    found, step = losses._discretised(parts, 1e-12)
    assert step == pytest.approx(4.0 / 2**10, rel=1e-9)
    assert [-loss.first for loss in found] == [2**10, 1]
    alone = optimal_delta(total=3.0, epsilon=4.0, count=1)
    assert composed_delta(parts, 3.0) >= alone


def test_an_epsilon_beyond_a_million_is_found() -> None:
    """Beyond the largest sum nothing is left; every release is surely of the larger loss."""
    count, epsilon = 20_000, 100.0
    found = composed_epsilon([(functools.partial(pure_profile, epsilon), count)], 1e-6)
    assert found == pytest.approx(count * epsilon, rel=1e-3)


@for_each("delta", [1e-3, 0.01])
def test_what_surely_fails_as_often_has_no_epsilon(delta: float) -> None:
    assert composed_epsilon([(with_failure(delta, 0.1), 1)], delta * 0.99) == math.inf
    assert composed_epsilon([(with_failure(delta, 0.1), 1)], delta * 1.01) < 0.1


@for_each(("epsilon", "count"), [(1e-3, 10), (0.1, 1000), (3.0, 50), (20.0, 30)])
@for_each("delta", [1e-9, 0.1])
def test_randomized_response_costs_its_optimal_composition(epsilon: float, count: int, delta: float) -> None:
    """Whatever its size: the tilt that a convolution needs goes from thousands to a hundredth."""
    found = composed_epsilon([(functools.partial(pure_profile, epsilon), count)], delta)
    exact = optimal_composition(epsilon=epsilon, count=count, delta=delta)
    assert exact * (1 - 1e-9) <= found <= exact * 1.001
