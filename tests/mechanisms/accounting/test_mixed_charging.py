"""Mixed charging: the best t by looking everywhere, and its inverse."""

import math

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.mechanisms.accounting import mixed_charging_epsilon, mixed_charging_weight


def pace(t, largest, smallest):
    return np.asarray(-np.log1p(smallest * np.expm1(-t * largest / smallest)) / largest)


def best_t(value, heaviest):
    """Return the least value over all t, on finer and finer grids of its log."""
    low, high = -math.log(heaviest) - 30, -math.log(heaviest) + 3
    for _ in range(5):
        logs = np.linspace(low, high, 401)
        values = value(np.exp(logs))
        place = int(values.argmin())
        low, high = logs[max(place - 2, 0)], logs[min(place + 2, 400)]
    return float(values.min())


@for_each("delta", [1e-12, 1e-6, 0.3])
@for_each(("largest", "smallest"), [(0.01, 0.4), (0.5, 0.1), (2.0, 0.7), (0.5, 1e-20), (1e-20, 1e-20)])
@for_each("size", [0.01, 1.0, 300.0])
def test_the_bounds_are_the_best_over_all_t(delta, largest, smallest, size):
    heaviest = largest / smallest
    told = {"delta": delta, "largest_epsilon": largest, "smallest_q": smallest}

    def most(slack):
        return best_t(lambda t: (slack + t * size) / pace(t, largest, smallest), heaviest)

    log = math.log(2 / delta)
    rho = most(log) * largest / 2
    exact = min(most(-math.log(delta)), rho + 2 * math.sqrt(rho * log))
    found = mixed_charging_epsilon(weight=size, **told)
    assert exact * (1 + 0.5e-9) < found * (1 + 3e-10) < exact * (1 + 2e-9)

    def affordable(total, slack):
        return -best_t(lambda t: (slack - pace(t, largest, smallest) * total) / t, heaviest)

    rho = (math.sqrt(log + size) - math.sqrt(log)) ** 2
    exact = max(affordable(size, -math.log(delta)), affordable(2 * rho / largest, log))
    weight = mixed_charging_weight(epsilon=size, **told)
    if exact > 1e-6:
        assert weight == pytest.approx(exact, rel=1e-6)
        assert mixed_charging_epsilon(weight=weight, **told) <= size * (1 + 1e-9)
    if exact > 1e-2:
        assert weight < exact * (1 - 0.5e-9)


@for_each("weight", [1e-100, 1.0, 1e100])
@for_each("largest", [1e-100, 0.1, 1e100])
@for_each("smallest", [1e-100, 1.0])
@for_each("delta", [1e-300, 1 - 1e-16])
def test_the_most_extreme_parameters_have_a_price(weight, largest, smallest, delta):
    told = {"delta": delta, "largest_epsilon": largest, "smallest_q": smallest}
    assert 0 < mixed_charging_epsilon(weight=weight, **told) < math.inf
    assert -math.inf < mixed_charging_weight(epsilon=weight, **told) < math.inf
