"""Bisection ends between two neighbouring numbers, wherever it starts."""

import math

from cases import for_each

from reusable_holdout.mechanisms.accounting import bisection

EDGES = [5e-324, 1e-20, 0.3, 1.0, math.nextafter(1.0, 2), 1.9, 2.0, 3.0, 4.5, 1e9]


@for_each("edge", [0.0, *EDGES])
def test_the_smallest_number_is_the_one_from_which_it_holds(edge):
    assert bisection.smallest_from_zero(lambda number: number >= edge) == edge


@for_each("edge", EDGES)
def test_between_two_numbers_the_edge_is_found_from_either_side(edge):
    before = math.nextafter(edge, 0)
    assert bisection.smallest_between(lambda number: number >= edge, 0.0, 2e9) == edge
    assert bisection.largest_between(lambda number: number < edge, 0.0, 2e9) == before
    assert bisection.smallest_between(lambda _: True, before, edge) == edge
    assert bisection.largest_between(lambda _: True, before, edge) == before
