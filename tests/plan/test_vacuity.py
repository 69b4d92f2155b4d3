"""Plans that say nothing: what counts as one, and what would say something."""

import math
from typing import get_args

import pytest
from cases import for_each, refuses
from long_tests import PLAN

from reusable_holdout import Plan
from reusable_holdout.errors import PlanError
from reusable_holdout.plan.numbers import Family

LOSS = (0.0, -math.log(0.01))  # of a log loss: its quarter is no round number


def refusal(plan):
    return refuses(PlanError, "", plan.check_says_something, vacuous=False)


def test_a_vacuous_promise_says_so():
    plan = Plan(rows=10, queries=1_000, charges=3)
    assert plan.vacuous
    assert "VACUOUS" in str(plan)
    assert "VACUOUS" not in str(Plan(rows=10_000, queries=1_000, tolerance=0.05))


@for_each("bounds", [(0.0, 1.0), (-3.0, 5.0), LOSS, (0.0, 1e-6)])
def test_a_tolerance_of_a_quarter_of_the_range_says_something_and_a_wider_one_does_not(bounds):
    span = bounds[1] - bounds[0]
    wish = {"rows": 5_000, "queries": 10, "family": "bounded", "bounds": bounds, "charges": 2}
    quarter = Plan(**wish, tolerance=0.25 * span)
    assert not quarter.vacuous
    quarter.check_says_something(vacuous=False)
    wider = Plan(**wish, tolerance=0.251 * span)
    assert wider.vacuous
    assert refusal(wider).nearest == {"tolerance": 0.25 * span}
    wider.check_says_something(vacuous=True)


def test_differences_are_promised_the_same_part_of_the_range_of_scores():
    """In their own range, which is twice as wide, a tolerance is half as large a part of it."""
    plan = Plan(rows=5_000, queries=10, charges=2, tolerance=0.25)
    assert not plan.vacuous
    assert (plan.scores.tolerance, plan.pairs.tolerance) == (0.25, 0.125)


@pytest.mark.long(*PLAN)
@for_each("family", sorted({*get_args(Family)} - {"paired"}))
@for_each("bounds", [(0.0, 1.0), LOSS])
def test_each_number_that_is_named_would_do_and_less_would_not(family, bounds):
    if family in ("binomial", "ratio") and bounds != (0.0, 1.0):
        return
    wish = {"rows": 150, "queries": 60, "charges": 4, "family": family, "bounds": bounds}
    found = refusal(Plan(**wish)).nearest
    assert set(found) <= {"rows", "estimate", "queries", "charges"}
    assert "rows" in found
    for name, value in found.items():
        percent = 0.01 * (bounds[1] - bounds[0])
        worse = value + {"rows": -1, "estimate": -percent}.get(name, 1)
        assert not Plan(**wish | {name: value}).vacuous, name
        assert Plan(**wish | {name: worse}).vacuous, name


def test_a_stated_tolerance_has_one_that_would_do_if_the_rows_allow_it():
    assert refusal(Plan(rows=2_000, queries=50, tolerance=0.4)).nearest == {"tolerance": 0.25}
    found = refusal(Plan(rows=60, queries=1_000, tolerance=0.9)).nearest
    assert set(found) == {"queries", "rows"}
    Plan(rows=found["rows"], queries=1_000, tolerance=0.25).check_says_something(vacuous=False)


def test_the_words_say_the_tolerance_the_range_and_what_to_do():
    assert str(refusal(Plan(rows=200, queries=50, charges=3))) == (
        "a guard's tolerance must be at most a quarter of the metric's range, 1, to say anything; it would be 0.321; "
        "it needs 358 rows or estimate=0.94 (if you expect it) or 6 queries, or another metric; nothing was made; "
        'pass allow={"vacuous"} to insist'
    )
