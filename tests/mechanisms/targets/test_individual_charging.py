"""Individual charging: the delta of a whole interaction, who pays for a count, and what is refused."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from scipy import special

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.mechanisms.targets.individual import IndividualCharging


class NoNoise:
    """Noise that is 0, so that who is counted can be seen."""

    def draw(self, *_: Any, **__: Any) -> int:
        return 0


def noiseless(records: int, charges: int) -> IndividualCharging:
    counts = IndividualCharging(records, charges=charges, epsilon=1.0, delta=1e-6)
    counts._noise = NoNoise()  # type: ignore[assignment]
    return counts


def delta_of_record(
    counts: IndividualCharging, distance: int, *, charges: int, queries: int, epsilon: float, joins: bool
) -> float:
    """Delta, at an epsilon, of `queries` counts that a record is part of until it is charged `charges` times.

    On integers a published count is likelier by exactly ``exp(e)`` either with the record or without it, so that the
    transcripts are enumerated by how many counts of either kind they hold, and by when the last came.
    """
    law, each = counts._law, counts.epsilon_each
    far = distance + min(
        4000, round(500 / each)
    )  # beyond it is one outcome, of a chance that is still a number
    low = [law.log_pmf(v) for v in range(distance, far)]  # without the record: count 0, threshold distance
    high = [law.log_pmf(v - 1) for v in range(distance, far)]
    tails = law.log_tail(far), law.log_tail(far - 1)
    p, r = np.exp([*low, tails[0]]), np.exp([*high, tails[1]])
    up = r > p
    assert np.abs(np.abs(np.log(r / p)) - each) == pytest.approx(0.0, abs=1e-9)
    ways = {name: (p[mask].sum(), r[mask].sum()) for name, mask in (("up", up), ("down", ~up))}
    silent = 1 - p.sum(), 1 - r.sum()
    first, second = (1, 0) if joins else (0, 1)
    total = 0.0
    for published in range(charges + 1):
        for rising in range(published + 1):
            steps = np.arange(charges, queries + 1) if published == charges else np.array([queries])
            places = (
                special.gammaln(steps + (published < charges))
                - special.gammaln(steps - published + 1)
                - special.gammaln(published + (published < charges))
            )
            choice = math.log(math.comb(published, rising))
            logs = []
            for which in (first, second):
                mass = np.log(np.maximum([ways["up"][which], ways["down"][which]], 1e-300))
                logs.append(
                    choice
                    + places
                    + rising * mass[0]
                    + (published - rising) * mass[1]
                    + (steps - published) * math.log(silent[which])
                )
            total += float(np.maximum(0.0, np.exp(logs[0]) - np.exp(logs[1] + epsilon)).sum())
    return total


@pytest.mark.long(*MECHANISMS)
@for_each("charges", [1, 4, 12])
@for_each(("epsilon", "delta"), [(1.0, 1e-3), (3.0, 1e-6), (0.5, 0.05)])
def test_adding_or_removing_a_record_keeps_the_delta(epsilon: float, delta: float, charges: int) -> None:
    counts = IndividualCharging(1, charges=charges, epsilon=epsilon, delta=delta)
    distances = np.round(np.linspace(-2, 10, 13) / counts.epsilon_each).astype(int).tolist()

    def worst(leaves_at: int, queries: int) -> float:
        return max(
            delta_of_record(
                counts, distance, charges=leaves_at, queries=queries, epsilon=epsilon, joins=joins
            )
            for distance in distances
            for joins in (True, False)
        )

    for queries in (charges, 20 * charges, 400 * charges):
        assert worst(charges, queries) <= delta
    # The same audit rejects an interaction in which the record would leave after four times the charges.
    assert worst(4 * charges, 400 * charges) > delta


def test_a_record_pays_for_the_published_counts_it_is_part_of_and_then_leaves() -> None:
    counts = noiseless(4, charges=2)
    everyone, first_two = [True] * 4, [True, True, False, False]
    assert counts.ask(first_two, 2) == 2
    assert counts.ask(first_two, 3) is None  # not published: nobody pays
    assert counts.ask(everyone, 4) == 4
    assert counts.ask(everyone, 0) == 2  # the first two have paid twice and left
    assert counts.ask(first_two, -1) == 0
    assert counts.ask(everyone, 0) == 0
    assert counts.ask(everyone, 1) is None


def test_a_count_equal_to_its_threshold_is_published() -> None:
    counts = noiseless(3, charges=9)
    assert counts.ask([True] * 3, 3.0) == 3
    assert counts.ask([True] * 3, math.nextafter(3.0, 4.0)) is None


def test_the_published_count_carries_laplace_noise_of_one_over_epsilon() -> None:
    counts = IndividualCharging(5, charges=3, epsilon=1.0, delta=1e-6)
    assert float(counts._law.scale) == pytest.approx(1 / counts.epsilon_each, rel=1e-15)


def test_an_array_and_a_list_are_the_same_predicate_and_a_seed_repeats_the_answers() -> None:
    truth = np.arange(100) < 40

    def answers(seed: int | None, predicate: Any) -> list[int | None]:
        counts = IndividualCharging(100, charges=10, epsilon=1.0, delta=1e-6, seed=seed)
        return [counts.ask(predicate, -1e9) for _ in range(10)]

    assert answers(1, truth) == answers(1, truth.tolist())
    assert answers(1, truth) != answers(2, truth)
    assert answers(None, truth) != answers(None, truth)


@for_each(
    "predicate",
    [
        [True],
        [True] * 4,
        [[True] * 3],
        [1, 0, 1],
        [0.5, 0.0, 1.0],
        True,
        [None, True, False],
        "yes",
        [[True], [True, False]],
    ],
)
def test_anything_but_one_boolean_per_record_is_refused_without_telling_their_number(predicate: Any) -> None:
    counts = IndividualCharging(3, charges=1, epsilon=1.0, delta=1e-6)
    with pytest.raises(InputError) as caught:
        counts.ask(predicate, 0.0)
    assert (
        str(caught.value)
        == "a predicate has one boolean for each record; got something else; nothing was charged"
    )


@for_each("threshold", [math.nan, math.inf, -math.inf])
def test_a_threshold_is_finite(threshold: float) -> None:
    counts = IndividualCharging(1, charges=1, epsilon=1.0, delta=1e-6)
    with pytest.raises(InputError, match="a threshold is a finite number"):
        counts.ask([True], threshold)


@for_each("wish", [{"records": 0}, {"charges": 0}, {"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}])
def test_a_parameter_out_of_range_is_refused(wish: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        IndividualCharging(**({"records": 1, "charges": 1, "epsilon": 1.0, "delta": 1e-6} | wish))


def test_neither_its_text_nor_its_pickle_tells_a_record() -> None:
    counts = IndividualCharging(17, charges=1, epsilon=1.0, delta=1e-6)
    assert repr(counts) == f"IndividualCharging(epsilon_each={counts.epsilon_each})"
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(HandleError):
            duplicate(counts)
