"""What every code charges is minus the logarithm of a weight: all weights, as fractions, from the codes' own words."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from cases import for_each, refuses

from reusable_holdout.certainty import (
    THEORY,
    Cell,
    CellCode,
    FactorCode,
    SpanCode,
    TranscriptCode,
    choice_nats,
    worst_choice_nats,
)
from reusable_holdout.certainty.outcome_code import Span
from reusable_holdout.earlier.plans import StepCode
from reusable_holdout.errors import InputError

PHI, EARLY = Fraction(1, 8), Fraction(3, 10)
OTHER = replace(THEORY, early_share=float(EARLY))
FIRST = Fraction(str(THEORY.first_share_of_finals))
NEAR = {"rel": 1e-12, "abs": 1e-12}


def cost(weight):
    """Of a fraction, however small."""
    return math.log(weight.denominator) - math.log(weight.numerator)


# ---- the transcript code


def number_weight(charges, most):
    """Of a number of charges, at most so many, or of any number."""
    if most is None:
        return Fraction(1, 2 ** (charges + 1))
    if most == 0:
        return Fraction(1)
    return Fraction(1, 2 * max(most, charges)) if charges else Fraction(1, 2)


def final_weight(charges, most):
    """Of a number of charges before a final."""
    if not charges:
        return FIRST
    if most is None:
        return (1 - FIRST) / 2**charges
    most = max(most, charges)
    return (1 - FIRST) * Fraction(most + 1, most * charges * (charges + 1))


@for_each("queries", [1, 2, 7, None])
@for_each("most", [1, 2, 5, None])
def test_a_question_has_a_weight_by_its_place_and_its_charges(queries, most):
    code = TranscriptCode(queries, most, float(PHI), theory=OTHER)
    for query in range(1, (queries or 7) + 1):
        for charges in range(query):
            if queries is None:
                places = query * (query + 1) * math.comb(query - 1, charges)
            else:
                places = math.comb(queries, charges + 1)
            weight = (1 - PHI) * number_weight(charges, None if most is None else most - 1) / places
            length = code.length(query=query, charges=charges, nats=2.5)
            assert length == pytest.approx(2.5 + cost(weight), **NEAR)
            plain = code.length(query=query, charges=charges)
            assert plain == code.length(query=query, charges=charges, nats=0.0)


@for_each("queries", [1, 2, 7, None])
@for_each("most", [1, 2, 5, None])
def test_a_final_has_a_weight_by_the_last_charges_place(queries, most):
    code = TranscriptCode(queries, most, float(PHI), theory=OTHER)
    for last in range((queries or 7) + 1):
        for charges in range(last + 1):
            weight = PHI * final_weight(charges, most)
            if charges:
                by_last = Fraction(1, (last + 1) * math.comb(last, charges))
                even = Fraction(1, math.comb(queries, charges)) if queries else 0
                weight *= (1 - EARLY) * even + EARLY * by_last if queries else by_last
            length = code.final_length(charges=charges, nats=2.5, last_charge=last)
            assert length == pytest.approx(2.5 + cost(weight), **NEAR)
            plain = code.final_length(charges=charges, last_charge=last)
            assert plain == code.final_length(charges=charges, nats=0.0, last_charge=last)
            if last == (queries or 0):
                assert plain == code.final_length(charges=charges)


def test_places_that_are_far_cheaper_one_way_than_the_other_have_a_length():
    code = TranscriptCode(queries=10**6, charges=300)
    early = code.final_length(charges=300, last_charge=300)
    share = THEORY.final_share * float(final_weight(300, 300))
    expected = math.log(301 / THEORY.early_share) - math.log(share)
    assert early == pytest.approx(expected, rel=1e-9)
    late = code.final_length(charges=300)
    assert late == pytest.approx(
        math.log(math.comb(10**6, 300)) - math.log(share * (0.9 + 0.1 / (10**6 + 1))), rel=1e-9
    )


@for_each(("query", "charges"), [(0, 0), (-1, -1), (1, 1), (3, 3), (3, -1), (8, 0)])
def test_a_question_that_cannot_be_is_refused_and_its_neighbours_are_not(query, charges):
    code = TranscriptCode(queries=7, charges=3)
    refuses(InputError, "query must be", code.length, query=query, charges=charges)
    assert code.length(query=1, charges=0) == code.length(query=7, charges=0) > 0.0
    assert TranscriptCode(queries=1, charges=1).length(query=1, charges=0) == -math.log(0.25)


@for_each(("charges", "last"), [(-1, 3), (4, 3)])
def test_a_final_that_cannot_be_is_refused_and_its_neighbours_are_not(charges, last):
    code = TranscriptCode(queries=7, charges=5)
    with pytest.raises(InputError, match="a final has at least 0 charges"):
        code.final_length(charges=charges, last_charge=last)
    refuses(InputError, "a final has at least 0 charges", TranscriptCode().final_length, charges=1)
    assert code.final_length(charges=3, last_charge=3) > code.final_length(charges=0, last_charge=0)


@for_each("declared", [{"queries": 0}, {"charges": 0}, {"queries": -1}])
def test_nothing_is_declared_of_fewer_than_one(declared):
    refuses(InputError, "must be at least 1 or None", TranscriptCode, **declared)


# ---- cells and spans

CELLS = CellCode(
    (Cell(1, 3.0, math.inf, 0.1), Cell(1, 1.0, 3.0, 0.2), Cell(0, 0.0, 0.5, 0.3), Cell(-1, 0.5, 4.0, 0.25)),
    failed=0.05,
)


@for_each(
    ("deviation", "place"),
    [
        *((0.0, 2), (-0.0, 2), (0.49, 2), (-0.49, 2), (0.5, 1), (0.9, 1), (1.0, 1), (2.9, 1), (3.0, 0)),
        *((1e300, 0), (-0.5, 3), (-3.9, 3)),
    ],
)
def test_a_deviation_is_in_the_nearest_cell_of_its_side_that_reaches_beyond_it(deviation, place):
    assert CELLS.place(deviation) == place


def test_no_deviation_at_all_is_one_of_the_overfitting_side():
    assert (THEORY.charge.cells[THEORY.charge.place(0.0)].side, THEORY.charge.place(-1e-9)) == (1, 5)


@for_each("deviation", [-4.0, -1e9, math.inf, math.nan])
def test_a_deviation_beyond_all_cells_is_refused(deviation):
    refuses(InputError, "no cell holds a deviation", CELLS.place, deviation)


@for_each("code", [CELLS, SpanCode((Span(-1.0, 1.0, 0.0, 0.1), Span(-9.0, 9.0, 0.0, 0.6)), failed=0.05)])
def test_outcomes_cost_minus_the_logarithms_of_their_weights(code):
    weights = [one.weight for one in (code.cells if isinstance(code, CellCode) else code.spans)]
    assert code.nats == tuple(-math.log(weight) for weight in weights)
    assert code.failure_nats == code.worst == -math.log(0.05)
    assert replace(code, failed=0.5).worst == -math.log(0.1)


# ---- choices, steps and factors


@for_each("candidates", [1, 2, 9])
def test_a_winners_weight_is_half_by_its_rank_and_half_even(candidates):
    for rank in range(1, candidates + 1):
        weight = (Fraction(1, rank * (rank + 1)) + Fraction(1, candidates)) / 2
        assert choice_nats(rank, candidates) == pytest.approx(cost(weight), **NEAR)
    assert worst_choice_nats(candidates) == choice_nats(candidates, candidates)
    for rank in (-1, 0, candidates + 1):
        refuses(InputError, "a rank lies in", choice_nats, rank, candidates)


@for_each("places", [1, 2, 9])
@for_each("failed", [1 / 32, 1 / 2, 31 / 32])
def test_a_steps_weight_of_an_earlier_ladder_is_half_by_its_number_and_half_even(places, failed):
    code = StepCode(places, failed)
    for steps in range(1, places + 1):
        weight = (Fraction(1, steps * (steps + 1)) + Fraction(1, places)) / 2 * (1 - Fraction(failed))
        assert code.nats(steps) == pytest.approx(cost(weight), **NEAR)
    assert code.failure_nats == pytest.approx(cost(Fraction(failed)), **NEAR)
    dearest = min(Fraction(failed), (1 - Fraction(failed)) / (2 * places))
    assert code.worst == pytest.approx(cost(dearest), **NEAR)
    everything = [code.failure_nats, *(code.nats(steps) for steps in range(1, places + 1))]
    assert math.fsum(math.exp(-nats) for nats in everything) <= 1.0


@for_each(("below", "above"), [(3, 2), (1, 4)])
def test_a_factors_cell_and_weight_follow_from_its_distance(below, above):
    code = FactorCode(below, above, first=0.5, growth=0.25)
    edges = [0.5 * k + 0.25 * k * k for k in range(9)]  # exact
    weights = {}
    for place in range(-below, above + 1):
        rank = 2 * place + 1 if place >= 0 else 2 * -place
        weights[place] = (Fraction(1, rank * (rank + 1)) + Fraction(1, below + 1 + above)) / 2
        assert code.nats(place) == pytest.approx(cost(weights[place]), **NEAR)
        low = edges[place] if place > 0 else -edges[1 - place]
        assert code.least(place) == math.exp(low)
        middle = (
            (edges[place] + edges[place + 1]) / 2 if place > 0 else -(edges[-place] + edges[1 - place]) / 2
        )
        for inside in (0.0, -0.1, 0.1) if place == 0 else (middle, low + 1e-9):
            assert code.place(math.exp(inside)) == place
    assert code.worst == pytest.approx(cost(min(weights.values())), **NEAR)
    assert code.place(math.exp(edges[1] + 1e-12)) == 1
    assert code.place(math.exp(50.0)) == above  # the last one is open
    assert code.place(1.0) == 0
    for place in (-below - 1, above + 1):
        for asked in (code.nats, code.least):
            refuses(InputError, "a cell lies in", asked, place)
    assert code.place(math.exp(-edges[below + 1] + 1e-9)) == -below
    refuses(InputError, "no cell holds a factor", code.place, math.exp(-edges[below + 1] - 1e-9))


def test_a_factor_at_an_edge_is_in_the_farther_cell():
    code = FactorCode(2, 2, first=math.log(2.0), growth=0.0)
    assert [code.place(factor) for factor in (2.0, 4.0, 8.0, 0.5, 0.25)] == [1, 2, 2, -1, -2]
    assert [FactorCode(1, 1, 0.5, 0.25).place(factor) for factor in (0.3, 3.0, 0.9)] == [-1, 1, 0]
    refuses(InputError, "no cell holds", code.place, 0.125)


def test_more_charges_than_were_declared_cost_no_place() -> None:
    code = TranscriptCode(queries=5, charges=3)
    places = math.log(11 * math.comb(10, 6) / THEORY.early_share)  # none are even: 6 of 5 questions cannot be
    share = THEORY.final_share * float(final_weight(6, 3))
    found = code.final_length(charges=6, last_charge=10)
    assert found < places - math.log(share)
    assert found == pytest.approx(-math.log(share * (0.9 + 0.1 / (11 * math.comb(10, 6)))), rel=1e-12)
