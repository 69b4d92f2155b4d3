"""Halts: each budget, single questions and batches, and what still works afterwards."""

import itertools

import numpy as np
import pandas as pd
import pytest
from cases import refuses

from reusable_holdout import verify
from reusable_holdout.errors import Halted


def test_the_guard_halts_when_the_charges_are_spent(make_guard, spend, place, scoring):
    guard = make_guard(place)
    answers = spend(guard)
    assert [answer.charges_left for answer in answers] == [2, 1, 0]
    assert guard.halted
    assert guard.halt_reason == "charges"
    with pytest.raises(Halted, match=r"all 3 charges are spent \(on queries 1, 2, 3\)") as halt:
        guard.evaluate(scoring(0.61), prior=0.61)
    assert halt.value.reason == "charges"
    assert halt.value.answers == []
    assert halt.value.history["value"].tolist() == [answer.value for answer in answers]
    pd.testing.assert_frame_equal(halt.value.history, guard.history())
    assert guard.queries_asked == 3


def test_a_halt_says_which_queries_were_charged_whatever_ended_it(make_guard, spend, scoring):
    for count, charged, left in [(1, "query 1", "2 charges"), (2, "queries 1, 2", "1 charge")]:
        guard = make_guard()
        assert str(spend(guard, count)[-1]).endswith(f"(corrected, charged; query {count}, {left} left)")
        guard.final(scoring(0.7))
        with pytest.raises(Halted, match=rf"a final was given, .* \(charges were paid on {charged}\);"):
            guard.evaluate(scoring(0.61), prior=0.61)


def test_the_guard_halts_when_the_queries_are_asked(make_guard, place, scoring):
    guard = make_guard(place, queries=5)
    for k in range(5):
        guard.evaluate(scoring(0.7, k), prior=0.7)
    assert guard.halted
    halt = refuses(Halted, "all 5 declared queries are asked", guard.evaluate, scoring(0.7, 5), prior=0.7)
    assert halt.reason == "queries"
    halt = refuses(Halted, "", guard.evaluate, list([scoring(0.7, 6)] * 2), prior=[0.7] * 2)
    assert halt.reason == "queries"


@pytest.mark.parametrize("way", ["check", "gate"])
def test_whatever_is_told_exactly_the_planned_charges_are_answered(make_guard, scoring, way):
    """Every sequence of near, far and farthest deviations to either side."""
    deviations = [(0.5, 0.65), (0.5, 0.95), (0.1, 0.99), (0.5, 0.35), (0.5, 0.05), (0.9, 0.01)]
    if way == "gate":  # "yes" is charged, so scores above what was named
        deviations = [(score, prior) for score, prior in deviations if score >= prior]
    for asked in itertools.product(deviations, repeat=3):
        guard = make_guard(gates=way == "gate", queries=10, **({"threshold": None} if way == "gate" else {}))
        for place, (score, prior) in enumerate(asked):
            asked_about = scoring(score, place)
            answer = (
                guard.gate(asked_about, prior) if way == "gate" else guard.evaluate(asked_about, prior=prior)
            )
            assert (answer.charged, answer.charges_left) == (True, 2 - place)
        assert guard.halt_reason == "charges"


def test_a_halt_inside_a_batch_keeps_what_was_released_before_it(make_guard, place, scoring):
    guard = make_guard(place)
    guard.evaluate(scoring(0.7), prior=0.85)
    asked = [scoring(0.6), scoring(0.7, 1), scoring(0.7, 2), scoring(0.6, 1), scoring(0.7, 3)]
    with pytest.raises(Halted, match="3 of the batch were answered") as halt:
        guard.evaluate(list(asked), prior=[0.6, 0.85, 0.85, 0.6, 0.85])
    released = halt.value.answers
    assert [(answer.query, answer.charged) for answer in released] == [(2, False), (3, True), (4, True)]
    assert guard.history()["query"].tolist() == [1, 2, 3, 4]
    assert halt.value.history["value"].tolist() == guard.history()["value"].tolist()
    again = guard.evaluate(list(asked[:3]), prior=[0.6, 0.85, 0.85])
    assert [answer._replace(replayed=False, charges_left=0) for answer in again] == [
        answer._replace(charges_left=0) for answer in released
    ]


