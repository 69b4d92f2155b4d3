"""Attacks that ask by reveals, choices and finals, too: what is asked, and that a miss of any of them is a miss."""

import numpy as np
import pytest
from attacks import boosting_attack, coin_truth, flip_attack
from made_guards import made_guard

ROWS = 1_000


@pytest.fixture
def mixed(imported):
    return imported("asking.ways").Mixed


def guard_of(settings, metric="accuracy"):
    labels = np.random.default_rng(0).integers(0, 2, ROWS)
    wish = {"queries": 120, "charges": 4, "threshold": 0.06, "seed": 0, "vacuous": True}
    return made_guard(None, labels, metric=metric, **wish, **settings)


def attacked(way, attack, metric="accuracy"):
    truth = coin_truth(ROWS, metric)
    return attack(way.holdout, rows=ROWS, truth=truth, metric=metric, questions=60, seed=0)


@pytest.mark.parametrize("attack", [boosting_attack, flip_attack])
def test_all_kinds_are_asked_and_every_submission_is_answered(mixed, attack):
    guard = guard_of(mixed.settings)
    way = mixed(guard, seed=2)
    result = attacked(way, attack)
    assert len(result.answers) == len(result.truths) >= 60
    assert way.covered(result)
    assert min(way.told[kind] for kind in ("reveal", "choose", "slice")) >= 1
    assert sum(way.told.values()) >= 6
    assert guard.halt_reason == "final"
    assert set(guard.history()["way"]) == {"reveal", "choose", "final", "view", "check"}


@pytest.mark.parametrize("metric", ["accuracy", "zero_one_loss"])
def test_who_was_not_chosen_is_told_to_be_no_better_than_the_winner(mixed, metric):
    guard = guard_of(mixed.settings, metric=metric)
    answers = attacked(mixed(guard, seed=4), boosting_attack, metric).answers
    losers = [
        answer for answer in answers if answer.way == "choose" and {answer.low, answer.high} & {0.0, 1.0}
    ]
    assert losers
    for answer in losers:
        assert answer.low <= answer.value <= answer.high
        assert (answer.low == 0.0) == guard.metric.greater_is_better


def miss(answer):
    return answer._replace(low=0.9, high=1.0)


def test_a_miss_of_the_final_is_a_miss(mixed, monkeypatch):
    guard = guard_of(mixed.settings)
    way = mixed(guard, seed=2)
    result = attacked(way, flip_attack)
    told = guard.final
    monkeypatch.setattr(guard, "final", lambda several: list(map(miss, told(several))))
    assert not way.covered(result)


def test_a_miss_about_an_earlier_submission_is_a_miss(mixed):
    way = mixed(guard_of(mixed.settings), seed=4)
    result = attacked(way, flip_attack)
    assert way._released
    way._released[-1] = way._released[-1]._replace(low=0.9, high=1.0)
    assert result.covered
    assert not way.covered(result)
