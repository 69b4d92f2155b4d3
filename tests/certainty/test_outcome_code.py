"""Public weights of what can be told: they sum to one, hold every deviation, and cost no more than is planned for."""

import itertools
import math

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from reusable_holdout.certainty import THEORY, FactorCode, choice_nats, worst_choice_nats

CODES = {"charge": THEORY.charge, "reveal": THEORY.reveal, "gate": THEORY.gate}
deviations = st.floats(-1e6, 1e6)


# ---- cells


@for_each("code", CODES.values(), ids=CODES.keys())
def test_the_weights_of_all_outcomes_and_of_a_failure_sum_to_one(code):
    weights = [*(cell.weight for cell in code.cells), code.failed]
    assert min(weights) > 0.0
    assert math.fsum(weights) == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(weights) <= 1.0 + 1e-15
    told = [*code.nats, code.failure_nats]
    assert math.fsum(math.exp(-nats) for nats in told) == pytest.approx(1.0, abs=1e-12)


def test_no_outcome_costs_more_than_its_cap():
    assert THEORY.charge.worst <= 2.13
    assert THEORY.reveal.worst <= 3.7
    assert THEORY.gate.worst <= THEORY.charge.worst
    for code in CODES.values():
        assert code.worst == max(*code.nats, code.failure_nats)


@for_each("code", CODES.values(), ids=CODES.keys())
def test_the_cells_of_a_side_follow_each_other_without_a_gap(code):
    for side in (1, -1):
        own = sorted((cell.near, cell.far) for cell in code.cells if cell.side in (side, 0))
        assert all(before[1] == after[0] for before, after in itertools.pairwise(own))
        if code is not THEORY.gate or side == -1:
            assert own[-1][1] == math.inf


def test_cells_widen_outwards_as_their_deviations_do():
    """Geometrically: so a few of them reach as far as a value can be off."""
    for code in (THEORY.charge, THEORY.reveal):
        for cell in code.cells:
            if cell.near >= 1.0 and cell.far < math.inf:
                assert 1.5 <= cell.far / cell.near <= 4.0


def test_an_honest_deviation_is_told_in_the_narrowest_cells():
    """Charges come from just beyond the threshold, reveals from a unit around the prior."""
    for code in (THEORY.charge, THEORY.reveal):
        cheapest = max(code.cells, key=lambda cell: cell.weight)
        assert cheapest.near == (1.0 if code is THEORY.charge else 0.0)
    for deviation in (1.2, -1.2):
        assert THEORY.charge.nats[THEORY.charge.place(deviation)] < 2.1
        assert THEORY.reveal.nats[THEORY.reveal.place(deviation)] < 1.7


@given(deviation=deviations)
def test_every_deviation_that_can_be_charged_or_revealed_is_in_its_cell(deviation):
    for code in (THEORY.charge, THEORY.reveal):
        cell = code.cells[code.place(deviation)]
        assert cell.side in (0, 1 if deviation >= 0 else -1)
        distance = abs(deviation)
        assert distance < cell.far
        assert distance >= cell.near or (code is THEORY.charge and distance < 1.0 and cell.near == 1.0)


def test_a_deviation_that_noise_has_brought_below_the_threshold_is_in_the_nearest_cell_of_its_side():
    assert THEORY.charge.cells[THEORY.charge.place(0.4)] == THEORY.charge.cells[THEORY.charge.place(1.5)]
    assert THEORY.charge.cells[THEORY.charge.place(-0.4)] == THEORY.charge.cells[THEORY.charge.place(-1.5)]


# ---- choices


def test_a_choice_costs_what_was_planned_for():
    assert worst_choice_nats(100) + THEORY.reveal.worst <= 9.0
    within_one_cell = max(
        THEORY.reveal.nats[THEORY.reveal.place(deviation)] for deviation in (-1.4, 0.0, 1.4)
    )
    assert choice_nats(1, 33) + within_one_cell <= 3.0


# ---- factors


def test_the_weights_of_factors_sum_to_at_most_one():
    total = sum(
        math.exp(-THEORY.counts.nats(place)) for place in range(-THEORY.counts.below, THEORY.counts.above + 1)
    )
    assert 0.98 < total <= 1.0
    assert 4.8 < THEORY.counts.worst < 4.9


@given(st.floats(-29.0, 29.0))
def test_a_factor_is_at_least_what_its_cell_tells_and_near_it(exponent):
    factor = math.exp(exponent)
    place = THEORY.counts.place(factor)
    assert THEORY.counts.least(place) <= factor * (1.0 + 1e-12)
    if place < THEORY.counts.above:  # the last one is open
        assert factor / THEORY.counts.least(place) <= max(
            math.exp(2 * 0.052), math.exp(0.06 + 0.024 * abs(place))
        )


def test_near_guesses_are_the_cheapest():
    costs = [THEORY.counts.nats(THEORY.counts.place(factor)) for factor in (1.0, 0.9, 0.5, 0.1, 0.001)]
    assert costs == sorted(costs)
    assert costs[0] < 1.36


def test_what_was_told_of_counts_is_the_price_of_no_cell_one_or_two_or_at_least_three():
    code = FactorCode(below=4, above=2, first=0.1, growth=0.02)
    prices = [code.nats(place) for place in range(-4, 3)]
    least = 3.0 * code.nats(0)
    possible = [0.0, *prices, *map(sum, itertools.product(prices, prices)), least, 1.3 * least]
    assert all(code.are_told_for(nats) for nats in possible)
    assert all(code.are_told_for(nats + error) for nats in possible[:-2] for error in (1e-12, -1e-12))
    below = [nats for nats in possible if nats < least]
    for nats in (*below, -code.nats(0), 0.97 * least):
        assert not code.are_told_for(nats + 1e-4)