def test_a_batch_that_ends_with_the_last_charge_does_not_raise(make_guard, scoring):
    guard = make_guard()
    answers = guard.evaluate([scoring(0.7, k) for k in range(3)], prior=[0.85] * 3)
    assert answers[-1].charges_left == 0
    assert guard.halted


def test_a_batch_after_the_halt_halts_even_if_it_is_too_large(make_guard, spend, scoring):
    guard = make_guard(queries=4)
    spend(guard)
    refuses(Halted, "", guard.evaluate, [scoring(0.6, k) for k in range(4)], prior=[0.6] * 4)


def test_no_except_exception_swallows_a_halt():
    assert not issubclass(Halted, Exception)


# ---- how many charges there are is a promise, whatever else is asked and told

WORST = [  # score, prior: the far cells on either side, near ones, and what agrees
    (0.02, 0.99),
    (0.99, 0.02),
    (0.5, 0.62),
    (0.5, 0.38),
    (0.5, 0.5),
]


def interleaved(guard, scoring, rng):
    """Ask at random, in the worst ways, whatever is allowed; stop at a halt. Charges left after each answer."""
    left, fresh = [], itertools.count()
    while not guard.halted:
        score, prior = WORST[rng.integers(len(WORST))]
        predictions = scoring(score, next(fresh) % 1_000)
        way = rng.integers(5)
        if way == 0 and guard.price("reveal").allowed:
            answer = guard.reveal(predictions, prior=prior)
        elif way == 1 and guard.price("choose", candidates=2).allowed:
            pair = [predictions, scoring(score, next(fresh) % 1_000)]
            answer = guard.choose(list(pair), [prior, 0.5]).answer
        elif guard.plan.asks == "gates" or way == 3:
            answer = guard.gate(predictions, prior)
        elif way == 2:
            answer = guard.compare(predictions, scoring(0.5), prior=prior - 0.5)
        else:
            answer = guard.evaluate(predictions, prior=prior)
        left.append((answer.charged, answer.charges_left))
    return left


@pytest.mark.parametrize("gates", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_whatever_is_asked_between_exactly_the_planned_charges_are_answered(
    make_guard, ledger, scoring, gates, noise
):
    settings = {"charges": 5, "queries": 150, "reveals": 3, "choices": [2, 2], "noise": noise}
    settings |= {"threshold": None if gates else 0.1}
    halts = set()
    for seed in range(8):
        path = ledger if seed == 0 else None
        guard = make_guard(path, gates=gates, seed=seed, **settings)
        left = interleaved(guard, scoring, np.random.default_rng(seed))
        halts.add(guard.halt_reason)
        charged = 0
        for was_charged, charges_left in left:
            charged += was_charged
            assert charges_left == 5 - charged
        assert charged == 5
        answer = guard.final(scoring(0.7))
        assert answer.low < 0.7 < answer.high
    assert halts == {"charges"}
    assert verify(ledger).problems == []


@pytest.mark.parametrize("tolerance", [0.2, 0.3])
def test_a_promised_tolerance_is_kept_whatever_was_told_before(make_guard, scoring, tolerance):
    """Up to the last charge, with all reveals and choices set aside taken at their dearest."""
    wish = {"tolerance": tolerance, "charges": 3, "threshold": None, "reveals": 2, "choices": [2]}
    guard = make_guard(**wish)
    for k in range(2):
        guard.reveal(scoring(0.02, k), prior=0.99)
    guard.choose([scoring(0.02, 2), scoring(0.03, 3)], [0.99, 0.98])
    for k in range(3):
        agreed = guard.evaluate(scoring(0.7, k), prior=0.7)
        assert not agreed.charged
        assert agreed.high - 0.7 <= tolerance + 1e-9
        assert 0.7 - agreed.low <= tolerance + 1e-9
        assert guard.evaluate(scoring(0.02, 10 + k), prior=0.99).charges_left == 2 - k
