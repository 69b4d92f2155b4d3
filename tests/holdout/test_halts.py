"""Halts: each budget, single questions and batches, and what still works afterwards."""

import pandas as pd
import pytest

from reusable_holdout import (
    Halted,
)

BOTH = pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])


@BOTH
def test_the_guard_halts_when_the_charges_are_spent(make_guard, spend, place, scoring):
    guard = make_guard(place)
    answers = spend(guard)
    assert [answer.charges_left for answer in answers] == [2, 1, 0]
    assert guard.halted
    assert guard.halt_reason == "charges"
    with pytest.raises(Halted, match="all 3 charges are spent") as halt:
        guard.evaluate_predictions(scoring(0.61), prior=0.61)
    assert halt.value.reason == "charges"
    assert halt.value.answers == []
    assert halt.value.history["value"].tolist() == [answer.value for answer in answers]
    pd.testing.assert_frame_equal(halt.value.history, guard.history())
    assert guard.queries_asked == 3


@BOTH
def test_the_guard_halts_when_the_queries_are_asked(make_guard, place, scoring):
    guard = make_guard(place, queries=5)
    for k in range(5):
        guard.evaluate_predictions(scoring(0.7, k), prior=0.7)
    assert guard.halted
    with pytest.raises(Halted, match="all 5 declared queries are asked") as halt:
        guard.evaluate_predictions(scoring(0.7, 5), prior=0.7)
    assert halt.value.reason == "queries"
    with pytest.raises(Halted) as halt:
        guard.evaluate_many([scoring(0.7, 6)] * 2, [0.7] * 2)
    assert halt.value.reason == "queries"


@BOTH
def test_the_guard_halts_when_the_answers_have_said_too_much(make_guard, place, scoring):
    guard = make_guard(place, resolution=0.001)
    guard.evaluate_predictions(scoring(1.0), prior=0.0)
    guard.evaluate_predictions(scoring(0.999), prior=0.0)
    with pytest.raises(Halted, match="have said all") as halt:
        guard.evaluate_predictions(scoring(0.998), prior=0.0)
        guard.evaluate_predictions(scoring(0.997), prior=0.0)
    assert halt.value.reason == guard.halt_reason == "code"
    assert int(guard.history()["charged"].sum()) < 3
    assert guard.charges_left == 0


@BOTH
def test_replays_are_free_after_a_halt(make_guard, spend, place, scoring):
    guard = make_guard(place)
    answers = spend(guard)
    again = spend(guard)
    assert all(answer.replayed for answer in again)
    assert [answer.value for answer in again] == [answer.value for answer in answers]
    batch = guard.evaluate_many([scoring(0.7, k) for k in range(3)], [0.85] * 3)
    assert batch == again
    assert guard.queries_asked == 3


@BOTH
def test_a_halt_inside_a_batch_keeps_what_was_released_before_it(make_guard, place, scoring):
    guard = make_guard(place)
    guard.evaluate_predictions(scoring(0.7), prior=0.85)
    asked = [scoring(0.6), scoring(0.7, 1), scoring(0.7, 2), scoring(0.6, 1), scoring(0.7, 3)]
    with pytest.raises(Halted, match="3 of the batch were answered") as halt:
        guard.evaluate_many(asked, [0.6, 0.85, 0.85, 0.6, 0.85])
    released = halt.value.answers
    assert [(answer.query, answer.charged) for answer in released] == [(2, False), (3, True), (4, True)]
    assert guard.history()["query"].tolist() == [1, 2, 3, 4]
    assert halt.value.history["value"].tolist() == guard.history()["value"].tolist()
    again = guard.evaluate_many(asked[:3], [0.6, 0.85, 0.85])
    assert [answer._replace(replayed=False, charges_left=0) for answer in again] == [
        answer._replace(charges_left=0) for answer in released
    ]


def test_a_batch_answers_its_replays_up_to_the_halt(make_guard, spend, scoring):
    guard = make_guard()
    spend(guard, 2)
    asked = [scoring(0.7), scoring(0.7, 2), scoring(0.7, 1), scoring(0.6), scoring(0.7)]
    with pytest.raises(Halted) as halt:
        guard.evaluate_many(asked, [0.85, 0.85, 0.85, 0.6, 0.85])
    assert [answer.query for answer in halt.value.answers] == [1, 3, 2]
    assert [answer.replayed for answer in halt.value.answers] == [True, False, True]


def test_a_batch_that_ends_with_the_last_charge_does_not_raise(make_guard, scoring):
    guard = make_guard()
    answers = guard.evaluate_many([scoring(0.7, k) for k in range(3)], [0.85] * 3)
    assert answers[-1].charges_left == 0
    assert guard.halted


def test_a_batch_after_the_halt_halts_even_if_it_is_too_large(make_guard, spend, scoring):
    guard = make_guard(queries=4)
    spend(guard)
    with pytest.raises(Halted):
        guard.evaluate_many([scoring(0.6, k) for k in range(4)], [0.6] * 4)


def test_no_except_exception_swallows_a_halt():
    assert not issubclass(Halted, Exception)
